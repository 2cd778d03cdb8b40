/*
 * semaphorefuncs.c
 *	  The SQL-callable functions that acquire and release leases.
 *
 * Owns the way from SQL arguments to what semaphore.c is asked for, and back.
 * Run by backends.  Takes no locks, keeps no state.
 *
 * Must not know how a lease is asked for, nor when a hold ends.
 */
#include "postgres.h"

#include "backend/duration.h"
#include "recipes/semaphore.h"
#include "shared/compat.h"
#include "shared/slot.h"

ZKL_FUNCTION(zkl_sql_acquire);
ZKL_FUNCTION(zkl_sql_try_acquire);
ZKL_FUNCTION(zkl_sql_xact_acquire);
ZKL_FUNCTION(zkl_sql_try_xact_acquire);
ZKL_FUNCTION(zkl_sql_release);

static bool
acquire(FunctionCallInfo fcinfo, ZklLifetime lifetime, bool is_try,
		int64 *token)
{
	ZklSemaphoreRequest ask;

	ask.path = PG_GETARG_TEXT_PP(0);
	ask.max = PG_GETARG_INT32(1);
	ask.permits = PG_GETARG_INT32(2);
	ask.lifetime = lifetime;
	ask.is_try = is_try;
	ask.timeout_ms = is_try ? zkl_duration_timeout_ms(PG_GETARG_INTERVAL_P(3)) : 0;
	return zkl_semaphore_acquire(&ask, token);
}

Datum
zkl_sql_acquire(PG_FUNCTION_ARGS)
{
	int64		token = 0;

	(void) acquire(fcinfo, ZKL_LIFETIME_SESSION, false, &token);
	PG_RETURN_INT64(token);
}

Datum
zkl_sql_xact_acquire(PG_FUNCTION_ARGS)
{
	int64		token = 0;

	(void) acquire(fcinfo, ZKL_LIFETIME_TRANSACTION, false, &token);
	PG_RETURN_INT64(token);
}

Datum
zkl_sql_try_acquire(PG_FUNCTION_ARGS)
{
	int64		token;

	PG_RETURN_BOOL(acquire(fcinfo, ZKL_LIFETIME_SESSION, true, &token));
}

Datum
zkl_sql_try_xact_acquire(PG_FUNCTION_ARGS)
{
	int64		token;

	PG_RETURN_BOOL(acquire(fcinfo, ZKL_LIFETIME_TRANSACTION, true, &token));
}

Datum
zkl_sql_release(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(zkl_semaphore_release(PG_GETARG_TEXT_PP(0),
										 PG_GETARG_INT32(1)));
}
