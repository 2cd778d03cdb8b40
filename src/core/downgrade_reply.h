/*
 * downgrade_reply.h
 *	  What became of a downgrade.
 */
#ifndef ZKL_CORE_DOWNGRADE_REPLY_H
#define ZKL_CORE_DOWNGRADE_REPLY_H

#include "core/state.h"

/* It is known whether the downgrade was done. */
extern void zkl_downgrade_reply_settle(ZklManager *m, ZklRequest *r,
									   bool done);

/*
 * One of its operations was refused.  If the node still exists, the downgrade
 * is tried again: if another client has written to the node and it is yet to be
 * read, as soon as it has been, else after a pause.
 */
extern void zkl_downgrade_reply_refused(ZklManager *m, ZklRequest *r,
										int32_t rc);

#endif							/* ZKL_CORE_DOWNGRADE_REPLY_H */
