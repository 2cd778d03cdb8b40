/*
 * caching.h
 *	  Locks that stay on this server after their release: when, and their recall.
 */
#ifndef ZKL_WORKER_CACHING_H
#define ZKL_WORKER_CACHING_H

#include "core/manager.h"

/* For the core: see ZklOffer and ZklRecall. */
extern void zkl_caching_offer(void *host, uint32_t request);
extern bool zkl_caching_recall(void *host, uint32_t request,
							   int64_t idle_since, ZklRecalled *found);

/*
 * After a restart, before the core reads the slots: no session takes a lock of the
 * worker before without asking this one.
 */
extern void zkl_caching_recall_all(void);

/* Tells the core for how long locks may stay; "stop": no longer. */
extern void zkl_caching_tick(bool stop);

#endif							/* ZKL_WORKER_CACHING_H */
