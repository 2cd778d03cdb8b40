/*
 * events.c
 *	  Events for the core: from the slots, from the link, and when a hold's time
 *	  is over.
 *
 * Owns the worker's knowledge of which slots it has taken, and of when each hold
 * ends.  Runs in the worker only.  Takes the slots' mutexes and ctl_free_mutex
 * through worker_slot.h, one at a time.  It decides nothing about locks, nor which
 * are cached, and when one is recalled.
 */
#include "postgres.h"

#include "deadlock/deadlock.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/fleet.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "worker/answers.h"
#include "worker/carry_out.h"
#include "worker/errands.h"
#include "worker/events.h"
#include "worker/identity.h"
#include "worker/link.h"
#include "worker/operation.h"
#include "worker/peer_key.h"
#include "worker/report.h"
#include "worker/root_watch.h"
#include "worker/supervisor.h"
#include "worker/worker.h"
#include "worker/worker_slot.h"

/* ---- from_slots ---- */

/*
 * From the slots to the core and to operation.c: requests of backends, and the
 * core's questions about cached locks.
 *
 * Takes the slots' mutexes and ctl_free_mutex through worker_slot.h, one at a time.
 * It decides nothing about locks, nor which are cached, and when one is recalled.
 */

/*
 * A cached lock takes a slot: so many of all slots are for other locks, besides
 * those that are reserved.
 */
#define LEAST_FREE	(zkl_control->ctl_nrequests / 8 + ZKL_RESERVED_SLOTS)

static void bounds_log_late(int slotno, const ZklSlot *slot);

/* ---- cached locks ---- */

static ZklRecalledState
recalled_state(ZklSlotState state)
{
	return state == ZKL_SLOT_CACHED ? ZKL_RECALLED_CACHED :
		state == ZKL_SLOT_GRANTED ? ZKL_RECALLED_HELD : ZKL_RECALLED_ENDED;
}

void
zkl_from_slots_offer(void *host, uint32_t request)
{
	zkl_trace_offer(&zkl_tracefile, request);
	zkl_worker_slot_offer((int) request);
}

bool
zkl_from_slots_recall(void *host, uint32_t request, int64_t idle_since,
					  ZklRecalled *found)
{
	static char data[ZKL_MAX_NODE_DATA];
	ZklSlot		before;
	bool		done = zkl_worker_slot_recall((int) request, idle_since, &before);

	memset(found, 0, sizeof(*found));
	found->state = recalled_state((ZklSlotState) before.s_state);
	found->owner = before.s_owner;
	found->pid = before.s_request.pid;
	found->token = before.s_answer.token;
	found->released_at = before.s_holder.released_us;
	found->data = data;
	if (done)
	{
		found->data_length = zkl_from_slots_node_data(&before, data);
		zkl_trace_recalled(&zkl_tracefile, request, found);
	}
	return done;
}

/*
 * A lock that stands in a queue without a holder must not be in the way.  While
 * the settings are not known, no session takes one anyway, and they are soon read.
 */
static bool
dialects_are_changing(void)
{
	ZklRoot		root;
	int32		rc;

	return zkl_root_state() == ZKL_ROOT_DIFFERS && zkl_root_copy(&root, &rc) &&
		root.is_changing;
}

void
zkl_from_slots_set_cache_time(bool stop)
{
	bool		caches = !stop && zkl_gate_read() == ZKL_GATE_OPEN &&
	zkl_gate_drain() == 0 && !dialects_are_changing() &&
	zkl_log_locks != ZKL_LOG_LOCKS_ALL &&
	zkl_control_count_free() >= LEAST_FREE;

	zkl_worker_tell(ZKL_EVENT(CACHE,.cache_time = caches ?
							  (int64) zkl_cache_time * 1000 : 0));
}

static uint32 *known_serial = NULL; /* of each slot that was taken */
static uint32 *left_serial = NULL;	/* of each that the core has done with,
									 * and that stays for its role to be told */

/* Where a dirty slot stands among those that are taken together */
typedef struct
{
	int64		asked_us;		/* when the call of its request began */
	int64		within;			/* the order of those who asked then */
	int			slotno;
	bool		waits;			/* else asked_us is 0 */
} Turn;

