/*
 * worker.c
 *	  The slots of a server, and the worker between them and the core.
 *
 * Owns the manager, its memory, and the worker's half of the slots.  Does what
 * worker_slot.c, events.c and carry_out.c of src/ do.
 * Must not know when it is called.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"
#include "worker.h"

/* ---- memory: what comes is never zero ---- */

/* In front of each piece */
typedef union Header
{
	size_t		size;
	long double strictest_alignment;
} Header;

static void *
core_alloc(void *context, size_t size)
{
	Worker	   *w = context;
	Header	   *header = malloc(sizeof(Header) + size);

	if (header == NULL)
		abort();
	header->size = size;
	w->memory += (int64_t) size;
	if (w->memory > w->most_memory)
		w->most_memory = w->memory;
	return memset(header + 1, 0xA5, size);
}

static void
core_release(void *context, void *memory)
{
	Worker	   *w = context;
	Header	   *header = (Header *) memory - 1;

	w->memory -= (int64_t) header->size;
	free(header);
}

/* ---- cached locks ---- */

bool
slot_stays(const Slot *s)
{
	return s->state == SLOT_GRANTED && s->cacheable && s->taken &&
		s->until == 0 &&
		(s->keep_until == 0 || ZKL_MUTANT(RELEASE_FORGETS_BOUND)) &&
		((s->token + 1) % ZKL_TOKENS_PER_ZXID != 0 ||
		 ZKL_MUTANT(TAKE_TOO_OFTEN));
}

/* Of one slot at a time: as the worker writes it, with how long a hold has waited */
static const char *
data_of(const Slot *s)
{
	static char text[ZKL_MAX_NODE_DATA + 1];
	const char *data = s->data ? s->data : "{\"zklock\":1,\"server\":\"test\"}";
	size_t		length = strlen(data);

	if (s->waited == 0)
		return data;
	memcpy(text, data, length);
	text[zkl_node_data_waited(text, length, s->waited)] = '\0';
	return text;
}

static void
offer(void *host, uint32_t request)
{
	Worker	   *w = host;
	Slot	   *s = &w->slots[request];

	zkl_trace_offer(&w->trace, request);
	s->cacheable = s->state == SLOT_GRANTED || s->state == SLOT_WAITING;
}

static bool
recall(void *host, uint32_t request, int64_t idle_since, ZklRecalled *found)
{
	Worker	   *w = host;
	Slot	   *s = &w->slots[request];
	SlotState	state = s->state;
	bool		done = idle_since == 0 ||
	(state == SLOT_CACHED && s->left_at <= idle_since);

	found->owner = s->owner;
	found->token = s->token;
	if (ZKL_MUTANT(OWNER_BEFORE_CLEAR) && s->earlier.owner != 0)
	{
		state = state >= SLOT_DENIED ? state : s->earlier.state;
		found->owner = s->earlier.owner;
		found->token = s->earlier.token;
	}
	found->state = state == SLOT_GRANTED ? ZKL_RECALLED_HELD :
		state == SLOT_CACHED ? ZKL_RECALLED_CACHED : ZKL_RECALLED_ENDED;
	found->pid = s->pid;
	found->released_at = s->left_at;
	found->data = data_of(s);
	found->data_length = strlen(found->data);
	if (!done)
		return false;
	if (w->m != NULL && zkl_manager_knows(w->m, request))
		zkl_trace_recalled(&w->trace, request, found);
	s->cacheable = false;
	if (s->state == SLOT_CACHED)
		s->state = SLOT_RELEASED;
	return true;
}

void
worker_tell(Worker *w, const ZklEvent *event)
{
	zkl_trace_event(&w->trace, w->now, event);
	zkl_manager_event(w->m, w->now, event);
}

void
worker_cache(Worker *w, int64_t time)
{
	w->cache_time = time;
	worker_tell(w, ZKL_EVENT(CACHE,.cache_time = time));
}

/* ---- life ---- */

