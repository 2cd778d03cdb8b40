/*
 * refusal.c
 *	  Why a request waits or fails, in PostgreSQL's words.
 *
 * Owns the words for ZooKeeper's error numbers.  Run by backends.  Takes no locks
 * but, through status.h, the one of the worker's status, and through backend_slot.h,
 * those of slots, one at a time.
 */
#include "postgres.h"

#include "access/xact.h"
#include "backend/acquire.h"
#include "backend/backend_slot.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "catalog/pg_authid.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/deadlocks.h"
#include "shared/errand_layout.h"
#include "shared/fleet.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "storage/latch.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"
#include "znode/zkapi.h"

/* ---- stall ---- */

/*
 * What a wait is for: ZooKeeper, the worker, or other sessions that have the lock;
 * and who these are.
 *
 * Who asks keeps the question to the worker.  Takes no locks but, through
 * backend_slot.h, those of slots, one at a time.
 *
 * Must not know how the wait ends, nor anything of the connection but what the
 * worker publishes.
 *
 * If a request has its place in the queue of a lock, it waits for the requests
 * ahead, as long as the lease is good.  Without a lease nothing is granted,
 * whatever is ahead.  As long as the place is not confirmed, and the core has not said
 * that somebody is ahead, the wait is one for ZooKeeper.
 */

#define NO_QUESTION		(-1)
#define ANSWER_SIZE		((Size) 8192)	/* data and names of two znodes fit */
#define MAX_SHOWN		256		/* bytes of a znode's data */
#define LAST_TIME		(END_TIMESTAMP / 1000)	/* in ms */
#define YOUNG_US		INT64CONST(1000000) /* so long an answer may take */

static const char *refusal_where_to_look(void);
static const char *refusal_server(const char *server);
static const char *refusal_worker_silence(void);

/* ---- the question ---- */

void
zkl_stall_ahead_init(ZklAheadQuestion *ahead)
{
	memset(ahead, 0, sizeof(*ahead));
	ahead->asked = NO_QUESTION;
}

/*
 * The descriptor of a segment that was refused belongs to the resource owner, so this
 * is called in a subtransaction.  The segment outlives it.
 */
static void
make_segment(void *arg)
{
	ZklAheadQuestion *ahead = (ZklAheadQuestion *) arg;

	ahead->segment = dsm_create(ANSWER_SIZE, 0);
	dsm_pin_mapping(ahead->segment);
}

/* If there is no memory for the answer, the wait goes on without it. */
static bool
can_make_segment(ZklAheadQuestion *ahead)
{
	if (zkl_refusal_catch(make_segment, ahead) != NULL)
	{
		ahead->segment = NULL;
		return false;
	}
	dsm_unpin_mapping(ahead->segment);
	return true;
}

bool
zkl_stall_ahead_ask(ZklAheadQuestion *ahead, int slotno, const char *name, bool reads)
{
	ZklTarget	target = {0};
	const ZklSlotRequest *request = &zkl_slots[slotno].s_request;

	if (!zkl_backend_slot_has_own() || !can_make_segment(ahead))
		return false;
	target.name = name;
	target.path = request->path;
	target.dialect = (ZklDialect) request->dialect;
	ahead->under_way = zkl_under_way_count();
	ahead->asked = zkl_under_way_claim(&target, ZKL_KIND_AHEAD);
	zkl_slots[ahead->asked].s_request.about = slotno;
	zkl_slots[ahead->asked].s_request.reads = reads;
	zkl_slots[ahead->asked].s_dsm = dsm_segment_handle(ahead->segment);
	zkl_under_way_submit(ahead->asked, false);
	return true;
}

bool
zkl_stall_ahead_is_known(const ZklAheadQuestion *ahead)
{
	return ahead->asked == NO_QUESTION ||
		zkl_slot_peek(ahead->asked) != ZKL_SLOT_WAITING;
}

void
zkl_stall_ahead_forget(ZklAheadQuestion *ahead)
{
	if (ahead->asked != NO_QUESTION)
		zkl_under_way_abandon(ahead->under_way);
	if (ahead->segment != NULL)
		dsm_detach(ahead->segment);
	zkl_stall_ahead_init(ahead);
}

/* ---- the answer ---- */

/* False: there is none. */
static bool
open_answer(const ZklAheadQuestion *ahead, ZklEntries *list)
{
	if (ahead->asked == NO_QUESTION ||
		zkl_slot_peek(ahead->asked) != ZKL_SLOT_GRANTED)
		return false;
	zkl_entries_open(list, dsm_segment_address(ahead->segment),
					 dsm_segment_map_length(ahead->segment));
	return true;
}

static const char *
shown(const char *text, size_t size)
{
	return zkl_text_to_display(text, (int) strnlen(text, size));
}

/*
 * Another client: its znode has a text, or nothing readable, or was not read.  Views
 * hide both, as zkl_queuerow_add_server does.
 */
