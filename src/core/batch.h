/*
 * batch.h
 *	  The batch: one ZooKeeper transaction for all writes at hand, opened by
 *	  the beat, and the chain of heartbeat nodes that makes it exactly-once.
 */
#ifndef ZKL_CORE_BATCH_H
#define ZKL_CORE_BATCH_H

#include "core/state.h"

/* Sends what is at hand, in as few operations as the rules allow. */
extern void zkl_batch_send(ZklManager *m);

/* When the next beat, or the next try of a refused delete, is due; -1: none. */
extern int64_t zkl_batch_timer(const ZklManager *m);

/* How many operations it has, the beat included */
extern size_t zkl_batch_operations(const ZklBatch *batch);

/* ---- outcome.c ---- */

extern void zkl_batch_reply(ZklManager *m, const ZklReply *reply);
extern void zkl_batch_delete_reply(ZklManager *m, ZklRequest *r, int32_t rc);

/* lock NULL: a parent of the heartbeats' directory */
extern void zkl_batch_parent_reply(ZklManager *m, ZklLock *lock, int32_t rc);

/* No batch under way will be answered. */
extern void zkl_batch_disconnected(ZklManager *m);

/* ---- chain.c ---- */

/* Makes the next heartbeat node, and the old one go. */
extern void zkl_chain_open(ZklManager *m);

/* The answer to the delete of an earlier heartbeat node; it is tried again. */
extern void zkl_chain_swept(ZklManager *m, int32_t rc);
extern void zkl_chain_sweep_again(ZklManager *m);
extern void zkl_chain_reply(ZklManager *m, const ZklReply *reply);

/* The path of heartbeat node number "chain", among the actions' strings. */
extern char *zkl_chain_path(ZklManager *m, uint32_t chain);

/* Creates path and what is above it, but what "skip" has in common with it. */
extern void zkl_chain_parents(ZklManager *m, ZklLock *lock, const char *path,
							  const char *skip);

#endif							/* ZKL_CORE_BATCH_H */