static Turn *turns = NULL;

/* Of zkl_from_slots_take: the slots of its first look, and of its second */
static int *dirty = NULL;
static int *dirty_since = NULL;
static bool *is_dirty = NULL;	/* of each slot, whether it is in "dirty" */

/* ---- which slots are known ---- */

void
zkl_from_slots_begin(void)
{
	known_serial = MemoryContextAllocZero(TopMemoryContext,
										  zkl_control->ctl_nslots *
										  sizeof(uint32));
	left_serial = MemoryContextAllocZero(TopMemoryContext,
										 zkl_control->ctl_nslots *
										 sizeof(uint32));
	dirty = MemoryContextAllocZero(TopMemoryContext,
								   zkl_control->ctl_nslots * sizeof(int));
	dirty_since = MemoryContextAllocZero(TopMemoryContext,
										 zkl_control->ctl_nslots *
										 sizeof(int));
	is_dirty = MemoryContextAllocZero(TopMemoryContext,
									  zkl_control->ctl_nslots *
									  sizeof(bool));
	turns = MemoryContextAllocZero(TopMemoryContext,
								   zkl_control->ctl_nslots * sizeof(Turn));
}

bool
zkl_from_slots_is_left(int slotno)
{
	return left_serial[slotno] != 0;
}

void
zkl_from_slots_free(int slotno)
{
	bool		lapsed;
	bool		left = zkl_worker_slot_leave(slotno, &lapsed);

	if (lapsed && left_serial[slotno] == 0)
		zkl_tickets_lapsed(slotno);
	if (left)
	{
		left_serial[slotno] = zkl_slots[slotno].s_serial;
		zkl_bounds_granted(slotno);
		return;
	}
	known_serial[slotno] = left_serial[slotno] = 0;
	zkl_worker_slot_free(slotno);
}

/* ---- requests of backends ---- */

