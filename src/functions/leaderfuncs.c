/*
 * leaderfuncs.c
 *	  The SQL-callable functions by which sessions choose a leader.
 *
 * Owns nothing: the leader holds an exclusive lock of session lifetime, in the
 * layout of Curator's LeaderLatch.  Run by backends.  Takes no locks.
 *
 * Must not know how a lock is requested, nor when a hold ends.
 */
#include "postgres.h"

#include "backend/acquire.h"
#include "backend/held.h"
#include "backend/lifetime.h"
#include "backend/reading.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "backend/text.h"
#include "functions/row.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "utils/builtins.h"

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
	zkl_reading_queue(&lock, &queue);
	if (queue.n > 0)
		put_leader(fcinfo, &lock, &queue.entries[0]);
	return (Datum) 0;
}
