/*
 * keep.h
 *	  Locks that are kept for a while after their release.
 */
#ifndef ZKL_CORE_KEEP_H
#define ZKL_CORE_KEEP_H

#include "core/state.h"

static inline bool
zkl_keep_is_on(const ZklRequest *r)
{
	return zkl_list_linked(&r->keep.link);
}

/* Whether r, or another hold of its owner on that lock, is kept */
extern bool zkl_keep_has_any(const ZklRequest *r);

/* A hold goes on without its holder, until then. */
extern void zkl_keep_begin(ZklManager *m, ZklRequest *r, int64_t until);

/* A kept hold goes on until then instead. */
extern void zkl_keep_change(ZklManager *m, ZklRequest *r, int64_t until);

/*
 * A request of an owner on a lock has ended.  If the owner has only kept
 * requests left on the lock, they belong to no owner from now on.
 */
extern void zkl_keep_disown(ZklManager *m, ZklRequest *r);

/* A kept hold whose time is over, to be released. NULL: there is none. */
extern ZklRequest *zkl_keep_due(const ZklManager *m);

/* Keeps r no longer, if it was kept. */
extern void zkl_keep_end(ZklRequest *r);

/* When the next kept hold ends; -1: there is none. */
extern int64_t zkl_keep_timer(const ZklManager *m);

/*
 * The holder has left, but r stays until it is released.  If this was the
 * holder's only hold, r keeps out its former holder, too, from now on.
 */
extern void zkl_keep_leave(ZklManager *m, ZklRequest *r);

#endif							/* ZKL_CORE_KEEP_H */
