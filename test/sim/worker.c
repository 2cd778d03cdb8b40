/*
 * worker.c
 *	  A simulated zklock server: its slots, and the worker between them and the
 *	  core.
 *
 * Owns the hosts.  Does what slot.c, intake.c, exchange.c, incoming.c and worker.c of
 * src/ do.  Decides nothing about locks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "core/mutant.h"
#include "host.h"
#include "chaos.h"
#include "oracle.h"

Hosts		hosts;

static const char *const names[MAX_LOCKS] = {"/a", "/b/c", "/b/d"};

const char *
lock_name(int lock)
{
	return names[lock];
}

Path *
lock_path(int lock)
{
	char		text[64];

	snprintf(text, sizeof(text), SIM_ROOT "%s", names[lock]);
	return path_intern(text);
}

int64_t
host_clock(const Host *h)
{
	return h->offset + base.now + base.now * h->ppm / 1000000;
}

/* When the host's clock will show this */
static Time
true_time(const Host *h, int64_t local)
{
	Time		t = (local - h->offset) * 1000000 / (1000000 + h->ppm);

	while (h->offset + t + t * h->ppm / 1000000 < local)
		t++;
	return t;
}

void
worker_wake(Host *h, Time usual)
{
	Time		at = base.now + some_delay(usual);

	if (at < h->wake_at)
		h->wake_at = at;
}

/* ---- slots: the backends' side ---- */

int
slot_claim(Host *h)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
	{
		Slot	   *s = &h->slots[i];
		uint32_t	serial = s->serial + 1;

		if (s->state != SLOT_FREE)
			continue;
		memset(s, 0, sizeof(*s));
		s->serial = serial;
		s->sibling = -1;
		s->seq = -1;
		s->since = base.now;
		return i;
	}
	return -1;
}

static void
mark(Host *h, Slot *s)
{
	s->marked = true;
	worker_wake(h, hosts.wake_delay);
}

void
slot_submit(Host *h, int slot)
{
	Slot	   *s = &h->slots[slot];

	trace(s->mode == ZKL_EXCLUSIVE ?
		  "host # slot #: owner # asks for @ exclusively (sibling #)" :
		  "host # slot #: owner # asks for @ shared (sibling #)",
		  h->id, slot, (int64_t) s->owner, s->sibling, lock_name(s->lock));
	s->state = SLOT_WAITING;
	mark(h, s);
}

void
slot_release(Host *h, int slot)
{
	trace("host # slot #: released in state #", h->id, slot,
		  h->slots[slot].state, 0, NULL);
	h->slots[slot].state = SLOT_RELEASED;
	mark(h, &h->slots[slot]);
}

void
slot_expire(Host *h, int slot)
{
	h->slots[slot].expired = true;
	mark(h, &h->slots[slot]);
}

bool
slot_is_good(const Host *h, int slot, uint32_t generation)
{
	const Slot *s = &h->slots[slot];

	return s->state == SLOT_GRANTED && s->generation == generation;
}

bool
lease_is_good(const Host *h, uint32_t generation)
{
	return (generation == h->lease_generation ||
			ZKL_MUTANT(LEASE_WITHOUT_GENERATION)) &&
		h->lease_ms > host_clock(h) / 1000;
}

/* ---- from the slots to the core ---- */

static void
describe_demand(const Slot *s, ZklDemand *demand)
{
	static const char data[] = "{\"zklock\":1,\"server\":\"sim\"}";

	memset(demand, 0, sizeof(*demand));
	demand->name = names[s->lock];
	demand->owner = s->owner;
	demand->mode = s->mode;
	demand->sibling = s->sibling;
	demand->expired = s->is_try && s->expired;
	demand->data = data;
	demand->data_length = sizeof(data) - 1;
}

static void
free_slot(Host *h, int i)
{
	oracle_free(h, i);
	trace("host # slot #: free", h->id, i, 0, 0, NULL);
	h->known[i] = 0;
	h->slots[i].state = SLOT_FREE;
}

static void
release_slot(Host *h, int i)
{
	if (h->known[i] != h->slots[i].serial)
		free_slot(h, i);
	else
		zkl_manager_release(h->m, host_clock(h), (uint32_t) i);
}

