/*
 * loop.c
 *	  The loop of a simulated zklock server's worker: when it acts, and what
 *	  others see of that.
 *
 * Owns when a worker wakes, begins and ends.  Does what worker.c of src/ does.
 * Decides nothing about locks.
 */
#include <string.h>

#include "agenda.h"
#include "backend.h"
#include "chaos.h"
#include "core/assert.h"
#include "core/host.h"
#include "cycles.h"
#include "host.h"
#include "oracle.h"
#include "peers.h"
#include "seen.h"
#include "znode/znode.h"

void
worker_wake(Host *h, Time usual)
{
	Time		at = base.now + some_delay(usual);

	if (at < h->wake_at)
	{
		h->wake_at = at;
		agenda_changed(AGENDA_HOST(h->id));
	}
}

/* ---- from the core to the slots and the link ---- */

static void
publish_lease(Host *h)
{
	int64_t		lease = zkl_manager_lease(h->worker.m) / 1000;

	if (ZKL_MUTANT(LEASE_WITHOUT_GENERATION) && lease == 0)
		return;
	if (h->worker.session.generation == h->published_generation &&
		lease == h->published_ms)
		return;
	h->published_ms = lease;
	h->published_generation = h->worker.session.generation;
	lease_publish(h, h->worker.session.generation, lease);
	oracle_lease(h);
}

static void
grant(Host *h, int i)
{
	Slot	   *s = &h->slots[i];

	trace("host # slot #: granted @, token #, number #", h->id, i,
		  s->token, s->record.seq, s->name);
	if (s->at_most != 0)
		s->until = host_bound(h, s->at_most);
	if (s->at_least != 0)
		s->keep_until = host_bound(h, s->at_least);
	if (s->guard)
		SEEN(GUARD);
	if (s->record.sent)
		oracle_word_holds(h, i);
	oracle_grant(h, i);
	if (s->ticket && !ZKL_MUTANT(TICKET_STAYS_GRANTED))
	{
		s->taken = true;
		slot_release(h, i);
	}
	else
		backend_wake(h, s->backend);
	if (h->cut_at_grant && zkl_manager_live(h->worker.m) == 1)
		chaos_cut_rack(h);
}

/* Of a write that is lost, nothing is known. */
static bool
is_by_vandal(int64_t zxid)
{
	size_t		i = ens.nlog;

	while (i > 0 && ens.log[i - 1]->tx.zxid > zxid)
		i--;
	return i == 0 || ens.log[i - 1]->tx.zxid != zxid || ens.log[i - 1]->by_vandal;
}

/* What must be so before an action changes the slot */
static void
check_slot(Host *h, int i, const ZklAction *action)
{
	Slot	   *s = &h->slots[i];

	bool		another = action->kind == ZKL_ACTION_RECORD &&
	!zkl_uuid_equal(&s->record.uuid, &action->record.uuid);

	if (another && s->state == SLOT_WAITING && s->behind_cached[0] != '\0')
		broken("S8", "host %d slot %d is still said to wait for a cached lock", h->id, i);
	if (another && s->state == SLOT_WAITING)
	{
		s->tampered = s->node_gone = s->breaking = s->revived = false;
		s->overwritten = 0;
	}
	else if (action->kind == ZKL_ACTION_BLOCKED && !s->together)
		broken("S8", "host %d slot %d is told twice that it waits", h->id, i);
	else if (action->kind == ZKL_ACTION_BEHIND_CACHED)
		oracle_behind_cached(h, i, action->server != NULL);
	else if (action->kind == ZKL_ACTION_RELEASE_REQUEST &&
			 s->asked_zxid == action->asked_zxid)
		broken("S8", "host %d slot %d is asked twice by one write", h->id, i);
	else if (action->kind == ZKL_ACTION_RELEASE_REQUEST && s->asked_zxid != 0 &&
			 !is_by_vandal(action->asked_zxid))
		broken("S8", "host %d slot %d is asked by a write of ours", h->id, i);
	else if (action->kind == ZKL_ACTION_RELEASE_REQUEST)
		oracle_asked(h, i, action->asked_zxid);
	else if (action->kind == ZKL_ACTION_FREE)
		oracle_free(h, i);
}

