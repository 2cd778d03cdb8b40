/*
 * lock.h
 *	  One lock: what is known of its queue, and who may hold it.
 */
#ifndef ZKL_CORE_LOCK_H
#define ZKL_CORE_LOCK_H

#include "core/state.h"

/*
 * The lock of a directory; find returns NULL when there is none.  One
 * directory is one lock per dialect: those who speak different ones do not
 * see each other's nodes.
 */
extern ZklLock *zkl_lock_find(ZklManager *m, const char *path, size_t length,
							  ZklDialect dialect);
extern ZklLock *zkl_lock_get(ZklManager *m, const char *name,
							 ZklDialect dialect);

/* Keeps a lock while an operation refers to it; unpin may free it. */
extern void zkl_lock_pin(ZklLock *lock);
extern void zkl_lock_unpin(ZklManager *m, ZklLock *lock);

/* Puts a lock without requests aside, or frees it. */
extern void zkl_lock_settle_idle(ZklManager *m, ZklLock *lock);

/* To be decided at the next flush. */
extern void zkl_lock_touch(ZklManager *m, ZklLock *lock);

/* Adds to and removes from the queue a request whose node EXISTS. */
extern void zkl_lock_enqueue(ZklManager *m, ZklLock *lock, ZklRequest *r);
extern void zkl_lock_dequeue(ZklManager *m, ZklLock *lock, ZklRequest *r);

/* Marks a request in the queue as granted. */
extern void zkl_lock_hold(ZklManager *m, ZklLock *lock, ZklRequest *r);

/*
 * A create of ours came back with this number: what it says about others.
 * Returns whether it is known that nobody else came since the one before it.
 * zxid is the create's, 0 if not known.
 */
extern bool zkl_lock_account(ZklManager *m, ZklLock *lock, ZklSeq seq,
							 int64_t zxid);

/* Whether the next create will continue from the last one. */
extern bool zkl_lock_continuous(const ZklLock *lock);

/* Grants, denies and refuses what can be; asks for the reads that it takes. */
extern void zkl_lock_decide(ZklManager *m, ZklLock *lock);

/* A hold's exclusive node has become a shared one of the same number. */
extern void zkl_lock_downgrade(ZklLock *lock, ZklRequest *r);

/* Whether r would have to wait for a local holder right now. */
extern bool zkl_lock_blocked_by_holder(const ZklLock *lock,
									   const ZklRequest *r);

/*
 * The foreign contender that was watched is gone.  plain: a zklock writer that
 * surely left no reader of its own number behind.
 */
extern void zkl_lock_ahead_gone(ZklManager *m, ZklLock *lock, bool plain);

/* Takes over a listing that was sent as number "order". */
extern void zkl_lock_listed(ZklManager *m, ZklLock *lock, uint64_t order,
							const ZklReply *reply);

/* The connection is gone: so are the watches, and continuity with them. */
extern void zkl_lock_disconnected(ZklManager *m, ZklLock *lock);

/* Forgets all about the directory: it is gone, or the session is. */
extern void zkl_lock_forget(ZklManager *m, ZklLock *lock);

#endif							/* ZKL_CORE_LOCK_H */
