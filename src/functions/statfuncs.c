/*
 * statfuncs.c
 *	  The set-returning functions behind zk_stat_locks and zk_stat_server, and
 *	  zk_stat_reset().
 *
 * Decides what a role may see of the statistics.  Run by backends.  Takes no
 * locks.  A few rows are copied at a time: each of them is consistent, but the
 * set is no snapshot.
 *
 * Must not know how the counts come about.
 *
 * A lock's name is only shown to roles that may read all statistics: the counts
 * belong to no session.
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "functions/row.h"
#include "miscadmin.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/lockstats.h"
#include "shared/status.h"
#include "utils/acl.h"

#define STAT_LOCKS_COLUMNS	12
#define STAT_SERVER_COLUMNS	29
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

	zkl_row_utf8_or_null(&row, visible ? stats->path : "",
						 visible ? sizeof(stats->path) : 1);
	zkl_row_add(&row, Int64GetDatum(counts->acquires));
	zkl_row_add(&row, Int64GetDatum(counts->waited));
	add_time(&row, (double) counts->wait_time);
	add_time(&row, (double) counts->wait_time / (double) Max(counts->acquires, 1));
	add_time(&row, (double) counts->longest_wait);
	add_time(&row, (double) counts->hold_time);
	add_time(&row, (double) counts->longest_hold);
	zkl_row_add(&row, Int64GetDatum(counts->timeouts));
	zkl_row_add(&row, Int64GetDatum(counts->denials));
	zkl_row_add(&row, Int64GetDatum(counts->losses));
	zkl_row_add(&row, Int64GetDatum(counts->deadlocks));

	Assert(row.n == STAT_LOCKS_COLUMNS);
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

static void
add_count(ZklRow *row, uint64 count)
{
	zkl_row_add(row, Int64GetDatum((int64) count));
}

/* Columns connects to settings_errors */
static void
add_incidents(ZklRow *row, const ZklStatus *status)
{
	int			kind;

	add_count(row, status->connects);
	add_count(row, status->sessions_lost);
	add_count(row, pg_atomic_read_u64(&zkl_control->ctl_losses));
	add_count(row, status->lapses);
	add_count(row, status->lost_writes);
	add_count(row, status->worker_starts);
	for (kind = 0; kind < ZKL_ERROR_KINDS; kind++)
		add_count(row, status->errors[kind]);
}

/* Columns batches to watches */
static void
add_traffic(ZklRow *row, const ZklStatus *status)
{
	add_count(row, status->batches);
	add_count(row, status->operations);
	add_count(row, status->listings);
	add_count(row, status->creates);
	if (status->creates > 0)
		zkl_row_add(row, Float8GetDatum((double) status->continuous_creates /
										(double) status->creates));
	else
		zkl_row_null(row);
	add_count(row, status->watches);
}

static void
add_deadlocks(ZklRow *row, const ZklStatus *status)
{
	add_count(row, status->deadlocks);
	add_count(row, status->deadlock_checks);
	add_count(row, status->given_up_checks);
	add_count(row, status->unpublished_waits);
}

static void
add_caching(ZklRow *row, const ZklStatus *status)
{
	add_count(row, pg_atomic_read_u64(&zkl_control->ctl_cache_takes));
	add_count(row, status->recalls);
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
	zkl_row_add(row, Int64GetDatum(evicted));
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
	add_deadlocks(&row, &status);
	add_caching(&row, &status);
	add_tls(&row, &status.tls);
	add_statistics(&row);

	Assert(row.n == STAT_SERVER_COLUMNS);
	zkl_row_put(fcinfo, &row);
	return (Datum) 0;
}

Datum
zkl_sql_stat_reset(PG_FUNCTION_ARGS)
{
	zkl_gate_check();
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to reset the statistics of distributed locks")));
	zkl_lockstats_reset();
	PG_RETURN_VOID();
}
