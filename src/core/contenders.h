/*
 * contenders.h
 *	  What a lock knows of the other contenders in its directory.
 */
#ifndef ZKL_CORE_CONTENDERS_H
#define ZKL_CORE_CONTENDERS_H

#include "core/state.h"

/*
 * A create of ours came back with this number: notes what it says about
 * others.  Returns whether surely no other client came since the create
 * before it. zxid belongs to the create; 0 if unknown.
 */
extern bool zkl_contenders_account(ZklManager *m, ZklLock *lock, ZklSeq seq,
								   int64_t zxid);

/* Whether the next create will continue from the last one. */
extern bool zkl_contenders_continuous(const ZklLock *lock);

/*
 * The watched foreign contender is gone. plain: it was a zklock writer that
 * surely left no reader of its own number behind.
 */
extern void zkl_contenders_ahead_gone(ZklManager *m, ZklLock *lock, bool plain);

/*
 * Forgets everything about the directory: the directory or the session is
 * gone.
 */
extern void zkl_contenders_forget(ZklManager *m, ZklLock *lock);

/* Forgets others, if there are any, but keeps continuity. */
extern void zkl_contenders_simplify(ZklManager *m, ZklLock *lock);

/* The connection is gone, or the directory: so is continuity. */
extern void zkl_contenders_disconnected(ZklLock *lock);
extern void zkl_contenders_directory_changed(ZklLock *lock);

/*
 * The znode of this id is in nobody's way any more, but may still exist.  False: it
 * is none of the contenders.
 */
extern bool zkl_contenders_depart(ZklLock *lock, const ZklUuid *uuid);

/* For a mutant: forgets that a reader may have been left. */
extern void zkl_contenders_untaint(ZklLock *lock);

/*
 * Takes over a listing that was sent as number "order": begin, then each child
 * that is not ours, then drop_departed, then end.  Until then those that have departed
 * are there, too: they may have had the lock.
 */
extern void zkl_contenders_begin(ZklManager *m, ZklLock *lock,
								 const ZklReply *reply);
extern void zkl_contenders_add(ZklLock *lock, const ZklContender *contender,
							   const char *name);
extern void zkl_contenders_add_stranger(ZklLock *lock);
extern void zkl_contenders_drop_departed(const ZklManager *m, ZklLock *lock);
extern void zkl_contenders_end(ZklManager *m, ZklLock *lock, uint64_t order);

/* As zkl_manager_nearest */
extern bool zkl_contenders_nearest(const ZklRequest *r, ZklNearest *nearest);

/* ---- departed ---- */

/* Znodes of other servers that support no hold, and never will again. */

extern void zkl_departed_free(ZklManager *m);

/* From now on the znode of this id is in nobody's way in this lock: that was not known. */
extern void zkl_departed_note(ZklManager *m, const ZklLock *lock, const ZklUuid *uuid);

/* Whether that is known of a znode; of a listed contender. */
extern bool zkl_departed_has(const ZklManager *m, const ZklLock *lock, const ZklUuid *uuid);

static inline bool
zkl_departed_is(const ZklManager *m, const ZklLock *lock, const ZklContender *c)
{
	return c->zklock && zkl_departed_has(m, lock, &c->uuid);
}

#endif							/* ZKL_CORE_CONTENDERS_H */
