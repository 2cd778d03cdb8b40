/*
 * request.c
 *	  The state machine of one request: its demand, and its znode.
 *
 * Owns the transitions shown in state.h.  Runs in the worker (and in tests),
 * takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "core/actions.h"
#include "core/downgrade.h"
#include "core/keep.h"
#include "core/lock.h"
#include "core/mark.h"
#include "core/pace.h"
#include "core/reads.h"
#include "core/request.h"
#include "core/siblings.h"

static ZklList *
uuid_bucket(const ZklManager *m, const ZklUuid *uuid)
{
	return zkl_table_bucket(&m->by_uuid,
							zkl_hash(uuid->bytes, ZKL_UUID_BYTES));
}

ZklRequest *
zkl_request_find(const ZklManager *m, const ZklUuid *uuid)
{
	ZklList    *bucket = uuid_bucket(m, uuid);
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, bucket)
	{
		ZklRequest *r = zkl_container(ZklRequest, by_uuid, link);

		if (memcmp(&r->uuid, uuid, sizeof(ZklUuid)) == 0)
			return r;
	}
	return NULL;
}

char *
zkl_request_path(ZklManager *m, const ZklRequest *r)
{
	char		name[ZKL_MAX_ZNODE_NAME + 1];

	if (r->seq < 0)
		zkl_znode_prefix(r->lock->dialect, &r->uuid, r->node_mode, name);
	else
		zkl_znode_name(r->lock->dialect, &r->uuid, r->node_mode, r->seq, name);
	return zkl_actions_join(m, r->lock->path, "/", name);
}

ZklRequest *
zkl_request_begin(ZklManager *m, uint32_t id, const ZklDemand *demand)
{
	ZklRequest *r = &m->requests[id];
	ZklLock    *lock = zkl_lock_get(m, demand->name, demand->dialect);

	memset(r, 0, offsetof(ZklRequest, data));
	memset(&r->all, 0, sizeof(*r) - offsetof(ZklRequest, all));
	r->id = id;
	r->demand = ZKL_DEMAND_WAITING;
	r->mode = r->node_mode = demand->mode;
	r->max = demand->max;
	r->lock = lock;
	r->seq = -1;
	r->submitted = ++m->submissions;
	zkl_siblings_init(r, demand->owner);
	r->data_length = demand->data_length < ZKL_MAX_NODE_DATA ?
		demand->data_length : ZKL_MAX_NODE_DATA;
	memcpy(r->data, demand->data, r->data_length);

	if (demand->sibling >= 0 &&
		(uint32_t) demand->sibling < m->config.max_requests)
	{
		ZklRequest *sibling = &m->requests[demand->sibling];

		/* Lost meanwhile, it still leads to what else the owner holds. */
		if (sibling->demand != ZKL_DEMAND_UNUSED && sibling->lock == lock &&
			sibling->owner == r->owner)
			zkl_siblings_join(r, sibling);
	}
	zkl_list_append(&lock->requests, &r->all);
	lock->nrequests++;
	m->nlive++;
	r->together = demand->together;
	lock->ntogether += r->together;
	if (demand->timed_out)
		zkl_request_time_out(m, r);
	return r;
}

void
zkl_request_note(ZklManager *m, const ZklRequest *r)
{
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_ZNODE);

	action->request = r->id;
	action->uuid = r->uuid;
	action->mode = r->node_mode;
	action->seq = r->seq;
	action->index = r->index;
	action->going = r->again;
}

/* RELEASED and without a node: give the slot back */
static void
finish(ZklManager *m, ZklRequest *r)
{
	ZklLock    *lock = r->lock;

	if (r->demand != ZKL_DEMAND_RELEASED || r->node != ZKL_NODE_NONE)
		return;
	zkl_siblings_leave(r);
	zkl_unlink(&r->all);
	r->demand = ZKL_DEMAND_UNUSED;
	r->lock = NULL;
	lock->nrequests--;
	zkl_actions_add(m, ZKL_ACTION_FREE)->request = r->id;
	zkl_lock_settle_idle(m, lock);
}

/* ---- losses ---- */

static void
tell_loss(ZklManager *m, const ZklRequest *r, ZklFailure failure)
{
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_LOSE);

	action->request = r->id;
	action->failure = failure;
}

void
zkl_request_retired(ZklManager *m, const ZklRequest *r)
{
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_RETIRE);

	action->request = r->id;
	action->has_node = r->node != ZKL_NODE_NONE;
}

