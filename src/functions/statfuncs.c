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

#include "backend/rights.h"
#include "catalog/pg_authid.h"
#include "functions/row.h"
#include "miscadmin.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/lockstats.h"
#include "shared/status.h"
#include "utils/acl.h"

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
