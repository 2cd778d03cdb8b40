/*
 * restore.c
 *	  What a restarted worker finds: the session, the chain, and the slots.
 *
 * Owns nothing.  It puts requests into the states in which the previous worker
 * left them, as far as the slots tell.  Runs in the worker (and in tests),
 * takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "core/actions.h"
#include "core/downgrade.h"
#include "core/end.h"
#include "core/hooks.h"
#include "core/janitor.h"
#include "core/lock.h"
#include "core/look.h"
#include "core/loss.h"
#include "core/node.h"
#include "core/request.h"
#include "core/restore.h"
#include "core/session.h"
#include "core/siblings.h"

void
zkl_restore_session(ZklManager *m, const ZklSession *session, uint32_t chain,
					uint32_t chain_in_use)
{
	if (ZKL_MUTANT(RESTART_TAKES_LAST_CHAIN))
		chain_in_use = chain;
	zkl_session_attach(m, session, chain, chain_in_use);
	zkl_janitor_want(m);
	ZKL_HOOKS(m, attached);
}

/* ---- one slot ---- */

/*
 * r shares a node.  The previous worker may have told only some holds of a break: it is
 * true of all of them.
 */
static void
restore_cover(ZklManager *m, ZklRequest *r, ZklRequest *cover)
{
	zkl_siblings_join(r, cover);
	zkl_request_restore_cover(r, cover);
	if (r->broken || cover->broken)
		zkl_loss_break(m, cover, ZKL_FAILURE_BROKEN);
}

/* A hold without a znode of its own: find the one that covers it. */
static void
restore_covered(ZklManager *m, ZklRequest *r)
{
	ZklRequest *cover = NULL;
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &r->lock->requests.all)
	{
		ZklRequest *s = zkl_container(ZklRequest, all, link);

		if (s != r && zkl_siblings_may_share(s, r) && s->demand == ZKL_DEMAND_GRANTED &&
			s->node.state == ZKL_NODE_EXISTS &&
			s->token == r->token)
			cover = s;
	}
	if (cover != NULL)
		restore_cover(m, r, cover);
	else
	{
		zkl_request_restore_cover(r, NULL);
		zkl_request_vanished(m, r);
	}
}

/*
 * A granted request of the same owner on the same lock, whose ring this one
 * joins, or -1.  Each permit counts for itself.
 */
static int32_t
find_sibling(ZklManager *m, const ZklDemand *demand)
{
	ZklLock    *lock = zkl_lock_get(m, demand->name, demand->dialect);
	int32_t		sibling = -1;
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &lock->requests.all)
	{
		const ZklRequest *s = zkl_container(ZklRequest, all, link);

		if (demand->dialect != ZKL_DIALECT_PERMIT &&
			s->demand == ZKL_DEMAND_GRANTED && s->ring.owner == demand->owner)
			sibling = (int32_t) s->id;
	}
	return sibling;
}

/* Its session is the one to come back to. */
static bool
is_current(const ZklManager *m, const ZklRestored *slot)
{
	return m->session.id != 0 &&
		slot->record.generation == m->session.generation;
}

/* Whether it holds the lock, or did so and its znode may still be there. */
static bool
is_hold(const ZklManager *m, const ZklRestored *slot)
{
	if (!is_current(m, slot))
		return false;
	switch (slot->state)
	{
		case ZKL_SLOT_SAYS_GRANTED:
			return true;
		case ZKL_SLOT_SAYS_LOST:

			/* A lost hold that has its znode keeps it for a while. */
			return (slot->broken || slot->overdue) && !slot->record.retired;
		case ZKL_SLOT_SAYS_RELEASED:

			/* Another hold of its owner may lean on its znode. */
			return slot->end.keep_until != 0 ||
				(slot->record.sent && slot->token != 0 && slot->record.seq >= 0);
		default:
			return false;
	}
}

/*
 * The previous worker may not have looked at a demand yet.  A hold of its
 * owner, the sibling that it names, may cover it.
 */
static bool
restore_under_cover(ZklManager *m, ZklRequest *r, const ZklRestored *slot)
{
	ZklRequest *cover = zkl_siblings_covering(r);

	if (slot->state != ZKL_SLOT_SAYS_WAITING || slot->record.sent ||
		slot->demand.sibling < 0)
		return false;
	if (cover != NULL)
		zkl_request_cover(m, r, cover);
	return cover != NULL;
}

/*
 * Two holds of one owner may claim one node: a released one handed it on to
 * the other, and the worker ended before it gave back the first one's slot.
 * Only one of them has the node; the other leans on that.
 */
static bool
restore_shared_node(ZklManager *m, ZklRequest *r, const ZklRestored *slot)
{
	ZklRequest *first = NULL;

	if (is_hold(m, slot) && slot->record.sent)
		first = zkl_node_find(m, &slot->record.uuid);
	if (first == NULL || first->demand != ZKL_DEMAND_GRANTED ||
		!zkl_siblings_may_share(first, r) || first->lock != r->lock)
		return false;
	restore_cover(m, r, first);
	return true;
}

/* The slot tells of no znode, or of another request's. */
static void
restore_without_node(ZklManager *m, ZklRequest *r, const ZklRestored *slot)
{
	if (is_hold(m, slot))
		restore_covered(m, r);
	else
	{
		zkl_request_create(m, r);
		if (slot->state != ZKL_SLOT_SAYS_WAITING)
			zkl_request_answered(m, r);
	}
}

