/*
 * owner.c
 *	  The requests of one owner, and locks that are kept for a while after their
 *	  release.
 *
 * Owns m->owners and ZklRing: a request's owner, its siblings, and the one that
 * covers it; a request's keep, and m->kept: the kept holds, in the order in which
 * they end.  Must not know queues and lists: request.c decides what becomes of a
 * node.  Runs in the worker (and in tests), takes no locks, knows neither PostgreSQL
 * nor ZooKeeper.
 */
#include "core/host.h"
#include "core/node.h"
#include "core/owner.h"

/* ---- siblings: the several requests of one owner, on one lock and on all ---- */

/*
 * It must not know queues and lists: request.c decides what becomes of a node.
 *
 * A znode stays with its request.  If others lean on it when its holder lets go, the
 * request *stays* until none does: a hold without a holder, like a kept one.  Others may
 * still come to lean on it; if none that does is exclusive, its node becomes a shared one.
 * It is told nothing, and its slot is in use, but does not show the node: those of
 * the requests that lean on it do.  As there is at least one for each that stays, an owner
 * has at most twice as many slots as holds.
 */

/*
 * Owners count from 1 up; this bit marks the leftovers of an owner apart from
 * its holds.  Leftovers of one owner stay siblings: they may share a node.
 */
#define OWNER_NOBODY	(UINT64_C(1) << 63)

void
zkl_siblings_init_all(ZklManager *m)
{
	zkl_memory_make_table(m, &m->owners, m->config.max_requests);
}

void
zkl_siblings_free_all(ZklManager *m)
{
	zkl_memory_release(m, m->owners.buckets);
}

static ZklList *
owner_bucket(const ZklManager *m, uint64_t owner)
{
	return zkl_table_bucket(&m->owners, zkl_table_hash(&owner, sizeof(owner)));
}

void
zkl_siblings_init(ZklManager *m, ZklRequest *r, uint64_t owner)
{
	r->ring.owner = owner;
	r->ring.next = r->ring.prev = r;
	zkl_list_remove(&r->ring.by_owner);
	zkl_list_append(owner_bucket(m, owner), &r->ring.by_owner);
}

static uint64_t
siblings_nobody(uint64_t owner)
{
	return owner | OWNER_NOBODY;
}

bool
zkl_siblings_are_nobodys(uint64_t owner)
{
	return (owner & OWNER_NOBODY) != 0;
}

bool
zkl_siblings_may_share(const ZklRequest *s, const ZklRequest *r)
{
	return s->ring.owner == r->ring.owner ||
		(r->broken && siblings_nobody(s->ring.owner) == siblings_nobody(r->ring.owner));
}

/* r belongs to no owner from now on. False: it did so before. */
static bool
siblings_disown(ZklRequest *r)
{
	if (zkl_siblings_are_nobodys(r->ring.owner))
		return false;
	r->ring.owner = siblings_nobody(r->ring.owner);
	return true;
}

void
zkl_siblings_join(ZklRequest *r, ZklRequest *sibling)
{
	ZklRequest *last = r->ring.prev;
	ZklRequest *s;

	ZKL_ASSERT(sibling->lock == r->lock && sibling->ring.owner == r->ring.owner);
	for (s = r->ring.next; s != r; s = s->ring.next)
	{
		if (s == sibling)
			return;
	}
	last->ring.next = sibling->ring.next;
	sibling->ring.next->ring.prev = last;
	sibling->ring.next = r;
	r->ring.prev = sibling;
}

void
zkl_siblings_leave(ZklRequest *r)
{
	ZKL_ASSERT(r->ring.cover == NULL);
	r->ring.prev->ring.next = r->ring.next;
	r->ring.next->ring.prev = r->ring.prev;
	r->ring.next = r->ring.prev = r;
	zkl_list_remove(&r->ring.by_owner);
}

void
zkl_siblings_lean(ZklRequest *r, ZklRequest *cover)
{
	ZKL_ASSERT(cover == NULL || (cover != r && cover->ring.cover == NULL));
	r->ring.cover = cover;
}

void
zkl_siblings_stay(ZklRequest *r, ZklDemandState demand)
{
	ZKL_ASSERT(demand == ZKL_DEMAND_UNUSED || zkl_siblings_leaning(r) != NULL);
	r->ring.then = demand;
}

ZklRequest *
zkl_siblings_covering(const ZklRequest *r)
{
	ZklRequest *best = NULL;
	ZklRequest *s;

	for (s = r->ring.next; s != r; s = s->ring.next)
	{
		if (s->ring.owner == r->ring.owner && s->demand == ZKL_DEMAND_GRANTED &&
			s->node.state == ZKL_NODE_EXISTS &&
			!s->broken && zkl_mode_covers(zkl_node_mode(s), r->mode) &&
			(best == NULL || s->node.seq < best->node.seq))
			best = s;
	}
	return best;
}

bool
zkl_siblings_any_broken(const ZklRequest *r)
{
	const ZklRequest *s;

	for (s = r->ring.next; s != r; s = s->ring.next)
	{
		if (s->ring.owner == r->ring.owner && s->broken)
			return true;
	}
	return false;
}

ZklRequest *
zkl_siblings_upgraded(const ZklRequest *r)
{
	ZklRequest *s;

	if (r->mode != ZKL_EXCLUSIVE)
		return NULL;
	for (s = r->ring.next; s != r; s = s->ring.next)
	{
		if (s->ring.owner == r->ring.owner && s->demand == ZKL_DEMAND_GRANTED &&
			s->node.state == ZKL_NODE_EXISTS && !s->broken)
			return s;
	}
	return NULL;
}

const ZklRequest *
zkl_siblings_leaning(const ZklRequest *r)
{
	const ZklRequest *leaning = NULL;
	const ZklRequest *s;

	for (s = r->ring.next; s != r; s = s->ring.next)
	{
		if (s->ring.cover == r &&
			(leaning == NULL || s->mode == ZKL_EXCLUSIVE))
			leaning = s;
	}
	return leaning;
}

ZklRequest *
zkl_siblings_owned(const ZklManager *m, uint64_t owner, const ZklRequest *after)
{
	const ZklList *bucket = owner_bucket(m, owner);
	const ZklLink *link = after != NULL ? &after->ring.by_owner : &bucket->head;

	while ((link = link->next) != &bucket->head)
	{
		ZklRequest *r = zkl_container(ZklRequest, ring.by_owner, link);

		if (r->ring.owner == owner)
			return r;
	}
	return NULL;
}

uint32_t
zkl_siblings_count(const ZklManager *m, const ZklRequest *r)
{
	const ZklRequest *s = NULL;
	uint32_t	n = 0;

	while ((s = zkl_siblings_owned(m, r->ring.owner, s)) != NULL)
		n += s != r && s->lock == r->lock &&
			s->demand == ZKL_DEMAND_GRANTED &&
			s->node.state == ZKL_NODE_EXISTS;
	return n;
}

/* ---- keep: locks that are kept for a while after their release ---- */

/*
 * A kept lock goes on as a hold whose holder has left.  It keeps everyone out,
 * its former holder included.  But as long as its owner has other holds on that
 * lock, their nodes may conflict with the kept one, so all of them stay with that
 * owner.  A broken hold does not count: its owner is treated as if it held nothing.
 *
 * When a kept hold is lost, the host is told so as of any other.  It alone knows for
 * how long the lock was promised, and says when the hold ends.
 */

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
		if ((s == leaving || is_without_holder(s)) && siblings_disown(s))
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
