/*
 * sqlfuncs.c
 *	  The SQL-callable functions that acquire and release locks.
 *
 * Turns SQL arguments into requests, and the answers into results.  Run by
 * backends.  Takes no locks, keeps no state.
 *
 * Must not know how a lock is requested, nor when a hold ends.
 */
#include "postgres.h"

#include "backend/acquire.h"
#include "backend/held.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "backend/text.h"
#include "recipes/semaphore.h"
#include "shared/compat.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "utils/timestamp.h"

/* Ten thousand years, which fit into 64 bits even as µs */
#define LONGEST_MS		((int64) 10000 * 365 * 86400000)

ZKL_FUNCTION(zkl_sql_lock);
ZKL_FUNCTION(zkl_sql_lock_shared);
ZKL_FUNCTION(zkl_sql_try_lock);
ZKL_FUNCTION(zkl_sql_try_lock_shared);
ZKL_FUNCTION(zkl_sql_xact_lock);
ZKL_FUNCTION(zkl_sql_xact_lock_shared);
ZKL_FUNCTION(zkl_sql_try_xact_lock);
ZKL_FUNCTION(zkl_sql_try_xact_lock_shared);
ZKL_FUNCTION(zkl_sql_unlock);
ZKL_FUNCTION(zkl_sql_unlock_shared);
ZKL_FUNCTION(zkl_sql_unlock_all);
ZKL_FUNCTION(zkl_sql_extend);
ZKL_FUNCTION(zkl_sql_assert_lock);
ZKL_FUNCTION(zkl_sql_fencing_token);

/* ---- arguments ---- */

/* The longest time that a lock may be held, in ms; 0: no limit */
static int64
at_most_of(FunctionCallInfo fcinfo, int arg)
{
	int64		ms;

	if (PG_ARGISNULL(arg))
		return 0;
	ms = zkl_target_interval_ms(PG_GETARG_INTERVAL_P(arg));
	if (ms <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("at_most must be positive")));
	if (ms == ZKL_FOREVER)
		return 0;
	return Min(ms, LONGEST_MS);
}

static void
check_max_at_least(int64 ms)
{
	if (ms <= zkl_max_at_least)
		return;
	if (zkl_max_at_least == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to use at_least"),
				 errdetail("\"zklock.max_at_least\" is 0.")));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("at_least must not be greater than \"zklock.max_at_least\""),
			 errdetail("The argument is %lld ms, but the setting is %d ms.",
					   (long long) ms, zkl_max_at_least)));
}

/* The shortest time that it is kept, in ms */
static int64
at_least_of(FunctionCallInfo fcinfo, int arg, int64 at_most)
{
	int64		ms;

	if (PG_ARGISNULL(arg))
		return 0;
	ms = zkl_target_interval_ms(PG_GETARG_INTERVAL_P(arg));
	if (ms < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("at_least must not be negative")));
	if (ms == ZKL_FOREVER)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("at_least must be finite")));
	ms = Min(ms, LONGEST_MS);
	if (at_most != 0 && ms > at_most)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("at_least must not be greater than at_most")));
	check_max_at_least(ms);
	return ms;
}

/* ---- acquiring: (path, timeout, at_most, at_least) ---- */

static bool
acquire_lock(ZklLockRequest *request, bool is_try, FunctionCallInfo fcinfo,
			 ZklLockMode mode, ZklLifetime lifetime, int64 *token)
{
	memset(request, 0, sizeof(*request));
	request->lock = zkl_target_lock(zkl_target_name(fcinfo),
									mode == ZKL_SHARED ? ZKL_MAY_SHARE : ZKL_MAY_LOCK);
	request->mode = mode;
	request->lifetime = lifetime;
	request->timeout_ms = zkl_target_timeout_ms(fcinfo, 1);
	request->is_try = zkl_acquire_is_try(is_try, request->timeout_ms);
	request->at_most_ms = at_most_of(fcinfo, 2);
	request->at_least_ms = at_least_of(fcinfo, 3, request->at_most_ms);
	if (request->at_least_ms > 0)
		zkl_rights_check(request->lock.path, request->lock.name, ZKL_MAY_KEEP);
	return zkl_acquire(request, 1, token);
}

static Datum
lock_or_raise(FunctionCallInfo fcinfo, ZklLockMode mode, ZklLifetime lifetime)
{
	ZklLockRequest request;
	int64		token;

	if (!acquire_lock(&request, false, fcinfo, mode, lifetime, &token))
		zkl_refusal_raise_timed_out(psprintf("distributed lock \"%s\"",
											 request.lock.name), request.timeout_ms);
	PG_RETURN_INT64(token);
}

