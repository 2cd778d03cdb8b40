/*
 * request.c
 *	  The state machine of one request: its demand, and its znode.
 *
 * Owns ZklRequests, ZklLockRequests, and the fields of ZklRequest that are in no
 * group, but for perhaps_overtaken, attempts and trying: the demand's transitions
 * shown in state.h.  node.c writes the node's states, as is told here.  Runs in the
 * worker (and in tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "core/cache.h"
#include "core/contenders.h"
#include "core/host.h"
#include "core/lock.h"
#include "core/node.h"
#include "core/owner.h"
#include "core/reads.h"
#include "core/request.h"
#include "core/session.h"
#include "core/write.h"

static void request_node_gone(ZklManager *m, ZklRequest *r);
static void loss_begin(ZklManager *m, ZklRequest *r, ZklFailure failure);

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
	demand == ZKL_DEMAND_ANSWERED && r->ring.cover == NULL;
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
				request_node_gone(m, r);
			break;
		default:
			break;
	}
	r->demand = demand;
	if (demand == ZKL_DEMAND_ANSWERED)
		zkl_keep_disown(m, r);
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

	/*
	 * Its slot stays in use, and shows the cover's znode no longer, now that
	 * the cover's shows that.
	 */
	if (cover != NULL && demand == ZKL_DEMAND_ANSWERED)
		zkl_node_record(m, r);
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

/* Any -> NONE: the node is gone, for whatever reason. */
static void
request_node_gone(ZklManager *m, ZklRequest *r)
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
	request_node_gone(m, r);
}