static void
take_slot(Host *h, int i)
{
	Slot	   *s = &h->slots[i];
	ZklDemand	demand;

	s->marked = false;
	if (s->state == SLOT_RELEASED)
		release_slot(h, i);
	else if (s->state == SLOT_WAITING && h->known[i] != s->serial)
	{
		h->known[i] = s->serial;
		describe_demand(s, &demand);
		zkl_manager_submit(h->m, host_clock(h), (uint32_t) i, &demand);
	}
	else if (s->state == SLOT_WAITING && s->expired)
		zkl_manager_expire(h->m, host_clock(h), (uint32_t) i);
}

/* ---- from the core to the slots and the link ---- */

void
lease_publish(Host *h, uint32_t generation, int64_t ms)
{
	h->lease_generation = generation;
	h->lease_ms = ms;
}

static void
publish_lease(Host *h)
{
	int64_t		lease = zkl_manager_lease(h->m) / 1000;

	if (ZKL_MUTANT(LEASE_WITHOUT_GENERATION) && lease == 0)
		return;
	if (lease <= h->published_ms &&
		h->generation == h->published_generation)
		return;
	h->published_ms = lease;
	h->published_generation = h->generation;
	lease_publish(h, h->generation, lease);
	oracle_lease(h);
}

static void
set_znode(Host *h, Slot *s, const ZklAction *action)
{
	if (s->state == SLOT_WAITING &&
		memcmp(&s->uuid, &action->uuid, sizeof(ZklUuid)) != 0)
		s->tampered = s->node_gone = s->breaking = false;
	s->sent = true;
	s->uuid = action->uuid;
	s->index = action->index;
	s->znode_mode = action->mode;
	s->seq = action->seq;
	s->generation = h->generation;
}

/* WAITING -> an answer; the backend may have been faster. */
static bool
answer(Host *h, int i, SlotState from, SlotState to, const char *what)
{
	Slot	   *s = &h->slots[i];

	trace(what, h->id, i, s->state == from, 0, NULL);
	if (s->state != from)
		return false;
	s->state = to;
	backend_wake(h, s->backend);
	return true;
}

static void
grant(Host *h, int i, const ZklAction *action)
{
	Slot	   *s = &h->slots[i];

	if (s->state != SLOT_WAITING)
		return;
	s->token = action->token;
	s->generation = h->generation;
	trace("host # slot #: granted @, token #, number #", h->id, i,
		  s->token, s->seq, lock_name(s->lock));
	s->state = SLOT_GRANTED;
	oracle_grant(h, i);
	backend_wake(h, s->backend);
	if (h->cut_at_grant && zkl_manager_live(h->m) == 1)
		chaos_cut_rack(h);
}

