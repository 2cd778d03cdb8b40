/*
 * request.c
 *	  The state machine of one request: its demand, and its znode.
 *
 * Owns ZklRequests, ZklLockRequests, and the fields of ZklRequest that are in no
 * group, but for perhaps_overtaken, attempts and trying: the demand's transitions shown in
 * lock_state.h.  node.c writes the node's states, as request.c tells it.  Runs in
 * the worker (and in tests), takes no locks, knows neither PostgreSQL nor
 * ZooKeeper.
 */
#include <string.h>

#include "core/actions.h"
#include "core/askers.h"
#include "core/batches.h"
#include "core/cache.h"
#include "core/downgrade.h"
#include "core/hooks.h"
#include "core/keep.h"
#include "core/lock.h"
#include "core/look.h"
#include "core/loss.h"
#include "core/memory.h"
#include "core/node.h"
#include "core/request.h"
#include "core/rewrite.h"
#include "core/siblings.h"
#include "core/tries.h"
#include "core/words.h"

void
zkl_request_init_all(ZklManager *m)
{
	size_t		size = m->config.max_requests * sizeof(ZklRequest);
	uint32_t	i;

	m->requests.all = zkl_memory_alloc(m, size);
	memset(m->requests.all, 0, size);
	for (i = 0; i < m->config.max_requests; i++)
		m->requests.all[i].id = i;
}

void
zkl_request_free_all(ZklManager *m)
{
	zkl_memory_release(m, m->requests.all);
}

ZklRequest *
zkl_request_begin(ZklManager *m, uint32_t id, const ZklDemand *demand)
{
	ZklRequest *r = &m->requests.all[id];
	ZklLock    *lock = zkl_lock_get(m, demand->name, demand->dialect);

	memset(r, 0, offsetof(ZklRequest, node.data));
	r->id = id;
	r->demand = ZKL_DEMAND_WAITING;
	r->mode = demand->mode;
	r->max = demand->max;
	r->guard = demand->guard;
	zkl_askers_init(r);
	r->lock = lock;
	r->submitted = ++m->requests.submitted;
	r->pid = demand->pid;
	zkl_siblings_init(m, r, demand->owner);
	zkl_node_init(r, demand);
	zkl_rewrite_init(m, r, demand->waited);
	r->plain = demand->plain && demand->mode == ZKL_EXCLUSIVE &&
		demand->sibling < 0 && demand->dialect < ZKL_LOCK_DIALECTS;
	zkl_cache_demanded(m, r);

	if (demand->sibling >= 0 &&
		(uint32_t) demand->sibling < m->config.max_requests)
	{
		ZklRequest *sibling = &m->requests.all[demand->sibling];

		/*
		 * If the sibling was lost meanwhile, it still leads to the owner's
		 * other holds.
		 */
		if (sibling->demand != ZKL_DEMAND_UNUSED && sibling->lock == lock &&
			sibling->ring.owner == r->ring.owner)
			zkl_siblings_join(r, sibling);
	}
	zkl_list_append(&lock->requests.all, &r->all);
	lock->requests.n++;
	m->requests.nlive++;
	r->together = demand->together;
	lock->requests.ntogether += r->together;
	ZKL_HOOKS(m, began, r, demand);
	if (demand->timed_out)
		zkl_request_time_out(m, r);
	return r;
}

/* RELEASED and without a node: give the slot back */
static void
give_slot_back(ZklManager *m, ZklRequest *r)
{
	ZklLock    *lock = r->lock;

	if (r->demand != ZKL_DEMAND_RELEASED || r->node.state != ZKL_NODE_NONE)
		return;
	ZKL_ASSERT(lock->requests.n > 0 && !zkl_list_linked(&r->place.link));
	ZKL_ASSERT(r->cache.state == ZKL_CACHE_NONE && !zkl_keep_is_on(r));
	zkl_siblings_leave(r);
	zkl_list_remove(&r->all);
	r->demand = ZKL_DEMAND_UNUSED;
	r->lock = NULL;
	lock->requests.n--;
	zkl_actions_add(m, ZKL_ACTION_FREE)->request = r->id;
	zkl_lock_settle_idle(m, lock);
}