static const char *
znode_words(const ZklAheadEntry *entry, bool names)
{
	const char *name = zkl_text_to_display(entry->name,
										   (int) entry->name_length);

	if (!names)
		return "another client";
	if (entry->data_length == 0 || entry->data_length > MAX_SHOWN)
		return psprintf("znode \"%s\"", name);
	return psprintf("znode \"%s\", which says \"%s\"", name,
					zkl_text_to_display(entry->data,
										(int) entry->data_length));
}

static const char *
user_words(const ZklNodeData *data)
{
	if (data->application_name[0] == '\0')
		return psprintf(" (user \"%s\")", shown(data->usename, sizeof(data->usename)));
	return psprintf(" (user \"%s\", application \"%s\")",
					shown(data->usename, sizeof(data->usename)),
					shown(data->application_name, sizeof(data->application_name)));
}

/* Since when it has, or wants, the lock.  Another client can write what it likes. */
static const char *
time_words(const ZklNodeData *data)
{
	int64		ms;

	if (data->since <= 0 || data->since >= LAST_TIME ||
		data->waited_ms < 0 || data->waited_ms >= LAST_TIME)
		return "an unknown time";
	ms = data->since + data->waited_ms;
	if (ms >= LAST_TIME)
		return "an unknown time";
	return timestamptz_to_str(time_t_to_timestamptz((pg_time_t) (ms / 1000)));
}

/*
 * A reservation is its role's and its server's: the session that made it may have ended.
 * Only its own server knows how long it lasts.
 */
static const char *
reservation_words(const ZklAheadEntry *entry, const ZklNodeData *data, bool names)
{
	const char *server = shown(data->server, sizeof(data->server));
	const char *user = names ? user_words(data) : "";

	if (entry->kept_until != 0)
		return psprintf("reserved until %s on server \"%s\"%s",
						timestamptz_to_str(entry->kept_until), server, user);
	return psprintf("reserved on server \"%s\"%s since %s", server, user,
					time_words(data));
}

/*
 * Of the first of a queue.  A session of this server that asks for a reservation has it
 * no longer than for a moment.
 */
static bool
is_reservation(const ZklAheadEntry *entry, ZklNodeData *data)
{
	return zkl_node_data_parse(entry->data, entry->data_length, data) &&
		zkl_node_data_has_no_session(data) &&
		(entry->kept_until != 0 || entry->name_length != 0);
}

static const char *
queued_words(const ZklAheadEntry *entry, bool names)
{
	ZklNodeData data;

	if (!zkl_node_data_parse(entry->data, entry->data_length, &data))
		return znode_words(entry, names);
	if (data.cached)
		return psprintf("server \"%s\", which may have it cached",
						shown(data.server, sizeof(data.server)));
	if (entry->kept_until != 0 && !zkl_node_data_has_no_session(&data))
		return psprintf("server \"%s\" until %s, because its holder, process %d%s, was promised that and has lost its connection",
						shown(data.server, sizeof(data.server)),
						timestamptz_to_str(entry->kept_until), data.pid,
						names ? user_words(&data) : "");
	return psprintf("%s of server \"%s\"%s since %s",
					strcmp(data.lifetime, "ticket") == 0 ? "a ticket" :
					psprintf("process %d", data.pid),
					shown(data.server, sizeof(data.server)),
					names ? user_words(&data) : "",
					time_words(&data));
}

/*
 * The first entry is the nearest one; the second, if there is one, is the first of the
 * queue.  Several may hold permits of a semaphore.
 */
const char *
zkl_stall_ahead_words(const ZklAheadQuestion *ahead, const char *name, bool names)
{
	ZklEntries	list;
	ZklAheadEntry nearest;
	ZklAheadEntry first;
	ZklNodeData data;
	StringInfoData words;
	bool		is_permit;

	if (!open_answer(ahead, &list) || !zkl_entries_next(&list, &nearest))
		return NULL;
	initStringInfo(&words);
	is_permit = zkl_slots[ahead->asked].s_request.dialect == ZKL_DIALECT_PERMIT;
	if (!zkl_entries_next(&list, &first))
		first = nearest;
	if (!is_permit && is_reservation(&first, &data))
		appendStringInfo(&words, "Distributed lock \"%s\" is %s",
						 name, reservation_words(&first, &data, names));
	else if (!is_permit)
		appendStringInfo(&words, "Distributed lock \"%s\" is held by %s",
						 name, queued_words(&first, names));
	if (is_permit || first.name != nearest.name)
		appendStringInfo(&words, "%sThe nearest request ahead is that of %s",
						 is_permit ? "" : ".  ", queued_words(&nearest, names));
	if (nearest.place > 2)
		appendStringInfo(&words, "; %lld requests are ahead", (long long) nearest.place - 1);
	appendStringInfoChar(&words, '.');
	return zkl_text_for_client(words.data);
}

/*
 * Whether all that is known to be in the way is a lock that another server may have
 * cached; then also copies that server's name.
 */
