/*
 * decide.h
 *	  What follows from a lock's queue.
 */
#ifndef ZKL_CORE_DECIDE_H
#define ZKL_CORE_DECIDE_H

#include "core/queue.h"
#include "core/state.h"

/*
 * Grants, denies and refuses requests where possible, and requests the reads
 * that this needs.
 */
extern void zkl_decide_lock(ZklManager *m, ZklLock *lock);

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
extern ZklDecision zkl_decide_permit(const ZklPermitView *view, ZklSeq seq,
									 uint32_t max);

/*
 * Grants and denies permits where possible, and requests the reads that this
 * needs.
 */
extern void zkl_decide_permits(ZklManager *m, ZklLock *lock);

#endif							/* ZKL_CORE_DECIDE_H */