/* ---- ends ---- */

/* r waits no longer: what it wanted to be told meanwhile is over. */
static void
stop_waiting(ZklRequest *r)
{
	ZKL_ASSERT(r->demand != ZKL_DEMAND_WAITING || !r->timed_out ||
			   r->lock->requests.ntimed_out > 0);
	ZKL_ASSERT(!r->together || r->lock->requests.ntogether > 0);
	if (r->demand == ZKL_DEMAND_WAITING && r->timed_out)
		r->lock->requests.ntimed_out--;
	r->lock->requests.ntogether -= r->together;
	r->together = false;
}

/* The demand of r ends, and with it its node: WAITING or GRANTED -> "demand". */
static void
end_demand(ZklManager *m, ZklRequest *r, ZklDemandState demand)
{
	ZklLock    *lock = r->lock;
	bool		overdue = r->demand == ZKL_DEMAND_GRANTED &&
	demand == ZKL_DEMAND_ANSWERED;
	bool		word = false;

	if (ZKL_MUTANT(HANDOVER_TO_CANCELLED) && r == lock->queue.waiting &&
		lock->queue.nheld > 0 && demand == ZKL_DEMAND_RELEASED)
		return;
	ZKL_ASSERT(r->demand == ZKL_DEMAND_WAITING || r->demand == ZKL_DEMAND_GRANTED);
	ZKL_ASSERT(m->requests.nlive > 0 && zkl_siblings_leaning(r) == NULL);
	m->requests.nlive--;
	stop_waiting(r);
	zkl_cache_forget(m, r);
	zkl_siblings_lean(r, NULL);
	switch (r->node.state)
	{
		case ZKL_NODE_NONE:
			zkl_tries_remove(r);
			break;
		case ZKL_NODE_NEW:
			if (!zkl_node_was_sent(r))
				zkl_node_gone(r);
			break;
		case ZKL_NODE_EXISTS:
			word = zkl_words_may_be_said(m, r);
			zkl_lock_dequeue(m, lock, r);
			zkl_look_stop(r);
			if (zkl_downgrade_pending(r))
				zkl_node_delete_held(r);
			else
			{
				zkl_downgrade_node_gone(r);
				zkl_batches_pace_delete(m, r);
			}
			if (ZKL_MUTANT(CANCEL_FORGETS_NODE) &&
				r->demand == ZKL_DEMAND_WAITING)
				zkl_request_node_gone(m, r);
			break;
		default:
			break;
	}
	r->demand = demand;
	if (demand == ZKL_DEMAND_ANSWERED)
		zkl_keep_disown(m, r);

	/* Its slot stays, and shows the cover's znode no longer. */
	if (overdue)
		zkl_node_record(m, r);
	if (word)
		zkl_words_say(m, r);
	zkl_lock_touch(m, lock);
}

/* One that leaned on r does so no longer. */
static void
lean_less(ZklManager *m, ZklRequest *r)
{
	ZklDemandState demand = r->ring.then;

	if (zkl_siblings_leaning(r) != NULL)
	{
		zkl_downgrade_want(m, r);
		return;
	}
	zkl_siblings_stay(r, ZKL_DEMAND_UNUSED);
	zkl_node_record(m, r);
	end_demand(m, r, demand);
}

/* Its holder lets go of r, which stays if others lean on its node. */
static void
let_go(ZklManager *m, ZklRequest *r, ZklDemandState demand)
{
	ZklRequest *cover = r->ring.cover;

	if (zkl_siblings_leaning(r) != NULL)
	{
		zkl_siblings_stay(r, demand);
		zkl_node_record_all(m, r);
		zkl_look_mark_stays(m, r);
		zkl_downgrade_want(m, r);
		zkl_keep_disown(m, r);
		return;
	}
	end_demand(m, r, demand);
	if (cover != NULL && zkl_siblings_stays(cover) && !ZKL_MUTANT(STAYS_FOR_NOBODY))
		lean_less(m, cover);
}

