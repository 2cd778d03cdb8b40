/*
 * permits.h
 *	  The permits of a semaphore: the locks in dialect PERMIT.
 *
 * Up to "max" contenders of such a directory hold at the same time: those with
 * the lowest numbers.  A permit is granted if fewer contenders than its
 * demand's maximum are ahead of it.  Each of them counts for itself, whichever
 * session owns it, and so does each child that is no contender at all, as
 * Curator counts them.  That alone keeps the maximum.  The guard, by which
 * clients come one at a time (semaphore.h), keeps clients that want several
 * permits from each having some of them.
 */
#ifndef ZKL_CORE_PERMITS_H
#define ZKL_CORE_PERMITS_H

#include "core/queue.h"
#include "core/state.h"

/* What we know of the contenders ahead of a permit of this server */
typedef struct ZklPermitView
{
	uint32_t	own;			/* contenders of this server ahead: all alive */
	const ZklContender *foreign;	/* ascending; a superset of those alive */
	size_t		nforeign;
	uint32_t	strangers;		/* other children: a superset, too */
	ZklSeq		unknown_from;	/* from here on, unnamed ones may be ahead */
} ZklPermitView;

/*
 * Decides for a permit of this server.  BEHIND_OWN: this server's contenders
 * are enough to keep it waiting; BEHIND_FOREIGN: they are so only together
 * with others, which may be gone.
 */
extern ZklDecision zkl_permits_decide_one(const ZklPermitView *view, ZklSeq seq,
										  uint32_t max);

/*
 * Grants and denies permits where possible, and requests the reads that this
 * needs.
 */
extern void zkl_permits_decide(ZklManager *m, ZklLock *lock);

#endif							/* ZKL_CORE_PERMITS_H */