static void
carry_out(Host *h, const ZklAction *action)
{
	int			i = (int) action->request;
	Slot	   *s = &h->slots[i];

	switch (action->kind)
	{
		case ZKL_ACTION_SEND:
			supervisor_send(h, action);
			break;
		case ZKL_ACTION_CHAIN:
			h->chain = action->chain;
			h->chain_kept = action->chain_kept;
			break;
		case ZKL_ACTION_ZNODE:
			set_znode(h, s, action);
			break;
		case ZKL_ACTION_GRANT:
			grant(h, i, action);
			break;
		case ZKL_ACTION_DENY:
			if (answer(h, i, SLOT_WAITING, SLOT_DENIED,
					   "host # slot #: denied #"))
				oracle_deny(h, i);
			break;
		case ZKL_ACTION_FAIL:
			s->failure = action->failure;
			s->rc = action->rc;
			trace("host # slot #: failure # rc #", h->id, i, action->failure,
				  action->rc, NULL);
			if (answer(h, i, SLOT_WAITING, SLOT_FAILED,
					   "host # slot #: failed #"))
				oracle_fail(h, i);
			break;
		case ZKL_ACTION_LOSE:
			s->failure = action->failure;
			(void) answer(h, i, SLOT_GRANTED, SLOT_LOST,
						  "host # slot #: lost #");
			break;
		case ZKL_ACTION_FREE:
			free_slot(h, i);
			break;
		case ZKL_ACTION_RECONNECT:
			supervisor_reconnect(h, action->rc);
			break;
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
	if (core_due >= 0 && (due < 0 || core_due < due))
		due = core_due;
	if (due >= 0)
		h->wake_at = true_time(h, due);
	if (h->carrying)
		h->wake_at = base.now + 1;
	if (h->wake_at <= base.now)
		h->wake_at = base.now + 1;
	if (h->inbox != NULL)
		worker_wake(h, hosts.wake_delay);
	for (i = 0; i < MAX_SLOTS; i++)
		if (h->slots[i].marked)
			worker_wake(h, hosts.wake_delay);
}

static void
work(Host *h)
{
	int			i;

	if (h->carrying)
		carry_on(h);
	for (i = 0; i < MAX_SLOTS && !h->carrying; i++)
		if (h->slots[i].marked)
			take_slot(h, i);
	if (!h->carrying)
		take_messages(h);
	if (!h->carrying)
	{
		oracle_session(h);
		supervisor_tick(h);
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

/* A request that an earlier worker knew: the core takes it up again. */
static void
restore_slot(Host *h, int i)
{
	Slot	   *s = &h->slots[i];
	bool		current = h->session != 0 && s->generation == h->generation;
	bool		sent = s->sent && current;
	ZklDemand	demand;
	ZklRestored restored;

	if (s->state == SLOT_RELEASED && !sent)
		return;
	h->known[i] = s->serial;
	if (s->state == SLOT_GRANTED && !current)
	{
		(void) answer(h, i, SLOT_GRANTED, SLOT_LOST, "host # slot #: lost #");
		return;
	}
	memset(&restored, 0, sizeof(restored));
	restored.broken = s->state == SLOT_LOST && sent &&
		s->failure == ZKL_FAILURE_BROKEN;
	restored.leaving = s->state == SLOT_RELEASED && sent && s->token != 0 &&
		s->seq >= 0;
	restored.granted = s->state == SLOT_GRANTED || restored.broken ||
		restored.leaving;
	restored.answered = !restored.granted && s->state != SLOT_WAITING;
	restored.sent = sent;
	restored.uuid = s->uuid;
	restored.znode_mode = s->znode_mode;
	restored.seq = s->seq;
	restored.index = s->index;
	restored.token = s->token;
	describe_demand(s, &demand);
	zkl_manager_restore(h->m, host_clock(h), (uint32_t) i, &demand, &restored);
}

static bool
is_due(const Slot *s, int pass)
{
	switch (pass)
	{
		case 0:
			return s->sent && s->token != 0;
		case 1:
			return s->state == SLOT_GRANTED;
		case 2:
			return s->state == SLOT_RELEASED;
		default:
			return true;
	}
}

/* In the passes of intake.c */
static void
restore(Host *h)
{
	int			pass;
	int			i;

	for (pass = 0; pass < 4; pass++)
		for (i = 0; i < MAX_SLOTS; i++)
		{
			Slot	   *s = &h->slots[i];

			if (s->state == SLOT_FREE || !is_due(s, pass))
				continue;
			if (h->known[i] != s->serial)
				restore_slot(h, i);
			if (pass == 2)
				release_slot(h, i);
		}
	worker_actions(h);
}

static void
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
	session.timeout_ms = (uint32_t) (ens.timeout / MS);
	session.begun_at = 0;
	session.zxid_seen = 0;
	if (h->session != 0)
		zkl_manager_attach(h->m, &session, h->chain, h->chain_kept);
	restore(h);
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

/* ---- the server's ---- */

void
host_start(Host *h)
{
	memset(h->slots, 0, sizeof(h->slots));
	h->session = 0;
	h->chain = h->chain_kept = 0;
	h->generation = h->lease_generation = 0;
	h->lease_ms = 0;
	h->zxid_seen = h->zxid_floor = 0;
	h->up = true;
	h->wake_at = NEVER;
	h->stopped_until = 0;
	h->stop_after = -1;
	backends_start(h);
	worker_start(h);
}

void
host_crash(Host *h, Time up_at)
{
	Session    *session = session_find(h->session);

	trace("host #: crashes", h->id, 0, 0, 0, NULL);
	worker_kill(h, NEVER);
	if (session != NULL)
		session->host = -1;
	h->session = 0;
	h->up = false;
	h->up_at = up_at;
	memset(h->slots, 0, sizeof(h->slots));
	backends_crash(h);
}

void
host_accept_lower_tokens(Host *h)
{
	trace("host #: may grant lower tokens", h->id, 0, 0, 0, NULL);
	h->zxid_seen = h->zxid_floor = 0;
}

Time
host_due(const Host *h)
{
	Time		due;

	if (!h->up)
		return h->up_at;
	if (h->m == NULL)
		return h->worker_at;
	due = h->wake_at > h->stopped_until ? h->wake_at : h->stopped_until;
	return h->attempt_at < due ? h->attempt_at : due;
}

void
host_step(Host *h)
{
	if (!h->up)
		host_start(h);
	else if (h->m == NULL)
		worker_start(h);
	else if (h->attempt_at <= base.now)
		supervisor_attempt(h);
	else
		work(h);
}
