/*
 * lease.h
 *	  The lease: until when this server may rely on its grants.
 */
#ifndef ZKL_SHARED_LEASE_H
#define ZKL_SHARED_LEASE_H

/* The published lease has room for this much of a session's generation */
#define ZKL_GENERATION_MASK	0xFFFFFFU

static inline bool
zkl_lease_same_generation(uint32 a, uint32 b)
{
	return (a & ZKL_GENERATION_MASK) == (b & ZKL_GENERATION_MASK);
}

/* The published lease; times in ms of boottime.h. */
extern void zkl_lease_read(uint32 *generation, int64 *deadline_ms);

/* Whether the worker still has the session of a generation. */
extern bool zkl_lease_is_current(uint32 generation);

/*
 * Whether the server may rely, now, on what it was granted in a generation:
 * the worker has no newer session, and its lease has not passed.  Read from
 * one atomic value, so that it holds even if the worker is stopped.
 */
extern bool zkl_lease_is_valid(uint32 generation);

/* ---- worker ---- */

extern void zkl_lease_publish(uint32 generation, int64 deadline_ms);

/* ---- backends that wait for it ---- */

/*
 * How often, in ms, to look whether a lease was renewed.  The worker wakes
 * the waiting backends, but not if it is killed just then.
 */
extern long zkl_lease_look_ms(void);

#endif							/* ZKL_SHARED_LEASE_H */