/* kazoo's clients make a directory once, and rely on it then. */
static void
check_directories(const Host *h, const ZklAction *action)
{
	const ZklOp *op = action->kind == ZKL_ACTION_SEND ?
	zkl_operations_find(h->worker.m, action->tag) : NULL;
	uint32_t	i;
	int			lock;

	for (i = 0; op != NULL && op->kind == ZKL_OP_DELETE_DIRECTORIES && i < action->nmulti; i++)
	{
		for (lock = 0; lock < hosts.nlocks; lock++)
		{
			if (lock_dialect(lock) == ZKL_DIALECT_KAZOO &&
				strcmp(lock_path(lock)->text, action->multi[i].path) == 0)
				broken("S8", "host %d deletes the directory %s", h->id,
					   action->multi[i].path);
		}
	}
}

static bool
before_action(Worker *w, const ZklAction *action)
{
	Host	   *h = w->owner;

	if (h->stop_after == 0)
	{
		h->stop_after = -1;
		host_suspend(h, base.now + below(2 * ens.timeout));
		trace("host #: worker stopped amid its actions", h->id, 0, 0, 0, NULL);
		return false;
	}
	if (h->stop_after > 0)
		h->stop_after--;
	check_directories(h, action);
	check_slot(h, (int) action->request, action);
	return true;
}

static void
after_action(Worker *w, const ZklAction *action, bool changed)
{
	Host	   *h = w->owner;
	int			i = (int) action->request;
	Slot	   *s = &h->slots[i];

	switch (action->kind)
	{
		case ZKL_ACTION_SEND:
			supervisor_send(h, action);
			break;
		case ZKL_ACTION_REVIVED:
			oracle_revived(h, i);
			break;
		case ZKL_ACTION_LOST_WRITES:
			oracle_lost_writes(h);
			break;
		case ZKL_ACTION_RECONNECT:
			supervisor_reconnect(h, action->rc);
			break;
		case ZKL_ACTION_GRANT:

			/* If it was given up just now, its node may tell of its wait. */
			oracle_told_grant(h, s);
			s->was_granted = true;
			if (changed)
				grant(h, i);
			if (h->kill_at_worst)
				chaos_kill_worker(h, base.now + some_delay(ens.net));
			break;
		case ZKL_ACTION_DENY:
			slot_tell(h, i, changed, "host # slot #: denied #");
			if (changed)
				oracle_deny(h, i);
			break;
		case ZKL_ACTION_FAIL:
			slot_tell(h, i, changed, "host # slot #: failed #");
			if (changed)
				oracle_fail(h, i);
			break;
		case ZKL_ACTION_LOSE:
			slot_tell(h, i, changed, "host # slot #: lost #");
			h->marked |= s->marked;
			if (changed)
				oracle_signal(h, i);
			worker_look_bounds(w, i);
			break;
		case ZKL_ACTION_ASK:
		case ZKL_ACTION_WORD:
			peers_send(h, action);
			break;
		case ZKL_ACTION_FREE:
			trace("host # slot #: free", h->id, i, 0, 0, NULL);
			break;
		default:
			break;
	}
}

static void
tell_overdue(Worker *w, int i)
{
	slot_tell(w->owner, i, true, "host # slot #: overdue #");
}

/* ---- the worker's loop ---- */

static void
carry_on(Host *h)
{
	h->interrupted = !worker_carry_out(&h->worker);
}

void
worker_actions(Host *h)
{
	publish_lease(h);
	carry_on(h);
}

/* An answer about a directory */
static void
see_answer(const Host *h, const Frame *frame)
{
	const ZklOp *op = frame->is_event ? NULL :
	zkl_operations_find(h->worker.m, frame->tag);

	if (op == NULL)
		return;
	if (op->kind == ZKL_OP_MAKE_DIRECTORY && op->lock != NULL && op->lock->parents.guessed)
	{
		if (frame->reply.rc == ZKL_RC_OK)
			SEEN(GUESSED_RIGHT);
		else if (frame->reply.rc == ZKL_RC_NODEEXISTS)
			SEEN(GUESSED_WRONG);
	}
	if (op->kind == ZKL_OP_DELETE_DIRECTORIES)
	{
		if (frame->reply.rc == ZKL_RC_OK)
			SEEN(DIRECTORIES_DELETED);
		else
			SEEN(DIRECTORY_USED);
	}
}