static int64
to_unix_ms(TimestampTz time)
{
	return (time + (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY) /
		1000;
}

/* In us, until the grant or so far */
static int64
time_waited(const ZklSlot *slot)
{
	TimestampTz until = slot->s_answer.granted_at;

	if (until == 0)
		until = GetCurrentTimestamp();
	return Max(until - slot->s_request.requested_at, 0);
}

size_t
zkl_from_slots_node_data(const ZklSlot *slot, char *buf)
{
	int64		waited = slot->s_answer.granted_at != 0 ?
	time_waited(slot) / 1000 : 0;
	ZklNodeData data;

	memset(&data, 0, sizeof(data));
	strlcpy(data.server, zkl_settings_server_name(), sizeof(data.server));
	strlcpy(data.database, slot->s_request.database, sizeof(data.database));
	strlcpy(data.usename, slot->s_request.usename, sizeof(data.usename));
	strlcpy(data.application_name, slot->s_request.application,
			sizeof(data.application_name));
	strlcpy(data.lifetime, zkl_slot_lifetime_name(slot), sizeof(data.lifetime));
	data.pid = slot->s_request.pid;
	data.since = to_unix_ms(slot->s_request.requested_at);
	data.waited_ms = waited >= ZKL_LEAST_WAIT ? waited : 0;
	data.at_most_ms = slot->s_request.at_most;
	strlcpy(data.client, slot->s_request.client, sizeof(data.client));
	data.backend_start = to_unix_ms(slot->s_request.backend_start);
	return zkl_node_data_format(&data, buf, ZKL_MAX_NODE_DATA);
}

static size_t
format_node_data(const ZklSlot *slot, char *buf)
{
	if (!zkl_dialect_marks((ZklDialect) slot->s_request.dialect))
		return strlcpy(buf, slot->s_request.leader_id, ZKL_MAX_NODE_DATA);
	return zkl_from_slots_node_data(slot, buf);
}

/*
 * The core tells once if the request has to wait for others: the backend lets go of
 * what it has requested together, and says what its wait is for; the statistics count
 * it.  Of permits it tells only those that are requested together.
 */
static bool
is_told_when_blocked(const ZklSlot *slot)
{
	return slot->s_state == ZKL_SLOT_WAITING && !slot->s_answer.blocked &&
		(slot->s_request.together ||
		 slot->s_request.dialect != ZKL_DIALECT_PERMIT);
}

static void
describe_demand(const ZklSlot *slot, ZklDemand *demand, char *data)
{
	demand->name = slot->s_request.path;
	demand->owner = slot->s_owner;
	demand->mode = (ZklLockMode) slot->s_request.mode;
	demand->dialect = (ZklDialect) slot->s_request.dialect;
	demand->sibling = slot->s_request.sibling;
	demand->plain = !slot->s_request.guard && slot->s_request.at_most == 0 &&
		slot->s_request.at_least == 0;
	demand->guard = zkl_root_is_internal(slot->s_request.path, slot->s_request.guard);
	demand->max = slot->s_request.max;
	demand->timed_out = slot->s_request.is_try && slot->s_holder.timed_out;
	demand->together = is_told_when_blocked(slot);
	demand->pid = slot->s_request.pid;
	demand->waited = time_waited(slot);
	demand->patience = zkl_deadlock_detection ?
		(int64) slot->s_request.patience * 1000 : 0;
	demand->data = data;
	demand->data_length = format_node_data(slot, data);
}

/* For what the worker does without the core: see operation.h. */
static bool
submit_task(int slotno, const ZklSlot *slot, bool restored)
{
	static const ZklTaskOwner *const owners[] = {
		[ZKL_KIND_LOCK] = &zkl_epilogues_owner,
		[ZKL_KIND_ERRAND] = &zkl_errands_owner,
		[ZKL_KIND_DUMP] = &zkl_answers_of_dumps,
		[ZKL_KIND_AHEAD] = &zkl_answers_of_ahead,
		[ZKL_KIND_RENEWAL] = &zkl_renewals_owner,
		[ZKL_KIND_CLAIM] = &zkl_claims_owner,
		[ZKL_KIND_RECONNECT] = &zkl_reconnects_owner,
	};

	return zkl_operation_submit(owners[slot->s_request.kind], slotno, slot, restored);
}

static void
submit_slot(int slotno, const ZklSlot *slot)
{
	ZklDemand	demand;
	char		data[ZKL_MAX_NODE_DATA];

	known_serial[slotno] = slot->s_serial;
	if (slot->s_request.kind != ZKL_KIND_LOCK)
	{
		(void) submit_task(slotno, slot, false);
		return;
	}
	describe_demand(slot, &demand, data);
	zkl_worker_tell(ZKL_EVENT(SUBMIT,.request = (uint32) slotno,.demand = &demand));
}

/* When an epilogue is written, its slot is dirty again and comes back here. */
static void
describe_end(int slotno, const ZklSlot *slot, ZklEnd *end)
{
	end->keep_until = slot->s_keep_until * 1000;
	end->epilogue = slot->s_dsm != DSM_HANDLE_INVALID &&
		submit_task(slotno, slot, false);
}

static void
release_lock(int slotno, const ZklSlot *slot)
{
	ZklEvent	event = {.kind = ZKL_EVENT_RELEASE,.request = (uint32) slotno};

	/* The core needs it no longer, and is about to have the slot freed. */
	if (known_serial[slotno] == slot->s_serial &&
		!zkl_manager_knows(zkl_core, (uint32) slotno))
	{
		if (left_serial[slotno] == slot->s_serial)
			zkl_from_slots_free(slotno);
		return;
	}
	describe_end(slotno, slot, &event.end);
	if (!event.end.epilogue)
		known_serial[slotno] = slot->s_serial;
	zkl_worker_tell(&event);
}

static void
release_slot(int slotno, const ZklSlot *slot)
{
	bounds_log_late(slotno, slot);
	if (slot->s_request.kind == ZKL_KIND_LOCK)
		release_lock(slotno, slot);
	else
	{
		zkl_operation_cancel(slotno);
		if (slot->s_request.kind == ZKL_KIND_CLAIM)
			zkl_claims_give_back(slot);
		zkl_worker_slot_free(slotno);
	}
}

/* Returns whether the slot was released. */
static bool
take_released(int slotno)
{
	ZklSlot		slot;

	if (zkl_slot_peek(slotno) != ZKL_SLOT_RELEASED)
		return false;
	zkl_slot_copy(slotno, &slot);
	release_slot(slotno, &slot);
	return true;
}

/*
 * What a backend found in PostgreSQL's locks.  If it took long to get here, it
 * may be over, and the next look tells.  Once detection is off, what was told
 * before is taken back: it gets old.
 */
static void
take_dependents(int slotno, const ZklSlot *slot)
{
	ZklSlotDependents dependents;
	ZklDependents told;
	int64		now = zkl_boottime_us();

	StaticAssertStmt(ZKL_MAX_DEPENDENTS_SLOT == ZKL_MAX_DEPENDENTS,
					 "slot and search have room for the same owners");
	dependents = zkl_worker_slot_take_dependents(slotno);
	if (!zkl_deadlock_detection)
		dependents.n = 0;
	told.seen_at = dependents.looked_us;
	told.owners = dependents.owners;
	told.n = (size_t) dependents.n;
	if (told.n == 0 ||
		now - told.seen_at < (int64) slot->s_request.patience * 1000 / 2)
		zkl_worker_tell(ZKL_EVENT(NEWS,.request = (uint32) slotno,.news = &told));
}

static void
take_any(int slotno)
{
	ZklSlot		slot;

	if (take_released(slotno))
		return;
	zkl_slot_copy(slotno, &slot);
	bounds_log_late(slotno, &slot);
	if (slot.s_request.kind == ZKL_KIND_LOCK &&
		slot.s_state != ZKL_SLOT_WAITING && slot.s_state != ZKL_SLOT_FREE)
		zkl_report_uncounted(slotno, &slot);
	if (slot.s_state == ZKL_SLOT_WAITING &&
		known_serial[slotno] != slot.s_serial)
		submit_slot(slotno, &slot);
	else if (slot.s_state == ZKL_SLOT_WAITING && slot.s_holder.timed_out &&
			 slot.s_request.kind == ZKL_KIND_LOCK)
		zkl_worker_tell(ZKL_EVENT(TIME_OUT,.request = (uint32) slotno));
	else if (slot.s_state == ZKL_SLOT_WAITING && slot.s_holder.timed_out)
		zkl_operation_time_out(slotno);
	else if (slot.s_state == ZKL_SLOT_WAITING && slot.s_dependents_due)
		take_dependents(slotno, &slot);
	else if (slot.s_state == ZKL_SLOT_GRANTED ||
			 slot.s_state == ZKL_SLOT_LOST)
		zkl_bounds_look(slotno);
}

/*
 * Takes the released slots, removes them from the list and returns how many
 * slots are left.
 */
static int
take_all_released(int *slots, int n)
{
	int			left = 0,
				i;

	for (i = 0; i < n; i++)
	{
		if (!take_released(slots[i]))
			slots[left++] = slots[i];
	}
	return left;
}

/*
 * Removes from "dirty_since" the slots that are in "dirty" and returns how many
 * are left.
 */
static int
remove_dirty(int n, int nsince)
{
	int			left = 0,
				i;

	for (i = 0; i < n; i++)
		is_dirty[dirty[i]] = true;
	for (i = 0; i < nsince; i++)
	{
		if (!is_dirty[dirty_since[i]])
			dirty_since[left++] = dirty_since[i];
	}
	for (i = 0; i < n; i++)
		is_dirty[dirty[i]] = false;
	return left;
}

/*
 * What is no request for a lock comes behind those that are: it may be about one of them.
 * Those who claim tickets take turns, so they have an order, too.
 */
static void
note_turn(Turn *turn, int slotno)
{
	const ZklSlotRequest *request = &zkl_slots[slotno].s_request;

	turn->slotno = slotno;
	turn->within = request->kind == ZKL_KIND_LOCK ? request->ticket : request->asked_us;
	turn->waits = zkl_slot_peek(slotno) == ZKL_SLOT_WAITING;
	turn->asked_us = !turn->waits ? 0 :
		request->kind == ZKL_KIND_LOCK ? request->asked_us : PG_INT64_MAX;
}

static int
compare_turns(const void *a, const void *b)
{
	const Turn *one = a;
	const Turn *other = b;

	if (one->asked_us != other->asked_us)
		return one->asked_us < other->asked_us ? -1 : 1;
	if (one->within != other->within)
		return one->within < other->within ? -1 : 1;
	return one->slotno - other->slotno;
}

/*
 * Puts the n dirty slots into "turns", in the order in which their requests were made.  So
 * it does with those of "dirty_since" that may precede one of them, and leaves the others
 * dirty.  Returns how many turns there are.
 */
static int
order_turns(int n, int nsince)
{
	int64		last = 0;
	int			i;

	for (i = 0; i < n; i++)
	{
		note_turn(&turns[i], dirty[i]);
		if (turns[i].asked_us != PG_INT64_MAX)
			last = Max(last, turns[i].asked_us);
	}
	for (i = 0; i < nsince; i++)
	{
		note_turn(&turns[n], dirty_since[i]);
		if (turns[n].asked_us <= last)
			n++;
		else
			zkl_dirty_set(dirty_since[i], ZKL_WAKE_NOW);
	}
	qsort(turns, n, sizeof(Turn), compare_turns);
	return n;
}

/*
 * If a lock is released and then tried, the try may rely on the release.  So the
 * worker takes all released slots before it takes requests.  And a session that has made
 * a ticket may rely on its place: it comes before all that is requested from then on.  So
 * the worker looks twice: while it looked the first time, a bit may have been set behind
 * its back, for a release or a request that precedes a request it has seen.  Requests that
 * only the second look finds, and that precede none of the first, wait for the next round.
 */
void
zkl_from_slots_take(void)
{
	int			n = zkl_dirty_take(dirty);
	int			nsince,
				i;

	if (n == 0)
		return;
	nsince = zkl_dirty_take(dirty_since);

	/* A slot that both looks found is taken once, as it is now. */
	nsince = remove_dirty(n, nsince);
	n = take_all_released(dirty, n);
	nsince = take_all_released(dirty_since, nsince);
	n = order_turns(n, nsince);
	for (i = 0; i < n; i++)
	{
		/* One that was submitted since then is dirty again. */
		if (turns[i].waits || zkl_slot_peek(turns[i].slotno) != ZKL_SLOT_WAITING)
			take_any(turns[i].slotno);
	}
}

/* ---- after a restart of the worker ---- */

void
zkl_from_slots_take_over(int slotno)
{
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	if (slot.s_state == ZKL_SLOT_WAITING && slot.s_request.kind != ZKL_KIND_LOCK)
	{
		known_serial[slotno] = slot.s_serial;
		(void) submit_task(slotno, &slot, true);
	}
	zkl_dirty_set(slotno, ZKL_WAKE_NOW);
}

/* ---- from_link ---- */

/*
 * From the link to the core and to operation.c: answers, watch events, and the state
 * of the session process.
 *
 * It hands everything on: to the core, to operation.c, to errands.c, to the
 * supervisor.  Strings that it makes live in the current memory context, which the
 * loop resets.
 */

#define MAX_RESULTS		4096	/* of one multi */

static void
read_stat(ZklWireReader *body, ZklReply *reply, ZklWireStat *stat)
{
	zkl_wire_get_stat(body, stat);
	reply->stat.czxid = stat->czxid;
	reply->stat.mzxid = stat->mzxid;
	reply->stat.ephemeral_owner = stat->ephemeral_owner;
	reply->stat.version = stat->version;
}

static char *
read_text(ZklWireReader *body)
{
	uint32_t	length;
	const char *text = zkl_wire_get_string(body, &length);

	return length > 0 ? pnstrdup(text, length) : NULL;
}

static void
read_multi(ZklWireReader *body, ZklReply *reply, ZklWireStat *stat)
{
	uint32_t	n = zkl_wire_get_u32(body);
	ZklMultiResult *results;
	uint32_t	i;

	n = Min(n, MAX_RESULTS);
	results = palloc0((n + 1) * sizeof(ZklMultiResult));
	for (i = 0; i < n; i++)
	{
		results[i].rc = zkl_wire_get_i32(body);
		results[i].path = read_text(body);
		if (zkl_wire_get_u8(body) != 0)
		{
			ZklReply	other;
			ZklWireStat other_stat;

			read_stat(body, i == 0 ? reply : &other,
					  i == 0 ? stat : &other_stat);
		}
	}
	reply->results = results;
	reply->nresults = body->bad ? 0 : n;
}

static void
read_children(ZklWireReader *body, ZklReply *reply, ZklWireStat *stat)
{
	uint32_t	n = zkl_wire_get_u32(body);
	char	  **children = palloc((Min(n, body->left / 4) + 1) *
								  sizeof(char *));

	for (reply->nchildren = 0; reply->nchildren < n && !body->bad;)
	{
		char	   *child = read_text(body);

		if (child != NULL)
			children[reply->nchildren++] = child;
	}
	reply->children = (const char *const *) children;
	read_stat(body, reply, stat);
	if (body->bad)
		reply->rc = ZKL_RC_UNKNOWN;
}

static void
take_reply(const ZklWireHeader *header, ZklWireReader *body, int64 now)
{
	uint64		tag = header->tag & ZKL_TAG_MASK;
	ZklReply	reply;
	ZklWireStat stat;
	uint32_t	length;

	memset(&reply, 0, sizeof(reply));
	memset(&stat, 0, sizeof(stat));
	reply.rc = header->rc == ZKL_RC_UNSENT ? ZKL_RC_UNKNOWN : header->rc;
	switch ((ZklSendKind) (header->tag >> ZKL_TAG_BITS))
	{
		case ZKL_SEND_MULTI:
			read_multi(body, &reply, &stat);
			break;
		case ZKL_SEND_GET:
			if (reply.rc != ZKL_RC_OK)
				break;
			reply.data = zkl_wire_get_string(body, &length);
			reply.data_length = length;
			read_stat(body, &reply, &stat);
			if (body->bad)
				reply.rc = ZKL_RC_UNKNOWN;
			break;
		case ZKL_SEND_LIST:
		case ZKL_SEND_GET_ACL:
			if (reply.rc == ZKL_RC_OK)
				read_children(body, &reply, &stat);
			break;
		default:
			break;
	}
	if (!zkl_operation_reply(tag, &reply, &stat))
		zkl_worker_tell(ZKL_EVENT(REPLY,.tag = tag,.reply = &reply));
	zkl_supervisor_answered(now);
}

static void
take_event(ZklWireReader *body, int64 now)
{
	uint8_t		kind = zkl_wire_get_u8(body);
	ZklEvent	event = {
		.kind = kind == ZKL_WIRE_EVENT_DELETED ? ZKL_EVENT_DELETED :
		kind == ZKL_WIRE_EVENT_CHILDREN ? ZKL_EVENT_CHILDREN : ZKL_EVENT_CHANGED,
		.path = read_text(body)
	};

	if (event.path == NULL)
		return;
	if (kind != ZKL_WIRE_EVENT_CHANGED)
		zkl_errands_event(event.path);
	if (kind == ZKL_WIRE_EVENT_CHILDREN)
		zkl_fleet_entry_event(event.path);
	else
	{
		zkl_root_watch_event(event.path);
		zkl_peer_key_event(event.path);
	}
	zkl_worker_tell(&event);
}

static void
take_frame(const ZklWireHeader *header, ZklWireReader *body, int64 now)
{
	switch (header->type)
	{
		case ZKL_WIRE_REPLY:
			take_reply(header, body, now);
			break;
		case ZKL_WIRE_EVENT:
			take_event(body, now);
			break;
		default:

			/* The actions until now belong to the old session. */
			zkl_carry_out_actions();
			zkl_supervisor_frame(header, body, now);
			zkl_carry_out_actions();
			break;
	}
}

void
zkl_from_link_take(void)
{
	ZklWireHeader header;
	ZklWireReader body;
	int			got = 0;
	bool		sound = !zkl_link_up() || zkl_link_read();
	int64		now = zkl_boottime_us();

	while (zkl_link_up() && (got = zkl_link_next(&header, &body)) > 0)
		take_frame(&header, &body, now);
	if (zkl_link_up() && (!sound || got < 0))
		zkl_supervisor_link_broken(now);
}

/* ---- bounds ---- */

/*
 * Holds that end after some time, and locks that are kept for some time after their
 * release.
 *
 * Takes the slots' mutexes through worker_slot.h, one at a time.  It must not know
 * what happens to the lock afterwards: the core decides that.
 *
 * The end of a hold is in its slot, where the backend checks it: no transaction
 * passes its commit check after that, whether or not the worker runs.  The
 * worker's part is to let others have the lock.  It makes the slot LOST first,
 * and then has the znode deleted.  If the holder is past its commit check, the
 * worker waits until that transaction has ended, or the slot is released.  So
 * no two holders can commit, whatever their clocks say.
 *
 * From the release on, the core decides how long a lock is kept.
 */

static int64 *ends = NULL;		/* of the holds, by slot, in ms; 0: never */
static int64 first_end = 0;		/* no later than all of them; 0: none */

void
zkl_bounds_begin(void)
{
	ends = MemoryContextAllocZero(TopMemoryContext,
								  zkl_control->ctl_nslots * sizeof(int64));
}

static void
note_end(int slotno, int64 end)
{
	ends[slotno] = end;
	if (end != 0 && (first_end == 0 || end < first_end))
		first_end = end;
}

static void
log_loss(int slotno)
{
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	zkl_report_lost(&slot, zkl_slot_why_over(&slot));
}

static int
late_warning(ZklLate late, const ZklSlot *slot)
{
	int			pid = slot->s_request.pid;
	int			length = zkl_slot_shown_length(slot);

	switch (late)
	{
		case ZKL_LATE_PREPARED_LOST:
			return errmsg("process %d prepared a transaction although distributed lock \"%.*s\" was lost",
						  pid, length, slot->s_request.path);
		case ZKL_LATE_PREPARED_LAPSED:
			return errmsg("process %d prepared a transaction although the lease of distributed lock \"%.*s\" had ended",
						  pid, length, slot->s_request.path);
		case ZKL_LATE_LAPSED:
			return errmsg("process %d committed although the lease of distributed lock \"%.*s\" had ended",
						  pid, length, slot->s_request.path);
		default:
			return errmsg("process %d committed although distributed lock \"%.*s\" was lost",
						  pid, length, slot->s_request.path);
	}
}

/*
 * If a holder committed after its lock was lost, logs that once; "slot" is a copy
 * of its slot.
 */
static void
bounds_log_late(int slotno, const ZklSlot *slot)
{
	if (slot->s_late == ZKL_LATE_NOT)
		return;
	ereport(LOG,
			(late_warning(zkl_worker_slot_take_late(slotno), slot),
			 errdetail("The transaction passed its commit check, but did not finish committing in time."),
			 errhint("Another session may have held the lock before the changes were visible.")));
}

/* Whether the znode may go */
static bool
end_hold(int slotno)
{
	bool		just_now;
	bool		over = zkl_worker_slot_overdue(slotno, &just_now);

	if (just_now)
		log_loss(slotno);
	note_end(slotno, zkl_worker_slot_until(slotno));
	return over;
}

void
zkl_bounds_look(int slotno)
{
	if (zkl_slot_peek(slotno) == ZKL_SLOT_RELEASED)
		zkl_dirty_set(slotno, ZKL_WAKE_NOW);
	if (end_hold(slotno))
		zkl_worker_tell(ZKL_EVENT(OVERDUE,.request = (uint32) slotno));
}

void
zkl_bounds_granted(int slotno)
{
	note_end(slotno, zkl_worker_slot_until(slotno));
}

void
zkl_bounds_tick(void)
{
	int64		now = zkl_boottime_ms();
	int			i;

	if (first_end == 0 || now < first_end)
		return;
	first_end = 0;
	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		if (ends[i] != 0 && ends[i] <= now)
			zkl_bounds_look(i);
		else
			note_end(i, ends[i]);
	}
}

int64
zkl_bounds_timer(void)
{
	return first_end == 0 ? -1 : first_end * 1000;
}
