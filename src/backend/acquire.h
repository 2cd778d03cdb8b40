/*
 * acquire.h
 *	  Acquiring locks, or counting those once more that are held.
 */
#ifndef ZKL_BACKEND_ACQUIRE_H
#define ZKL_BACKEND_ACQUIRE_H

#include "backend/request.h"

/*
 * Acquires n locks for their lifetime, or counts those once more that are held:
 * then the later times of their bounds and of the asks' count; all or nothing.
 * Siblings are filled in here; see zkl_lock_request_run for the rest.  False: a try
 * was refused.  tokens[] are the fencing tokens.
 */
extern bool zkl_acquire(ZklLockRequest *asks, int n, int64 *tokens);

#endif							/* ZKL_BACKEND_ACQUIRE_H */
