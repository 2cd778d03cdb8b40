/*
 * breaklock.h
 *	  The worker's side of zk_break_lock(): removes the head of a lock's queue.
 *	  Worker only.
 */
#ifndef ZKL_WORKER_BREAKLOCK_H
#define ZKL_WORKER_BREAKLOCK_H

#include "worker/operation.h"

extern ZklTaskOwner zkl_breaklock_owner;

#endif							/* ZKL_WORKER_BREAKLOCK_H */