void
zkl_request_create(ZklManager *m, ZklRequest *r)
{
	if (r->lock->counter != ZKL_COUNTER_GOOD)
	{
		zkl_request_fail(m, r, ZKL_FAILURE_NO_NUMBER, 0);
		return;
	}
	zkl_askers_init(r);
	zkl_node_new(m, r);
	zkl_look_mark_new_node(r);
	zkl_look_forget(m, r);
}

void
zkl_request_exists(ZklManager *m, ZklRequest *r, ZklSeq seq, int64_t czxid)
{
	zkl_node_exists(r, seq, czxid);
	zkl_node_record(m, r);
	if (r->demand == ZKL_DEMAND_WAITING &&
		(seq < ZKL_SEQ_LIMIT || ZKL_MUTANT(NUMBER_PAST_LIMIT)))
	{
		zkl_lock_enqueue(m, r->lock, r);
		zkl_lock_touch(m, r->lock);
		return;
	}
	if (seq >= ZKL_SEQ_LIMIT && !ZKL_MUTANT(COUNTER_STAYS))
		zkl_lock_counter_ended(r->lock);
	zkl_node_delete(m, r, ZKL_RANK_DELETE);
	if (r->demand == ZKL_DEMAND_WAITING)
		zkl_request_fail(m, r, ZKL_FAILURE_NO_NUMBER, 0);
}

void
zkl_request_node_gone(ZklManager *m, ZklRequest *r)
{
	zkl_node_gone(r);
	zkl_cache_forget(m, r);
	zkl_look_forget(m, r);
	zkl_lock_left(m, r->lock);
	if (r->node.recreate && r->demand == ZKL_DEMAND_WAITING)
		zkl_request_create(m, r);
	else
		give_slot_back(m, r);
}

void
zkl_request_node_never_was(ZklManager *m, ZklRequest *r)
{
	zkl_batches_want_proof(m);
	zkl_node_set_recreate(r);
	zkl_request_node_gone(m, r);
}

void
zkl_request_resend(ZklManager *m, ZklRequest *r)
{
	if (r->demand == ZKL_DEMAND_WAITING && r->lock->counter != ZKL_COUNTER_GOOD)
		zkl_request_fail(m, r, ZKL_FAILURE_NO_NUMBER, 0);
	if (r->demand != ZKL_DEMAND_WAITING)
	{
		zkl_request_node_gone(m, r);
		return;
	}
	zkl_node_resend(m, r);
}

static void
tell_grant(ZklManager *m, ZklRequest *r)
{
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_GRANT);

	ZKL_ASSERT(r->demand == ZKL_DEMAND_WAITING);
	action->request = r->id;
	action->token = r->token;
	action->solitary = r->ring.cover == NULL && zkl_batches_pace_is_solitary(r);
	stop_waiting(r);
	r->demand = ZKL_DEMAND_GRANTED;
	zkl_look_set_verified(r, true);
	zkl_batches_pace_granted(m);
}

bool
zkl_request_grant(ZklManager *m, ZklRequest *r)
{
	ZKL_ASSERT(m->connection.state == ZKL_CONNECTION_READY);
	ZKL_ASSERT(m->now < m->session_lease.until || ZKL_MUTANT(GRANT_WITHOUT_LEASE));
	ZKL_ASSERT(r->lock->queue.waiting == r);
	if (r->node.czxid == 0 || !zkl_look_is_recent(m, r))
	{
		zkl_look_token(m, r);
		return false;
	}
	r->token = r->node.czxid * ZKL_TOKENS_PER_ZXID + r->node.index;
	zkl_lock_hold(m, r->lock, r);
	if (r->lock->foreign.departed)
	{
		r->by_word = true;
		zkl_node_record(m, r);
	}
	tell_grant(m, r);
	zkl_rewrite_granted(m, r);
	zkl_look_mark_granted(m, r);
	return true;
}

