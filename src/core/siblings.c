/*
 * siblings.c
 *	  The several requests of one owner on one lock.
 *
 * Owns the ring that they form: sibling_next, sibling_prev.  Runs in the
 * worker (and in tests), takes no locks.  It must not know queues and lists:
 * what becomes of a node is request.c's.
 */
#include "core/actions.h"
#include "core/downgrade.h"
#include "core/keep.h"
#include "core/siblings.h"

void
zkl_siblings_init(ZklRequest *r)
{
	r->sibling_next = r->sibling_prev = r;
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
	zkl_siblings_init(r);
}

ZklRequest *
zkl_siblings_covering(const ZklRequest *r)
{
	ZklRequest *best = NULL;
	ZklRequest *s;

	for (s = r->sibling_next; s != r; s = s->sibling_next)
	{
		if (s->owner == r->owner && s->demand == ZKL_DEMAND_GRANTED &&
			s->node == ZKL_NODE_EXISTS &&
			!s->broken && zkl_mode_covers(zkl_downgrade_mode(s), r->mode) &&
			(best == NULL || s->seq < best->seq))
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
			s->node == ZKL_NODE_EXISTS && !s->broken)
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

void
zkl_siblings_follow(ZklRequest *r, ZklRequest *heir)
{
	ZklRequest *s;

	for (s = r->sibling_next; s != r; s = s->sibling_next)
	{
		if (s->cover == r)
			s->cover = heir;
	}
}

static void
tell_loss(ZklManager *m, const ZklRequest *r, ZklFailure failure)
{
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_LOSE);

	action->request = r->id;
	action->failure = failure;
}

void
zkl_siblings_retire(ZklManager *m, const ZklRequest *r)
{
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_RETIRE);

	action->request = r->id;
	action->has_node = r->node != ZKL_NODE_NONE;
}

void
zkl_siblings_lose(ZklManager *m, ZklRequest *r, ZklFailure failure)
{
	ZklRequest *s = r;

	do
	{
		ZklRequest *next = s->sibling_next;

		if (s == r || s->cover == r)
		{
			if (zkl_is_kept(s))
				zkl_keep_over(m, s);
			else if (s->broken)
				zkl_siblings_retire(m, s);
			else
				tell_loss(m, s, failure);
			s->cover = NULL;
			s->demand = ZKL_DEMAND_ANSWERED;
			m->nlive--;
		}
		s = next;
	} while (s != r);
}

void
zkl_siblings_break(ZklManager *m, ZklRequest *r, ZklFailure failure)
{
	ZklRequest *s = r;

	if (r->demand != ZKL_DEMAND_GRANTED)
		return;
	zkl_downgrade_give_up(r);
	do
	{
		/* A worker that ended meanwhile may have told only some of them. */
		if ((s == r || s->cover == r) && !s->broken)
		{
			if (zkl_is_kept(s))
				zkl_keep_over(m, s);
			else
				tell_loss(m, s, failure);
			s->broken = true;
		}
		s = s->sibling_next;
	} while (s != r);
	zkl_keep_disown(m, r);
}

void
zkl_siblings_revoke(ZklManager *m, ZklRequest *r, int64_t zxid,
					const char *asker)
{
	ZklRequest *s = r;

	if (r->demand != ZKL_DEMAND_GRANTED || r->broken)
		return;
	do
	{
		if ((s == r || s->cover == r) && s->asked_zxid != zxid &&
			!zkl_is_kept(s))
		{
			ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_REVOKE);

			action->request = s->id;
			action->asker = zkl_actions_join(m, asker, "", "");
			action->asked_zxid = zxid;
			s->asked_zxid = zxid;
		}
		s = s->sibling_next;
	} while (s != r);
}