static Datum
try_lock(FunctionCallInfo fcinfo, ZklLockMode mode, ZklLifetime lifetime)
{
	ZklLockRequest request;
	int64		token;

	PG_RETURN_BOOL(acquire_lock(&request, true, fcinfo, mode, lifetime,
								&token));
}

Datum
zkl_sql_lock(PG_FUNCTION_ARGS)
{
	return lock_or_raise(fcinfo, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION);
}

Datum
zkl_sql_lock_shared(PG_FUNCTION_ARGS)
{
	return lock_or_raise(fcinfo, ZKL_SHARED, ZKL_LIFETIME_SESSION);
}

Datum
zkl_sql_try_lock(PG_FUNCTION_ARGS)
{
	return try_lock(fcinfo, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION);
}

Datum
zkl_sql_try_lock_shared(PG_FUNCTION_ARGS)
{
	return try_lock(fcinfo, ZKL_SHARED, ZKL_LIFETIME_SESSION);
}

Datum
zkl_sql_xact_lock(PG_FUNCTION_ARGS)
{
	return lock_or_raise(fcinfo, ZKL_EXCLUSIVE, ZKL_LIFETIME_TRANSACTION);
}

Datum
zkl_sql_xact_lock_shared(PG_FUNCTION_ARGS)
{
	return lock_or_raise(fcinfo, ZKL_SHARED, ZKL_LIFETIME_TRANSACTION);
}

Datum
zkl_sql_try_xact_lock(PG_FUNCTION_ARGS)
{
	return try_lock(fcinfo, ZKL_EXCLUSIVE, ZKL_LIFETIME_TRANSACTION);
}

Datum
zkl_sql_try_xact_lock_shared(PG_FUNCTION_ARGS)
{
	return try_lock(fcinfo, ZKL_SHARED, ZKL_LIFETIME_TRANSACTION);
}

/* ---- releasing ---- */

static Datum
unlock(FunctionCallInfo fcinfo, ZklLockMode mode)
{
	ZklTarget	lock = zkl_target_lock(zkl_target_name(fcinfo), ZKL_NEEDS_NOTHING);

	PG_RETURN_BOOL(zkl_held_release_lock(&lock, mode));
}

Datum
zkl_sql_unlock(PG_FUNCTION_ARGS)
{
	return unlock(fcinfo, ZKL_EXCLUSIVE);
}

Datum
zkl_sql_unlock_shared(PG_FUNCTION_ARGS)
{
	return unlock(fcinfo, ZKL_SHARED);
}

Datum
zkl_sql_unlock_all(PG_FUNCTION_ARGS)
{
	zkl_held_release_all();
	PG_RETURN_VOID();
}

/* ---- holding ---- */

Datum
zkl_sql_extend(PG_FUNCTION_ARGS)
{
	ZklTarget	lock = zkl_target_lock(zkl_target_name(fcinfo), ZKL_NEEDS_NOTHING);

	PG_RETURN_BOOL(zkl_held_extend(&lock, at_most_of(fcinfo, 1)));
}

/* ---- looking ---- */

Datum
zkl_sql_assert_lock(PG_FUNCTION_ARGS)
{
	ZklTarget	lock = zkl_target_lock(zkl_target_name(fcinfo), ZKL_NEEDS_NOTHING);
	ZklTarget	latch = lock;
	int64		left_ms = LONGEST_MS;
	Interval   *left = palloc0(sizeof(Interval));

	latch.dialect = ZKL_DIALECT_LATCH;
	if (!zkl_held_assert_lock(&lock, &left_ms) && !zkl_held_assert_lock(&latch, &left_ms) &&
		!zkl_semaphore_assert(&lock, &left_ms))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("you do not hold distributed lock \"%s\"",
						zkl_text_for_client(lock.name))));
	left->time = left_ms * 1000;
	PG_RETURN_INTERVAL_P(left);
}

Datum
zkl_sql_fencing_token(PG_FUNCTION_ARGS)
{
	ZklTarget	lock = zkl_target_lock(PG_GETARG_TEXT_PP(0), ZKL_NEEDS_NOTHING);
	ZklTarget	latch = lock;
	int64		token;

	latch.dialect = ZKL_DIALECT_LATCH;
	if (!zkl_hold_token(&lock, &token) && !zkl_hold_token(&latch, &token) &&
		!zkl_semaphore_token(&lock, &token))
		PG_RETURN_NULL();
	PG_RETURN_INT64(token);
}