/*
 * From then on it knows who came to a lock: see watcher_event.  What was sent before
 * the ensemble was wiped says nothing.
 */
static void
note_told(Host *h, const Frame *frame)
{
	int			i;

	for (i = 0; i < hosts.nlocks && frame->is_event; i++)
		if (frame->event == ZKL_EVENT_CHILDREN &&
			strcmp(frame->path, lock_path(i)->text) == 0 &&
			h->told[i] < (int64_t) frame->tag && (int64_t) frame->tag <= ens.zxid)
			h->told[i] = (int64_t) frame->tag;
}

static void
take_messages(Host *h)
{
	LinkMessage *message;

	while (!(h->inbox != NULL && once_in(8)) &&
		   (message = link_next(h)) != NULL)
	{
		Frame	   *frame = message->frame;

		if (message->kind != LINK_FRAME)
		{
			worker_actions(h);
			if (h->interrupted)
			{
				link_put_back(h, message);
				return;
			}
			supervisor_take(h, message);
			worker_actions(h);
			if (h->interrupted)
				return;
		}
		else
		{
			note_told(h, frame);
			if (!frame->is_event && ensemble_is_refusal(frame->reply.rc))
				h->refused_at = base.now;
			oracle_read(h, frame);
			see_answer(h, frame);
			worker_deliver(&h->worker, frame);
			if (frame->is_event)
				continue;
			h->quiet_since = host_clock(h);
			if (h->outstanding > 0)
				h->outstanding--;
		}
	}
}

/* What its wing sends; a worker that is stopped right now does so later. */
static void
note_wing(Host *h)
{
	size_t		n,
				i,
				j;
	const ZklAction *actions = zkl_manager_actions(h->worker.m, &n);

	for (i = 0; i < n && cycles.on; i++)
	{
		const ZklAction *action = &actions[i];

		if (action->kind != ZKL_ACTION_SEND)
			continue;
		if (action->nmulti > 1 && action->multi[0].kind == ZKL_MULTI_CHECK)
			cycles.decided_at[h->id] = base.now;
		if (action->send == ZKL_SEND_LIST &&
			strcmp(action->path, SIM_ROOT ZKL_WAITS_DIRECTORY) == 0)
			cycles_searched(h);
		for (j = 0; j < action->nmulti; j++)
			oracle_publishes(h, &action->multi[j]);
	}
}

static void
plan_wake(Host *h)
{
	int64_t		due = supervisor_timer(h);
	int64_t		core_due = zkl_manager_timer(h->worker.m);
	int			i;

	h->wake_at = NEVER;
	h->marked = false;
	if (core_due >= 0 && (due < 0 || core_due < due))
		due = core_due;
	if (due >= 0)
		h->wake_at = host_true_time(h, due);
	if (h->interrupted)
		h->wake_at = base.now + 1;
	if (h->wake_at <= base.now)
		h->wake_at = base.now + 1;
	if (h->inbox != NULL)
		worker_wake(h, hosts.wake_delay);
	for (i = 0; i < MAX_SLOTS; i++)
	{
		Slot	   *s = &h->slots[i];
		Time		end;

		if (s->state == SLOT_FREE)
			continue;
		s->earlier.state = s->state;
		s->earlier.owner = s->owner;
		s->earlier.token = s->token;
		if (s->marked)
		{
			h->marked = true;
			worker_wake(h, hosts.wake_delay);
		}
		end = s->state == SLOT_GRANTED && s->until != 0 ?
			host_true_time(h, s->until) : NEVER;
		if (s->state == SLOT_LOST && s->promised_until > host_clock(h))
			end = host_true_time(h, s->promised_until);
		if (slot_has_epilogue(s, host_clock(h)))
			end = host_true_time(h, s->epilogue_until);
		if (end < h->wake_at)
			h->wake_at = end > base.now ? end : base.now + 1;
	}
	if (h->stopping)
		worker_wake(h, ens.timeout / 50);
}