static bool
is_cached_ahead(const ZklAheadQuestion *ahead, char server[ZKL_MAX_SERVER_NAME + 1])
{
	ZklEntries	list;
	ZklAheadEntry nearest;
	ZklNodeData data;

	if (!open_answer(ahead, &list) || !zkl_entries_next(&list, &nearest) ||
		nearest.name_length == 0 ||
		!zkl_node_data_parse(nearest.data, nearest.data_length, &data) || !data.cached)
		return false;
	strlcpy(server, data.server, ZKL_MAX_SERVER_NAME + 1);
	return true;
}

/* ---- what a wait is for ---- */

/*
 * Whether ZooKeeper has told that somebody is ahead of a request: until then it may be
 * nobody.  The core does not say so of permits.
 */
static bool
is_known_to_wait(const ZklSlot *slot)
{
	return slot->s_answer.blocked || slot->s_request.dialect == ZKL_DIALECT_PERMIT;
}

int64
zkl_stall_time(int slotno)
{
	int64		now = zkl_boottime_ms();
	uint32		generation;
	int64		deadline;
	ZklSlot		slot;
	ZklStatus	status;
	bool		needs_lease;
	bool		stalled;

	if (slotno == ZKL_NO_SLOT)
		return PG_INT64_MAX;
	zkl_slot_copy(slotno, &slot);
	zkl_lease_read(&generation, &deadline);
	needs_lease = slot.s_request.kind == ZKL_KIND_LOCK || slot.s_request.kind == ZKL_KIND_CLAIM;
	if (needs_lease && deadline <= now)
		return deadline != 0 ? (now - deadline) * 1000 : PG_INT64_MAX;
	if (slot.s_request.kind == ZKL_KIND_LOCK)
		stalled = slot.s_record.seq < 0 || !is_known_to_wait(&slot) ||
			!zkl_lease_same_generation(slot.s_record.generation, generation);
	else if (slot.s_request.kind == ZKL_KIND_CLAIM)
	{
		/* It has its ticket, or its time is over: an answer is on its way. */
		if (slot.s_answer.token != 0 || slot.s_holder.timed_out)
			return 0;
		stalled = !slot.s_request.awaits;
	}
	else
	{
		zkl_status_copy(&status);
		stalled = status.state != ZKL_STATE_CONNECTED || !slot.s_request.awaits ||
			slot.s_holder.timed_out;
	}
	return stalled ? PG_INT64_MAX : -1;
}

static bool
is_worker_awaited(int slotno)
{
	return slotno == ZKL_NO_SLOT || zkl_dirty_is_set(slotno);
}

static bool
is_root_awaited(int slotno)
{
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	return slot.s_state == ZKL_SLOT_GRANTED && zkl_root_is_awaited(&slot);
}

/* Of a try that has timed out */
static bool
is_behind_cached(int slotno)
{
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	return slot.s_state == ZKL_SLOT_WAITING && slot.s_answer.behind_cached;
}

/* Each of these is the cause only if those before it are not. */
static ZklStallCause
cause_of(int slotno)
{
	if (is_worker_awaited(slotno))
		return ZKL_STALL_WORKER;
	if (zkl_stall_time(slotno) >= 0)
		return ZKL_STALL_ZOOKEEPER;
	if (is_root_awaited(slotno))
		return ZKL_STALL_ROOT;
	return is_behind_cached(slotno) ? ZKL_STALL_CACHED : ZKL_STALL_OTHERS;
}

ZklWaitEvent
zkl_stall_event(int slotno)
{
	switch (cause_of(slotno))
	{
		case ZKL_STALL_OTHERS:
		case ZKL_STALL_ROOT:
			return zkl_slots[slotno].s_request.kind == ZKL_KIND_LOCK ?
				ZKL_EVENT_LOCK : ZKL_EVENT_ZOOKEEPER;
		case ZKL_STALL_CACHED:
			return ZKL_EVENT_CACHED_ANSWER;
		default:
			return ZKL_EVENT_ZOOKEEPER;
	}
}

/*
 * What a wait is for, unless something is wrong.  Whoever claims any ticket waits for no
 * certain lock.
 */
static const char *
awaited_words(int slotno, const char *name)
{
	if (slotno != ZKL_NO_SLOT && zkl_slots[slotno].s_request.kind == ZKL_KIND_CLAIM)
		return "a ticket's grant";
	return psprintf("another holder of distributed lock \"%s\"", name);
}

void
zkl_stall_notice(int slotno, const char *name)
{
	if (is_worker_awaited(slotno))
		ereport(NOTICE,
				(errmsg("still waiting for the zklock worker, not for %s",
						awaited_words(slotno, name)),
				 errdetail("%s", refusal_worker_silence()),
				 errhint("The wait goes on.  See the server log, and the state of the process \"zklock worker\".")));
	else
		ereport(NOTICE,
				(errmsg("still waiting for ZooKeeper, not for %s",
						awaited_words(slotno, name)),
				 errdetail("ZooKeeper did not answer within \"zklock.answer_timeout\".  %s",
						   zkl_refusal_worker_trouble()),
				 errhint("The wait goes on.  %s", refusal_where_to_look())));
}

