/*
 * lock_queue.h
 *	  The queue of a lock: reading it, and breaking the lock of its head.
 */
#ifndef ZKL_BACKEND_LOCK_QUEUE_H
#define ZKL_BACKEND_LOCK_QUEUE_H

#include "backend/target.h"
#include "shared/entries.h"
#include "storage/dsm.h"

/*
 * Reads the queue of a lock into *list.  Returns the segment that it is in, for
 * the caller to detach.  Error 08006 if ZooKeeper cannot be reached, 54000 if
 * the queue is too long.
 */
extern dsm_segment *zkl_lock_queue_read(const ZklTarget *lock,
										ZklEntries *list);

/*
 * Removes the head of a lock's queue, whichever client owns it.  Waits for the holder to
 * lose the lock properly, its session timeout at most.  False: the queue is
 * empty.
 */
extern bool zkl_lock_queue_break(const ZklTarget *lock);

#endif							/* ZKL_BACKEND_LOCK_QUEUE_H */
