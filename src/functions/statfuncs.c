/*
 * statfuncs.c
 *	  The set-returning functions that tell of servers: zk_servers, zk_dump(),
 *	  zk_stat_locks and zk_stat_server; and zk_stat_reset().
 *
 * Decides what a role may see; owns the DSM segment of a dump.  Run by backends.  Takes
 * no locks; waits as wait.c does.  Must not know how a server comes to be in the fleet,
 * how the counts come about, nor what the texts of the core mean.
 *
 * The name of a server is in the queue of each lock that it takes.  Where it can be
 * reached, what identifies it, and the names of locks are only shown to roles that may
 * read all statistics: the counts of a lock belong to no session.
 *
 * A few rows are copied at a time: each of them is consistent, but the set is no
 * snapshot.
 */
#include "postgres.h"

#include "backend/errand.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "backend/wait.h"
#include "catalog/pg_authid.h"
#include "functions/row.h"
#include "miscadmin.h"
#include "shared/control.h"
#include "shared/errand_layout.h"
#include "shared/fleet.h"
#include "shared/gate.h"
#include "shared/lockstats.h"
#include "shared/status.h"
#include "utils/acl.h"

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