/* NEW: its create was refused, and goes again, ahead of those that were never sent. */
static void
request_resend(ZklManager *m, ZklRequest *r)
{
	if (r->demand == ZKL_DEMAND_WAITING && r->lock->counter != ZKL_COUNTER_GOOD)
		zkl_request_fail(m, r, ZKL_FAILURE_NO_NUMBER, 0);
	if (r->demand != ZKL_DEMAND_WAITING)
	{
		request_node_gone(m, r);
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

/* For loss: what becomes of r, if its node is gone, or stays for now */
static void
request_lost(ZklManager *m, ZklRequest *r)
{
	ZKL_ASSERT(r->demand == ZKL_DEMAND_GRANTED && m->requests.nlive > 0);
	ZKL_ASSERT(!zkl_keep_is_on(r));
	zkl_siblings_lean(r, NULL);
	zkl_cache_forget(m, r);
	r->demand = zkl_siblings_stays(r) ? r->ring.then : ZKL_DEMAND_ANSWERED;
	zkl_siblings_stay(r, ZKL_DEMAND_UNUSED);
	m->requests.nlive--;
}

static void
request_set_broken(ZklRequest *r)
{
	ZKL_ASSERT(r->demand == ZKL_DEMAND_GRANTED);
	r->broken = true;
}

/* Its time is over. */
static void
request_answered(ZklManager *m, ZklRequest *r)
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
		loss_begin(m, r, ZKL_FAILURE_NODE_DELETED);
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
		loss_begin(m, r, ZKL_FAILURE_SESSION_EXPIRED);
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

/* ---- loss: a hold is lost, with all that share its node ---- */

static void
tell_loss(ZklManager *m, const ZklRequest *r, ZklFailure failure)
{
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_LOSE);

	action->request = r->id;
	action->failure = failure;
}

/* A hold is lost, with all that share its node; the node is gone. */
static void
loss_begin(ZklManager *m, ZklRequest *r, ZklFailure failure)
{
	ZklRequest *s = r;

	ZKL_ASSERT(r->demand == ZKL_DEMAND_GRANTED && r->ring.cover == NULL);
	ZKL_ASSERT(r->node.state == ZKL_NODE_NONE);
	do
	{
		ZklRequest *next = s->ring.next;

		if (s == r || s->ring.cover == r)
		{
			/* Whoever keeps it, its host, has yet to release it. */
			if (zkl_keep_is_on(s) || (!s->broken && !zkl_siblings_stays(s)))
				tell_loss(m, s, failure);
			zkl_keep_end(s);
			request_lost(m, s);
			zkl_node_record(m, s);
		}
		s = next;
	} while (s != r);
}

void
zkl_loss_break(ZklManager *m, ZklRequest *r, ZklFailure failure)
{
	ZklRequest *s = r;

	if (r->demand != ZKL_DEMAND_GRANTED)
		return;
	zkl_downgrade_give_up(r);
	do
	{
		if ((s == r || s->ring.cover == r) && !s->broken)
		{
			if (!zkl_siblings_stays(s))
				tell_loss(m, s, failure);
			request_set_broken(s);
		}
		s = s->ring.next;
	} while (s != r);

	/* It goes without its holder: whoever waits for it does not wait for him. */
	if (!ZKL_MUTANT(BROKEN_STAYS_PUBLISHED))
		ZKL_HOOKS(m, hold_ended, r);
	zkl_keep_disown(m, r);
}

/* ---- end ---- */

/* How a request ends: its backend has finished with it, or its time is over. */

/* r is kept: nobody waits for its owner because of that lock. */
static void
keep(ZklManager *m, ZklRequest *r, int64_t until)
{
	const ZklRequest *s = r;

	zkl_keep_begin(m, r, until);
	do
	{
		ZKL_HOOKS(m, hold_ended, s);
		s = s->ring.next;
	} while (s != r);
}

void
zkl_end_release(ZklManager *m, uint32_t request, const ZklEnd *end)
{
	ZklRequest *r = &m->requests.all[request];

	if (end->epilogue && ZKL_MUTANT(WORD_BEFORE_EPILOGUE) &&
		r->node.state == ZKL_NODE_EXISTS)
		zkl_words_say(m, r);
	if (end->epilogue)
		zkl_keep_leave(m, r);
	else if (r->demand == ZKL_DEMAND_UNUSED)
		zkl_actions_add(m, ZKL_ACTION_FREE)->request = request;
	else if (r->demand == ZKL_DEMAND_GRANTED && end->keep_until > m->now &&
			 !zkl_siblings_stays(r))
	{
		if (zkl_keep_is_on(r))
			zkl_keep_change(m, r, end->keep_until);
		else
			keep(m, r, end->keep_until);
	}
	else
		zkl_request_release(m, r);
}

void
zkl_end_overdue(ZklManager *m, uint32_t request)
{
	ZklRequest *r = &m->requests.all[request];

	if (r->demand != ZKL_DEMAND_GRANTED || zkl_keep_is_on(r) ||
		zkl_siblings_stays(r))
		return;
	request_answered(m, r);
}

void
zkl_end_due(ZklManager *m)
{
	ZklRequest *r;

	while ((r = zkl_keep_due(m)) != NULL)
		zkl_request_release(m, r);
}

/* ---- node_write ---- */

/*
 * The creates and deletes of our nodes: what they say, and what follows from their
 * outcome.
 */

static ZklRequest *
written_for(const ZklWrite *w)
{
	return zkl_container(ZklRequest, node.write, w);
}

static size_t
node_bytes(const ZklWrite *w)
{
	return zkl_node_bytes(written_for(w));
}

/* ---- a create ---- */

static const ZklLock *
creates_in(const ZklWrite *w)
{
	return written_for(w)->lock;
}

/* Gives it an id, records that, and makes the directory if that is missing. */
static void
announce(ZklManager *m, ZklRequest *r, ZklForm *form)
{
	zkl_node_set_index(r, form->index);
	zkl_node_identify(m, r);
	zkl_node_record(m, r);
	if (!r->lock->parents.missing)
	{
		zkl_directories_guess(m, r->lock);
		return;
	}
	zkl_directories_make(m, r->lock, r->lock->path, form->made);
	form->made = r->lock->path;
}

static void
fill_create(ZklManager *m, ZklWrite *w, ZklMultiOp *op, ZklForm *form)
{
	ZklRequest *r = written_for(w);
	char	   *data = zkl_actions_text(m, r->node.data_length +
										ZKL_NODE_DATA_TIMEOUT +
										ZKL_NODE_DATA_CACHED);

	ZKL_ASSERT(r->demand == ZKL_DEMAND_WAITING && r->node.state == ZKL_NODE_NEW);
	zkl_cache_choose(m, r);
	zkl_look_sent(m, r);
	announce(m, r, form);
	memcpy(data, r->node.data, r->node.data_length);
	op->kind = ZKL_MULTI_CREATE;
	op->path = zkl_node_path(m, r);
	op->version = -1;
	op->data = data;
	op->data_length = r->node.data_length;
	if (zkl_dialect_marks(r->lock->dialect))
		op->data_length = zkl_node_data_timeout(data, op->data_length,
												m->session.timeout_ms);
	op->data_length = zkl_cache_mark(r, data, op->data_length);
}

/*
 * Reads go behind the create, as ZooKeeper keeps the order: list a directory that is
 * unknown, or to which others came before our last create, as they may have come
 * again; and watch one that we often come to, so that it is known next time (to send a
 * create again is not to come again).  One that is new is known by the first number in
 * it, and has no watch when the second one comes.
 */
static void
read_behind(ZklManager *m, ZklWrite *w)
{
	ZklLock    *lock = written_for(w)->lock;

	if (((zkl_list_empty(&lock->queue.own) && !zkl_directories_is_guessed(lock)) ||
		 zkl_directories_is_new(lock)) &&
		(lock->foreign.unknown_from != ZKL_SEQ_NONE || lock->base.gap ||
		 !zkl_contenders_continuous(lock)))
		zkl_reads_want_listing(m, lock);
	if (lock->cached != NULL)
		zkl_reads_want_children(m, lock);
	if (w->rank != ZKL_RANK_RESEND)
		zkl_reads_visit(m, lock);
	if (lock->listing.wanted || lock->directory.watch == ZKL_WATCH_WANTED)
		zkl_reads_want(m, lock);
}

/*
 * If a create comes back with a number that is not above all of ours, the
 * counter started again: the directory was deleted, with our nodes in it.
 */
static void
lose_older_incarnation(ZklManager *m, ZklLock *lock, ZklSeq seq)
{
	while (!zkl_list_empty(&lock->queue.own) &&
		   !ZKL_MUTANT(OLDER_INCARNATION_KEPT))
	{
		ZklRequest *last = zkl_container(ZklRequest, place.link,
										 lock->queue.own.head.prev);

		if (last->node.seq < seq)
			return;
		zkl_request_node_deleted(m, last);
	}
}

static void
create_applied(ZklManager *m, ZklRequest *r, const ZklOutcome *o)
{
	const char *path = o->results[0].path;
	ZklSeq		seq = path != NULL ?
	zkl_znode_path_seq(r->lock->dialect, path) : ZKL_SEQ_NONE;
	bool		alone = false;

	if (seq == ZKL_SEQ_NONE)
	{
		zkl_session_need_chain(m);
		return;
	}
	if (seq < ZKL_SEQ_LIMIT)
	{
		zkl_lock_counter_good(r->lock);
		lose_older_incarnation(m, r->lock, seq);
		alone = zkl_contenders_account(m, r->lock, seq, o->zxid);
	}
	zkl_directories_found(m, r, seq);
	zkl_node_created(m, r, alone);
	zkl_request_exists(m, r, seq, o->zxid);

	/* Since then another client may have deleted or marked it. */
	zkl_look_placed(m, r, o->sent_at);

	/* If the directory is new, the watch that was sent along found nothing. */
	if (r->lock->directory.visited &&
		r->lock->directory.watch == ZKL_WATCH_NONE)
		zkl_reads_watch_directory(m, r->lock);
}

/* "named": the answer itself names r, not only its lock. */
static void
create_failed(ZklManager *m, ZklRequest *r, int32_t rc, bool named)
{
	ZklLock    *lock = r->lock;

	/* Without the directory, none of our other nodes in it exists any more. */
	while (rc == ZKL_RC_NONODE && named && !zkl_list_empty(&lock->queue.own))
		zkl_request_node_deleted(m, zkl_container(ZklRequest, place.link,
												  lock->queue.own.head.next));
	if (rc == ZKL_RC_NONODE)
		zkl_directories_missing(lock);
	if (r->demand != ZKL_DEMAND_WAITING)
		request_node_gone(m, r);
	else if (rc == ZKL_RC_NONODE && zkl_directories_try_again(r))
		request_resend(m, r);
	else
	{
		if (rc == ZKL_RC_NONODE)
			zkl_request_fail(m, r, ZKL_FAILURE_PARENTS, lock->parents.rc);
		else
			zkl_request_fail(m, r, ZKL_FAILURE_ZOOKEEPER, rc);
		request_node_gone(m, r);
	}
}

/*
 * Whether a create would be refused as well: it is for the same directory, or
 * its own directory could not be made either.  One by one, such creates would
 * take a round trip each.
 */
static bool
shares_fate(const ZklRequest *r, const ZklOutcome *o)
{
	if (o->directory == NULL)
		return false;
	if (o->rc != ZKL_RC_NONODE)
		return r->lock == o->directory;
	return o->directory->parents.rc != 0 && r->lock->parents.rc != 0 &&
		!zkl_directories_is_guessed(r->lock);
}

/*
 * A missing directory seldom comes alone: the creates wait for all of theirs at
 * once.
 */
static void
create_refused(ZklManager *m, ZklRequest *r, const ZklOutcome *o)
{
	if (o->rc == ZKL_RC_NONODE && o->directory != NULL &&
		zkl_list_empty(&r->lock->queue.own))
		zkl_directories_missing(r->lock);
	if (o->culprit || shares_fate(r, o))
		create_failed(m, r, o->rc, r->lock == o->directory);
	else
		request_resend(m, r);
}

static void
settle_create(ZklManager *m, ZklWrite *w, const ZklOutcome *o)
{
	ZklRequest *r = written_for(w);

	ZKL_ASSERT(r->node.state == ZKL_NODE_NEW);
	if (o->kind == ZKL_OUTCOME_APPLIED)
		create_applied(m, r, o);
	else if (o->kind == ZKL_OUTCOME_REFUSED)
		create_refused(m, r, o);
	else if (ZKL_MUTANT(RESEND_UNKNOWN) || ZKL_MUTANT(RESEND_AFTER_BADVERSION))
		request_resend(m, r);
}

const ZklWriter zkl_node_creation = {
	.nops = 1,.bytes = node_bytes,.fill = fill_create,.behind = read_behind,
	.creates_in = creates_in,.settle = settle_create
};

/* ---- a delete ---- */

static void
fill_delete(ZklManager *m, ZklWrite *w, ZklMultiOp *op, ZklForm *form)
{
	(void) form;
	ZKL_ASSERT(written_for(w)->node.state == ZKL_NODE_DELETE);
	op->kind = ZKL_MULTI_DELETE;
	op->path = zkl_node_path(m, written_for(w));
	op->version = -1;
}

static void
delete_alone(ZklManager *m, ZklWrite *w)
{
	ZklRequest *r = written_for(w);

	zkl_operations_send(m, ZKL_OP_DELETE, r->lock, r, ZKL_SEND_DELETE,
						zkl_node_path(m, r));
}

static void
delete_answered(ZklManager *m, ZklRequest *r, int32_t rc)
{
	bool		gone = rc == ZKL_RC_OK || rc == ZKL_RC_NONODE;

	if (gone)
		zkl_batches_want_proof(m);
	if (gone && zkl_downgrade_take_other_name(r))
		zkl_node_delete(m, r, ZKL_RANK_ALONE);
	else if (gone ||
			 (ZKL_MUTANT(REFUSED_DELETE_IS_DONE) && zkl_zkapi_is_definite(rc)))
		request_node_gone(m, r);
	else
		zkl_write_stick(m, &r->node.write, &zkl_node_deletion, ZKL_RANK_ALONE);
}

/*
 * If the batch was refused for another write, it goes on by itself.  If the answer
 * is lost, it may have been done: a second one does no harm.
 */
static void
settle_delete(ZklManager *m, ZklWrite *w, const ZklOutcome *o)
{
	ZklRequest *r = written_for(w);

	ZKL_ASSERT(r->node.state == ZKL_NODE_DELETE);
	if (o->kind == ZKL_OUTCOME_APPLIED ||
		(o->kind == ZKL_OUTCOME_UNKNOWN && ZKL_MUTANT(DELETE_ONCE)))
		request_node_gone(m, r);
	else if (o->culprit)
		delete_answered(m, r, o->rc);
	else
		zkl_node_delete(m, r, o->beat ? ZKL_RANK_DELETE : ZKL_RANK_ALONE);
}

void
zkl_node_write_deleted(ZklManager *m, ZklRequest *r, int32_t rc)
{
	if (r->node.write.state == ZKL_WRITE_ALONE)
		delete_answered(m, r, rc);
}

const ZklWriter zkl_node_deletion = {
	.nops = 1,.bytes = node_bytes,.fill = fill_delete,.alone = delete_alone,
	.settle = settle_delete
};

/* ---- downgrade_reply ---- */

/*
 * What a downgrade writes, what became of it, and what follows for the request.
 */

/* The node's name is known again. */
static void
end_downgrade(ZklManager *m, ZklRequest *r)
{
	zkl_downgrade_end(r);
	zkl_lock_touch(m, r->lock);
	if (r->node.state == ZKL_NODE_DELETE)
		zkl_batches_pace_delete(m, r);
	else
		zkl_look_if_unwatched(m, r);
}

void
zkl_downgrade_reply_settle(ZklManager *m, ZklRequest *r, bool done)
{
	if (!done && r->node.state == ZKL_NODE_EXISTS)
	{
		zkl_downgrade_end(r);
		zkl_downgrade_want(m, r);
		zkl_look_if_unwatched(m, r);
		return;
	}
	if (done && r->node.state == ZKL_NODE_EXISTS)
	{
		/* The watched node is gone. */
		zkl_look_forget(m, r);
		zkl_lock_downgrade(r->lock, r);
		zkl_rewrite_forget(r);
		zkl_node_record_all(m, r);
	}
	else if (done)
		zkl_node_set_shared(r);
	end_downgrade(m, r);
}

void
zkl_downgrade_reply_refused(ZklManager *m, ZklRequest *r, int32_t rc)
{
	if (rc != ZKL_RC_NONODE)
	{
		end_downgrade(m, r);

		/*
		 * After a BADVERSION a look brings the new version.  If the watch is
		 * armed, that look came while the downgrade was under way, and there
		 * is none to come.
		 */
		if (rc != ZKL_RC_BADVERSION || r->look.watch == ZKL_WATCH_ARMED)
			zkl_downgrade_want_later(m, r);
	}
	else if (r->node.state == ZKL_NODE_DELETE)
	{
		zkl_batches_want_proof(m);
		zkl_downgrade_end(r);
		request_node_gone(m, r);
	}
	else
		zkl_request_node_deleted(m, r);
}

/* ---- in a batch ---- */

static ZklRequest *
changed(const ZklWrite *w)
{
	return zkl_container(ZklRequest, downgrade.write, w);
}

static size_t
change_bytes(const ZklWrite *w)
{
	return zkl_downgrade_change.nops * zkl_node_bytes(changed(w));
}

static void
fill_change(ZklManager *m, ZklWrite *w, ZklMultiOp *ops, ZklForm *form)
{
	ZklRequest *r = changed(w);
	char	   *mark = zkl_actions_text(m, ZKL_MAX_NODE_DATA);
	char	   *data = zkl_actions_text(m, r->node.data_length +
										ZKL_NODE_DATA_TIMEOUT);

	(void) form;
	ZKL_ASSERT(r->node.state == ZKL_NODE_EXISTS);
	ZKL_ASSERT(r->node.mode == ZKL_EXCLUSIVE && zkl_siblings_stays(r));
	zkl_look_stop(r);
	memcpy(data, r->node.data, r->node.data_length);

	ops[0].kind = ZKL_MULTI_SET;
	ops[0].path = zkl_node_path_as(m, r, ZKL_EXCLUSIVE);

	/*
	 * If another client, such as an operator, has written to the node, that
	 * must not get lost.  Once the node has been read, the downgrade begins
	 * again.
	 */
	ops[0].version = ZKL_MUTANT(MARK_WRITTEN_OVER) ? -1 : r->node.version;
	ops[0].data = mark;
	ops[0].data_length = zkl_node_data_downgrade(r->node.data,
												 r->node.data_length, mark,
												 ZKL_MAX_NODE_DATA);
	ops[1].kind = ZKL_MULTI_CREATE_EPHEMERAL;
	ops[1].path = zkl_node_path_as(m, r, ZKL_SHARED);
	ops[1].version = -1;
	ops[1].data = data;
	ops[1].data_length = zkl_node_data_timeout(data, r->node.data_length,
											   m->session.timeout_ms);
	ops[2].kind = ZKL_MULTI_DELETE;
	ops[2].path = ops[0].path;
	ops[2].version = -1;
	if (ZKL_MUTANT(DOWNGRADE_UNMARKED))
	{
		ZklMultiOp	set = ops[0];

		ops[0] = ops[1];
		ops[1] = set;
		ops[1].path = ops[0].path;
	}
}

static void
settle_change(ZklManager *m, ZklWrite *w, const ZklOutcome *o)
{
	ZKL_ASSERT(changed(w)->node.state >= ZKL_NODE_EXISTS);
	if (o->kind == ZKL_OUTCOME_UNKNOWN)
		zkl_downgrade_unknown(changed(w));
	else if (o->culprit)
		zkl_downgrade_reply_refused(m, changed(w), o->rc);
	else
		zkl_downgrade_reply_settle(m, changed(w),
								   o->kind == ZKL_OUTCOME_APPLIED);
}

const ZklWriter zkl_downgrade_change = {
	.nops = 3,.bytes = change_bytes,.fill = fill_change,.settle = settle_change
};
