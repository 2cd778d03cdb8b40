/*
 * verdict.h
 *	  The decision that a wait of ours ends for a deadlock.
 */
#ifndef ZKL_DEADLOCK_VERDICT_H
#define ZKL_DEADLOCK_VERDICT_H

#include "deadlock/found.h"

#define ZKL_MAX_CYCLE	100		/* steps; longer ones are given up */

/* A step on a cycle: from a contender to the next */
typedef struct ZklStep
{
	const ZklFoundDirectory *directory; /* where the contender stands */
	const ZklStanding *contender;
	const ZklEntry *entry;		/* NULL: it waits for the next in its queue */
} ZklStep;

/*
 * w is the victim of this cycle, which begins with w's own contender: has it
 * decided, if its time has come.  True: that is under way.
 */
extern bool zkl_verdict_begin(ZklDeadlock *d, ZklWait *w,
							  const ZklStep *steps, size_t n);

extern void zkl_verdict_reply(ZklDeadlock *d, const ZklReply *reply);

/* All publications were listed on a proved connection. */
extern void zkl_verdict_listed(ZklDeadlock *d);

/* The connection is gone; the session is gone, or ZooKeeper has lost writes. */
extern void zkl_verdict_disconnected(ZklDeadlock *d);
extern void zkl_verdict_forget(void *wing);

#endif							/* ZKL_DEADLOCK_VERDICT_H */
