/*
 * views.c
 *	  The set-returning functions behind zk_locks and zk_status, and zk_queue.
 *
 * Owns what others may see of requests, of the worker and of a lock's queue.
 * Run by backends.  Takes no locks but, through shmem.h, those of what it
 * copies, one at a time: rows are each consistent, the set is not a snapshot.
 *
 * Must not know which locks this backend holds.
 *
 * As in pg_stat_activity everybody sees that a row exists; whose role is not
 * the row's, and who may not read all statistics, does not see what it is for.
 */
#include "postgres.h"

#include <ctype.h>

#include "ask.h"
#include "catalog/pg_authid.h"
#include "compat.h"
#include "encoding.h"
#include "listing.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "refusal.h"
#include "storage/dsm.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "zklock.h"

#define LOCKS_COLUMNS	11
#define STATUS_COLUMNS	19
#define QUEUE_COLUMNS	11

#define QUEUE_FIRST_SIZE	((Size) 64 * 1024)
#define QUEUE_MAX_SIZE		((Size) 16 * 1024 * 1024)
#define MAX_FOREIGN_DATA	255 /* longer data is not shown */

ZKL_FUNCTION(zkl_sql_locks);
ZKL_FUNCTION(zkl_sql_status);
ZKL_FUNCTION(zkl_sql_queue);

/* A row under construction: columns are added in order. */
typedef struct Row
{
	Datum		values[STATUS_COLUMNS];
	bool		nulls[STATUS_COLUMNS];
	int			n;
} Row;

static void
add(Row *row, Datum value)
{
	row->values[row->n] = value;
	row->nulls[row->n++] = false;
}

static void
add_null(Row *row)
{
	row->values[row->n] = (Datum) 0;
	row->nulls[row->n++] = true;
}

static void
add_text(Row *row, const char *value)
{
	add(row, CStringGetTextDatum(value));
}

/* Text in UTF-8 of unknown origin, in a buffer that it may fill */
static void
add_utf8(Row *row, const char *value, size_t size)
{
	add_text(row, zkl_utf8_to_display(value, (int) strnlen(value, size)));
}

/* The same, but nothing is NULL */
static void
add_utf8_or_null(Row *row, const char *value, size_t size)
{
	if (value[0] != '\0')
		add_utf8(row, value, size);
	else
		add_null(row);
}

static void
add_time_or_null(Row *row, TimestampTz value)
{
	if (value != 0)
		add(row, TimestampTzGetDatum(value));
	else
		add_null(row);
}

static void
add_pid_or_null(Row *row, int pid)
{
	if (pid != 0)
		add(row, Int32GetDatum(pid));
	else
		add_null(row);
}

static void
add_interval_ms(Row *row, int64 ms)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = ms * 1000;
	add(row, IntervalPGetDatum(interval));
}

static void
add_session_id(Row *row, int64 id)
{
	if (id != 0)
		add_text(row, psprintf("0x%016llx", (unsigned long long) id));
	else
		add_null(row);
}

static void
put(FunctionCallInfo fcinfo, Row *row)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	tuplestore_putvalues(result->setResult, result->setDesc,
						 row->values, row->nulls);
}

static const char *
mode_name(ZklLockMode mode)
{
	return mode == ZKL_SHARED ? "shared" : "exclusive";
}

/* ---- zk_locks ---- */

static const char *
slot_mode_name(const ZklSlot *slot)
{
	return slot->s_dialect == ZKL_DIALECT_MEMBER ? "member" :
		mode_name(slot->s_mode);
}

/* Those without a name are not shown. */
static const char *const slot_state_names[] = {
	[ZKL_SLOT_FREE] = NULL,
	[ZKL_SLOT_CLAIMED] = NULL,
	[ZKL_SLOT_WAITING] = "waiting",
	[ZKL_SLOT_GRANTED] = "granted",
	[ZKL_SLOT_DENIED] = "denied",
	[ZKL_SLOT_FAILED] = "failed",
	[ZKL_SLOT_LOST] = "lost",
	[ZKL_SLOT_RELEASED] = "releasing"
};

/* A consistent copy of a slot that is to be shown; false: it is not. */
static bool
copy_shown(int slotno, ZklSlot *slot)
{
	if (zkl_slot_peek(slotno) == ZKL_SLOT_FREE)
		return false;
	zkl_slot_copy(slotno, slot);
	return slot->s_kind == ZKL_KIND_LOCK &&
		slot_state_names[slot->s_state] != NULL;
}

