/*
 * assert.h
 *	  ZKL_ASSERT(condition): what the core relies on, of itself and of its host;
 *	  and where tests put bugs.
 *
 * If it is not so, the core has a bug, and what it believes is worth nothing.  The host
 * then ends the process (zkl_assert_failed), in production too.  The end of the worker
 * is the end of its session: that costs locks, but not their safety.
 *
 * A condition costs no more than some comparisons.  It never depends on what ZooKeeper,
 * another client, another server or a backend wrote: whatever that is, there is an
 * answer to it.  None stands in what a host calls from its offer or recall.
 */
#ifndef ZKL_CORE_ASSERT_H
#define ZKL_CORE_ASSERT_H

#define ZKL_ASSERT(condition) \
	((condition) ? (void) 0 : zkl_assert_failed(#condition, __FILE__, __LINE__))

/* The host's: it must not return. */
extern void zkl_assert_failed(const char *condition, const char *file, int line)
			__attribute__((noreturn, cold));

/* ---- mutant ---- */

/*
 * ZKL_MUTANT(bug) stands where a rule lives, and is false: see
 * test/sim/mutant_list.h.
 */

#ifndef ZKL_MUTANT
#define ZKL_MUTANT(bug) 0
#endif

#endif							/* ZKL_CORE_ASSERT_H */