static void
restore_node(ZklManager *m, ZklRequest *r, const ZklRestored *slot)
{
	zkl_node_restore(m, r, slot);
	if (!is_hold(m, slot) && slot->state != ZKL_SLOT_SAYS_WAITING)
		zkl_request_answered(m, r);
	if (slot->record.going && !ZKL_MUTANT(RESTORED_AHEAD))
		zkl_request_going(m, r, slot->record.seq);
	else if (slot->record.seq >= 0)
		zkl_request_exists(m, r, slot->record.seq,
						   is_hold(m, slot) ? slot->token / ZKL_TOKENS_PER_ZXID : 0);

	/*
	 * A node to be deleted may have become a reader's before that was
	 * recorded.
	 */
	if (r->node.state == ZKL_NODE_DELETE && r->mode == ZKL_SHARED &&
		r->node.mode == ZKL_EXCLUSIVE)
	{
		zkl_node_delete_held(r);
		zkl_downgrade_unknown(r);
	}
	if (is_hold(m, slot) && r->demand == ZKL_DEMAND_WAITING)
		zkl_request_restore_hold(m, r);
}

static void
restore(ZklManager *m, uint32_t request, const ZklRestored *slot)
{
	bool		waits = slot->state == ZKL_SLOT_SAYS_WAITING;
	ZklRestored own = *slot;
	ZklRequest *r;

	/* The nodes of another session are gone. */
	own.record.sent &= is_current(m, slot);
	if (slot->record.disowned)
		own.demand.owner = zkl_siblings_nobody(own.demand.owner);
	own.demand.sibling = find_sibling(m, &own.demand);
	own.demand.timed_out &= waits;
	own.demand.together &= waits;
	r = zkl_request_begin(m, request, &own.demand);
	own.demand.sibling = slot->demand.sibling;
	zkl_request_restore(r, slot->token, is_hold(m, slot) && slot->broken, slot->record.worded);
	zkl_look_mark_restore(r, slot->asked_zxid);
	if (restore_under_cover(m, r, &own) || restore_shared_node(m, r, &own))
		return;
	if (own.record.sent && zkl_node_find(m, &own.record.uuid) == NULL)
		restore_node(m, r, &own);
	else
		restore_without_node(m, r, &own);

	/* Others may wait ahead of it for the very hold that its owner has lost. */
	if (r->demand == ZKL_DEMAND_WAITING && zkl_siblings_any_broken(r))
		zkl_request_fail(m, r, ZKL_FAILURE_BROKEN, 0);
}

/* ---- all of them ---- */

/* In this order */
typedef enum
{
	HOLDS_WITH_A_NODE,			/* the others lean on them */
	OTHER_HOLDS,
	DOWNGRADES,					/* unless an exclusive hold leans on the node */
	RELEASED,					/* its node perhaps goes to another hold */
	OVERDUE,					/* likewise */
	WAITING,					/* on top of what their owners still hold */
	NPASSES
} Pass;

static bool
has_nothing(const ZklManager *m, const ZklRestored *slot)
{
	return slot->state == ZKL_SLOT_SAYS_RELEASED && !is_hold(m, slot) &&
		!(slot->record.sent && is_current(m, slot));
}

/* It was held in a session that no longer exists. */
static void
lose(ZklManager *m, uint32_t request)
{
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_LOSE);

	action->request = request;
	action->failure = ZKL_FAILURE_SESSION_EXPIRED;
}

static void
look_at(ZklManager *m, Pass pass, uint32_t i, const ZklRestored *slot)
{
	ZklRequest *r = &m->requests.all[i];
	bool		known = r->demand != ZKL_DEMAND_UNUSED;

	switch (pass)
	{
		case HOLDS_WITH_A_NODE:
			if (slot->record.sent && slot->token != 0 && is_hold(m, slot))
				restore(m, i, slot);
			break;
		case OTHER_HOLDS:
			if (!known && is_hold(m, slot))
				restore(m, i, slot);
			break;
		case DOWNGRADES:
			if (r->demand == ZKL_DEMAND_GRANTED)
				zkl_downgrade_want(m, r);
			break;
		case RELEASED:
			if (slot->state != ZKL_SLOT_SAYS_RELEASED)
				break;
			if (!known && !has_nothing(m, slot))
				restore(m, i, slot);
			zkl_end_release(m, i, &slot->end);
			break;
		case OVERDUE:
			if (slot->over)
				zkl_end_overdue(m, i);
			break;
		default:
			if (known || slot->state == ZKL_SLOT_SAYS_RELEASED)
				break;
			if (slot->state == ZKL_SLOT_SAYS_GRANTED)
				lose(m, i);
			else
				restore(m, i, slot);
	}
}

void
zkl_restore_slots(ZklManager *m, const ZklRestored *slots)
{
	Pass		pass;
	uint32_t	i;

	for (pass = 0; pass < NPASSES; pass++)
	{
		for (i = 0; i < m->config.max_requests; i++)
		{
			if (slots[i].demand.name != NULL)
				look_at(m, pass, i, &slots[i]);
		}
	}
}
