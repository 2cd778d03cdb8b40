/*
 * lock_queue.h
 *	  The queue of a lock, as ZooKeeper has it.
 */
#ifndef ZKL_BACKEND_LOCK_QUEUE_H
#define ZKL_BACKEND_LOCK_QUEUE_H

#include "backend/target.h"

/* A contender */
typedef struct ZklQueueEntry
{
	ZklSeq		seq;
	ZklLockMode mode;
	bool		has_uuid;
	ZklUuid		uuid;
	const char *name;			/* of the znode */
	const char *data;			/* these four are empty if it cannot be read */
	uint32		length;
	int64		session_id;		/* its ephemeralOwner */
	int64		ctime_ms;		/* since 1970, by ZooKeeper's clock */
} ZklQueueEntry;

typedef struct ZklLockQueue
{
	ZklQueueEntry *entries;
	int			n;
} ZklLockQueue;

/*
 * Reads the queue of a lock, in its order; palloc'd.  Error 08006 if ZooKeeper
 * cannot be reached.
 */
extern void zkl_lock_queue_read(const ZklTarget *lock, ZklLockQueue *queue);

#endif							/* ZKL_BACKEND_LOCK_QUEUE_H */
