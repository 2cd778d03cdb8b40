/*
 * batch.h
 *	  The batch: all pending writes in one ZooKeeper transaction, and what became
 *	  of it.
 */
#ifndef ZKL_CORE_BATCH_H
#define ZKL_CORE_BATCH_H

#include "core/state.h"

/* Sends all pending writes, in as few operations as the rules allow. */
extern void zkl_batch_send(ZklManager *m);

/* When the next beat, or the next try of a refused delete, is due; -1: none. */
extern int64_t zkl_batch_timer(const ZklManager *m);

/* ---- batch_reply: what became of a batch ---- */

extern void zkl_batch_reply_take(ZklManager *m, const ZklOp *op,
								 const ZklReply *reply);

/* lock NULL: a parent of the heartbeats' directory */
extern void zkl_batch_reply_parent(ZklManager *m, ZklLock *lock, int32_t rc);

/* Nothing under way will be answered. */
extern void zkl_batch_reply_lost(ZklManager *m);

#endif							/* ZKL_CORE_BATCH_H */
