/*
 * sqlfuncs.c
 *	  The SQL-callable functions that acquire and release locks.
 *
 * Owns the way from SQL arguments to a request, and back.  Run by backends.
 * Takes no locks, keeps no state.
 *
 * Must not know how a lock is asked for, nor when a hold ends.
 */
#include "postgres.h"

#include "acquire.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "core/dialect.h"
#include "duration.h"
#include "extend.h"
#include "release.h"
#include "semaphore.h"
#include "utils/array.h"
#include "zklock.h"

/* A bound that nobody lives to see; in µs it fits, too, and more besides. */
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
ZKL_FUNCTION(zkl_sql_fencing_token);
ZKL_FUNCTION(zkl_sql_lock_all);
ZKL_FUNCTION(zkl_sql_lock_all_shared);
ZKL_FUNCTION(zkl_sql_try_lock_all);
ZKL_FUNCTION(zkl_sql_try_lock_all_shared);
ZKL_FUNCTION(zkl_sql_xact_lock_all);
ZKL_FUNCTION(zkl_sql_xact_lock_all_shared);
ZKL_FUNCTION(zkl_sql_try_xact_lock_all);
ZKL_FUNCTION(zkl_sql_try_xact_lock_all_shared);
ZKL_FUNCTION(zkl_sql_unlock_all_of);
ZKL_FUNCTION(zkl_sql_unlock_all_of_shared);

/* ---- arguments ---- */

/* For how long a lock may be held, in ms; 0: as long as one likes */
static int64
at_most_of(FunctionCallInfo fcinfo, int arg)
{
	int64		ms;

	if (PG_ARGISNULL(arg))
		return 0;
	ms = zkl_duration_ms(PG_GETARG_INTERVAL_P(arg));
	if (ms <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("at_most must be positive")));
	if (ms == ZKL_FOREVER)
		return 0;
	return Min(ms, LONGEST_MS);
}

/* For how long it is kept at least, in ms */
static int64
at_least_of(FunctionCallInfo fcinfo, int arg, int64 at_most)
{
	int64		ms;

	if (PG_ARGISNULL(arg))
		return 0;
	ms = zkl_duration_ms(PG_GETARG_INTERVAL_P(arg));
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
	return ms;
}

/*
 * The variants with bounds have two arguments more than those without, which
 * are strict.  Theirs may be NULL; the ones before may not.
 */
static bool
asks_for_nothing(FunctionCallInfo fcinfo, int nstrict)
{
	int			i;

	for (i = 0; i < nstrict; i++)
	{
		if (PG_ARGISNULL(i))
			return true;
	}
	return false;
}

/* Not all clients that a lock may be shared with know shared locks. */
static void
check_mode(const ZklAsk *ask)
{
	if (ask->mode == ZKL_SHARED && !zkl_dialect_shares(ask->lock.dialect))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("distributed lock \"%s\" cannot be shared",
						ask->lock.name),
				 errdetail("Its dialect is %s, which has exclusive locks only.",
						   zkl_dialect_name(ask->lock.dialect)),
				 errhint("Use an exclusive lock, or a name that \"zklock.dialects\" gives another dialect.")));
}

/* ---- acquiring ---- */

static bool
acquire(FunctionCallInfo fcinfo, ZklLockMode mode, ZklLifetime lifetime,
		bool is_try, int64 *token)
{
	ZklAsk		ask = {0};
	int			bounds = is_try ? 2 : 1;

	ask.lock = zkl_target_lock(PG_GETARG_TEXT_PP(0));
	ask.mode = mode;
	ask.lifetime = lifetime;
	ask.is_try = is_try;
	check_mode(&ask);
	if (is_try)
		ask.timeout_ms = zkl_timeout_ms(PG_GETARG_INTERVAL_P(1));
	if (PG_NARGS() > bounds)
	{
		ask.at_most_ms = at_most_of(fcinfo, bounds);
		ask.at_least_ms = at_least_of(fcinfo, bounds + 1, ask.at_most_ms);
	}
	return zkl_acquire(&ask, 1, token);
}

