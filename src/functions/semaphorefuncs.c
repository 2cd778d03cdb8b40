/*
 * semaphorefuncs.c
 *	  The SQL-callable functions that acquire and release leases.
 *
 * Turns SQL arguments into calls of semaphore.c, and the answers into results.
 * Run by backends.  Takes no locks, keeps no state.
 *
 * Must not know how a lease is requested, nor when a hold ends.
 */
#include "postgres.h"

#include "backend/duration.h"
#include "backend/refusal.h"
#include "recipes/semaphore.h"
#include "shared/compat.h"
#include "shared/slot.h"
#include "utils/builtins.h"

ZKL_FUNCTION(zkl_sql_acquire);
ZKL_FUNCTION(zkl_sql_try_acquire);
ZKL_FUNCTION(zkl_sql_xact_acquire);
ZKL_FUNCTION(zkl_sql_try_xact_acquire);
ZKL_FUNCTION(zkl_sql_release);

/* Arguments: path, max_leases, leases, timeout */
static Datum
acquire_leases(FunctionCallInfo fcinfo, ZklLifetime lifetime, bool is_try)
{
	ZklSemaphoreRequest call;
	int64		token;
	bool		granted;

	call.path = zkl_target_name(fcinfo);
	if (PG_ARGISNULL(1) || PG_ARGISNULL(2))
		PG_RETURN_NULL();
	call.max = PG_GETARG_INT32(1);
	call.permits = PG_GETARG_INT32(2);
	call.lifetime = lifetime;
	call.is_try = is_try;
	call.timeout_ms = zkl_duration_timeout_ms(fcinfo, 3);
	granted = zkl_semaphore_acquire(&call, &token);
	if (is_try)
		PG_RETURN_BOOL(granted);
	if (!granted)
		zkl_refusal_raise_timed_out(psprintf("%d of %d leases of semaphore \"%s\"",
											 call.permits, call.max,
											 text_to_cstring(call.path)),
									call.timeout_ms);
	PG_RETURN_INT64(token);
}

Datum
zkl_sql_acquire(PG_FUNCTION_ARGS)
{
	return acquire_leases(fcinfo, ZKL_LIFETIME_SESSION, false);
}

Datum
zkl_sql_xact_acquire(PG_FUNCTION_ARGS)
{
	return acquire_leases(fcinfo, ZKL_LIFETIME_TRANSACTION, false);
}

Datum
zkl_sql_try_acquire(PG_FUNCTION_ARGS)
{
	return acquire_leases(fcinfo, ZKL_LIFETIME_SESSION, true);
}

Datum
zkl_sql_try_xact_acquire(PG_FUNCTION_ARGS)
{
	return acquire_leases(fcinfo, ZKL_LIFETIME_TRANSACTION, true);
}

Datum
zkl_sql_release(PG_FUNCTION_ARGS)
{
	text	   *name = zkl_target_name(fcinfo);

	if (PG_ARGISNULL(1))
		PG_RETURN_NULL();
	PG_RETURN_BOOL(zkl_semaphore_release(name, PG_GETARG_INT32(1)));
}
