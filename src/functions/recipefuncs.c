/*
 * recipefuncs.c
 *	  The SQL-callable functions of recipes: permits of semaphores, leaders, and what
 *	  is recorded of the jobs of zk_once().
 *
 * Turns SQL arguments into calls, and the answers into results.  A leader holds an
 * exclusive lock of session lifetime, in the layout of Curator's LeaderLatch.  Run by
 * backends.  Takes no locks but, when it purges, the distributed ones of the jobs.
 *
 * Must not know how a lock or a permit is requested, nor when a hold ends, nor where
 * a history is kept.
 */
#include "postgres.h"

#include "backend/acquire.h"
#include "backend/commit.h"
#include "backend/errand.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "backend/wait.h"
#include "catalog/pg_type.h"
#include "functions/row.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "recipes/once.h"
#include "recipes/semaphore.h"
#include "shared/compat.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "utils/array.h"
#include "utils/builtins.h"

ZKL_FUNCTION(zkl_sql_release_permits);
ZKL_FUNCTION(zkl_sql_jobs);
ZKL_FUNCTION(zkl_sql_once_purge);

/* ---- semaphores ---- */

/* (path, permits, max_permits, timeout) */
static Datum
acquire_by_sql(FunctionCallInfo fcinfo, ZklLifetime lifetime, bool is_try)
{
	ZklSemaphoreRequest call;
	int64		token;
	bool		granted;

	call.path = zkl_target_name(fcinfo);
	zkl_target_need(fcinfo, 1, "number of permits");
	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("maximum number of permits is missing"),
				 errhint("Name it, for example max_permits => 3.")));
	call.permits = PG_GETARG_INT32(1);
	call.max = PG_GETARG_INT32(2);
	call.lifetime = lifetime;
	call.is_try = is_try;
	call.timeout_ms = zkl_target_timeout_ms(fcinfo, 3);
	granted = zkl_semaphore_acquire(&call, &token);
	if (is_try)
		PG_RETURN_BOOL(granted);
	if (!granted)
		zkl_refusal_raise_timed_out(psprintf("%d of %d permits of semaphore \"%s\"",
											 call.permits, call.max,
											 text_to_cstring(call.path)),
									call.timeout_ms);
	PG_RETURN_INT64(token);
}

ZKL_SQL_CALL(zkl_sql_acquire_permits, acquire_by_sql, ZKL_LIFETIME_SESSION, false);
ZKL_SQL_CALL(zkl_sql_xact_acquire_permits, acquire_by_sql, ZKL_LIFETIME_TRANSACTION, false);
ZKL_SQL_CALL(zkl_sql_try_acquire_permits, acquire_by_sql, ZKL_LIFETIME_SESSION, true);
ZKL_SQL_CALL(zkl_sql_try_xact_acquire_permits, acquire_by_sql, ZKL_LIFETIME_TRANSACTION, true);

Datum
zkl_sql_release_permits(PG_FUNCTION_ARGS)
{
	text	   *name = zkl_target_name(fcinfo);

	zkl_target_need(fcinfo, 1, "number of permits");
	PG_RETURN_BOOL(zkl_semaphore_release(name, PG_GETARG_INT32(1)));
}

/* ---- jobs ---- */

#define JOB_COLUMNS	9

static void
add_keys(ZklRow *row, const ZklHistory *history)
{
	Datum		keys[ZKL_HISTORY_KEYS];
	uint32		i;

	for (i = 0; i < history->nkeys; i++)
		keys[i] = CStringGetTextDatum(zkl_text_to_display(history->keys[i],
														  (int) strlen(history->keys[i])));
	zkl_row_add(row, PointerGetDatum(construct_array(keys, (int) history->nkeys,
													 TEXTOID, -1, false,
													 TYPALIGN_INT)));
}

/* Columns last_run_at, server, pid and last_key: NULL if there is no run */
static void
add_last_run(ZklRow *row, const ZklHistory *history)
{
	bool		by_key = history->at != history->period_at && history->nkeys > 0;

	row->hidden = history->at == 0;
	zkl_row_unix_ms_or_null(row, history->at);
	zkl_row_utf8_or_null(row, history->server, sizeof(history->server));
	zkl_row_int_or_null(row, (int) history->pid);
	zkl_row_utf8_or_null(row, by_key ? history->keys[0] : "", ZKL_MAX_RUN_KEY + 1);
	row->hidden = false;
}

/*
 * A record that cannot be read has a row that says when it was written.  A job
 * that the current role may not look at has none.
 */
static void
put_job(void *arg, const char *name, const ZklJobRecord *record)
{
	static const ZklHistory none;
	const ZklHistory *history = record->readable ? &record->history : &none;
	ZklRow		row = {0};

	if (!zkl_rights_may_look(name))
		return;
	zkl_row_utf8(&row, name, strlen(name));
	add_last_run(&row, history);
	if (record->readable)
		add_keys(&row, history);
	else
		zkl_row_null(&row);
	zkl_row_unix_ms_or_null(&row, history->period_at);
	zkl_row_utf8_or_null(&row, history->role, sizeof(history->role));
	zkl_row_unix_ms_or_null(&row, record->mtime);

	Assert(row.n == JOB_COLUMNS);
	zkl_row_put(arg, &row);
}

