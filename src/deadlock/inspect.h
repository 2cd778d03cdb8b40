/*
 * inspect.h
 *	  What the search for deadlocks believes, and whether that can be.
 */
#ifndef ZKL_DEADLOCK_INSPECT_H
#define ZKL_DEADLOCK_INSPECT_H

#include "deadlock/deadlock_state.h"
#include "observe/dump.h"

extern void zkl_inspect_dump(const void *wing, const ZklDump *dump);

/* Names an invariant that does not hold, or NULL. */
extern const char *zkl_inspect_check(const void *wing);

#endif							/* ZKL_DEADLOCK_INSPECT_H */
