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

/* Whether something was refused that is to be tried again after stuck_until */
extern bool zkl_batch_is_stuck(const ZklManager *m);

/* Before something of that kind is noted */
extern void zkl_batch_retry_later(ZklManager *m);

#endif							/* ZKL_CORE_BATCH_H */