const ZklWing *const worker_wings[] = {&zkl_deadlock_wing, NULL};

void
worker_create(Worker *w, ZklConfig config)
{
	w->nslots = config.max_requests;
	config.memory.alloc = core_alloc;
	config.memory.release = core_release;
	config.memory.context = w;
	config.offer = offer;
	config.recall = recall;
	config.host = w;
	w->m = zkl_manager_create(&config);
	zkl_trace_begin(&w->trace, w->m, NULL, NULL);
	w->carried = 0;
	w->halted = false;
	w->zxid = 0;
}

void
worker_destroy(Worker *w)
{
	zkl_manager_destroy(w->m);
	w->m = NULL;
}

/* ---- from the slots ---- */

int
worker_find_free(const Worker *w)
{
	uint32_t	i;

	for (i = 0; i < w->nslots; i++)
		if (w->slots[i].state == SLOT_FREE)
			return (int) i;
	return -1;
}

static ZklDemand
demand_of(const Slot *s, int64_t now)
{
	const char *data = data_of(s);
	ZklDemand	demand = {
		.name = s->name,.owner = s->owner,.mode = s->mode,
		.dialect = s->dialect,.max = s->max,.sibling = s->sibling,
		.timed_out = s->timed_out,.together = s->together,
		.pid = s->pid,.patience = s->patience,.plain = s->plain,.guard = s->guard,
		.waited = now - s->asked_at,
		.data = data,.data_length = strlen(data)
	};

	return demand;
}

bool
slot_has_epilogue(const Slot *s, int64_t now)
{
	return s->state == SLOT_RELEASED && s->epilogue_until > now;
}

bool
slot_is_over(const Slot *s, int64_t now)
{
	return s->until != 0 && now >= s->until;
}

/* LOST, if its time is over; true: its node may go. */
static bool
is_overdue(Worker *w, int i)
{
	Slot	   *s = &w->slots[i];

	if (s->state == SLOT_GRANTED && slot_is_over(s, w->now))
	{
		s->state = SLOT_LOST;
		s->overdue = true;
		if (w->overdue != NULL)
			w->overdue(w, i);
	}
	return s->state == SLOT_LOST && s->overdue &&
		(s->promised_until <= w->now || ZKL_MUTANT(PROMISE_FORGOTTEN)) &&
		(!s->quiet || ZKL_MUTANT(OVERDUE_IN_COMMIT));
}

void
worker_look_bounds(Worker *w, int i)
{
	if (is_overdue(w, i))
		worker_tell(w, ZKL_EVENT(OVERDUE,.request = (uint32_t) i));
}

/*
 * A reservation is renewed or cancelled, which counts if the core keeps the lock behind
 * that: as src/worker/answers.c does it.
 */
static void
renew(Worker *w, Slot *s, uint32_t request)
{
	int64_t		until = s->renewal < 0 ? 0 : s->renewal;

	s->renewal = 0;
	if (s->keep_until <= w->now || s->kept_lost)
		return;
	worker_tell(w, ZKL_EVENT(RELEASE,.request = request,.end.keep_until = until));
	s->keep_until = zkl_manager_keeps(w->m, request) ? until : 0;
	worker_tell(w, ZKL_EVENT(PROVE));
}

