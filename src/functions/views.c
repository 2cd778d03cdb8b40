/*
 * views.c
 *	  The set-returning functions behind views: of locks, waits and servers; and
 *	  zk_version().
 *
 * Decides what a role may see of requests, of waits, and of the worker; owns the DSM
 * segment of a dump.  Run by backends.  Takes no locks but, through slot.h, those of
 * the slots that it copies, one at a time: each row is consistent, but the set is no
 * snapshot.
 *
 * Must not know which locks this backend holds.
 *
 * Each role sees all rows.  Which lock it is and whose session, the token and the
 * znode are only shown to the role of that session and to roles that may read all
 * statistics: the one would tell the other.
 */
#include "postgres.h"

#include "backend/admission.h"
#include "backend/errand.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "backend/wait.h"
#include "catalog/pg_authid.h"
#include "functions/queuefuncs.h"
#include "functions/row.h"
#include "miscadmin.h"
#include "recipes/ticket.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/errand_layout.h"
#include "shared/fleet.h"
#include "shared/gate.h"
#include "shared/lockstats.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "utils/acl.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "wire/version.h"
#include "znode/znode.h"

ZKL_FUNCTION(zkl_sql_locks);
ZKL_FUNCTION(zkl_sql_tickets);
ZKL_FUNCTION(zkl_sql_status);
ZKL_FUNCTION(zkl_sql_version);

/* ---- zk_locks ---- */

/* Copies a slot consistently.  False: it is not to be shown. */
static bool
copy_shown(int slotno, ZklSlot *slot)
{
	if (zkl_slot_peek(slotno) == ZKL_SLOT_FREE)
		return false;
	zkl_slot_copy(slotno, slot);
	if (slot->s_request.guard && slot->s_state != ZKL_SLOT_WAITING)
		return false;
	if (slot->s_record.stays && slot->s_state == ZKL_SLOT_RELEASED)
		return false;			/* other rows show the hold that its znode is
								 * for */
	return slot->s_request.kind == ZKL_KIND_LOCK &&
		zkl_row_slot_state(slot) != NULL;
}

static void
add_slot_znode(ZklRow *row, const ZklSlot *slot)
{
	char		name[ZKL_MAX_ZNODE_NAME + 1];

	if (!slot->s_record.sent || slot->s_record.seq < 0)
	{
		zkl_row_null(row);
		return;
	}
	zkl_znode_name((ZklDialect) slot->s_request.dialect, &slot->s_record.uuid,
				   slot->s_record.mode, slot->s_record.seq, name);
	zkl_row_znode(row, slot->s_request.path, name, (int) strlen(name));
}

static bool
is_asked_for(const ZklSlot *slot)
{
	uint32		drain = zkl_gate_drain();

	return slot->s_answer.asked_zxid != 0 ||
		(drain != 0 && slot->s_drain == drain);
}

/* Of ms by boottime.h; 0: there is none, or it is over. */
static TimestampTz
time_ahead(int64 ms)
{
	int64		left_ms = ms - zkl_boottime_ms();

	return left_ms <= 0 ? 0 : GetCurrentTimestamp() + left_ms * 1000;
}

/* When the hold or the reservation ends, or the lock is kept no longer */
static TimestampTz
held_until(const ZklSlot *slot)
{
	if (slot->s_state == ZKL_SLOT_GRANTED)
		return time_ahead(slot->s_until);
	if (slot->s_state != ZKL_SLOT_RELEASED)
		return 0;
	return time_ahead(Max(slot->s_keep_until, slot->s_lost_until));
}