Datum
zkl_sql_jobs(PG_FUNCTION_ARGS)
{
	zkl_gate_check();
	zkl_row_begin_view(fcinfo, "zk_jobs");
	zkl_jobs_each(put_job, fcinfo);
	return (Datum) 0;
}

Datum
zkl_sql_once_purge(PG_FUNCTION_ARGS)
{
	int64		unused_ms = zkl_target_interval_ms(PG_GETARG_INTERVAL_P(0));
	int64		purged;
	char		role[ZKL_MAX_ROLE];

	zkl_gate_check();
	zkl_job_role(role);
	if (unused_ms < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("interval must not be negative")));
	purged = zkl_jobs_purge(unused_ms, superuser() ? NULL : role);
	if (purged > 0)
		ereport(LOG,
				(errmsg("histories of %lld jobs were purged by process %d (user \"%s\")",
						(long long) purged, MyProcPid,
						GetUserNameFromId(GetUserId(), true))));
	PG_RETURN_INT64(purged);
}

/* ---- leaders ---- */

#define LEADER_COLUMNS	4

ZKL_FUNCTION(zkl_sql_lead);
ZKL_FUNCTION(zkl_sql_resign);
ZKL_FUNCTION(zkl_sql_leader);

static ZklTarget
target_of(const text *name, ZklPrivileges needed)
{
	return zkl_target_recipe(name, "", ZKL_DIALECT_LATCH, needed);
}

/* In UTF-8, palloc'd */
static char *
id_of(const text *given)
{
	char	   *id = text_to_cstring(given);

	id = pg_server_to_any(id, (int) strlen(id), PG_UTF8);
	if (strlen(id) > ZKL_MAX_LEADER_ID)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("leader id is too long"),
				 errdetail("It has %zu bytes in UTF-8; the limit is %d bytes.",
						   strlen(id), ZKL_MAX_LEADER_ID)));
	return id;
}

Datum
zkl_sql_lead(PG_FUNCTION_ARGS)
{
	ZklLockRequest request = {0};
	int64		token;

	request.lock = target_of(zkl_target_name(fcinfo), ZKL_MAY_LEAD);
	request.mode = ZKL_EXCLUSIVE;
	request.lifetime = ZKL_LIFETIME_SESSION;
	request.timeout_ms = zkl_target_timeout_ms(fcinfo, 2);
	request.is_try = zkl_acquire_is_try(false, request.timeout_ms);
	request.leader_id = PG_ARGISNULL(1) ?
		psprintf("%s/%d", zkl_settings_server_name(), MyProcPid) :
		id_of(PG_GETARG_TEXT_PP(1));
	if (!zkl_acquire(&request, 1, &token))
		zkl_refusal_raise_timed_out(psprintf("leadership of \"%s\"",
											 request.lock.name), request.timeout_ms);
	PG_RETURN_INT64(token);
}

/* Ends the leadership, however often zk_lead() was called. */
Datum
zkl_sql_resign(PG_FUNCTION_ARGS)
{
	ZklTarget	lock = target_of(zkl_target_name(fcinfo), ZKL_NEEDS_NOTHING);
	ZklHold    *hold;

	zkl_lifetime_check();
	hold = zkl_hold_find(&lock, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION);
	PG_RETURN_BOOL(hold != NULL ? zkl_held_release(hold) :
				   zkl_held_release_lock(&lock, ZKL_EXCLUSIVE));
}

static void
put_leader(FunctionCallInfo fcinfo, const ZklTarget *lock,
		   const ZklQueueEntry *entry)
{
	ZklRow		row = {0};
	char	   *znode = psprintf("%s%s/%s", zkl_root, lock->path, entry->name);

	zkl_row_text(&row, zkl_text_to_display(entry->data, (int) entry->length));
	zkl_row_utf8(&row, znode, strlen(znode));
	zkl_row_session_id(&row, entry->session_id);
	zkl_row_unix_ms_or_null(&row, entry->ctime_ms);

	Assert(row.n == LEADER_COLUMNS);
	zkl_row_put(fcinfo, &row);
}

Datum
zkl_sql_leader(PG_FUNCTION_ARGS)
{
	ZklTarget	lock = target_of(PG_GETARG_TEXT_PP(0), ZKL_MAY_LOOK);
	ZklLockQueue queue;

	InitMaterializedSRF(fcinfo, 0);
	zkl_errand_read_queue(&lock, &queue);
	if (queue.n > 0)
		put_leader(fcinfo, &lock, &queue.entries[0]);
	return (Datum) 0;
}