void
worker_look(Worker *w, int i)
{
	Slot	   *s = &w->slots[i];
	uint32_t	request = (uint32_t) i;
	ZklDependents dependents;
	ZklDemand	demand;

	s->marked = false;
	if (s->state == SLOT_RELEASED && s->renewal != 0)
	{
		bool		known = zkl_manager_knows(w->m, request);

		renew(w, s, request);
		if (known && !zkl_manager_knows(w->m, request))
			return;				/* it is about to be freed */
	}
	if (s->state == SLOT_RELEASED)
		worker_tell(w, ZKL_EVENT(RELEASE,.request = request,
								 .end.keep_until = s->keep_until,
								 .end.epilogue = slot_has_epilogue(s, w->now)));
	else if (s->state == SLOT_WAITING && !s->known)
	{
		s->known = true;
		if (s->asked_at == 0)
			s->asked_at = w->now;
		demand = demand_of(s, w->now);
		worker_tell(w, ZKL_EVENT(SUBMIT,.request = request,.demand = &demand));
	}
	else if (s->state == SLOT_WAITING && s->dependents_news)
	{
		s->dependents_news = false;
		dependents.seen_at = s->seen_at;
		dependents.owners = s->dependents;
		dependents.n = s->ndependents;
		worker_tell(w, ZKL_EVENT(NEWS,.request = request,.news = &dependents));
	}
	else if (s->state == SLOT_WAITING && s->timed_out)
		worker_tell(w, ZKL_EVENT(TIME_OUT,.request = request));
	else
		worker_look_bounds(w, i);
}

/* ---- from the connection ---- */

static void
begin_session(Worker *w, int64_t id)
{
	w->session.id = id;
	w->session.generation++;
}

bool
worker_connected(Worker *w, int64_t session, uint32_t timeout_ms,
				 int64_t begun_at)
{
	bool		fresh = w->session.id != session;

	if (fresh)
		begin_session(w, session);
	w->session.timeout_ms = timeout_ms;
	w->session.begun_at = begun_at;
	worker_tell(w, ZKL_EVENT(CONNECTED,.session = &w->session));
	return fresh;
}

void
worker_session_lost(Worker *w)
{
	begin_session(w, 0);
	worker_tell(w, ZKL_EVENT(SESSION_LOST));
}

void
worker_peers(Worker *w, bool peers)
{
	worker_tell(w, ZKL_EVENT(PEERS,.peers = peers));
}

void
worker_hear(Worker *w, ZklEventKind kind, const ZklPeerMessage *message)
{
	ZklEvent	event = {.kind = kind,.peer = message};

	worker_tell(w, &event);
}

void
worker_deliver(Worker *w, const Frame *frame)
{
	ZklEvent	event = {
		.kind = frame->is_event ? frame->event : ZKL_EVENT_REPLY,
		.path = frame->path,.tag = frame->tag,.reply = &frame->reply
	};

	worker_tell(w, &event);
}

/* ---- from the core ---- */

static void
record_znode(Slot *s, const ZklRecord *record)
{
	s->znodes += record->sent && !zkl_uuid_equal(&s->record.uuid, &record->uuid);
	s->record = *record;
}

static bool
go_to(Slot *s, SlotState from, SlotState to)
{
	if (s->state != from)
		return false;
	s->state = to;
	return true;
}

/*
 * It has no holder who could release it: the worker does, as soon as nobody relies on
 * it.
 */
static void
lose_kept(Slot *s)
{
	if (s->state != SLOT_RELEASED)
		return;
	s->kept_lost = s->marked = true;
	if (s->keep_until > s->promised_until || ZKL_MUTANT(PROMISE_FORGOTTEN))
		s->keep_until = ZKL_MUTANT(PROMISE_FORGOTTEN) ? 0 : s->promised_until;
}

/*
 * Records what an action says of its request.  An answer that comes after the
 * backend has gone on changes nothing.  True: the state is another one now.
 */
