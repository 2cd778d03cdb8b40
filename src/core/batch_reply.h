/*
 * batch_reply.h
 *	  What became of a batch.
 */
#ifndef ZKL_CORE_BATCH_REPLY_H
#define ZKL_CORE_BATCH_REPLY_H

#include "core/state.h"

extern void zkl_batch_reply_take(ZklManager *m, const ZklOp *op,
								 const ZklReply *reply);

/* lock NULL: a parent of the heartbeats' directory */
extern void zkl_batch_reply_parent(ZklManager *m, ZklLock *lock, int32_t rc);

/* Nothing under way will be answered. */
extern void zkl_batch_reply_lost(ZklManager *m);

#endif							/* ZKL_CORE_BATCH_REPLY_H */