static void
put_slot(FunctionCallInfo fcinfo, const ZklSlot *slot)
{
	ZklRow		row = {0};
	bool		visible = zkl_row_slot_is_visible(slot);
	bool		granted = slot->s_state == ZKL_SLOT_GRANTED;
	bool		cached = slot->s_state == ZKL_SLOT_CACHED;

	row.hidden = !visible;
	zkl_row_utf8(&row, slot->s_request.path, zkl_slot_shown_length(slot));
	row.hidden = false;
	zkl_row_text(&row, zkl_row_slot_mode(slot));
	zkl_row_text_or_null(&row, zkl_row_slot_lifetime(slot));
	zkl_row_text(&row, zkl_row_slot_state(slot));
	row.hidden = !visible || !zkl_row_slot_has_session(slot);
	zkl_row_int_or_null(&row, slot->s_request.pid);
	row.hidden = !visible || zkl_row_slot_granted_at(slot) == 0;
	zkl_row_int64(&row, slot->s_answer.token);
	row.hidden = false;
	zkl_row_add(&row, Int32GetDatum(granted ? (int32) slot->s_holder.holds : 0));
	zkl_row_time_or_null(&row, cached ? 0 : slot->s_request.requested_at);
	zkl_row_time_or_null(&row, zkl_row_slot_granted_at(slot));
	row.hidden = !visible;
	add_slot_znode(&row, slot);
	row.hidden = false;
	zkl_row_bool(&row, is_asked_for(slot));
	zkl_row_time_or_null(&row, held_until(slot));
	zkl_row_time_or_null(&row, time_ahead(slot->s_promised_until));
	zkl_row_slot_add_session(&row, slot, visible);

	zkl_row_put(fcinfo, &row);
}

Datum
zkl_sql_locks(PG_FUNCTION_ARGS)
{
	int			slotno;

	zkl_gate_check();
	zkl_row_begin_view(fcinfo, "zk_locks");
	for (slotno = 0; slotno < zkl_control->ctl_nrequests; slotno++)
	{
		ZklSlot		slot;

		CHECK_FOR_INTERRUPTS();
		if (copy_shown(slotno, &slot))
			put_slot(fcinfo, &slot);
	}
	return (Datum) 0;
}

/* ---- zk_tickets ---- */

static void
put_ticket(FunctionCallInfo fcinfo, const ZklSlot *slot)
{
	ZklRow		row = {0};
	bool		claimed = zkl_slot_is_reserved(slot);
	bool		granted = zkl_slot_is_ticket(slot) && !claimed;

	zkl_row_int64(&row, slot->s_request.ticket);
	zkl_row_utf8(&row, slot->s_request.path, sizeof(slot->s_request.path));
	zkl_row_text(&row, zkl_ticket_state(slot));
	zkl_row_time_or_null(&row, slot->s_request.requested_at);
	zkl_row_time_or_null(&row, slot->s_answer.granted_at);
	zkl_row_time_or_null(&row, granted ? time_ahead(slot->s_keep_until) : 0);
	row.hidden = !claimed;
	zkl_row_int64(&row, slot->s_answer.token);
	row.hidden = false;
	zkl_row_time_or_null(&row, claimed ? time_ahead(slot->s_keep_until) : 0);

	zkl_row_put(fcinfo, &row);
}

Datum
zkl_sql_tickets(PG_FUNCTION_ARGS)
{
	ZklSlot		slot;
	int			slotno = -1;

	zkl_gate_check();
	zkl_row_begin_view(fcinfo, "zk_tickets");
	while ((slotno = zkl_ticket_next(slotno + 1, &slot)) >= 0)
	{
		CHECK_FOR_INTERRUPTS();
		put_ticket(fcinfo, &slot);
	}
	return (Datum) 0;
}

/* ---- zk_status ---- */

typedef struct SlotCounts
{
	int64		held;
	int64		waiting;
	int64		cached;
} SlotCounts;

/*
 * Without the slots' mutexes, which the worker would wait for if this backend were
 * stopped.  Whether a request is for a guard stays as it is until the slot is free.
 */
static SlotCounts
count_slots(void)
{
	SlotCounts	counts = {0};
	int			slotno;

	for (slotno = 0; slotno < zkl_control->ctl_nrequests; slotno++)
	{
		ZklSlotState state = zkl_slot_peek(slotno);

		counts.held += (state == ZKL_SLOT_GRANTED &&
						!zkl_slots[slotno].s_request.guard) ||
			zkl_slot_is_reserved(&zkl_slots[slotno]);
		counts.waiting += state == ZKL_SLOT_WAITING;
		counts.cached += state == ZKL_SLOT_CACHED;
	}
	return counts;
}

static void
add_lease(ZklRow *row)
{
	uint32		generation;
	int64		deadline;

	zkl_lease_read(&generation, &deadline);
	if (deadline != 0)
		zkl_row_interval_ms(row, Max(deadline - zkl_boottime_ms(), 0));
	else
		zkl_row_null(row);
}