static bool
record(Slot *s, const ZklAction *action)
{
	switch (action->kind)
	{
		case ZKL_ACTION_RECORD:
			record_znode(s, &action->record);
			return false;
		case ZKL_ACTION_GRANT:
			if (!go_to(s, SLOT_WAITING, SLOT_GRANTED))
				return false;
			s->token = action->token;
			return true;
		case ZKL_ACTION_DENY:
			return go_to(s, SLOT_WAITING, SLOT_DENIED);
		case ZKL_ACTION_FAIL:
			s->failure = action->failure;
			s->rc = action->rc;
			return go_to(s, SLOT_WAITING, SLOT_FAILED);
		case ZKL_ACTION_LOSE:
			s->failure = action->failure;
			if (ZKL_MUTANT(LOST_WHILE_CACHED) && s->state == SLOT_CACHED)
				return false;
			s->cacheable = false;
			(void) go_to(s, SLOT_CACHED, SLOT_RELEASED);
			lose_kept(s);
			if (!go_to(s, SLOT_GRANTED, SLOT_LOST))
				return false;
			s->overdue = action->failure == ZKL_FAILURE_UNREADABLE ||
				action->failure == ZKL_FAILURE_OVERTAKEN;
			return true;
		case ZKL_ACTION_FREE:
			s->known = false;
			return go_to(s, SLOT_RELEASED, SLOT_FREE);
		case ZKL_ACTION_BLOCKED:
			s->together = false;
			s->blocked = true;
			return false;
		case ZKL_ACTION_BEHIND_CACHED:
			snprintf(s->behind_cached, sizeof(s->behind_cached), "%s",
					 action->server ? action->server : "");
			return false;
		case ZKL_ACTION_RELEASE_REQUEST:
			s->asked_zxid = action->asked_zxid;
			s->asked++;
			return false;
		default:
			return false;		/* not about a slot */
	}
}

int64_t
slot_wait(const Slot *s, int64_t now)
{
	int64_t		waited = (now - s->asked_at) / 1000;

	return s->record.sent && waited >= ZKL_LEAST_WAIT ? waited : 0;
}

static void
note_wait(Slot *s, int64_t now)
{
	s->granted_at = now;
	s->waited = slot_wait(s, now);
}

static void
carry_out(Worker *w, const ZklAction *action)
{
	bool		changed;

	changed = record(&w->slots[action->request], action);
	if (changed && action->kind == ZKL_ACTION_GRANT)
		note_wait(&w->slots[action->request], w->decided_at);
	w->after(w, action, changed);
}

/* Its request is to be submitted anew, or its end to be told. */
static void
forget_slot(Slot *s)
{
	if (s->state == SLOT_WAITING)
		s->record = (ZklRecord)
	{
		.seq = -1
	};
	s->behind_cached[0] = '\0';
	s->renewal = 0;				/* of what is lost */
	s->known = false;
	s->marked = true;
}

void
worker_take_over(Worker *w)
{
	ZklAction	loss = {.kind = ZKL_ACTION_LOSE,.failure = ZKL_FAILURE_SESSION_EXPIRED};
	ZklRecalled found;

	if (w->session.id != 0)
		begin_session(w, 0);
	for (loss.request = 0; loss.request < w->nslots; loss.request++)
	{
		Slot	   *s = &w->slots[loss.request];

		if (s->state == SLOT_FREE)
			continue;
		(void) recall(w, loss.request, 0, &found);
		if (!ZKL_MUTANT(LOST_SLOT_KEPT))
			carry_out(w, &loss);
		forget_slot(s);
	}
}

bool
worker_carry_out(Worker *w)
{
	const ZklAction *actions;
	size_t		n;

	if (!w->halted)
		w->decided_at = w->now;
	w->halted = false;
	zkl_trace_actions(&w->trace);
	for (; actions = zkl_manager_actions(w->m, &n), w->carried < n;
		 w->carried++)
	{
		ZklAction	action = actions[w->carried];

		if (w->before != NULL && !w->before(w, &action))
		{
			w->halted = true;
			return false;
		}
		carry_out(w, &action);
	}
	w->carried = 0;
	zkl_trace_clear(&w->trace);
	zkl_manager_clear_actions(w->m);
	if (w->zxid != zkl_manager_zxid(w->m))
		w->session.zxid_seen = zkl_manager_zxid(w->m);
	w->zxid = zkl_manager_zxid(w->m);
	return true;
}

bool
worker_flush(Worker *w)
{
	zkl_trace_flush(&w->trace, w->now);
	zkl_manager_flush(w->m, w->now);
	return worker_carry_out(w);
}
