/*
 * guard.h
 *	  The guard of a semaphore, and the requests for permits under it.
 */
#ifndef ZKL_RECIPES_GUARD_H
#define ZKL_RECIPES_GUARD_H

#include "backend/acquire.h"

typedef enum ZklPermitAnswer
{
	ZKL_PERMITS_GRANTED,
	ZKL_PERMITS_DENIED,			/* a try timed out */
	ZKL_PERMITS_UNGUARDED		/* the guard, or a permit, was lost meanwhile */
} ZklPermitAnswer;

/*
 * Requests the lock that guards a semaphore.  False: a try timed out.  The guard stays
 * under way until zkl_guard_end, which must follow an error, too.  It is no hold: its
 * loss sends no signal, and no commit is checked for it.
 */
extern bool zkl_guard_begin(const ZklLockRequest *request);

/* Releases the guard, if there is one.  Cannot fail. */
extern void zkl_guard_end(void);

/*
 * Under the guard: requests n permits of one semaphore, which all wait at the
 * same time.  All or nothing; errors as with zkl_acquire.
 */
extern ZklPermitAnswer zkl_guard_get_permits(const ZklLockRequest *request,
											 int n, ZklGrant *grants);

#endif							/* ZKL_RECIPES_GUARD_H */