Datum
zkl_sql_status(PG_FUNCTION_ARGS)
{
	ZklStatus	status;
	SlotCounts	counts;
	ZklRow		row = {0};
	bool		hosts = zkl_refusal_may_see_hosts();

	zkl_gate_check();
	zkl_row_begin_view(fcinfo, "zk_status");
	zkl_status_copy(&status);
	counts = count_slots();

	zkl_row_text(&row, zkl_refusal_worker_state_name(&status));
	row.hidden = !hosts;
	zkl_row_utf8_or_null(&row, status.server, sizeof(status.server));
	row.hidden = false;
	zkl_row_session_id(&row, status.session_id);
	zkl_row_interval_ms_or_null(&row, status.timeout_ms);
	add_lease(&row);
	zkl_row_time_or_null(&row, status.state == ZKL_STATE_CONNECTED ?
						 status.connected_since : 0);
	zkl_row_int64(&row, counts.held);
	zkl_row_int64(&row, counts.waiting);
	zkl_row_int64(&row, counts.cached);
	zkl_row_bool(&row, zkl_gate_drain() != 0);
	row.hidden = !hosts;
	zkl_row_utf8_or_null(&row, status.last_error, sizeof(status.last_error));
	row.hidden = false;
	zkl_row_time_or_null(&row, status.last_error_at);
	zkl_row_int_or_null(&row, status.worker_pid);
	zkl_row_int_or_null(&row, status.session_pid);

	zkl_row_put(fcinfo, &row);
	return (Datum) 0;
}

/* ---- zk_version() ---- */

Datum
zkl_sql_version(PG_FUNCTION_ARGS)
{
	ZklScriptAge age;
	char	   *script = zkl_admission_script_version(&age);
	ZklRow		row = {0};
	ZklStatus	status;

	zkl_gate_check();
	InitMaterializedSRF(fcinfo, 0);
	zkl_status_copy(&status);
	zkl_row_text(&row, ZKL_VERSION);
	zkl_row_utf8_or_null(&row, script ? script : "", script ? strlen(script) : 1);
	zkl_row_utf8_or_null(&row, status.session_version,
						 sizeof(status.session_version));
	zkl_row_int_or_null(&row, (int) status.link_protocol);
	zkl_row_add(&row, Int32GetDatum(ZKL_ZNODE_PROTOCOL));

	zkl_row_put(fcinfo, &row);
	return (Datum) 0;
}

/* ---- waitfuncs: the set-returning function behind zk_lock_waits ---- */

/*
 * Decides what a role may see of waits.  Takes no locks but, through slot.h, those
 * of the slots that it copies, one at a time.
 *
 * Must not know which locks this backend holds.
 *
 * The queue of each lock that a session of this server waits for is read from
 * ZooKeeper once.  A wait has a row for each contender ahead that conflicts with
 * it and holds the lock, and one for the nearest that conflicts, if that waits
 * itself.
 */

#define WAIT_COLUMNS	10

ZKL_FUNCTION(zkl_sql_lock_waits);

typedef struct
{
	ZklJudged  *all;
	int			n;
} Contenders;

/* ---- waits ---- */

static bool
copy_wait(int slotno, ZklSlot *slot)
{
	if (zkl_slot_peek(slotno) != ZKL_SLOT_WAITING)
		return false;
	zkl_slot_copy(slotno, slot);
	return slot->s_state == ZKL_SLOT_WAITING && slot->s_record.sent;
}

static int
compare_waits(const void *a, const void *b)
{
	const ZklSlot *x = a,
			   *y = b;

	if (x->s_request.dialect != y->s_request.dialect)
		return (int) x->s_request.dialect - (int) y->s_request.dialect;
	return strcmp(x->s_request.path, y->s_request.path);
}

/* Sorted by lock */
static ZklSlot *
find_waits(int *n)
{
	int			room = 16;
	ZklSlot    *waits = palloc(room * sizeof(ZklSlot));
	int			i;

	*n = 0;
	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!copy_wait(i, &waits[*n]))
			continue;
		if (++*n == room)
			waits = repalloc_huge(waits, (room *= 2) * sizeof(ZklSlot));
	}
	qsort(waits, *n, sizeof(ZklSlot), compare_waits);
	return waits;
}

/* ---- the queue of a lock ---- */