/* ---- what a wait was for ---- */

static const char *
away_words(void)
{
	TimestampTz since = zkl_status_away_since();

	return since == 0 ? "" :
		psprintf("  This server has had no connection since %s.",
				 timestamptz_to_str(since));
}

/*
 * The worker answers at once what it knows; a cancel waits for that, the end of the
 * session does not.
 */
static void
ask_who_is_ahead(ZklAheadQuestion *ahead, int slotno, const char *name)
{
	int64		until = zkl_boottime_ms() + ZKL_AHEAD_WAIT_MS;

	if (!zkl_stall_ahead_ask(ahead, slotno, name, false))
		return;
	while (!zkl_stall_ahead_is_known(ahead) && !ProcDiePending &&
		   zkl_boottime_ms() < until)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Max(until - zkl_boottime_ms(), 0),
						 zkl_compat_wait_event(ZKL_EVENT_LOCK));
		ResetLatch(MyLatch);
	}
}

/* That another server may have the lock cached, if that is all that is in the way */
static void
explain_cached(const char *server, const char *name, ZklStallReason *reason)
{
	reason->cause = ZKL_STALL_CACHED;
	reason->detail = psprintf("The wait was for %s, which may have distributed lock \"%s\" cached.",
							  refusal_server(server), name);
}

static void
explain_ahead(int slotno, const char *name, ZklStallReason *reason)
{
	bool		names = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	ZklAheadQuestion ahead;
	char		server[ZKL_MAX_SERVER_NAME + 1];

	zkl_stall_ahead_init(&ahead);
	HOLD_INTERRUPTS();
	ask_who_is_ahead(&ahead, slotno, name);
	if (is_cached_ahead(&ahead, server))
		explain_cached(server, name, reason);
	else
	{
		reason->detail = zkl_stall_ahead_words(&ahead, name, names);
		if (reason->detail == NULL)
			reason->detail = psprintf("Other sessions hold distributed lock \"%s\" or requested it earlier.",
									  name);
		if (zkl_rights_may_call_queue(zkl_slots[slotno].s_request.path))
			reason->hint = psprintf("See SELECT granted, server, pid, usename, requested_at, held_until FROM zk_queue(%s).",
									quote_literal_cstr(name));
	}
	zkl_stall_ahead_forget(&ahead);
	RESUME_INTERRUPTS();
}

void
zkl_stall_explain_reserved(const ZklSlot *slot, ZklStallReason *reason)
{
	reason->detail = psprintf("You reserved it with token %lld, until %s.",
							  (long long) slot->s_answer.token,
							  timestamptz_to_str(GetCurrentTimestamp() +
												 (slot->s_keep_until - zkl_boottime_ms()) * 1000));
	reason->hint = "Use that token in zk_renew_reservation() or zk_cancel_reservation().";
}

/* Whether this server has a reservation of the role that logged in for a slot's lock */
static bool
find_own_reservation(int slotno, ZklSlot *copy)
{
	const ZklSlotRequest *request = &zkl_slots[slotno].s_request;
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		if (zkl_slot_peek(i) != ZKL_SLOT_RELEASED)
			continue;
		zkl_slot_copy(i, copy);
		if (zkl_slot_is_reserved(copy) && copy->s_request.roleid == GetSessionUserId() &&
			copy->s_request.dialect == request->dialect &&
			strcmp(copy->s_request.path, request->path) == 0)
			return true;
	}
	return false;
}

static void
explain_others(int slotno, const char *name, ZklStallReason *reason)
{
	ZklSlot		reservation;

	if (zkl_slots[slotno].s_request.kind != ZKL_KIND_LOCK ||
		zkl_slot_peek(slotno) != ZKL_SLOT_WAITING)
		return;
	if (find_own_reservation(slotno, &reservation))
		zkl_stall_explain_reserved(&reservation, reason);
	else
		explain_ahead(slotno, name, reason);
}

static void
explain_zookeeper(int slotno, const char *name, ZklStallReason *reason)
{
	reason->detail = psprintf("The wait was for ZooKeeper, not for %s.%s  %s",
							  awaited_words(slotno, name), away_words(),
							  zkl_refusal_worker_trouble());
	reason->hint = refusal_where_to_look();
}

