/*
 * downgrade_reply.h
 *	  What became of a downgrade.
 */
#ifndef ZKL_CORE_DOWNGRADE_REPLY_H
#define ZKL_CORE_DOWNGRADE_REPLY_H

#include "core/state.h"

/* It is known whether it was done. */
extern void zkl_downgrade_reply_settle(ZklManager *m, ZklRequest *r,
									   bool done);

/*
 * One of its operations was refused.  If the node still exists, the downgrade
 * is tried again: as soon as the node has been read, if another client has
 * written to it, else after a pause.
 */
extern void zkl_downgrade_reply_refused(ZklManager *m, ZklRequest *r,
										int32_t rc);

#endif							/* ZKL_CORE_DOWNGRADE_REPLY_H */
