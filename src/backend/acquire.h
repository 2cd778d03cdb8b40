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

#endif							/* ZKL_BACKEND_ACQUIRE_H */
