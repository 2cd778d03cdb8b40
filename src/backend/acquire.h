/*
 * acquire.h
 *	  Acquiring locks, or counting existing holds once more.
 */
#ifndef ZKL_BACKEND_ACQUIRE_H
#define ZKL_BACKEND_ACQUIRE_H

#include "backend/lock_request.h"

/*
 * Acquires n locks for their lifetime, all or nothing.  If one is held already
 * in the same mode and lifetime, that hold is counted once more, and the later
 * times of its bounds and the request's count.  Siblings are filled in here; see
 * zkl_lock_request_run for the rest.  False: a try was refused.  tokens[] are
 * the fencing tokens.
 */
extern bool zkl_acquire(ZklLockRequest *requests, int n, int64 *tokens);

/* The privilege that a role needs to acquire a lock in a mode */
static inline ZklPrivileges
zkl_acquire_privilege(ZklLockMode mode)
{
	return mode == ZKL_SHARED ? ZKL_MAY_SHARE : ZKL_MAY_LOCK;
}

#endif							/* ZKL_BACKEND_ACQUIRE_H */