void
zkl_request_lose(ZklManager *m, ZklRequest *r, ZklFailure failure)
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
				zkl_request_retired(m, s);
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
zkl_request_break(ZklManager *m, ZklRequest *r, ZklFailure failure)
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

/* ---- ends ---- */

/* Those that share r's node share the heir's from now on. */
static void
follow(ZklRequest *r, ZklRequest *heir)
{
	ZklRequest *s;

	for (s = r->sibling_next; s != r; s = s->sibling_next)
	{
		if (s->cover == r)
			s->cover = heir;
	}
}

/* The node of r goes on as the node of another hold of the same owner. */
static void
hand_node_on(ZklManager *m, ZklRequest *r, ZklRequest *heir)
{
	heir->uuid = r->uuid;
	heir->node_mode = r->node_mode;
	heir->data_version = r->data_version;
	heir->seq = r->seq;
	heir->index = r->index;
	heir->czxid = r->czxid;
	heir->alone = r->alone;
	zkl_reads_set_watch(m, &heir->own_watch, r->own_watch);
	heir->placed_at = r->placed_at;
	if (zkl_linked(&r->unseen))
		zkl_reads_unseen(m, heir, r->unseen_since);
	heir->seen = r->seen;
	heir->verified = r->verified;
	heir->cover = NULL;
	heir->node = ZKL_NODE_EXISTS;
	follow(r, heir);
	zkl_lock_dequeue(m, r->lock, r);
	zkl_lock_enqueue(m, r->lock, heir);
	zkl_unlink(&r->by_uuid);
	zkl_list_append(uuid_bucket(m, &heir->uuid), &heir->by_uuid);
	if (zkl_linked(&r->unwatched))
		zkl_link_after(&heir->unwatched, &r->unwatched);
	else if (r->own_watch == ZKL_WATCH_SENT ||
			 r->asked_zxid != heir->asked_zxid)
	{
		/*
		 * The answer will be for r, or was for r alone: the heir looks for
		 * itself.
		 */
		zkl_reads_set_watch(m, &heir->own_watch, ZKL_WATCH_NONE);
		zkl_reads_own(m, heir);
	}
	zkl_unlink(&r->unwatched);
	zkl_reads_set_watch(m, &r->own_watch, ZKL_WATCH_NONE);
	r->node = ZKL_NODE_NONE;
	zkl_request_note(m, heir);
	zkl_downgrade_pass_on(m, r, heir);
	if (r->broken)
		zkl_request_break(m, heir, ZKL_FAILURE_BROKEN);
	zkl_downgrade_want(m, heir);
}

/*
 * The demand of r ends: WAITING or GRANTED -> "demand".  Its node goes on
 * with another hold of the owner, or is to be deleted.
 */
static void
end_demand(ZklManager *m, ZklRequest *r, ZklDemandState demand)
{
	ZklLock    *lock = r->lock;
	ZklRequest *cover = r->cover;
	ZklRequest *heir;

	if (ZKL_MUTANT(HANDOVER_TO_CANCELLED) && r == lock->waiting &&
		lock->nheld > 0 && demand == ZKL_DEMAND_RELEASED)
		return;
	m->nlive--;
	if (r->demand == ZKL_DEMAND_WAITING && r->timed_out)
		lock->ntimed_out--;
	lock->ntogether -= r->together;
	r->together = false;
	r->cover = NULL;
	switch (r->node)
	{
		case ZKL_NODE_NONE:
			zkl_unlink(&r->work);
			break;
		case ZKL_NODE_NEW:
			zkl_unlink(&r->work);
			zkl_unlink(&r->by_uuid);
			r->node = ZKL_NODE_NONE;
			break;
		case ZKL_NODE_EXISTS:
			heir = zkl_siblings_heir(r);
			if (heir != NULL)
				hand_node_on(m, r, heir);
			else
			{
				zkl_lock_dequeue(m, lock, r);
				zkl_unlink(&r->unwatched);
				r->node = ZKL_NODE_DELETE;
				if (!zkl_downgrade_pending(r))
				{
					zkl_downgrade_pass_on(m, r, NULL);
					zkl_pace_delete(m, r);
				}
				if (ZKL_MUTANT(CANCEL_FORGETS_NODE) &&
					r->demand == ZKL_DEMAND_WAITING)
					zkl_request_gone(m, r);
			}
			break;
		default:
			break;
	}
	r->demand = demand;
	if (cover != NULL)
		zkl_downgrade_want(m, cover);
	if (demand == ZKL_DEMAND_ANSWERED)
		zkl_keep_disown(m, r);
	zkl_lock_touch(m, lock);
}