static Datum
lock(FunctionCallInfo fcinfo, ZklLockMode mode, ZklLifetime lifetime)
{
	int64		token = 0;

	if (asks_for_nothing(fcinfo, 1))
		PG_RETURN_NULL();
	(void) acquire(fcinfo, mode, lifetime, false, &token);
	PG_RETURN_INT64(token);
}

static Datum
try_lock(FunctionCallInfo fcinfo, ZklLockMode mode, ZklLifetime lifetime)
{
	int64		token;

	if (asks_for_nothing(fcinfo, 2))
		PG_RETURN_NULL();
	PG_RETURN_BOOL(acquire(fcinfo, mode, lifetime, true, &token));
}

Datum
zkl_sql_lock(PG_FUNCTION_ARGS)
{
	return lock(fcinfo, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION);
}

Datum
zkl_sql_lock_shared(PG_FUNCTION_ARGS)
{
	return lock(fcinfo, ZKL_SHARED, ZKL_LIFETIME_SESSION);
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
	return lock(fcinfo, ZKL_EXCLUSIVE, ZKL_LIFETIME_TRANSACTION);
}

Datum
zkl_sql_xact_lock_shared(PG_FUNCTION_ARGS)
{
	return lock(fcinfo, ZKL_SHARED, ZKL_LIFETIME_TRANSACTION);
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
	ZklTarget	lock = zkl_target_lock(PG_GETARG_TEXT_PP(0));

	PG_RETURN_BOOL(zkl_release_lock(&lock, mode));
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
	zkl_release_all();
	PG_RETURN_VOID();
}

/* ---- holding ---- */

Datum
zkl_sql_extend(PG_FUNCTION_ARGS)
{
	ZklTarget	lock;
	int64		at_most;

	if (asks_for_nothing(fcinfo, 1))
		PG_RETURN_NULL();
	lock = zkl_target_lock(PG_GETARG_TEXT_PP(0));
	at_most = at_most_of(fcinfo, 1);
	PG_RETURN_BOOL(zkl_extend_holds(&lock, at_most));
}

/* ---- looking ---- */

Datum
zkl_sql_fencing_token(PG_FUNCTION_ARGS)
{
	ZklTarget	lock = zkl_target_lock(PG_GETARG_TEXT_PP(0));
	ZklTarget	latch = lock;
	int64		token;

	latch.dialect = ZKL_DIALECT_LATCH;
	if (!zkl_hold_token(&lock, &token) && !zkl_hold_token(&latch, &token) &&
		!zkl_semaphore_token(&lock, &token))
		PG_RETURN_NULL();
	PG_RETURN_INT64(token);
}

/* ---- several at once ---- */

/* One name of an array, and where it stood there */
typedef struct Named
{
	ZklTarget	lock;
	int			position;
} Named;

/* The order in which everybody takes them: by the bytes of the names */
static int
compare_named(const void *a, const void *b)
{
	return strcmp(((const Named *) a)->lock.path,
				  ((const Named *) b)->lock.path);
}

static Named *
names_of(ArrayType *array, int *n)
{
	Datum	   *elements;
	bool	   *nulls;
	Named	   *names;
	int			i;

	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("array of lock names must have one dimension")));
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elements,
					  &nulls, n);
	if (*n == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("array of lock names must not be empty")));
	names = palloc(*n * sizeof(Named));
	for (i = 0; i < *n; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("array of lock names must not contain nulls")));
		names[i].lock = zkl_target_lock(DatumGetTextPP(elements[i]));
		names[i].position = i;
	}
	qsort(names, *n, sizeof(Named), compare_named);
	for (i = 1; i < *n; i++)
	{
		if (compare_named(&names[i - 1], &names[i]) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("array of lock names must not contain \"%s\" twice",
							names[i].lock.name)));
	}
	return names;
}

