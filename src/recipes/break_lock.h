/*
 * break_lock.h
 *	  Removes the head of a lock's queue.
 */
#ifndef ZKL_RECIPES_BREAK_LOCK_H
#define ZKL_RECIPES_BREAK_LOCK_H

#include "backend/target.h"

/*
 * Removes the head of a lock's queue, whichever client owns it.  Waits for the holder to
 * lose the lock properly, its session timeout at most.  False: the queue is
 * empty.
 */
extern bool zkl_break_lock(const ZklTarget *lock);

#endif							/* ZKL_RECIPES_BREAK_LOCK_H */