void
zkl_request_create(ZklManager *m, ZklRequest *r)
{
	zkl_unlink(&r->by_uuid);
	r->uuid = zkl_uuid_make(m->config.uuid_base, ++m->uuids);
	zkl_list_append(uuid_bucket(m, &r->uuid), &r->by_uuid);
	r->node = ZKL_NODE_NEW;
	r->node_mode = r->mode;
	r->data_version = 0;
	r->seq = -1;
	r->czxid = 0;
	r->seen = 0;
	r->again = r->alone = false;
	r->token_sent = false;
	r->asked_early = false;
	zkl_reads_set_watch(m, &r->own_watch, ZKL_WATCH_NONE);
	r->parked = r->lock->draining;
	if (r->parked)
		zkl_lock_touch(m, r->lock);
	else
		zkl_list_append(&m->creates, &r->work);
}

void
zkl_request_exists(ZklManager *m, ZklRequest *r, ZklSeq seq, int64_t czxid)
{
	r->node = ZKL_NODE_EXISTS;
	r->seq = seq;
	r->czxid = czxid;
	zkl_request_note(m, r);
	if (r->demand == ZKL_DEMAND_WAITING && seq < ZKL_SEQ_LIMIT)
	{
		zkl_lock_enqueue(m, r->lock, r);
		zkl_lock_touch(m, r->lock);
		return;
	}
	if (r->demand == ZKL_DEMAND_WAITING)
	{
		r->again = true;
		r->lock->draining = true;
		zkl_lock_touch(m, r->lock);
	}
	r->node = ZKL_NODE_DELETE;
	zkl_list_append(&m->deletes, &r->work);
}

void
zkl_request_gone(ZklManager *m, ZklRequest *r)
{
	zkl_unlink(&r->work);
	zkl_unlink(&r->by_uuid);
	r->node = ZKL_NODE_NONE;
	zkl_reads_set_watch(m, &r->own_watch, ZKL_WATCH_NONE);
	if (r->again && r->demand == ZKL_DEMAND_WAITING)
		zkl_request_create(m, r);
	else
		finish(m, r);
}

void
zkl_request_absent(ZklManager *m, ZklRequest *r)
{
	r->again = true;
	zkl_request_gone(m, r);
}

void
zkl_request_resend(ZklManager *m, ZklRequest *r)
{
	if (r->demand != ZKL_DEMAND_WAITING)
	{
		zkl_request_gone(m, r);
		return;
	}
	r->node = ZKL_NODE_NEW;
	zkl_list_append(&m->resends, &r->work);
}

void
zkl_request_delete_again(ZklRequest *r, ZklList *list)
{
	r->node = ZKL_NODE_DELETE;
	zkl_unlink(&r->work);
	zkl_list_append(list, &r->work);
}

static void
tell_grant(ZklManager *m, ZklRequest *r)
{
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_GRANT);

	action->request = r->id;
	action->token = r->token;
	action->solitary = r->cover == NULL && zkl_pace_is_solitary(r);
	if (r->timed_out)
		r->lock->ntimed_out--;
	r->lock->ntogether -= r->together;
	r->together = false;
	r->demand = ZKL_DEMAND_GRANTED;
	r->verified = true;
	zkl_pace_granted(m);
}

void
zkl_request_grant(ZklManager *m, ZklRequest *r)
{
	r->token = r->czxid * 4096 + r->index;
	zkl_lock_hold(m, r->lock, r);
	tell_grant(m, r);
	zkl_mark_granted(m, r);
}

void
zkl_request_restore_hold(ZklManager *m, ZklRequest *r)
{
	zkl_lock_hold(m, r->lock, r);
	r->demand = ZKL_DEMAND_GRANTED;

	/* of old: what happened to its node meanwhile is to be looked at first */
	zkl_reads_own(m, r);
}

void
zkl_request_cover(ZklManager *m, ZklRequest *r, ZklRequest *cover)
{
	r->cover = cover;
	r->token = cover->token;
	tell_grant(m, r);
}