/* Returns the tokens in the order of the array, or NULL: a try was refused. */
static Datum *
acquire_all(FunctionCallInfo fcinfo, ZklLockMode mode, ZklLifetime lifetime,
			bool is_try, int *n)
{
	Named	   *names;
	ZklAsk	   *asks;
	int64	   *tokens;
	Datum	   *result;
	int			i;

	zkl_check_loaded();
	names = names_of(PG_GETARG_ARRAYTYPE_P(0), n);
	asks = palloc0(*n * sizeof(ZklAsk));
	tokens = palloc(*n * sizeof(int64));
	result = palloc(*n * sizeof(Datum));
	for (i = 0; i < *n; i++)
	{
		asks[i].lock = names[i].lock;
		asks[i].mode = mode;
		asks[i].lifetime = lifetime;
		asks[i].is_try = is_try;
		if (is_try)
			asks[i].timeout_ms = zkl_timeout_ms(PG_GETARG_INTERVAL_P(1));
		check_mode(&asks[i]);
	}
	if (!zkl_acquire(asks, *n, tokens))
		return NULL;
	for (i = 0; i < *n; i++)
		result[names[i].position] = Int64GetDatum(tokens[i]);
	return result;
}

static Datum
lock_all(FunctionCallInfo fcinfo, ZklLockMode mode, ZklLifetime lifetime)
{
	int			n;
	Datum	   *tokens = acquire_all(fcinfo, mode, lifetime, false, &n);

	PG_RETURN_ARRAYTYPE_P(construct_array(tokens, n, INT8OID, sizeof(int64),
										  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

static Datum
try_lock_all(FunctionCallInfo fcinfo, ZklLockMode mode, ZklLifetime lifetime)
{
	int			n;

	PG_RETURN_BOOL(acquire_all(fcinfo, mode, lifetime, true, &n) != NULL);
}

Datum
zkl_sql_lock_all(PG_FUNCTION_ARGS)
{
	return lock_all(fcinfo, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION);
}

Datum
zkl_sql_lock_all_shared(PG_FUNCTION_ARGS)
{
	return lock_all(fcinfo, ZKL_SHARED, ZKL_LIFETIME_SESSION);
}

Datum
zkl_sql_try_lock_all(PG_FUNCTION_ARGS)
{
	return try_lock_all(fcinfo, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION);
}

Datum
zkl_sql_try_lock_all_shared(PG_FUNCTION_ARGS)
{
	return try_lock_all(fcinfo, ZKL_SHARED, ZKL_LIFETIME_SESSION);
}

Datum
zkl_sql_xact_lock_all(PG_FUNCTION_ARGS)
{
	return lock_all(fcinfo, ZKL_EXCLUSIVE, ZKL_LIFETIME_TRANSACTION);
}

Datum
zkl_sql_xact_lock_all_shared(PG_FUNCTION_ARGS)
{
	return lock_all(fcinfo, ZKL_SHARED, ZKL_LIFETIME_TRANSACTION);
}

Datum
zkl_sql_try_xact_lock_all(PG_FUNCTION_ARGS)
{
	return try_lock_all(fcinfo, ZKL_EXCLUSIVE, ZKL_LIFETIME_TRANSACTION);
}

Datum
zkl_sql_try_xact_lock_all_shared(PG_FUNCTION_ARGS)
{
	return try_lock_all(fcinfo, ZKL_SHARED, ZKL_LIFETIME_TRANSACTION);
}

/* Each is released, whatever becomes of the others. */
static Datum
unlock_all_of(FunctionCallInfo fcinfo, ZklLockMode mode)
{
	bool		all = true;
	Named	   *names;
	int			n,
				i;

	zkl_check_loaded();
	names = names_of(PG_GETARG_ARRAYTYPE_P(0), &n);
	for (i = 0; i < n; i++)
		all &= zkl_release_lock(&names[i].lock, mode);
	PG_RETURN_BOOL(all);
}

Datum
zkl_sql_unlock_all_of(PG_FUNCTION_ARGS)
{
	return unlock_all_of(fcinfo, ZKL_EXCLUSIVE);
}

Datum
zkl_sql_unlock_all_of_shared(PG_FUNCTION_ARGS)
{
	return unlock_all_of(fcinfo, ZKL_SHARED);
}
