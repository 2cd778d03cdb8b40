/*
 * queue.h
 *	  The decision: may a contender hold the lock, and if not, which one
 *	  does it wait for?  A pure function of what we know about the queue.
 *
 * Rules (first come, first served, in the order of the numbers): a shared
 * contender holds when no exclusive contender of another owner is ahead, an
 * exclusive one when no contender of another owner is ahead at all.  Equal
 * numbers never grant.
 */
#ifndef ZKL_CORE_QUEUE_H
#define ZKL_CORE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "znode/mode.h"
#include "znode/znode.h"

/* A contender of another server or client */
typedef struct ZklContender
{
	ZklSeq		seq;
	ZklLockMode mode;
	bool		zklock;			/* made by a zklock server: its uuid says so */
	bool		leftover;		/* made by this manager, and no request claims
								 * it */
	ZklUuid		uuid;			/* if it is zklock's */
	uint32_t	name;			/* offset of its name among the list's names */
} ZklContender;

/* What we know of the contenders ahead of a contender of this server */
typedef struct ZklQueueView
{
	/*
	 * number of the nearest conflicting contender of another local owner
	 * ahead, or ZKL_SEQ_NONE
	 */
	ZklSeq		own_ahead;
	const ZklContender *foreign;	/* ascending; a superset of those alive */
	size_t		nforeign;
	ZklSeq		unknown_from;	/* from here on, unnamed ones may be ahead;
								 * ZKL_SEQ_NONE: all are named */
	bool		tainted;		/* a foreign writer left, and may have left a
								 * reader of its own number behind */
} ZklQueueView;

typedef enum ZklDecision
{
	ZKL_DECISION_GRANT,
	ZKL_DECISION_BEHIND_OWN,	/* a local contender is next ahead */
	ZKL_DECISION_BEHIND_FOREIGN,	/* watch that one */
	ZKL_DECISION_LIST			/* no known one is ahead, but list first */
} ZklDecision;

/*
 * Decides for a contender of this server.  *blocker is set for BEHIND_FOREIGN:
 * the index in view->foreign of the nearest conflicting one.
 */
extern ZklDecision zkl_queue_decide(const ZklQueueView *view, ZklLockMode mode,
									ZklSeq seq, size_t *blocker);

/*
 * The index of the nearest contender in foreign[] that conflicts with (mode,
 * seq) and has no larger number, or -1.
 */
extern ptrdiff_t zkl_queue_nearest(const ZklContender *foreign, size_t nforeign,
								   ZklLockMode mode, ZklSeq seq);

/* Sorts contenders by number, shared ones behind exclusive ones of the same. */
extern void zkl_queue_sort(ZklContender *contenders, size_t n);

#endif							/* ZKL_CORE_QUEUE_H */