static bool
may_see_slot(const ZklSlot *slot)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		has_privs_of_role(GetUserId(), slot->s_roleid);
}

static void
add_slot_znode(Row *row, const ZklSlot *slot)
{
	char		name[ZKL_MAX_ZNODE_NAME + 1];
	char	   *path;

	if (!slot->s_znode_sent || slot->s_znode_seq < 0)
	{
		add_null(row);
		return;
	}
	zkl_znode_name((ZklDialect) slot->s_dialect, &slot->s_znode_uuid,
				   slot->s_znode_mode, slot->s_znode_seq, name);
	path = psprintf("%s%s/%s", zkl_root, slot->s_path, name);
	add_utf8(row, path, strlen(path));
}

static void
put_slot(FunctionCallInfo fcinfo, const ZklSlot *slot)
{
	Row			row = {0};
	bool		visible = may_see_slot(slot);
	bool		granted = slot->s_state == ZKL_SLOT_GRANTED;

	if (visible)
		add_utf8(&row, slot->s_path, sizeof(slot->s_path));
	else
		add_null(&row);
	add_text(&row, slot_mode_name(slot));
	add_text(&row, slot->s_lifetime == ZKL_LIFETIME_SESSION ?
			 "session" : "transaction");
	add(&row, BoolGetDatum(granted));
	add_text(&row, slot_state_names[slot->s_state]);
	add(&row, Int32GetDatum(slot->s_pid));
	if (visible && slot->s_granted_at != 0)
		add(&row, Int64GetDatum(slot->s_token));
	else
		add_null(&row);
	add(&row, Int32GetDatum(granted ? (int32) slot->s_holds : 0));
	add_time_or_null(&row, slot->s_requested_at);
	add_time_or_null(&row, slot->s_granted_at);
	if (visible)
		add_slot_znode(&row, slot);
	else
		add_null(&row);

	Assert(row.n == LOCKS_COLUMNS);
	put(fcinfo, &row);
}

Datum
zkl_sql_locks(PG_FUNCTION_ARGS)
{
	int			slotno;

	zkl_check_loaded();
	InitMaterializedSRF(fcinfo, 0);
	for (slotno = 0; slotno < zkl_control->ctl_nslots; slotno++)
	{
		ZklSlot		slot;

		CHECK_FOR_INTERRUPTS();
		if (copy_shown(slotno, &slot))
			put_slot(fcinfo, &slot);
	}
	return (Datum) 0;
}

/* ---- zk_status ---- */

static void
count_slots(int64 *held, int64 *waiting)
{
	int			slotno;

	*held = *waiting = 0;
	for (slotno = 0; slotno < zkl_control->ctl_nslots; slotno++)
	{
		ZklSlot		slot;

		if (!copy_shown(slotno, &slot))
			continue;
		if (slot.s_state == ZKL_SLOT_GRANTED)
			(*held)++;
		else if (slot.s_state == ZKL_SLOT_WAITING)
			(*waiting)++;
	}
}

static void
add_lease(Row *row)
{
	uint32		generation;
	int64		deadline;

	zkl_lease_read(&generation, &deadline);
	if (deadline != 0)
		add_interval_ms(row, Max(deadline - zkl_boottime_ms(), 0));
	else
		add_null(row);
}

static void
add_counters(Row *row, const ZklStatus *status)
{
	int64		held;
	int64		waiting;

	count_slots(&held, &waiting);
	add(row, Int64GetDatum(held));
	add(row, Int64GetDatum(waiting));
	add(row, Int64GetDatum((int64) status->connects));
	add(row, Int64GetDatum((int64) status->sessions_lost));
	add(row, Int64GetDatum((int64) status->batches));
	add(row, Int64GetDatum((int64) status->operations));
	add(row, Int64GetDatum((int64) status->listings));
	add(row, Int64GetDatum((int64) status->creates));
	if (status->creates > 0)
		add(row, Float8GetDatum((double) status->continuous_creates /
								(double) status->creates));
	else
		add_null(row);
	add(row, Int64GetDatum((int64) status->watches));
}