void
zkl_request_taken(ZklManager *m, ZklRequest *r, const ZklRecalled *found)
{
	if (!ZKL_MUTANT(TOKEN_NOT_TOLD))
		r->token = found->token;
	if (!ZKL_MUTANT(PID_NOT_TOLD))
		r->pid = found->pid;
	if (!ZKL_MUTANT(NAME_NOT_TOLD))
		zkl_node_set_data(r, found->data, found->data_length);
	if (found->owner == r->ring.owner)
		return;
	ZKL_ASSERT(r->ring.next == r);
	ZKL_HOOKS(m, hold_ended, r);
	zkl_siblings_init(m, r, found->owner);
}

void
zkl_request_cover(ZklManager *m, ZklRequest *r, ZklRequest *cover)
{
	ZKL_ASSERT(cover->demand == ZKL_DEMAND_GRANTED && !cover->broken);
	ZKL_ASSERT(cover->node.state == ZKL_NODE_EXISTS && cover->lock == r->lock);
	ZKL_ASSERT(r->node.state == ZKL_NODE_NONE);
	zkl_siblings_lean(r, cover);
	cover->guard |= r->guard && !ZKL_MUTANT(WORD_FOR_LEANING_GUARD);
	r->token = cover->token;
	zkl_node_record(m, r);
	tell_grant(m, r);
}

void
zkl_request_blocked(ZklManager *m, ZklRequest *r)
{
	ZKL_ASSERT(r->together && r->lock->requests.ntogether > 0);
	r->lock->requests.ntogether--;
	r->together = false;
	zkl_actions_add(m, ZKL_ACTION_BLOCKED)->request = r->id;
}

void
zkl_request_behind_cached(ZklManager *m, ZklRequest *r, const char *server)
{
	const char *name = server == NULL ? NULL :
	zkl_actions_join(m, server, "", "");
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_BEHIND_CACHED);

	action->request = r->id;
	action->server = name;
	r->behind_cached = server != NULL;
}

void
zkl_request_deny(ZklManager *m, ZklRequest *r)
{
	ZKL_ASSERT(m->connection.state == ZKL_CONNECTION_READY && r->timed_out);
	ZKL_ASSERT(m->now < m->session_lease.until || ZKL_MUTANT(GRANT_WITHOUT_LEASE));
	zkl_actions_add(m, ZKL_ACTION_DENY)->request = r->id;
	end_demand(m, r, ZKL_DEMAND_ANSWERED);
}

static void
end_by_failure(ZklManager *m, ZklRequest *r, ZklFailure failure, int32_t rc,
			   const void *reason)
{
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_FAIL);

	ZKL_ASSERT(r->demand == ZKL_DEMAND_WAITING);
	action->request = r->id;
	action->failure = failure;
	action->rc = rc;
	action->reason = reason;
	end_demand(m, r, ZKL_DEMAND_ANSWERED);
}

void
zkl_request_fail(ZklManager *m, ZklRequest *r, ZklFailure failure, int32_t rc)
{
	end_by_failure(m, r, failure, rc, NULL);
}

void
zkl_request_end_wait(ZklManager *m, ZklRequest *r, ZklFailure failure,
					 const void *reason)
{
	end_by_failure(m, r, failure, 0, reason);
}

void
zkl_request_lost(ZklManager *m, ZklRequest *r)
{
	ZKL_ASSERT(r->demand == ZKL_DEMAND_GRANTED && m->requests.nlive > 0);
	ZKL_ASSERT(!zkl_keep_is_on(r));
	zkl_siblings_lean(r, NULL);
	zkl_cache_forget(m, r);
	r->demand = zkl_siblings_stays(r) ? r->ring.then : ZKL_DEMAND_ANSWERED;
	zkl_siblings_stay(r, ZKL_DEMAND_UNUSED);
	m->requests.nlive--;
}

void
zkl_request_set_broken(ZklRequest *r)
{
	ZKL_ASSERT(r->demand == ZKL_DEMAND_GRANTED);
	r->broken = true;
}

