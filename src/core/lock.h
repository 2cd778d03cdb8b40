/*
 * lock.h
 *	  One lock: what we know of its queue, and which request may hold it.
 */
#ifndef ZKL_CORE_LOCK_H
#define ZKL_CORE_LOCK_H

#include "core/state.h"

/* For a manager with nothing but its config, and at its end. */
extern void zkl_lock_init_all(ZklManager *m);
extern void zkl_lock_free_all(ZklManager *m);

/*
 * The lock of a directory; find returns NULL if there is none.  One directory
 * is one lock per dialect: clients of different dialects do not see each
 * other's nodes.
 */
extern ZklLock *zkl_lock_find(ZklManager *m, const char *path, size_t length,
							  ZklDialect dialect);
extern ZklLock *zkl_lock_get(ZklManager *m, const char *name,
							 ZklDialect dialect);

/*
 * Sets aside or frees a lock without requests; but frees none that an
 * operation refers to.
 */
extern void zkl_lock_settle_idle(ZklManager *m, ZklLock *lock);

/* Has the lock decided at the next flush, which takes one by one; or NULL. */
extern void zkl_lock_touch(ZklManager *m, ZklLock *lock);
extern ZklLock *zkl_lock_next_touched(ZklManager *m);

/*
 * A create of ours got a number past the end; or the last one got a good one, or it
 * is not known.
 */
extern void zkl_lock_counter_ended(ZklLock *lock);
extern void zkl_lock_counter_good(ZklLock *lock);

/* Whether a node of ours may exist in the directory */
extern bool zkl_lock_has_node(const ZklLock *lock);

/*
 * A node of ours is gone.  If it was the last one in a directory whose counter has
 * ended, the directory is to be deleted, and with it the counter.
 */
extern void zkl_lock_left(ZklManager *m, ZklLock *lock);

/* Adds a request whose node EXISTS to the queue; removes it. */
extern void zkl_lock_enqueue(ZklManager *m, ZklLock *lock, ZklRequest *r);
extern void zkl_lock_dequeue(ZklManager *m, ZklLock *lock, ZklRequest *r);

/* Marks a request in the queue as granted. */
extern void zkl_lock_hold(ZklManager *m, ZklLock *lock, ZklRequest *r);

/* A hold's exclusive node has become a shared one of the same number. */
extern void zkl_lock_downgrade(ZklLock *lock, ZklRequest *r);

/* Whether r would have to wait for a local holder right now. */
extern bool zkl_lock_blocked_by_holder(const ZklManager *m, const ZklLock *lock,
									   const ZklRequest *r);

#endif							/* ZKL_CORE_LOCK_H */