void
zkl_stall_explain(int slotno, const char *name, int64 waited_us, ZklStallReason *reason)
{
	ZklSlot		slot;

	memset(reason, 0, sizeof(*reason));
	reason->cause = cause_of(slotno);
	switch (reason->cause)
	{
		case ZKL_STALL_OTHERS:
			explain_others(slotno, name, reason);
			break;
		case ZKL_STALL_WORKER:
			reason->detail = psprintf("The wait was for the zklock worker, not for %s.  %s",
									  awaited_words(slotno, name), refusal_worker_silence());
			reason->hint = "See the server log, and the state of the process \"zklock worker\".";
			break;
		case ZKL_STALL_ZOOKEEPER:
			explain_zookeeper(slotno, name, reason);
			break;
		case ZKL_STALL_ROOT:
			reason->detail = psprintf("The wait was for the dialects of root \"%s\", which this server has yet to read, not for another holder of distributed lock \"%s\".",
									  zkl_root, name);
			break;
		case ZKL_STALL_CACHED:
			zkl_slot_copy(slotno, &slot);
			explain_cached(slot.s_answer.caching_server, name, reason);
			break;
	}
	reason->young = reason->cause != ZKL_STALL_OTHERS && waited_us < YOUNG_US &&
		zkl_status_away_since() == 0;
	if (reason->young)
	{
		reason->detail = psprintf("The answer had yet to come, so it is not known whether the wait was for %s.",
								  awaited_words(slotno, name));
		reason->hint = NULL;
	}
}

/* ---- errors ---- */

/* 55P03 says that others have the lock, or are ahead. */
static int
sqlstate_of(ZklStallCause cause)
{
	return cause == ZKL_STALL_OTHERS ? ERRCODE_LOCK_NOT_AVAILABLE : ERRCODE_CONNECTION_FAILURE;
}

pg_noreturn static void
raise_timeout(int sqlstate, const ZklStallReason *reason, const char *name, int64 timeout_ms)
{
	ereport(ERROR,
			(errcode(sqlstate),
			 timeout_ms == 0 ?
			 errmsg("canceling statement due to lock timeout") :
			 errmsg("could not acquire distributed lock \"%s\" within %lld ms",
					name, (long long) timeout_ms),
			 reason->detail != NULL ? errdetail("%s", reason->detail) : 0,
			 reason->hint != NULL ? errhint("%s", reason->hint) : 0));
	pg_unreachable();
}

/* The statistics count waits for others. */
void
zkl_stall_raise_timeout(int slotno, const char *name, const ZklStallReason *reason,
						int64 timeout_ms)
{
	if (slotno != ZKL_NO_SLOT && reason->cause == ZKL_STALL_OTHERS)
		zkl_backend_slot_give_up(slotno);
	raise_timeout(sqlstate_of(reason->cause), reason, name, timeout_ms);
}

void
zkl_stall_raise_lock_timeout(const char *name)
{
	ZklStallReason reason = {ZKL_STALL_OTHERS};

	if (zkl_status_away_since() != 0)
	{
		reason.cause = ZKL_STALL_ZOOKEEPER;
		explain_zookeeper(ZKL_NO_SLOT, name, &reason);
	}
	raise_timeout(sqlstate_of(reason.cause), &reason, name, 0);
}

void
zkl_stall_raise_unclaimed(const char *name, int64 timeout_ms)
{
	ZklStallReason reason;

	reason.detail = psprintf("The wait was for one of the %d slots set by \"zklock.max_requests\", not for another holder of distributed lock \"%s\".",
							 zkl_control->ctl_nrequests, name);
	reason.hint = "Released locks give their slots back once ZooKeeper has acknowledged it.  If slots are often short, increase \"zklock.max_requests\" and restart the server.";
	raise_timeout(zkl_status_away_since() != 0 ? ERRCODE_CONNECTION_FAILURE :
				  ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, &reason, name, timeout_ms);
}

void
zkl_stall_raise_unanswered(int slotno, const char *name)
{
	ZklSlot		slot;

	switch (cause_of(slotno))
	{
		case ZKL_STALL_WORKER:
			zkl_refusal_raise_worker_silent();
		case ZKL_STALL_CACHED:
			zkl_slot_copy(slotno, &slot);
			zkl_refusal_raise_cached(name, slot.s_answer.caching_server);
		default:
			zkl_refusal_raise_unreachable();
	}
}

/* ---- refusal: the errors by which a request fails, in PostgreSQL's words ---- */

/*
 * Must not know anything of ZooKeeper but these numbers, which are part of its
 * protocol.
 */

typedef struct ZkAnswer
{
	int32		rc;
	int			sqlstate;
	const char *name;
	const char *detail;
	const char *hint;
} ZkAnswer;

