/*
 * siblings.c
 *	  The several requests of one owner, on one lock and on all.
 *
 * Owns m->owners and ZklRing: a request's owner, its siblings, and the one that
 * covers it.
 * Runs in the worker (and in tests), takes no locks.  It must not know queues
 * and lists: request.c decides what becomes of a node.
 *
 * A znode stays with its request.  If others lean on it when its holder lets go, the
 * request *stays* until none does: a hold without a holder, like a kept one.  Others may
 * still come to lean on it; if none that does is exclusive, its node becomes a shared one.
 * It is told nothing, and its slot is in use, but does not show the node: those of
 * the requests that lean on it do.  As there is at least one for each that stays, an owner
 * has at most twice as many slots as holds.
 */
#include "core/memory.h"
#include "core/node.h"
#include "core/siblings.h"

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

uint64_t
zkl_siblings_nobody(uint64_t owner)
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
		(r->broken && zkl_siblings_nobody(s->ring.owner) == zkl_siblings_nobody(r->ring.owner));
}

bool
zkl_siblings_disown(ZklRequest *r)
{
	if (zkl_siblings_are_nobodys(r->ring.owner))
		return false;
	r->ring.owner = zkl_siblings_nobody(r->ring.owner);
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
