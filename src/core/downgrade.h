/*
 * downgrade.h
 *	  An exclusive node becomes a shared one, without a gap.
 */
#ifndef ZKL_CORE_DOWNGRADE_H
#define ZKL_CORE_DOWNGRADE_H

#include "core/state.h"

/* What changes a node; see downgrade_reply.c */
extern const ZklWriter zkl_downgrade_change;

/*
 * If a hold with an exclusive node only stays for others, and none of them is exclusive:
 * requests a downgrade.  Does nothing in dialects without shared locks.
 */
extern void zkl_downgrade_want(ZklManager *m, ZklRequest *r);

/* Drops a downgrade that was not sent yet: an operator breaks the lock. */
extern void zkl_downgrade_give_up(ZklRequest *r);

/* The node is gone, or nothing leans on it. */
extern void zkl_downgrade_node_gone(ZklRequest *r);

/* Whether a downgrade is wanted, or was sent */
static inline bool
zkl_downgrade_is_on(const ZklRequest *r)
{
	return r->downgrade.write.state != ZKL_WRITE_NONE;
}

static inline bool
zkl_downgrade_is_unsettled(const ZklRequest *r)
{
	return r->downgrade.write.state == ZKL_WRITE_UNSETTLED;
}

/* Whether the node's name is unknown just now. */
extern bool zkl_downgrade_pending(const ZklRequest *r);

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

#endif							/* ZKL_CORE_DOWNGRADE_H */
