/*
 * operator.c
 *	  The SQL-callable functions for operators.
 *
 * Run by backends of superusers.  Takes no locks, keeps no state.  Must not
 * know how the worker carries them out.
 */
#include "postgres.h"

#include "backend/lock_queue.h"
#include "miscadmin.h"
#include "recipes/semaphore.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/loaded.h"
#include "utils/builtins.h"

ZKL_FUNCTION(zkl_sql_break_lock);
ZKL_FUNCTION(zkl_sql_accept_lower_tokens);

/* EXECUTE can be granted, but only a superuser may interfere with others. */
static void
require_superuser(const char *message)
{
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("%s", message)));
}

/* Breaks the oldest lease of a semaphore. */
static bool
break_lease(const ZklTarget *lock)
{
	ZklTarget	leases = *lock;

	leases.path = psprintf("%s%s", lock->path, ZKL_SEMAPHORE_PERMITS);
	leases.dialect = ZKL_DIALECT_PERMIT;
	return strlen(leases.path) <= ZKL_MAX_NAME && zkl_lock_queue_break(&leases);
}

Datum
zkl_sql_break_lock(PG_FUNCTION_ARGS)
{
	ZklTarget	lock;

	zkl_loaded_check();
	require_superuser("must be superuser to break a distributed lock");
	lock = zkl_target_any(PG_GETARG_TEXT_PP(0));
	PG_RETURN_BOOL(zkl_lock_queue_break(&lock) || break_lease(&lock));
}

/* The worker reads the value when it connects, at most a few seconds later. */
Datum
zkl_sql_accept_lower_tokens(PG_FUNCTION_ARGS)
{
	zkl_loaded_check();
	require_superuser("must be superuser to accept lower fencing tokens");
	pg_atomic_write_u64(&zkl_control->ctl_zxid_seen, 0);
	ereport(LOG,
			(errmsg("zklock: process %d (user \"%s\") accepted lower fencing tokens",
					MyProcPid, GetUserNameFromId(GetUserId(), true))));
	PG_RETURN_VOID();
}
