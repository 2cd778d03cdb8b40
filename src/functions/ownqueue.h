/*
 * ownqueue.h
 *	  What this server knows of its own znodes in a queue.  Backends only.
 */
#ifndef ZKL_FUNCTIONS_OWNQUEUE_H
#define ZKL_FUNCTIONS_OWNQUEUE_H

#include "backend/errand.h"

typedef struct ZklOwnQueue ZklOwnQueue;

/* To be judged by in the queue of a lock; palloc'd */
extern ZklOwnQueue *zkl_ownqueue_make(const ZklTarget *lock);

/*
 * Corrects *granted, which is what the znodes ahead of an entry say, by what
 * this server knows.  *kept: its session has released the lock, which at_least
 * keeps, or which is cached.  False: the entry has left the queue.
 */
extern bool zkl_ownqueue_judge(ZklOwnQueue *own, const ZklQueueEntry *entry,
							   bool *granted, bool *kept);

/*
 * Whether a server has the lock cached by that znode; of another server: whether
 * it may have.
 */
extern bool zkl_ownqueue_is_cached(const ZklOwnQueue *own,
								   const ZklQueueEntry *entry);

/* What the slots tell of an entry, beyond its znode; nothing if it is not ours */
typedef struct ZklOwnTold
{
	bool		is_own;			/* its session's role is the current one, or
								 * one that it is a member of */
	int64		granted_ms;		/* since 1970; 0: not held */
	int64		until_ms;		/* 0: no limit */
} ZklOwnTold;

extern void zkl_ownqueue_tell(const ZklOwnQueue *own, const ZklQueueEntry *entry,
							  ZklOwnTold *told);

/* The session of this server that an entry belongs to; 0: not known to be any */
extern uint64 zkl_ownqueue_owner(const ZklOwnQueue *own,
								 const ZklQueueEntry *entry);

extern void zkl_ownqueue_free(ZklOwnQueue *own);

#endif							/* ZKL_FUNCTIONS_OWNQUEUE_H */