static const ZkAnswer answers[] = {
	{-4, ERRCODE_CONNECTION_FAILURE, "CONNECTIONLOSS",
	"The connection broke.", NULL},
	{-5, ERRCODE_SYSTEM_ERROR, "MARSHALLINGERROR",
	"The request or its answer could not be encoded.", NULL},
	{-6, ERRCODE_FEATURE_NOT_SUPPORTED, "UNIMPLEMENTED",
		"The server does not know container nodes.",
	"Use ZooKeeper 3.5 or later."},
	{-7, ERRCODE_CONNECTION_FAILURE, "OPERATIONTIMEOUT",
	"The server did not answer in time.", NULL},
	{-8, ERRCODE_SYSTEM_ERROR, "BADARGUMENTS",
	"The server does not accept the path.", NULL},
	{-101, ERRCODE_SYSTEM_ERROR, "NONODE",
	"A directory above the lock does not exist.", NULL},
	{-102, ERRCODE_INSUFFICIENT_PRIVILEGE, "NOAUTH",
		"An access control list denies this server access.",
	"Use the same \"zklock.auth_file\" on all servers.  The check \"access control\" of zk_healthcheck() names those that differ."},
	{-103, ERRCODE_OBJECT_IN_USE, "BADVERSION",
	"Another client keeps writing to the same znode.", NULL},
	{-108, ERRCODE_WRONG_OBJECT_TYPE, "NOCHILDRENFOREPHEMERALS",
		"A node above the lock is ephemeral and cannot have children.",
	"Choose another name, or remove that node from ZooKeeper."},
	{-110, ERRCODE_SYSTEM_ERROR, "NODEEXISTS",
	"The node exists already.", NULL},
	{-111, ERRCODE_SYSTEM_ERROR, "NOTEMPTY",
	"The node has children.", NULL},
	{-112, ERRCODE_CONNECTION_FAILURE, "SESSIONEXPIRED",
	"The session has expired.", NULL},
	{-114, ERRCODE_INSUFFICIENT_PRIVILEGE, "INVALIDACL",
		"The server does not accept the access control list.",
	"Check \"zklock.auth_file\"."},
	{-115, ERRCODE_INSUFFICIENT_PRIVILEGE, "AUTHFAILED",
		"The server does not accept the credentials.",
	"Check \"zklock.auth_file\"."},
	{-118, ERRCODE_CONNECTION_FAILURE, "SESSIONMOVED",
	"The session has moved to another server.", NULL},
	{-119, ERRCODE_CONNECTION_FAILURE, "NOTREADONLY",
	"The server is cut off from its ensemble and only allows reads.", NULL},
	{-125, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, "QUOTAEXCEEDED",
		"A quota of ZooKeeper is used up.",
	"Raise the quota of a node above the lock."},
	{-127, ERRCODE_TOO_MANY_CONNECTIONS, "THROTTLEDOP",
	"The server is overloaded.", NULL},
};

static const ZkAnswer unknown_answer = {
	0, ERRCODE_SYSTEM_ERROR, "an error",
	"See the server log and the view zk_status.", NULL
};

static const ZkAnswer *
find_answer(int32 rc)
{
	int			i;

	for (i = 0; i < lengthof(answers); i++)
	{
		if (answers[i].rc == rc)
			return &answers[i];
	}
	return &unknown_answer;
}

char *
zkl_refusal_answer_text(int32 zkrc)
{
	const ZkAnswer *answer = find_answer(zkrc);

	return psprintf("ZooKeeper answered %s (%d).  %s",
					answer->name, zkrc, answer->detail);
}

/* "where": more for the detail */
static void
raise_answer(const char *message, const char *name, int32 zkrc, const char *where)
{
	const ZkAnswer *answer = find_answer(zkrc);

	ereport(ERROR,
			(errcode(answer->sqlstate),
			 errmsg(message, name),
			 errdetail("%s%s", zkl_refusal_answer_text(zkrc), where),
			 answer->hint ? errhint("%s", answer->hint) : 0));
}

void
zkl_refusal_raise_zookeeper(const char *message, const char *name, int32 zkrc)
{
	raise_answer(message, name, zkrc, "");
}

/* A lock's directory has its name. */
static void
raise_answer_about_lock(const char *message, const char *name, int32 zkrc)
{
	raise_answer(message, name, zkrc, zkrc != ZKL_RC_NOAUTH ? "" :
				 psprintf("  It is about znode \"%s%s\", or one above or below it.",
						  zkl_root, name));
}

void
zkl_refusal_raise_failed(const char *name, ZklError error, int32 zkrc)
{
	name = zkl_text_for_client(name);

	switch (error)
	{
		case ZKL_ERROR_UPGRADE:
			ereport(ERROR,
					(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
					 errmsg("deadlock detected"),
					 errdetail("This session holds distributed lock \"%s\" in shared mode and another session waits for it in exclusive mode, so each would wait for the other.",
							   name),
					 errhint("Acquire the lock in exclusive mode from the start, or release the shared lock first.")));
			break;
		case ZKL_ERROR_PARENTS:
			raise_answer_about_lock("could not create the directory of distributed lock \"%s\"",
									name, zkrc);
			break;
		case ZKL_ERROR_ZOOKEEPER:
			raise_answer_about_lock("could not access distributed lock \"%s\"",
									name, zkrc);
			break;
		case ZKL_ERROR_SESSION_EXPIRED:
		case ZKL_ERROR_WORKER_ENDED:
		case ZKL_ERROR_NODE_DELETED:
		case ZKL_ERROR_BROKEN:
		case ZKL_ERROR_UNREADABLE:
		case ZKL_ERROR_OVERTAKEN:
		case ZKL_ERROR_OVERDUE:
		case ZKL_ERROR_RESIGNED:
			zkl_refusal_raise_lost(name, NULL, error);
			break;
		case ZKL_ERROR_SEGMENT:
			ereport(ERROR,
					(errcode(ERRCODE_SYSTEM_ERROR),
					 errmsg("could not receive an answer from the zklock worker"),
					 errdetail("The worker could not map a shared memory segment."),
					 errhint("See the server log.")));
			break;
		case ZKL_ERROR_NONE:
		case ZKL_ERROR_DEADLOCK:
		case ZKL_ERROR_NO_NUMBER:
		case ZKL_ERROR_TOO_LARGE:
		case ZKL_ERROR_CANCELLED:
		case ZKL_ERROR_UNCLAIMED:
		case ZKL_ERROR_LAPSED:
			break;
	}
	elog(ERROR, "request for distributed lock \"%s\" failed with code %d",
		 name, (int) error);
}