Datum
zkl_sql_status(PG_FUNCTION_ARGS)
{
	ZklStatus	status;
	Row			row = {0};
	bool		hosts = zkl_may_see_hosts();

	zkl_check_loaded();
	InitMaterializedSRF(fcinfo, 0);
	zkl_status_copy(&status);

	add_text(&row, zkl_worker_state_name(status.state));
	add_utf8_or_null(&row, hosts ? status.server : "",
					 hosts ? sizeof(status.server) : 1);
	add_session_id(&row, status.session_id);
	if (status.timeout_ms != 0)
		add_interval_ms(&row, status.timeout_ms);
	else
		add_null(&row);
	add_lease(&row);
	add_pid_or_null(&row, status.worker_pid);
	add_pid_or_null(&row, status.session_pid);
	add_counters(&row, &status);
	add_utf8_or_null(&row, hosts ? status.last_error : "",
					 hosts ? sizeof(status.last_error) : 1);
	add_time_or_null(&row, status.last_error_at);

	Assert(row.n == STATUS_COLUMNS);
	put(fcinfo, &row);
	return (Datum) 0;
}

/* ---- zk_queue ---- */

/* Whether data of another client is a short printable text */
static bool
is_short_text(const char *data, uint32 length)
{
	uint32		at = 0;

	if (length == 0 || length > MAX_FOREIGN_DATA)
		return false;
	while (at < length)
	{
		int			bytes = pg_encoding_verifymbchar(PG_UTF8, data + at,
													 (int) (length - at));

		if (bytes < 1 || (bytes == 1 && !isprint((unsigned char) data[at])))
			return false;
		at += bytes;
	}
	return true;
}

/* Columns server, database, pid, usename and application_name */
static void
add_contender(Row *row, const ZklListingEntry *entry)
{
	ZklNodeData data;

	if (zkl_node_data_parse(entry->data, entry->data_length, &data))
		add_utf8_or_null(row, data.server, sizeof(data.server));
	else if (is_short_text(entry->data, entry->data_length))
		add_text(row, zkl_utf8_to_display(entry->data,
										  (int) entry->data_length));
	else
		add_null(row);
	add_utf8_or_null(row, data.database, sizeof(data.database));
	add_pid_or_null(row, data.pid);
	add_utf8_or_null(row, data.usename, sizeof(data.usename));
	add_utf8_or_null(row, data.application_name,
					 sizeof(data.application_name));
}

static void
add_created_at(Row *row, int64 ctime_ms)
{
	int64		days = POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE;

	if (ctime_ms > 0 && ctime_ms < END_TIMESTAMP / 1000)
		add(row, TimestampTzGetDatum((ctime_ms - days * SECS_PER_DAY * 1000) *
									 1000));
	else
		add_null(row);
}

/* The rule by which a lock is granted, for contenders in order of sequence */
static void
put_queue(FunctionCallInfo fcinfo, const char *path, ZklListing *list)
{
	ZklListingEntry entry;
	int			position = 0;
	bool		exclusive_ahead = false;

	while (zkl_listing_next(list, &entry))
	{
		Row			row = {0};
		bool		granted = position == 0 ||
		(entry.mode == ZKL_SHARED && !exclusive_ahead);
		char	   *znode = psprintf("%s%s/%.*s", zkl_root, path,
									 (int) entry.name_length, entry.name);

		add(&row, Int32GetDatum(++position));
		add_text(&row, mode_name(entry.mode));
		add(&row, BoolGetDatum(granted));
		add_contender(&row, &entry);
		add_utf8(&row, znode, strlen(znode));
		add_session_id(&row, entry.session_id);
		add_created_at(&row, entry.ctime_ms);

		Assert(row.n == QUEUE_COLUMNS);
		put(fcinfo, &row);
		exclusive_ahead |= entry.mode == ZKL_EXCLUSIVE;
	}
}

Datum
zkl_sql_queue(PG_FUNCTION_ARGS)
{
	ZklTarget	lock = zkl_target_lock(PG_GETARG_TEXT_PP(0));
	Size		size = QUEUE_FIRST_SIZE;
	dsm_segment *segment;
	ZklListing	list;

	InitMaterializedSRF(fcinfo, 0);

	for (;;)
	{
		Size		needed;

		segment = dsm_create(size, 0);
		needed = zkl_ask_queue(&lock, dsm_segment_handle(segment));
		if (needed == 0)
			break;
		dsm_detach(segment);
		if (needed > QUEUE_MAX_SIZE)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("queue of distributed lock \"%s\" is too long to be shown",
							lock.name),
					 errdetail("It takes %zu bytes; the limit is %zu bytes.",
							   needed, QUEUE_MAX_SIZE)));
		/* It may grow while we ask again. */
		size = Min(Max(needed + needed / 4, size * 2), QUEUE_MAX_SIZE);
	}
	zkl_listing_open(&list, dsm_segment_address(segment),
					 dsm_segment_map_length(segment));
	put_queue(fcinfo, lock.path, &list);
	dsm_detach(segment);
	return (Datum) 0;
}