void
zkl_request_answered(ZklManager *m, ZklRequest *r)
{
	let_go(m, r, ZKL_DEMAND_ANSWERED);
}

/* r has no place in the queue any more: what it was told of that is over. */
static void
leave_queue(ZklManager *m, ZklRequest *r)
{
	zkl_lock_dequeue(m, r->lock, r);
	if (r->behind_cached && !ZKL_MUTANT(BEHIND_STAYS))
		zkl_request_behind_cached(m, r, NULL);
}

void
zkl_request_requeue(ZklManager *m, ZklRequest *r)
{
	leave_queue(m, r);
	zkl_look_stop(r);
	zkl_node_exists(r, r->node.seq, r->node.czxid);
	zkl_node_set_recreate(r);
	zkl_node_delete(m, r, ZKL_RANK_DELETE);
	zkl_lock_touch(m, r->lock);
	zkl_node_record(m, r);
}

/* EXISTS -> NONE, out of the queue, whatever the demand */
static void
drop_node(ZklManager *m, ZklRequest *r)
{
	if (zkl_list_linked(&r->place.link))
		leave_queue(m, r);
	zkl_downgrade_node_gone(r);
	zkl_look_stop(r);
	zkl_node_gone(r);
	zkl_cache_forget(m, r);
	zkl_look_forget(m, r);
	zkl_lock_left(m, r->lock);
}

void
zkl_request_node_deleted(ZklManager *m, ZklRequest *r)
{
	zkl_lock_touch(m, r->lock);
	zkl_batches_want_proof(m);
	drop_node(m, r);
	if (r->demand == ZKL_DEMAND_GRANTED)
	{
		zkl_loss_begin(m, r, ZKL_FAILURE_NODE_DELETED);
		zkl_keep_disown(m, r);
		give_slot_back(m, r);
	}
	else if (r->demand == ZKL_DEMAND_WAITING)
	{
		zkl_node_set_recreate(r);
		zkl_node_record(m, r);
		zkl_request_create(m, r);
	}
}

void
zkl_request_session_lost(ZklManager *m, ZklRequest *r)
{
	if (ZKL_MUTANT(DYING_SESSION) && r->node.state == ZKL_NODE_EXISTS &&
		r->demand == ZKL_DEMAND_WAITING)
		return;
	if (ZKL_MUTANT(KEEP_HOLDS) && r->demand == ZKL_DEMAND_GRANTED)
		return;
	drop_node(m, r);
	if (r->demand == ZKL_DEMAND_GRANTED && r->ring.cover == NULL)
		zkl_loss_begin(m, r, ZKL_FAILURE_SESSION_EXPIRED);
	if (r->demand == ZKL_DEMAND_WAITING)
		zkl_request_create(m, r);
	else
		give_slot_back(m, r);
}

void
zkl_request_time_out(ZklManager *m, ZklRequest *r)
{
	if (r->demand != ZKL_DEMAND_WAITING || r->timed_out)
		return;
	r->timed_out = true;
	r->lock->requests.ntimed_out++;
	zkl_lock_touch(m, r->lock);
}

void
zkl_request_release(ZklManager *m, ZklRequest *r)
{
	ZklRequest *sibling = r->ring.next;

	zkl_keep_end(r);
	if (zkl_siblings_stays(r))
		zkl_siblings_stay(r, ZKL_DEMAND_RELEASED);
	else if (r->demand == ZKL_DEMAND_WAITING)
		end_demand(m, r, ZKL_DEMAND_RELEASED);
	else if (r->demand == ZKL_DEMAND_GRANTED)
	{
		zkl_cache_released(m, r);
		let_go(m, r, ZKL_DEMAND_RELEASED);
	}
	else if (r->demand == ZKL_DEMAND_ANSWERED)
		r->demand = ZKL_DEMAND_RELEASED;
	give_slot_back(m, r);

	/* Wait for FREE: two holds that shared a node have one owner till then. */
	zkl_keep_disown(m, sibling);
}
