/*
 * downgrade.h
 *	  An exclusive node becomes a shared one, without a gap.
 */
#ifndef ZKL_CORE_DOWNGRADE_H
#define ZKL_CORE_DOWNGRADE_H

#include "core/state.h"

/* Operations that each downgrade takes in a batch */
#define ZKL_DOWNGRADE_OPS	3

/*
 * If a shared hold owns an exclusive node, which no exclusive hold of its owner
 * leans on: have it changed.  Nothing is done in dialects without shared locks.
 */
extern void zkl_downgrade_want(ZklManager *m, ZklRequest *r);

/* One that is wanted is not any more: an operator breaks the lock. */
extern void zkl_downgrade_give_up(ZklRequest *r);

/* Another hold of the same owner takes the node over; NULL: it is gone. */
extern void zkl_downgrade_pass_on(ZklManager *m, ZklRequest *r,
								  ZklRequest *heir);

/* Whether it is not known what the node's name is just now. */
extern bool zkl_downgrade_pending(const ZklRequest *r);

/* It goes in a batch: writes its operations. */
extern void zkl_downgrade_send(ZklManager *m, ZklRequest *r, ZklMultiOp *ops);

/* Nobody knows what became of it; it is over, and the node's name is known. */
extern void zkl_downgrade_unknown(ZklRequest *r);
extern void zkl_downgrade_end(ZklRequest *r);

/* It was refused, and is to be tried again later. */
extern void zkl_downgrade_want_later(ZklManager *m, ZklRequest *r);

extern void zkl_downgrade_retry(ZklManager *m);

#endif							/* ZKL_CORE_DOWNGRADE_H */