/* What the worker told of the deadlock, a line for each process */
static const char *
deadlock_detail(int slotno, uint32 serial)
{
	char		text[ZKL_MAX_DEADLOCK_TEXT];
	StringInfoData detail;
	char	   *line,
			   *rest = text;

	if (!zkl_deadlocks_hear(slotno, serial, text))
		return "The server log tells which processes and locks are involved.";
	initStringInfo(&detail);
	while ((line = strsep(&rest, "\n")) != NULL)
		appendStringInfo(&detail, "%s%s", detail.len > 0 ? "\n" : "",
						 zkl_text_to_display(line, (int) strlen(line)));
	return zkl_text_for_client(detail.data);
}

void
zkl_refusal_raise_deadlock(int slotno, uint32 serial)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
			 errmsg("deadlock detected"),
			 errdetail_internal("%s", deadlock_detail(slotno, serial)),
			 errhint("See server log for the names of all locks.")));
}

void
zkl_refusal_raise_no_number(const char *name, const char *path, const char *lasting)
{
	const char *znode = lasting == NULL ? NULL :
	psprintf("%s%s/%s", zkl_root, path, lasting);

	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("distributed lock \"%s\" has no numbers left",
					zkl_text_for_client(name)),
			 znode == NULL ?
			 errdetail("ZooKeeper numbers the znodes of a lock.  The numbers begin anew once the lock's directory is deleted, when nobody holds the lock or waits for it.") :
			 errdetail("ZooKeeper numbers the znodes of a lock.  The numbers begin anew once the lock's directory is deleted, but znode \"%s\" is in the way.",
					   zkl_text_for_client(zkl_text_to_display(znode, (int) strlen(znode)))),
			 znode == NULL ?
			 errhint("Retry the request.") :
			 errhint("Delete that znode, or if it is the directory of another lock, release that lock.  Then retry the request.")));
}

int
zkl_refusal_report_lost(const char *name, const char *release, ZklError error)
{
	(void) errcode(ERRCODE_T_R_SERIALIZATION_FAILURE);
	(void) errmsg("distributed lock \"%s\" was lost",
				  zkl_text_for_client(name));
	(void) errdetail("%s", zkl_slot_lost_detail(error));
	return release != NULL ?
		errhint("Another client may hold it now.  Acknowledge the loss with %s(), then acquire the lock again.",
				release) :
		errhint("Another client may hold it now.  Retry the transaction.");
}

void
zkl_refusal_raise_lost(const char *name, const char *release, ZklError error)
{
	ereport(ERROR, (zkl_refusal_report_lost(name, release, error)));
}

void
zkl_refusal_raise_lapsed(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not renew the lease of distributed lock \"%s\"",
					zkl_text_for_client(name)),
			 errdetail("ZooKeeper did not confirm within \"zklock.commit_wait\" that this server still holds the lock."),
			 errhint("Another client may hold it now.  Retry the transaction once the view zk_status shows the state \"connected\".")));
}

void
zkl_refusal_raise_lease_ended(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("lease of distributed lock \"%s\" has ended",
					zkl_text_for_client(name)),
			 errdetail("%s", zkl_slot_lost_detail(ZKL_ERROR_LAPSED)),
			 errhint("Another client may hold it now.  Ask again once the view zk_status shows the state \"connected\".")));
}

const char *
zkl_refusal_worker_state_name(const ZklStatus *status)
{
	static const char *const names[] = {
		[ZKL_STATE_STOPPED] = "stopped",
		[ZKL_STATE_CONNECTING] = "connecting",
		[ZKL_STATE_CONNECTED] = "connected",
		[ZKL_STATE_DISCONNECTED] = "disconnected",
		[ZKL_STATE_EXPIRED] = "expired",
		[ZKL_STATE_AUTH_FAILED] = "auth_failed"
	};

	if (zkl_gate_read() == ZKL_GATE_DISABLED &&
		status->state != ZKL_STATE_STOPPED)
		return status->session_id != 0 || status->session_pid != 0 ?
			"closing" : "disabled";
	Assert(status->state < lengthof(names));
	return names[status->state];
}