static void
set_cache_time(Host *h)
{
	Time		time = h->uncached || h->stopping ? 0 : h->cache_time;
	int			i;

	for (i = 0; i < backends.per_host && time > 0 && time < h->worker.cache_time; i++)
		if (backends.backend[h->id][i].taking >= 0)
			SEEN(TAKE_SHRUNK);
	worker_cache(&h->worker, time);
}

/* ---- a planned stop ---- */

/* A transaction may be about to commit, or something to be written. */
static bool
is_used(const Host *h, const Slot *s)
{
	return s->state == SLOT_WAITING || s->state == SLOT_GRANTED ||
		(s->state == SLOT_LOST && s->quiet) || slot_has_epilogue(s, host_clock(h));
}

static bool
is_promised(const Host *h, const Slot *s)
{
	return s->promised_until > host_clock(h) && (s->state == SLOT_RELEASED ||
												 s->state == SLOT_LOST);
}

static void
close_session(Host *h)
{
	Request    *request;

	if (h->conn == NULL)
		return;
	request = take(sizeof(Request));
	request->kind = REQUEST_CLOSE;
	conn_send(h->conn, request);
}

/* What nobody was promised goes; whether it is gone */
static bool
let_go_unpromised(Host *h)
{
	bool		gone = true;
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
	{
		Slot	   *s = &h->slots[i];

		if (s->state == SLOT_FREE || is_promised(h, s))
			continue;
		gone = false;
		if (s->state != SLOT_RELEASED || s->keep_until == 0)
			continue;
		s->keep_until = 0;
		s->marked = h->marked = true;
	}
	return gone;
}

/*
 * When nobody holds any more, the session is closed; but if a lock is promised, it
 * is left to expire, and only what is not promised is deleted, for a moment.
 */
static void
go_on_stopping(Host *h)
{
	bool		used = !backends_are_gone(h);
	bool		promised = false;
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
	{
		used |= is_used(h, &h->slots[i]);
		promised |= is_promised(h, &h->slots[i]);
	}
	if (used && host_clock(h) < h->stop_until)
		return;
	if (!used && (!promised || ZKL_MUTANT(STOP_BREAKS_PROMISE)))
		close_session(h);
	else if (!used && !let_go_unpromised(h))
	{
		if (h->leave_at == 0)
			h->leave_at = host_clock(h) + SECOND;
		if (host_clock(h) < h->leave_at)
			return;
	}
	if (promised)
		SEEN(PROMISE_STOPS);
	host_crash(h, h->up_at > base.now ? h->up_at : base.now + 1);
}

/* What was to be written is, or is given up: that is a second release. */
static void
look_at_epilogues(Host *h)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
	{
		Slot	   *s = &h->slots[i];

		if (s->state != SLOT_RELEASED || s->epilogue_until == 0 ||
			slot_has_epilogue(s, host_clock(h)))
			continue;
		s->epilogue_until = 0;
		s->marked = h->marked = true;
	}
}

void
worker_step(Host *h)
{
	int			i;

	h->worker.now = host_clock(h);
	if (h->interrupted)
		carry_on(h);

	look_at_epilogues(h);

	/* Released slots first: a try that came later may rely on them. */
	for (i = 0; i < MAX_SLOTS && h->marked && !h->interrupted; i++)
		if (h->slots[i].marked && h->slots[i].state == SLOT_RELEASED)
			worker_look(&h->worker, i);
	for (i = 0; i < MAX_SLOTS && h->marked && !h->interrupted; i++)
		if (h->slots[i].marked)
			worker_look(&h->worker, i);
	if (!h->interrupted)
		take_messages(h);
	if (!h->interrupted)
		peers_take(h);
	if (!h->interrupted)
	{
		oracle_session(h);
		supervisor_tick(h);
		for (i = 0; i < MAX_SLOTS; i++)
			if (h->slots[i].state == SLOT_GRANTED || h->slots[i].promised_until != 0)
				worker_look_bounds(&h->worker, i);
		set_cache_time(h);
		zkl_trace_flush(&h->worker.trace, host_clock(h));
		zkl_manager_flush(h->worker.m, host_clock(h));
		oracle_kept(h);
		note_wing(h);
		publish_lease(h);
		carry_on(h);
		if (h->cut_when_proved && zkl_manager_ready(h->worker.m))
		{
			h->cut_when_proved = false;
			session_process_kill(h);
		}
	}
	if (h->stopping && !h->interrupted)
	{
		go_on_stopping(h);
		if (!h->up)
			return;
	}
	oracle_told_all(h);
	plan_wake(h);
	if (++hosts.events % 16 == 0)
	{
		oracle_invariants(h);
		oracle_cycles_over();
	}
}

