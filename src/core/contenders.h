/*
 * contenders.h
 *	  What a lock knows of the other contenders in its directory.
 */
#ifndef ZKL_CORE_CONTENDERS_H
#define ZKL_CORE_CONTENDERS_H

#include "core/state.h"

/*
 * A create of ours came back with this number: what it says about others.
 * Returns whether it is known that nobody else came since the one before it.
 * zxid is the create's, 0 if not known.
 */
extern bool zkl_contenders_account(ZklManager *m, ZklLock *lock, ZklSeq seq,
								   int64_t zxid);

/* Whether the next create will continue from the last one. */
extern bool zkl_contenders_continuous(const ZklLock *lock);

/*
 * The foreign contender that was watched is gone.  plain: a zklock writer that
 * surely left no reader of its own number behind.
 */
extern void zkl_contenders_ahead_gone(ZklManager *m, ZklLock *lock, bool plain);

/* Forgets all about the directory: it is gone, or the session is. */
extern void zkl_contenders_forget(ZklManager *m, ZklLock *lock);

/* The connection is gone, and continuity with it. */
extern void zkl_contenders_disconnected(ZklLock *lock);

/*
 * Takes over a listing that was sent as number "order": begin, then each child
 * that is not ours, then end.
 */
extern void zkl_contenders_begin(ZklManager *m, ZklLock *lock,
								 const ZklReply *reply);
extern void zkl_contenders_add(ZklLock *lock, const ZklContender *contender,
							   const char *name);
extern void zkl_contenders_add_stranger(ZklLock *lock);
extern void zkl_contenders_end(ZklManager *m, ZklLock *lock, uint64_t order);

#endif							/* ZKL_CORE_CONTENDERS_H */
