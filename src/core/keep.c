/*
 * keep.c
 *	  Locks that are kept for a while after their release.
 *
 * Owns a request's keep, and m->kept: the kept holds, in the order in which
 * they end.  Runs in the worker (and in tests), takes no locks, knows neither
 * PostgreSQL nor ZooKeeper.
 *
 * A kept lock goes on as a hold whose holder has left.  It keeps everyone out,
 * its former holder included.  But as long as its owner has other holds on that
 * lock, their nodes may conflict with the kept one, so all of them stay with that
 * owner.  A broken hold does not count: its owner is treated as if it held nothing.
 *
 * When a kept hold is lost, the host is told so as of any other.  It alone knows for
 * how long the lock was promised, and says when the hold ends.
 */
#include "core/hooks.h"
#include "core/keep.h"
#include "core/node.h"
#include "core/siblings.h"

static ZklRequest *
kept(const ZklLink *link)
{
	return zkl_container(ZklRequest, keep.link, link);
}

static bool
is_without_holder(const ZklRequest *r)
{
	return zkl_keep_is_on(r) || (zkl_siblings_stays(r) && !ZKL_MUTANT(STAYS_FOR_ITS_OWNER));
}

bool
zkl_keep_has_any(const ZklRequest *r)
{
	const ZklRequest *s = r;

	do
	{
		if (zkl_keep_is_on(s))
			return true;
		s = s->ring.next;
	} while (s != r);
	return false;
}

static void
place(ZklManager *m, ZklRequest *r, int64_t until)
{
	ZklLink    *where = m->kept.head.prev;

	while (where != &m->kept.head && kept(where)->keep.until > until)
		where = where->prev;
	r->keep.until = until;
	zkl_list_insert_after(&r->keep.link, where);
}

void
zkl_keep_begin(ZklManager *m, ZklRequest *r, int64_t until)
{
	ZKL_ASSERT(r->demand == ZKL_DEMAND_GRANTED);
	if (ZKL_MUTANT(KEPT_FOR_EVER))
		return;
	place(m, r, until);
	zkl_keep_disown(m, r);
}

void
zkl_keep_change(ZklManager *m, ZklRequest *r, int64_t until)
{
	ZKL_ASSERT(zkl_keep_is_on(r));
	if (ZKL_MUTANT(RENEWAL_IGNORED))
		return;
	if (ZKL_MUTANT(RENEWAL_OUT_OF_ORDER))
	{
		r->keep.until = until;
		return;
	}
	zkl_list_remove(&r->keep.link);
	place(m, r, until);
}

/*
 * If r's owner has only requests without a holder left on the lock, they belong to
 * no owner from now on.  The holder of "leaving" leaves it; NULL: there is no such.
 */
static void
disown(ZklManager *m, ZklRequest *r, const ZklRequest *leaving)
{
	ZklRequest *s = r;

	do
	{
		if (s != leaving && !is_without_holder(s) &&
			(s->demand == ZKL_DEMAND_WAITING ||
			 (s->demand == ZKL_DEMAND_GRANTED && !s->broken)))
			return;
		s = s->ring.next;
	} while (s != r);

	do
	{
		if ((s == leaving || is_without_holder(s)) && zkl_siblings_disown(s))
		{
			zkl_node_record(m, s);
			if (leaving != NULL)
				ZKL_HOOKS(m, hold_ended, s);
		}
		s = s->ring.next;
	} while (s != r);
}

void
zkl_keep_leave(ZklManager *m, ZklRequest *r)
{
	if (r->demand == ZKL_DEMAND_GRANTED && !zkl_siblings_stays(r))
		disown(m, r, r);
}

void
zkl_keep_disown(ZklManager *m, ZklRequest *r)
{
	if (!zkl_list_empty(&m->kept) && !ZKL_MUTANT(KEPT_FOR_ITS_OWNER))
		disown(m, r, NULL);
}

ZklRequest *
zkl_keep_due(const ZklManager *m)
{
	ZklRequest *r;

	if (zkl_list_empty(&m->kept))
		return NULL;
	r = kept(m->kept.head.next);
	return r->keep.until <= m->now ? r : NULL;
}

void
zkl_keep_end(ZklRequest *r)
{
	zkl_list_remove(&r->keep.link);
}

int64_t
zkl_keep_timer(const ZklManager *m)
{
	if (zkl_list_empty(&m->kept))
		return -1;
	return kept(m->kept.head.next)->keep.until;
}