static void
read_queue(const ZklSlot *wait, Contenders *contenders)
{
	ZklTarget	lock;
	ZklLockQueue queue;

	lock.path = wait->s_request.path;
	lock.name = zkl_text_to_display(lock.path, (int) strlen(lock.path));
	lock.dialect = (ZklDialect) wait->s_request.dialect;
	zkl_errand_read_queue(&lock, &queue);
	contenders->all = zkl_ownqueue_judge(&lock, &queue, lock.dialect == ZKL_DIALECT_PERMIT ?
										 (int) wait->s_request.max : ZKL_BY_MODES,
										 &contenders->n);
}

/* ---- rows ---- */

/*
 * Columns blocking_server to blocking_znode.  As in all views, whose session it is,
 * only members of pg_read_all_stats see.
 */
static void
add_blocker(ZklRow *row, const ZklSlot *wait, const ZklJudged *c, bool visible)
{
	bool		names = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	ZklNodeData data;
	char	   *znode = psprintf("%s%s/%s", zkl_root, wait->s_request.path,
								 c->entry->name);

	zkl_queuerow_add_server(row, c->entry->data, c->entry->length, &data,
							visible);
	if (zkl_node_data_has_no_session(&data))
		data.pid = 0;			/* see add_contender() */
	else if (c->kept)
		memset(&data, 0, sizeof(data));
	zkl_row_int_or_null(row, visible ? data.pid : 0);
	if (names)
	{
		zkl_row_utf8_or_null(row, data.usename, sizeof(data.usename));
		zkl_row_utf8_or_null(row, data.application_name,
							 sizeof(data.application_name));
		zkl_row_utf8(row, znode, strlen(znode));
	}
	else
	{
		zkl_row_null(row);
		zkl_row_null(row);
		zkl_row_null(row);
	}
}

static void
put_wait_row(FunctionCallInfo fcinfo, const ZklSlot *wait, const ZklJudged *c)
{
	ZklRow		row = {0};
	bool		visible = zkl_row_slot_is_visible(wait);

	if (visible)
		zkl_row_utf8(&row, wait->s_request.path, zkl_slot_shown_length(wait));
	else
		zkl_row_null(&row);
	zkl_row_text(&row, zkl_row_slot_mode(wait));
	zkl_row_int_or_null(&row, visible && zkl_row_slot_has_session(wait) ? wait->s_request.pid : 0);
	zkl_row_time_or_null(&row, wait->s_request.requested_at);
	add_blocker(&row, wait, c, visible);
	zkl_row_bool(&row, c->granted);

	Assert(row.n == WAIT_COLUMNS);
	zkl_row_put(fcinfo, &row);
}

static bool
is_waiter(const ZklSlot *wait, const ZklJudged *c)
{
	const ZklUuid *sought = &wait->s_record.uuid;

	return c->entry->has_uuid &&
		memcmp(&c->entry->uuid, sought, sizeof(ZklUuid)) == 0;
}

static bool
conflicts(const ZklSlot *wait, const ZklJudged *c)
{
	return c->owner != wait->s_owner &&
		(wait->s_request.dialect == ZKL_DIALECT_PERMIT ||
		 zkl_mode_conflicts(c->entry->mode, (ZklLockMode) wait->s_request.mode));
}

static void
put_wait(FunctionCallInfo fcinfo, const ZklSlot *wait, const Contenders *queue)
{
	bool		nearest = true;
	int			place = 0;
	int			i;

	CHECK_FOR_INTERRUPTS();
	while (place < queue->n && !is_waiter(wait, &queue->all[place]))
		place++;
	if (place == queue->n)
		return;					/* it is not in the queue, or was granted */
	for (i = place; i-- > 0;)
	{
		const ZklJudged *c = &queue->all[i];

		if (!conflicts(wait, c))
			continue;
		if (c->granted || nearest)
			put_wait_row(fcinfo, wait, c);
		nearest = false;
	}
}

