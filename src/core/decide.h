/*
 * decide.h
 *	  What follows from a lock's queue.
 */
#ifndef ZKL_CORE_DECIDE_H
#define ZKL_CORE_DECIDE_H

#include "core/state.h"

/* Grants, denies and refuses what can be; asks for the reads that it takes. */
extern void zkl_decide_lock(ZklManager *m, ZklLock *lock);

#endif							/* ZKL_CORE_DECIDE_H */