bool
zkl_refusal_may_see_hosts(void)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS);
}

const char *
zkl_refusal_worker_trouble(void)
{
	ZklStatus	status;
	const char *error = "";

	zkl_status_copy(&status);
	if (status.last_error[0] != '\0' && zkl_refusal_may_see_hosts() &&
		status.state != ZKL_STATE_CONNECTED)
		error = psprintf("  Its last error: %s.",
						 zkl_text_to_display(status.last_error,
											 strnlen(status.last_error,
													 sizeof(status.last_error))));
	return psprintf("The zklock worker is in state \"%s\".%s",
					zkl_refusal_worker_state_name(&status),
					zkl_text_for_client(error));
}

/* What to look at, as the worker's last error suggests, as a sentence for errhint */
static const char *
refusal_where_to_look(void)
{
	ZklStatus	status;

	zkl_status_copy(&status);
	if (status.state == ZKL_STATE_AUTH_FAILED ||
		(status.state != ZKL_STATE_CONNECTED && status.last_rc == ZKL_RC_NOAUTH))
		return "Check \"zklock.auth_file\" and the view zk_status.";
	if (status.settings_fault[0] != '\0')
		return "Check the setting that zk_healthcheck() names, and the view zk_status.";
	return "Check \"zklock.connect_string\" and the view zk_status.";
}

void
zkl_refusal_check_server(void)
{
	if (!zkl_status_is_refused())
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("ClickHouse Keeper cannot be used in place of ZooKeeper"),
			 errdetail("Its sessions end by the wall clock.  If that is set, a lock can have two holders.  %s",
					   zkl_refusal_worker_trouble()),
			 errhint("Set \"zklock.connect_string\" to servers of Apache ZooKeeper 3.9.4 or later.")));
}

void
zkl_refusal_raise_unreachable(void)
{
	zkl_refusal_check_server();
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("could not reach ZooKeeper"),
			 errdetail("ZooKeeper did not answer within \"zklock.answer_timeout\".  %s",
					   zkl_refusal_worker_trouble()),
			 errhint("%s", refusal_where_to_look())));
}

void
zkl_refusal_raise_away(TimestampTz since)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("could not reach ZooKeeper"),
			 errdetail("This server has had no connection since %s.  %s",
					   timestamptz_to_str(since), zkl_refusal_worker_trouble()),
			 errhint("%s", refusal_where_to_look())));
}

void
zkl_refusal_check_lease(void)
{
	uint32		generation;
	int64		deadline;
	ZklStatus	status;
	bool		connected;

	zkl_lease_read(&generation, &deadline);
	if (zkl_boottime_ms() < deadline)
		return;
	zkl_refusal_check_server();
	zkl_status_copy(&status);
	connected = status.state == ZKL_STATE_CONNECTED;
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 connected ?
			 errmsg("this server has no lease for its distributed locks") :
			 errmsg("could not reach ZooKeeper"),
			 errdetail("Without a lease, no ticket is granted or claimed.%s  %s",
					   away_words(), zkl_refusal_worker_trouble()),
			 errhint("%s", connected ? "See the view zk_status." : refusal_where_to_look())));
}

static const char *
refusal_server(const char *server)
{
	if (server[0] == '\0')
		return "another server";
	return psprintf("server \"%s\"",
					zkl_text_for_client(zkl_text_to_display(server, (int) strlen(server))));
}

void
zkl_refusal_raise_cached(const char *name, const char *server)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("%s may have distributed lock \"%s\" cached, and does not answer",
					refusal_server(server), name),
			 errdetail("So it is not known whether a session holds the lock."),
			 errhint("If that server is down, the lock is free once its ZooKeeper session has ended: retry then, or increase \"zklock.answer_timeout\".  If only its worker is stopped, see zk_break_lock().")));
}

static const char *
refusal_worker_silence(void)
{
	ZklStatus	status;

	zkl_status_copy(&status);
	if (status.worker_pid == 0)
		return "The worker does not run.";
	return psprintf("The worker (process %d) does not answer.",
					status.worker_pid);
}

void
zkl_refusal_raise_worker_silent(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("could not reach the zklock worker"),
			 errdetail("%s", refusal_worker_silence()),
			 errhint("See the server log, and the state of the process \"zklock worker\".")));
}

void
zkl_refusal_raise_timed_out(const char *what, int64 timeout_ms)
{
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("could not acquire %s within %lld ms",
					zkl_text_for_client(what), (long long) timeout_ms),
			 errdetail("Other clients are ahead of this session in the queue.")));
}

/* ---- errors that a caller treats ---- */

ErrorData *
zkl_refusal_catch(void (*step) (void *arg), void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		step(arg);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return error;
}
