/*
 * semaphorefuncs.c
 *	  The SQL-callable functions that acquire and release permits.
 *
 * Turns SQL arguments into calls of semaphore.c, and the answers into results.
 * Run by backends.  Takes no locks, keeps no state.
 *
 * Must not know how a permit is requested, nor when a hold ends.
 */
#include "postgres.h"

#include "backend/refusal.h"
#include "backend/target.h"
#include "recipes/semaphore.h"
#include "shared/compat.h"
#include "shared/slot.h"
#include "utils/builtins.h"

ZKL_FUNCTION(zkl_sql_acquire_permits);
ZKL_FUNCTION(zkl_sql_try_acquire_permits);
ZKL_FUNCTION(zkl_sql_xact_acquire_permits);
ZKL_FUNCTION(zkl_sql_try_xact_acquire_permits);
ZKL_FUNCTION(zkl_sql_release_permits);

/* Arguments: path, max_permits, permits, timeout */
static Datum
acquire_by_sql(FunctionCallInfo fcinfo, ZklLifetime lifetime, bool is_try)
{
	ZklSemaphoreRequest call;
	int64		token;
	bool		granted;

	call.path = zkl_target_name(fcinfo);
	zkl_target_need(fcinfo, 1, "maximum number of permits");
	zkl_target_need(fcinfo, 2, "number of permits");
	call.max = PG_GETARG_INT32(1);
	call.permits = PG_GETARG_INT32(2);
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

Datum
zkl_sql_acquire_permits(PG_FUNCTION_ARGS)
{
	return acquire_by_sql(fcinfo, ZKL_LIFETIME_SESSION, false);
}

Datum
zkl_sql_xact_acquire_permits(PG_FUNCTION_ARGS)
{
	return acquire_by_sql(fcinfo, ZKL_LIFETIME_TRANSACTION, false);
}

Datum
zkl_sql_try_acquire_permits(PG_FUNCTION_ARGS)
{
	return acquire_by_sql(fcinfo, ZKL_LIFETIME_SESSION, true);
}

Datum
zkl_sql_try_xact_acquire_permits(PG_FUNCTION_ARGS)
{
	return acquire_by_sql(fcinfo, ZKL_LIFETIME_TRANSACTION, true);
}

Datum
zkl_sql_release_permits(PG_FUNCTION_ARGS)
{
	text	   *name = zkl_target_name(fcinfo);

	zkl_target_need(fcinfo, 1, "number of permits");
	PG_RETURN_BOOL(zkl_semaphore_release(name, PG_GETARG_INT32(1)));
}
