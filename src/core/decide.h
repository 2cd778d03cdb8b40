/*
 * decide.h
 *	  What follows from a lock's queue.
 */
#ifndef ZKL_CORE_DECIDE_H
#define ZKL_CORE_DECIDE_H

#include "core/state.h"

/*
 * Grants, denies and refuses requests where possible, and requests the reads
 * that this needs.
 */
extern void zkl_decide_lock(ZklManager *m, ZklLock *lock);

#endif							/* ZKL_CORE_DECIDE_H */
