/*
 * siblings.c
 *	  The several requests of one owner on one lock.
 *
 * Owns a request's owner, and the ring of siblings: sibling_next,
 * sibling_prev.  Runs in the worker (and in tests), takes no locks.  It must
 * not know queues and lists: request.c decides what becomes of a node.
 */
#include "core/node.h"
#include "core/siblings.h"

/*
 * Owners count from 1 up; this bit marks the leftovers of an owner apart from
 * its holds.  Leftovers of one owner stay siblings: they may share a node.
 */
#define OWNER_NOBODY	(UINT64_C(1) << 63)

void
zkl_siblings_init(ZklRequest *r, uint64_t owner)
{
	r->owner = owner;
	r->sibling_next = r->sibling_prev = r;
}

bool
zkl_siblings_disown(ZklRequest *r)
{
	if ((r->owner & OWNER_NOBODY) != 0)
		return false;
	r->owner |= OWNER_NOBODY;
	return true;
}

void
zkl_siblings_join(ZklRequest *r, ZklRequest *sibling)
{
	r->sibling_next = sibling->sibling_next;
	r->sibling_prev = sibling;
	sibling->sibling_next->sibling_prev = r;
	sibling->sibling_next = r;
}

void
zkl_siblings_leave(ZklRequest *r)
{
	r->sibling_prev->sibling_next = r->sibling_next;
	r->sibling_next->sibling_prev = r->sibling_prev;
	r->sibling_next = r->sibling_prev = r;
}

ZklRequest *
zkl_siblings_covering(const ZklRequest *r)
{
	ZklRequest *best = NULL;
	ZklRequest *s;

	for (s = r->sibling_next; s != r; s = s->sibling_next)
	{
		if (s->owner == r->owner && s->demand == ZKL_DEMAND_GRANTED &&
			s->node.state == ZKL_NODE_EXISTS &&
			!s->broken && zkl_mode_covers(zkl_node_mode(s), r->mode) &&
			(best == NULL || s->node.seq < best->node.seq))
			best = s;
	}
	return best;
}

ZklRequest *
zkl_siblings_upgraded(const ZklRequest *r)
{
	ZklRequest *s;

	if (r->mode != ZKL_EXCLUSIVE)
		return NULL;
	for (s = r->sibling_next; s != r; s = s->sibling_next)
	{
		if (s->owner == r->owner && s->demand == ZKL_DEMAND_GRANTED &&
			s->node.state == ZKL_NODE_EXISTS && !s->broken)
			return s;
	}
	return NULL;
}

ZklRequest *
zkl_siblings_heir(const ZklRequest *r)
{
	ZklRequest *heir = NULL;
	ZklRequest *s;

	for (s = r->sibling_next; s != r; s = s->sibling_next)
	{
		if (s->cover == r && s->demand == ZKL_DEMAND_GRANTED &&
			(heir == NULL || s->mode == ZKL_EXCLUSIVE))
			heir = s;
	}
	return heir;
}