/* The queue of each lock is read into memory of its own. */
static void
put_waits(FunctionCallInfo fcinfo)
{
	MemoryContext old = CurrentMemoryContext;
	MemoryContext moment = AllocSetContextCreate(old, "zklock queue",
												 ALLOCSET_DEFAULT_SIZES);
	int			n;
	ZklSlot    *waits = find_waits(&n);
	Contenders	contenders;
	int			i;

	MemoryContextSwitchTo(moment);
	for (i = 0; i < n; i++)
	{
		if (i == 0 || compare_waits(&waits[i], &waits[i - 1]) != 0)
		{
			MemoryContextReset(moment);
			read_queue(&waits[i], &contenders);
		}
		put_wait(fcinfo, &waits[i], &contenders);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(moment);
}

Datum
zkl_sql_lock_waits(PG_FUNCTION_ARGS)
{
	zkl_gate_check();
	zkl_row_begin_view(fcinfo, "zk_lock_waits");
	put_waits(fcinfo);
	return (Datum) 0;
}

/* ---- statfuncs ---- */

/*
 * The set-returning functions that tell of servers: zk_servers, zk_dump(),
 * zk_stat_locks and zk_stat_server; and zk_stat_reset().
 *
 * Decides what a role may see; owns the DSM segment of a dump.  Takes no locks;
 * waits as wait.c does.  Must not know how a server comes to be in the fleet, how
 * the counts come about, nor what the texts of the core mean.
 *
 * The name of a server is in the queue of each lock that it takes.  Where it can be
 * reached, what identifies it, and the names of locks are only shown to roles that may
 * read all statistics: the counts of a lock belong to no session.
 *
 * A few rows are copied at a time: each of them is consistent, but the set is no
 * snapshot.
 */

/* ---- zk_servers ---- */

#define SERVERS_COLUMNS	14

ZKL_FUNCTION(zkl_sql_servers);

static void
add_text_if(ZklRow *row, bool shown, const char *text)
{
	zkl_row_utf8_or_null(row, shown ? text : "", strlen(text) + 1);
}

static void
add_int_or_null(ZklRow *row, int32 value)
{
	if (value != 0)
		zkl_row_add(row, Int32GetDatum(value));
	else
		zkl_row_null(row);
}

static void
add_ms_or_null(ZklRow *row, int32 ms)
{
	if (ms != 0)
		zkl_row_interval_ms(row, ms);
	else
		zkl_row_null(row);
}

static void
put_server(void *arg, const ZklFleetServer *server)
{
	const ZklFleetEntry *entry = &server->entry;
	bool		visible = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	ZklPeerCount count;
	ZklRow		row = {0};

	add_text_if(&row, true, entry->server);
	add_text_if(&row, visible, entry->host);
	add_int_or_null(&row, visible ? entry->port : 0);
	if (server->readable)
		zkl_row_add(&row, BoolGetDatum(entry->in_recovery));
	else
		zkl_row_null(&row);
	add_text_if(&row, true, entry->postgresql);
	add_text_if(&row, true, entry->zklock);
	add_int_or_null(&row, entry->protocol);
	add_ms_or_null(&row, entry->asked_ms);
	add_ms_or_null(&row, entry->timeout_ms);
	zkl_row_unix_ms_or_null(&row, entry->since_ms);
	if (visible)
		zkl_row_add(&row, Int64GetDatum((int64) server->system));
	else
		zkl_row_null(&row);
	zkl_row_session_id(&row, visible ? server->session_id : 0);
	add_text_if(&row, visible, entry->peer);
	if (zkl_peer_count_copy(server->session_id, &count))
		zkl_row_int64(&row, count.unanswered);
	else
		zkl_row_null(&row);

	Assert(row.n == SERVERS_COLUMNS);
	zkl_row_put(arg, &row);
}

Datum
zkl_sql_servers(PG_FUNCTION_ARGS)
{
	zkl_row_begin_view(fcinfo, "zk_servers");
	zkl_errand_read_servers(put_server, fcinfo);
	return (Datum) 0;
}

/* ---- zk_dump() ---- */

#define DUMP_COLUMNS	4
#define FIRST_SIZE		((Size) 64 * 1024)
#define MOST_SIZE		((Size) 16 * 1024 * 1024)

ZKL_FUNCTION(zkl_sql_dump);

/* Adds the next text of the segment, NULL for an empty one. */
static bool
add_text(ZklRow *row, ZklEntries *list)
{
	const char *bytes;
	uint32		length;

	if (!zkl_entries_get_bytes(list, &bytes, &length))
		return false;
	if (length > 0)
		zkl_row_text(row, zkl_text_to_display(bytes, (int) length));
	else
		zkl_row_null(row);
	return true;
}

static bool
put_dump_row(FunctionCallInfo fcinfo, ZklEntries *list)
{
	ZklRow		row = {0};
	int32		pid;

	if (!add_text(&row, list) || !add_text(&row, list) ||
		!zkl_entries_get(list, &pid, sizeof(int32)))
		return false;
	zkl_row_int_or_null(&row, pid);
	if (!add_text(&row, list))
		return false;

	Assert(row.n == DUMP_COLUMNS);
	zkl_row_put(fcinfo, &row);
	return true;
}

static void
dump_context(void *name)
{
	errcontext("while waiting for the dump of the zklock worker");
}

/* Returns 0, or the size of the segment that the dump takes. */
static Size
read_dump_once(dsm_handle segment)
{
	ZklTarget	none = {"", "", ZKL_DIALECT_CURATOR_RW};
	ZklDeadlines at;
	ZklQuestion question = {.kind = ZKL_KIND_DUMP,.segment = segment};
	ZklSlot		answer;

	zkl_wait_begin_answer(&at, ZKL_FOREVER, zkl_status_answer_timeout_ms(), false);
	zkl_wait_for_answer(&none, &question, dump_context, &at, &answer);
	if (answer.s_state == ZKL_SLOT_GRANTED)
		return 0;
	if (answer.s_answer.error != ZKL_ERROR_TOO_LARGE)
		zkl_refusal_raise_failed("", answer.s_answer.error, answer.s_answer.zkrc);
	return answer.s_answer.dsm_size;
}

static dsm_segment *
read_dump(ZklEntries *list)
{
	Size		size = FIRST_SIZE;

	for (;;)
	{
		dsm_segment *segment = dsm_create(size, 0);
		Size		needed = read_dump_once(dsm_segment_handle(segment));

		if (needed == 0)
		{
			zkl_entries_open(list, dsm_segment_address(segment),
							 dsm_segment_map_length(segment));
			return segment;
		}
		dsm_detach(segment);
		if (needed > MOST_SIZE)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("the zklock worker knows too many distributed locks to show them all"),
					 errdetail("The dump takes %zu bytes; the limit is %zu bytes.",
							   needed, MOST_SIZE)));
		/* It may grow before the next attempt. */
		size = Min(Max(needed + needed / 4, size * 2), MOST_SIZE);
	}
}

