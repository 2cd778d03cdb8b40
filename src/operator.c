/*
 * operator.c
 *	  The SQL-callable functions by which an operator interferes.
 *
 * Run by backends of superusers.  Takes no locks, keeps no state.  Must not
 * know how the worker does what is asked for.
 */
#include "postgres.h"

#include "compat.h"
#include "encoding.h"
#include "miscadmin.h"
#include "request.h"
#include "utils/builtins.h"
#include "zklock.h"

ZKL_FUNCTION(zkl_sql_break_lock);
ZKL_FUNCTION(zkl_sql_accept_lower_tokens);

/* EXECUTE can be granted; what these do to others cannot. */
static void
require_superuser(const char *message)
{
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("%s", message)));
}

Datum
zkl_sql_break_lock(PG_FUNCTION_ARGS)
{
	text	   *name = PG_GETARG_TEXT_PP(0);

	zkl_check_loaded();
	require_superuser("must be superuser to break a distributed lock");
	PG_RETURN_BOOL(zkl_ask_break(zkl_name_to_utf8(VARDATA_ANY(name),
												  VARSIZE_ANY_EXHDR(name)),
								 text_to_cstring(name)));
}

/*
 * The worker looks at it when it connects, at most a few seconds later.
 */
Datum
zkl_sql_accept_lower_tokens(PG_FUNCTION_ARGS)
{
	zkl_check_loaded();
	require_superuser("must be superuser to accept lower fencing tokens");
	pg_atomic_write_u64(&zkl_control->ctl_zxid_seen, 0);
	ereport(LOG,
			(errmsg("zklock: lower fencing tokens are accepted by process %d (user \"%s\")",
					MyProcPid, GetUserNameFromId(GetUserId(), true))));
	PG_RETURN_VOID();
}
