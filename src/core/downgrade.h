/*
 * downgrade.h
 *	  An exclusive node becomes a shared one, without a gap.
 */
#ifndef ZKL_CORE_DOWNGRADE_H
#define ZKL_CORE_DOWNGRADE_H

#include "core/state.h"

/* Operations that each downgrade takes in a batch */
#define ZKL_DOWNGRADE_OPS	3

extern void zkl_downgrade_init_all(ZklManager *m);

/*
 * If a shared hold owns an exclusive node, and no exclusive hold of its owner
 * leans on that node: requests a downgrade.  Does nothing in dialects without
 * shared locks.
 */
extern void zkl_downgrade_want(ZklManager *m, ZklRequest *r);

/* Drops a downgrade that is WANTED: an operator breaks the lock. */
extern void zkl_downgrade_give_up(ZklRequest *r);

/*
 * Another hold of the same owner takes over the node; NULL: the node is gone.
 */
extern void zkl_downgrade_pass_on(ZklManager *m, ZklRequest *r,
								  ZklRequest *heir);

/* Whether the node's name is unknown just now. */
extern bool zkl_downgrade_pending(const ZklRequest *r);

/* Puts the downgrade into a batch: writes its operations. */
extern void zkl_downgrade_send(ZklManager *m, ZklRequest *r, ZklMultiOp *ops);

/* The answer is lost; or the downgrade is over, and the name is known. */
extern void zkl_downgrade_unknown(ZklRequest *r);
extern void zkl_downgrade_end(ZklRequest *r);

/*
 * A node that is to be deleted, and whose name cannot be learned: deletes it under
 * both.  Once it is gone under one, the other function gives it the other name, if that is
 * to be deleted, too.
 */
extern void zkl_downgrade_delete_either(ZklManager *m, ZklRequest *r);
extern bool zkl_downgrade_take_other_name(ZklRequest *r);

/* The downgrade was refused; it is tried again later. */
extern void zkl_downgrade_want_later(ZklManager *m, ZklRequest *r);

extern void zkl_downgrade_retry(ZklManager *m);

#endif							/* ZKL_CORE_DOWNGRADE_H */
