/*
 * keep.h
 *	  Locks that are kept for a while after their release.
 */
#ifndef ZKL_CORE_KEEP_H
#define ZKL_CORE_KEEP_H

#include "core/state.h"

static inline bool
zkl_is_kept(const ZklRequest *r)
{
	return zkl_linked(&r->keep.link);
}

/* A hold goes on without its holder, until then. */
extern void zkl_keep_begin(ZklManager *m, ZklRequest *r, int64_t until);

/* It ends before its time: at the next tick. */
extern void zkl_keep_over(ZklManager *m, ZklRequest *r);

/*
 * A request of an owner's on a lock has ended.  If only kept requests are left
 * of that owner on the lock, they belong to no owner from now on.
 */
extern void zkl_keep_disown(ZklManager *m, ZklRequest *r);

/* One whose time is over: to be released.  NULL: there is none. */
extern ZklRequest *zkl_keep_due(const ZklManager *m);

/* It is kept no longer, if it was. */
extern void zkl_keep_end(ZklRequest *r);

/* When the next one's is; -1: there is none. */
extern int64_t zkl_keep_timer(const ZklManager *m);

/*
 * The holder has left, but r stays until it is released.  If that was the
 * holder's only hold, r keeps out the holder as well from now on.
 */
extern void zkl_keep_leave(ZklManager *m, ZklRequest *r);

#endif							/* ZKL_CORE_KEEP_H */