void
zkl_request_blocked(ZklManager *m, ZklRequest *r)
{
	r->lock->ntogether--;
	r->together = false;
	zkl_actions_add(m, ZKL_ACTION_BLOCKED)->request = r->id;
}

void
zkl_request_deny(ZklManager *m, ZklRequest *r)
{
	zkl_actions_add(m, ZKL_ACTION_DENY)->request = r->id;
	end_demand(m, r, ZKL_DEMAND_ANSWERED);
}

void
zkl_request_fail(ZklManager *m, ZklRequest *r, ZklFailure failure, int32_t rc)
{
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_FAIL);

	action->request = r->id;
	action->failure = failure;
	action->rc = rc;
	end_demand(m, r, ZKL_DEMAND_ANSWERED);
}

void
zkl_request_answered(ZklManager *m, ZklRequest *r)
{
	end_demand(m, r, ZKL_DEMAND_ANSWERED);
}

void
zkl_request_again(ZklManager *m, ZklRequest *r)
{
	zkl_lock_dequeue(m, r->lock, r);
	zkl_unlink(&r->unwatched);
	zkl_request_going(m, r, r->seq);
	zkl_lock_touch(m, r->lock);

	/* A restarted worker must not put it back into the queue. */
	zkl_request_note(m, r);
}

void
zkl_request_going(ZklManager *m, ZklRequest *r, ZklSeq seq)
{
	r->seq = seq;
	r->again = true;
	r->node = ZKL_NODE_DELETE;
	zkl_list_append(&m->deletes, &r->work);
}

/* EXISTS -> NONE, out of the queue, whatever the demand */
static void
drop_node(ZklManager *m, ZklRequest *r)
{
	if (zkl_linked(&r->queued))
		zkl_lock_dequeue(m, r->lock, r);
	zkl_downgrade_pass_on(m, r, NULL);
	zkl_unlink(&r->unwatched);
	zkl_unlink(&r->work);
	zkl_unlink(&r->by_uuid);
	r->node = ZKL_NODE_NONE;
	zkl_reads_set_watch(m, &r->own_watch, ZKL_WATCH_NONE);
}

void
zkl_request_vanished(ZklManager *m, ZklRequest *r)
{
	zkl_lock_touch(m, r->lock);
	drop_node(m, r);
	if (r->demand == ZKL_DEMAND_GRANTED)
	{
		zkl_request_lose(m, r, ZKL_FAILURE_NODE_DELETED);
		zkl_keep_disown(m, r);
	}
	else if (r->demand == ZKL_DEMAND_WAITING)
	{
		/* A restarted worker must not put it back into the queue. */
		r->again = true;
		zkl_request_note(m, r);
		zkl_request_create(m, r);
	}
}

void
zkl_request_session_lost(ZklManager *m, ZklRequest *r)
{
	if (ZKL_MUTANT(DYING_SESSION) && r->node == ZKL_NODE_EXISTS &&
		r->demand == ZKL_DEMAND_WAITING)
		return;
	if (ZKL_MUTANT(KEEP_HOLDS) && r->demand == ZKL_DEMAND_GRANTED)
		return;
	drop_node(m, r);
	if (r->demand == ZKL_DEMAND_GRANTED && r->cover == NULL)
		zkl_request_lose(m, r, ZKL_FAILURE_SESSION_EXPIRED);
	else if (r->demand == ZKL_DEMAND_WAITING)
		zkl_request_create(m, r);
	else
		finish(m, r);
}

void
zkl_request_time_out(ZklManager *m, ZklRequest *r)
{
	if (r->demand != ZKL_DEMAND_WAITING || r->timed_out)
		return;
	r->timed_out = true;
	r->lock->ntimed_out++;
	zkl_lock_touch(m, r->lock);
}

void
zkl_request_release(ZklManager *m, ZklRequest *r)
{
	ZklRequest *sibling = r->sibling_next;

	zkl_keep_end(r);
	if (r->demand == ZKL_DEMAND_WAITING || r->demand == ZKL_DEMAND_GRANTED)
		end_demand(m, r, ZKL_DEMAND_RELEASED);
	else if (r->demand == ZKL_DEMAND_ANSWERED)
		r->demand = ZKL_DEMAND_RELEASED;
	finish(m, r);

	/* Not before FREE: two that had one node are one owner's till then. */
	zkl_keep_disown(m, sibling);
}
