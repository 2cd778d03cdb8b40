/*
 * batch.h
 *	  The batch: one ZooKeeper transaction for all pending writes, opened by
 *	  the beat, and the chain of heartbeat nodes that makes it exactly-once.
 */
#ifndef ZKL_CORE_BATCH_H
#define ZKL_CORE_BATCH_H

#include "core/state.h"

/* Sends all pending writes, in as few operations as the rules allow. */
extern void zkl_batch_send(ZklManager *m);

/* When the next beat, or the next try of a refused delete, is due; -1: none. */
extern int64_t zkl_batch_timer(const ZklManager *m);

#endif							/* ZKL_CORE_BATCH_H */