Datum
zkl_sql_dump(PG_FUNCTION_ARGS)
{
	ZklEntries	list;
	dsm_segment *segment;
	uint32		i;

	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to look into the zklock worker")));
	InitMaterializedSRF(fcinfo, 0);
	segment = read_dump(&list);
	for (i = 0; i < list.count && put_dump_row(fcinfo, &list); i++)
		CHECK_FOR_INTERRUPTS();
	dsm_detach(segment);
	return (Datum) 0;
}

/* ---- statistics ---- */

#define ROWS_AT_A_TIME		32

ZKL_FUNCTION(zkl_sql_stat_locks);
ZKL_FUNCTION(zkl_sql_stat_server);
ZKL_FUNCTION(zkl_sql_stat_reset);

/* ---- zk_stat_locks ---- */

/* In ms, as PostgreSQL's own statistics have it */
static void
add_time(ZklRow *row, double us)
{
	zkl_row_add(row, Float8GetDatum(us / 1000));
}

static void
put_counts(FunctionCallInfo fcinfo, const ZklLockstatsRow *stats, bool visible)
{
	const ZklLockstatsCounts *counts = &stats->counts;
	ZklRow		row = {0};

	row.hidden = !visible;
	zkl_row_utf8(&row, stats->path, sizeof(stats->path));
	row.hidden = false;
	zkl_row_int64(&row, counts->acquires);
	zkl_row_int64(&row, counts->waited);
	add_time(&row, (double) counts->wait_time);
	add_time(&row, (double) counts->wait_time / (double) Max(counts->acquires, 1));
	add_time(&row, (double) counts->longest_wait);
	add_time(&row, (double) counts->hold_time);
	add_time(&row, (double) counts->longest_hold);
	zkl_row_int64(&row, counts->timeouts);
	zkl_row_int64(&row, counts->denials);
	zkl_row_int64(&row, counts->losses);
	zkl_row_int64(&row, counts->deadlocks);

	zkl_row_put(fcinfo, &row);
}