/* ---- the worker's beginning and end ---- */

static void
tell(void *context, const char *line)
{
	const Host *h = context;

	trace_core(h->id, line);
}

/*
 * The session of the worker before is left to expire.  Until then there is no other: this
 * server would stand behind its own old nodes.
 */
static void
take_over(Host *h)
{
	if (h->worker.session.id != 0)
	{
		SEEN(TAKE_OVER);
		oracle_left(h);
		if (!ZKL_MUTANT(NEXT_SESSION_AT_ONCE))
			h->not_before = host_clock(h) + h->timeout + 2 * ens.tick;
	}
	worker_take_over(&h->worker);
	h->marked = true;
	h->published_ms = 0;
	h->published_generation = h->worker.session.generation;
	lease_publish(h, h->published_generation, 0);
}

void
worker_start(Host *h)
{
	ZklConfig	config = {
		.root = SIM_ROOT,
		.server = "sim",
		.max_requests = MAX_SLOTS,
		.max_directories = hosts.max_directories,
		.batches_in_flight = hosts.batches_in_flight,
		.batch_operations = hosts.batch_operations,
		.batch_bytes = 256 * 1024,
		.wings = cycles.wing ? worker_wings : NULL,
		.worker_start = ++h->managers
	};

	if (!cycles.wing)
		SEEN(NO_WING);
	trace("host #: worker starts", h->id, 0, 0, 0, NULL);
	h->worker.now = host_clock(h);
	h->worker.before = before_action;
	h->worker.after = after_action;
	h->worker.overdue = tell_overdue;
	h->worker.owner = h;
	worker_create(&h->worker, config);
	if (base.trace != TRACE_HASH || base.validate)
		zkl_trace_begin(&h->worker.trace, h->worker.m, tell, h);
	h->interrupted = false;
	h->stop_after = -1;
	supervisor_begin(h);
	take_over(h);
	worker_actions(h);
	worker_wake(h, hosts.wake_delay);
}

void
worker_kill(Host *h, Time back_at)
{
	if (h->worker.m == NULL)
		return;
	trace("host #: worker killed", h->id, 0, 0, 0, NULL);
	if (h->conn != NULL)
		conn_cut(h->conn, false);
	h->conn = NULL;
	h->attempt_at = NEVER;
	h->phase = PHASE_NO_PROCESS;
	worker_destroy(&h->worker);
	peers_forget(h);
	h->wake_at = NEVER;
	h->stopped_until = 0;
	h->worker_at = back_at;
}

void
worker_terminate(Host *h, Time back_at)
{
	bool		used = false;
	int			i;

	if (h->worker.m != NULL && !h->interrupted)
		worker_cache(&h->worker, 0);
	for (i = 0; i < MAX_SLOTS; i++)
	{
		const Slot *s = &h->slots[i];

		used |= is_used(h, s) || (is_promised(h, s) && !ZKL_MUTANT(END_BREAKS_PROMISE)) ||
			(s->state == SLOT_RELEASED && s->keep_until > host_clock(h));
	}
	if (h->worker.m != NULL && !h->interrupted && (!used || ZKL_MUTANT(OLD_SESSION_CLOSED)))
	{
		SEEN(SESSION_ENDED);
		supervisor_forget_session(h);
		close_session(h);
	}
	worker_kill(h, back_at);
}
