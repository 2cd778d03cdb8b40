/*
 * owner.h
 *	  The requests of one owner, and locks that are kept for a while after their
 *	  release.
 */
#ifndef ZKL_CORE_OWNER_H
#define ZKL_CORE_OWNER_H

#include "core/state.h"

/* ---- siblings: the several requests of one owner on one lock ---- */

/* For a manager with nothing but its config, and at its end. */
extern void zkl_siblings_init_all(ZklManager *m);
extern void zkl_siblings_free_all(ZklManager *m);

/*
 * The ring: with one request, of a new owner; together with that of a sibling, unless
 * it is the same; one less.
 */
extern void zkl_siblings_init(ZklManager *m, ZklRequest *r, uint64_t owner);
extern void zkl_siblings_join(ZklRequest *r, ZklRequest *sibling);
extern void zkl_siblings_leave(ZklRequest *r);

/* r shares the node of another hold from now on, or no longer (NULL). */
extern void zkl_siblings_lean(ZklRequest *r, ZklRequest *cover);

/*
 * r's holder lets go, but r stays for those that lean on it; then its demand is to be this
 * one.  UNUSED: it stays no longer.
 */
extern void zkl_siblings_stay(ZklRequest *r, ZklDemandState demand);

/* Whether r, which is GRANTED, has no holder, and stays for others */
static inline bool
zkl_siblings_stays(const ZklRequest *r)
{
	return r->ring.then != ZKL_DEMAND_UNUSED;
}

/*
 * The earliest request of r's owner that has a node and holds the lock in a
 * mode that covers r's.  NULL: none.
 */
extern ZklRequest *zkl_siblings_covering(const ZklRequest *r);

/* Whether r's owner has a broken hold, which it has yet to release. */
extern bool zkl_siblings_any_broken(const ZklRequest *r);

/* A hold of r's owner, with a node, that r would come on top of. */
extern ZklRequest *zkl_siblings_upgraded(const ZklRequest *r);

/* A hold that shares r's node, an exclusive one if there is one; or NULL */
extern const ZklRequest *zkl_siblings_leaning(const ZklRequest *r);

/* An owner's requests on all locks, the one behind "after"; NULL: the first, none */
extern ZklRequest *zkl_siblings_owned(const ZklManager *m, uint64_t owner,
									  const ZklRequest *after);

/*
 * How many other holds r's owner has of this lock, each with a znode; those that are
 * lost to it, and not yet released, count
 */
extern uint32_t zkl_siblings_count(const ZklManager *m, const ZklRequest *r);

/* What stands for an owner in its requests that belong to none */
extern bool zkl_siblings_are_nobodys(uint64_t owner);

/*
 * Whether r may lean on the node of s.  If one of them is kept and both are broken, that
 * one belongs to nobody, and the other one still to their owner.
 */
extern bool zkl_siblings_may_share(const ZklRequest *s, const ZklRequest *r);

/* ---- keep: locks that are kept for a while after their release ---- */

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

#endif							/* ZKL_CORE_OWNER_H */