Datum
zkl_sql_stat_locks(PG_FUNCTION_ARGS)
{
	bool		visible = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	ZklLockstatsRow *rows = palloc(ROWS_AT_A_TIME * sizeof(ZklLockstatsRow));
	int			from = 0,
				n,
				i;

	zkl_gate_check();
	zkl_row_begin_view(fcinfo, "zk_stat_locks");
	while ((n = zkl_lockstats_read(from, rows, ROWS_AT_A_TIME)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		for (i = 0; i < n; i++)
			put_counts(fcinfo, &rows[i], visible);
		from += n;
	}
	return (Datum) 0;
}

/* ---- zk_stat_server ---- */

/* Columns connects to settings_errors */
static void
add_incidents(ZklRow *row, const ZklStatus *status)
{
	int			kind;

	zkl_row_int64(row, status->connects);
	zkl_row_int64(row, status->sessions_lost);
	zkl_row_int64(row, pg_atomic_read_u64(&zkl_control->ctl_losses));
	zkl_row_int64(row, status->lapses);
	zkl_row_int64(row, status->lost_writes);
	zkl_row_int64(row, status->worker_starts);
	for (kind = 0; kind < ZKL_ERROR_KINDS; kind++)
		zkl_row_int64(row, status->errors[kind]);
}

/* Columns batches to watches */
static void
add_traffic(ZklRow *row, const ZklStatus *status)
{
	zkl_row_int64(row, status->batches);
	zkl_row_int64(row, status->operations);
	zkl_row_int64(row, status->listings);
	zkl_row_int64(row, status->creates);
	if (status->creates > 0)
		zkl_row_add(row, Float8GetDatum((double) status->continuous_creates /
										(double) status->creates));
	else
		zkl_row_null(row);
	zkl_row_int64(row, status->watches);
}

/* Columns deadlocks to recalls */
static void
add_deadlocks_and_caching(ZklRow *row, const ZklStatus *status)
{
	zkl_row_int64(row, status->deadlocks);
	zkl_row_int64(row, status->deadlock_checks);
	zkl_row_int64(row, status->given_up_checks);
	zkl_row_int64(row, status->unpublished_waits);
	zkl_row_int64(row, pg_atomic_read_u64(&zkl_control->ctl_cache_takes));
	zkl_row_int64(row, status->recalls);
}

static void
add_tls(ZklRow *row, const ZklTlsStatus *tls)
{
	zkl_row_utf8_or_null(row, tls->version, sizeof(tls->version));
	zkl_row_utf8_or_null(row, tls->cipher, sizeof(tls->cipher));
	zkl_row_time_or_null(row, tls->certificate_until);
	zkl_row_time_or_null(row, tls->ca_until);
	zkl_row_time_or_null(row, tls->server_until);
}

static void
add_statistics(ZklRow *row)
{
	TimestampTz since;
	int64		evicted;

	zkl_lockstats_since(&since, &evicted);
	zkl_row_add(row, TimestampTzGetDatum(since));
	zkl_row_int64(row, evicted);
}

/* Columns asks_sent to messages_other_key */
static void
add_messages(ZklRow *row, const ZklStatus *status)
{
	zkl_row_int64(row, status->asks);
	zkl_row_int64(row, status->words);
	zkl_row_int64(row, status->messages_unsent);
	zkl_row_int64(row, status->words_taken);
	zkl_row_int64(row, status->words_late);
	zkl_row_int64(row, status->messages_refused);
	zkl_row_int64(row, status->messages_other_key);
}

/* Their numbers are counted from 1 on. */
static void
add_tickets(ZklRow *row, const ZklStatus *status)
{
	zkl_row_int64(row, (uint32) pg_atomic_read_u64(&zkl_control->ctl_next_ticket) - 1);
	zkl_row_int64(row, status->tickets_claimed);
	zkl_row_int64(row, status->tickets_lapsed);
}

Datum
zkl_sql_stat_server(PG_FUNCTION_ARGS)
{
	ZklStatus	status;
	ZklRow		row = {0};

	zkl_gate_check();
	zkl_row_begin_view(fcinfo, "zk_stat_server");
	zkl_status_copy(&status);
	add_incidents(&row, &status);
	add_traffic(&row, &status);
	add_deadlocks_and_caching(&row, &status);
	add_tls(&row, &status.tls);
	add_statistics(&row);
	add_messages(&row, &status);
	add_tickets(&row, &status);

	zkl_row_put(fcinfo, &row);
	return (Datum) 0;
}

Datum
zkl_sql_stat_reset(PG_FUNCTION_ARGS)
{
	zkl_gate_check();
	zkl_rights_check_superuser("must be superuser to reset the statistics of distributed locks");
	zkl_lockstats_reset();
	PG_RETURN_VOID();
}
