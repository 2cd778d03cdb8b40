/*
 * worker.c
 *	  The worker of a simulated zklock server, and what it carries out.
 *
 * Owns the core's manager of each host.  Does what carry_out.c, from_link.c and
 * worker.c of src/ do.  Decides nothing about locks.
 */
#include <stdlib.h>
#include <string.h>

#include "agenda.h"
#include "backend.h"
#include "chaos.h"
#include "core/mutant.h"
#include "host.h"
#include "oracle.h"

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
	int64_t		lease = zkl_manager_lease(h->m) / 1000;
	int64_t		limit = zkl_manager_lease_limit(h->m) / 1000;

	if (ZKL_MUTANT(LEASE_WITHOUT_GENERATION) && lease == 0)
		return;
	if (h->generation == h->published_generation)
	{
		if (limit > h->published_ms)
			limit = h->published_ms;
		if (lease < limit)
			lease = limit;
		if (lease == h->published_ms)
			return;
	}
	h->published_ms = lease;
	h->published_generation = h->generation;
	lease_publish(h, h->generation, lease);
	oracle_lease(h);
}

static void
grant(Host *h, int i)
{
	Slot	   *s = &h->slots[i];

	trace("host # slot #: granted @, token #, number #", h->id, i,
		  s->token, s->seq, s->name);
	if (s->at_most != 0)
		s->until = host_clock(h) / 1000 + s->at_most;
	if (s->at_least != 0)
		s->keep_until = host_clock(h) / 1000 + s->at_least;
	oracle_grant(h, i);
	backend_wake(h, s->backend);
	if (h->cut_at_grant && zkl_manager_live(h->m) == 1)
		chaos_cut_rack(h);
}

/* What must be so before an action changes the slot */
static void
check_slot(Host *h, int i, const ZklAction *action)
{
	Slot	   *s = &h->slots[i];

	if (action->kind == ZKL_ACTION_ZNODE && s->state == SLOT_WAITING &&
		memcmp(&s->uuid, &action->uuid, sizeof(ZklUuid)) != 0)
		s->tampered = s->node_gone = s->breaking = false;
	else if (action->kind == ZKL_ACTION_BLOCKED && !s->together)
		broken("S8", "host %d slot %d is told twice that it waits", h->id, i);
	else if (action->kind == ZKL_ACTION_REVOKE &&
			 s->asked_zxid == action->asked_zxid)
		broken("S8", "host %d slot %d is asked twice by one write", h->id, i);
	else if (action->kind == ZKL_ACTION_FREE)
		oracle_free(h, i);
}

static void
change_slot(Host *h, int i, const ZklAction *action)
{
	Slot	   *s = &h->slots[i];
	bool		changed;

	check_slot(h, i, action);
	changed = slot_record(s, action, h->generation);
	switch (action->kind)
	{
		case ZKL_ACTION_KEPT:
			s->released_at = base.now;
			break;
		case ZKL_ACTION_ZNODE:
			if (h->kill_at_worst && s->going && s->state == SLOT_WAITING)
				chaos_kill_worker(h, base.now + some_delay(ens.net));
			break;
		case ZKL_ACTION_GRANT:
			if (changed)
				grant(h, i);
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
			bounds_look(h, i);
			break;
		case ZKL_ACTION_FREE:
			trace("host # slot #: free", h->id, i, 0, 0, NULL);
			h->known[i] = 0;
			break;
		default:
			break;
	}
}

static void
carry_out(Host *h, const ZklAction *action)
{
	switch (action->kind)
	{
		case ZKL_ACTION_SEND:
			supervisor_send(h, action);
			break;
		case ZKL_ACTION_CHAIN:
			if (h->kill_at_worst && action->chain != action->chain_kept)
				chaos_kill_worker(h, base.now + some_delay(ens.net));
			h->chain = action->chain;
			h->chain_kept = action->chain_kept;
			break;
		case ZKL_ACTION_RECONNECT:
			supervisor_reconnect(h, action->rc);
			break;
		default:
			change_slot(h, (int) action->request, action);
	}
}

/* Carrying out can make the core act again, and the worker can be stopped. */
static void
carry_on(Host *h)
{
	const ZklAction *actions;
	ZklCounters counters;
	size_t		n;

	h->carrying = true;
	for (; actions = zkl_manager_actions(h->m, &n), h->carried < n;
		 h->carried++)
	{
		ZklAction	action = actions[h->carried];

		if (h->stop_after == 0)
		{
			h->stop_after = -1;
			h->interrupted = true;
			h->stopped_until = base.now + below(2 * ens.timeout);
			trace("host #: worker stopped amid its actions", h->id, 0, 0, 0,
				  NULL);
			return;
		}
		if (h->stop_after > 0)
			h->stop_after--;
		carry_out(h, &action);
	}
	h->carrying = false;
	h->interrupted = false;
	h->carried = 0;
	zkl_manager_clear_actions(h->m);
	zkl_manager_counters(h->m, &counters);
	if (counters.batches != h->batches)
		h->zxid_seen = zkl_manager_zxid(h->m);
	h->batches = counters.batches;
}

void
worker_actions(Host *h)
{
	publish_lease(h);
	carry_on(h);
}

