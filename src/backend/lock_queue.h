/*
 * lock_queue.h
 *	  The queue of a lock, as the worker reads it.
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

#endif							/* ZKL_BACKEND_LOCK_QUEUE_H */
