/*
 * ownqueue.h
 *	  Who has a lock and who waits: what its znodes say, and what this server knows
 *	  better of its own.  Backends only.
 */
#ifndef ZKL_FUNCTIONS_OWNQUEUE_H
#define ZKL_FUNCTIONS_OWNQUEUE_H

#include "backend/errand.h"

/* A contender in the queue of a lock */
typedef struct ZklJudged
{
	const ZklQueueEntry *entry;
	bool		granted;
	bool		kept;			/* its session has released the lock, which
								 * at_least keeps, or which is cached */
	bool		cached;			/* its server has the lock cached; of another
								 * server: it may have */

	/* What the slots tell beyond that; nothing if it is not ours */
	uint64		owner;			/* the session of this server that it belongs
								 * to; 0: not known to be any */
	bool		is_own;			/* its session's role is the current one, or
								 * one that it is a member of */
	int64		granted_ms;		/* since 1970; 0: not held */
	int64		until_ms;		/* 0: no limit */
} ZklJudged;

/* Instead of a number: each is granted that conflicts with nothing ahead */
#define ZKL_BY_MODES	(-1)

/*
 * Those in the queue that have not left it; palloc'd.  Its znodes say that the first
 * "most" are granted.
 */
extern ZklJudged *zkl_ownqueue_judge(const ZklTarget *lock,
									 const ZklLockQueue *queue, int most,
									 int *n);

#endif							/* ZKL_FUNCTIONS_OWNQUEUE_H */