/* ---- the worker's loop ---- */

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
			if (h->carrying)
			{
				link_put_back(h, message);
				return;
			}
			supervisor_take(h, message);
			worker_actions(h);
			if (h->carrying)
				return;
		}
		else if (frame->is_event)
			zkl_manager_event(h->m, host_clock(h), frame->event, frame->path);
		else
		{
			zkl_manager_reply(h->m, host_clock(h), frame->tag, &frame->reply);
			h->quiet_since = host_clock(h);
			if (h->outstanding > 0)
				h->outstanding--;
		}
	}
}

static void
plan_wake(Host *h)
{
	int64_t		due = supervisor_timer(h);
	int64_t		core_due = zkl_manager_timer(h->m);
	int			i;

	h->wake_at = NEVER;
	h->marked = false;
	if (core_due >= 0 && (due < 0 || core_due < due))
		due = core_due;
	if (due >= 0)
		h->wake_at = host_true_time(h, due);
	if (h->carrying)
		h->wake_at = base.now + 1;
	if (h->wake_at <= base.now)
		h->wake_at = base.now + 1;
	if (h->inbox != NULL)
		worker_wake(h, hosts.wake_delay);
	for (i = 0; i < MAX_SLOTS; i++)
	{
		const Slot *s = &h->slots[i];
		Time		end;

		if (s->state == SLOT_FREE)
			continue;
		if (s->marked)
		{
			h->marked = true;
			worker_wake(h, hosts.wake_delay);
		}
		end = s->state == SLOT_GRANTED && s->until != 0 ?
			host_true_time(h, s->until * MS) : NEVER;
		if (end < h->wake_at)
			h->wake_at = end > base.now ? end : base.now + 1;
	}
}

void
worker_step(Host *h)
{
	int			i;

	if (h->carrying)
		carry_on(h);

	/* What was released first: who tries after that may rely on it. */
	for (i = 0; i < MAX_SLOTS && h->marked && !h->carrying; i++)
		if (h->slots[i].marked && h->slots[i].state == SLOT_RELEASED)
			intake_take(h, i);
	for (i = 0; i < MAX_SLOTS && h->marked && !h->carrying; i++)
		if (h->slots[i].marked)
			intake_take(h, i);
	if (!h->carrying)
		take_messages(h);
	if (!h->carrying)
	{
		oracle_session(h);
		supervisor_tick(h);
		for (i = 0; i < MAX_SLOTS; i++)
			if (h->slots[i].state == SLOT_GRANTED && slot_is_over(h, i))
				bounds_look(h, i);
		zkl_manager_flush(h->m, host_clock(h));
		publish_lease(h);
		carry_on(h);
	}
	plan_wake(h);
	if (++hosts.events % 16 == 0)
		oracle_invariants(h);
}

/* ---- the worker's beginning and end ---- */

static void *
core_alloc(void *context, size_t size)
{
	void	   *memory = malloc(size ? size : 1);

	(void) context;
	if (memory == NULL)
		abort();
	return memory;
}

static void
core_release(void *context, void *memory)
{
	(void) context;
	free(memory);
}

static void
tell(void *context, const char *line)
{
	const Host *h = context;

	trace_core(h->id, line);
}

void
worker_start(Host *h)
{
	ZklSession	session;
	ZklConfig	config;

	trace("host #: worker starts", h->id, 0, 0, 0, NULL);
	memset(&config, 0, sizeof(config));
	config.root = SIM_ROOT;
	config.max_requests = MAX_SLOTS;
	config.max_directories = hosts.max_directories;
	config.batches_in_flight = hosts.batches_in_flight;
	config.batch_operations = hosts.batch_operations;
	config.batch_bytes = 256 * 1024;
	config.uuid_base = (uint64_t) h->id << 32 | ++h->managers;
	config.memory.alloc = core_alloc;
	config.memory.release = core_release;
	h->m = zkl_manager_create(&config);
	if (base.trace != TRACE_HASH)
		zkl_manager_trace(h->m, tell, h);
	h->batches = 0;
	memset(h->known, 0, sizeof(h->known));
	h->published_ms = h->lease_ms;
	h->published_generation = h->lease_generation;
	h->carrying = false;
	h->interrupted = false;
	h->carried = 0;
	h->stop_after = -1;
	supervisor_begin(h);
	session.id = h->session;
	session.generation = h->generation;
	session.timeout_ms = (uint32_t) (h->timeout / MS);
	session.begun_at = 0;
	session.zxid_seen = 0;
	if (h->session != 0)
		zkl_manager_attach(h->m, &session, h->chain, h->chain_kept);
	intake_restore(h);
	worker_actions(h);
	worker_wake(h, hosts.wake_delay);
}

void
worker_kill(Host *h, Time back_at)
{
	if (h->m == NULL)
		return;
	trace("host #: worker killed", h->id, 0, 0, 0, NULL);
	if (h->conn != NULL)
		conn_cut(h->conn, false);
	h->conn = NULL;
	h->attempt_at = NEVER;
	h->phase = PHASE_NO_PROCESS;
	zkl_manager_destroy(h->m);
	h->m = NULL;
	h->wake_at = NEVER;
	h->stopped_until = 0;
	h->worker_at = back_at;
}
