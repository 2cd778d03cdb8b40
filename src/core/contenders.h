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

/* Takes over a listing that was sent as number "order". */
extern void zkl_contenders_listed(ZklManager *m, ZklLock *lock, uint64_t order,
								  const ZklReply *reply);

/* The connection is gone: so are the watches, and continuity with them. */
extern void zkl_contenders_disconnected(ZklManager *m, ZklLock *lock);

/* Forgets all about the directory: it is gone, or the session is. */
extern void zkl_contenders_forget(ZklManager *m, ZklLock *lock);

#endif							/* ZKL_CORE_CONTENDERS_H */
