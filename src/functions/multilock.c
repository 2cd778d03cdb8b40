/*
 * multilock.c
 *	  The SQL-callable functions that acquire and release several locks at once.
 *
 * Turns an array of names into requests, and their grants into an array of
 * tokens.  Run by backends.  Takes no locks, keeps no state.
 *
 * Must not know how a lock is requested, nor when a hold ends.
 *
 * An array may have millions of elements, and each of them would take hundreds
 * of bytes here.  So the number of elements is checked first.
 */
#include "postgres.h"

#include "backend/acquire.h"
#include "backend/held.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "backend/under_way.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "shared/compat.h"
#include "shared/gate.h"
#include "shared/slot.h"
#include "utils/array.h"

ZKL_FUNCTION(zkl_sql_multilock);
ZKL_FUNCTION(zkl_sql_try_multilock);
ZKL_FUNCTION(zkl_sql_xact_multilock);
ZKL_FUNCTION(zkl_sql_try_xact_multilock);
ZKL_FUNCTION(zkl_sql_multiunlock);

/* One name of an array, and its position there */
typedef struct Named
{
	ZklTarget	lock;
	int			position;
} Named;

/* All sessions take locks in this order: by the bytes of the names. */
static int
compare_named(const void *a, const void *b)
{
	return strcmp(((const Named *) a)->lock.path,
				  ((const Named *) b)->lock.path);
}

static ArrayType *
array_of(FunctionCallInfo fcinfo)
{
	zkl_target_need(fcinfo, 0, "array of lock names");
	return PG_GETARG_ARRAYTYPE_P(0);
}

/* How many names there are */
static int
length_of(const ArrayType *array)
{
	int			n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));

	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("array of lock names must be one-dimensional")));
	if (n == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("array of lock names must not be empty")));
	return n;
}

static Named *
names_of(ArrayType *array, ZklPrivileges needed)
{
	Datum	   *elements;
	bool	   *nulls;
	Named	   *names;
	int			n;
	int			i;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elements,
					  &nulls, &n);
	names = palloc(n * sizeof(Named));
	for (i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("array of lock names must not contain nulls")));
		names[i].lock = zkl_target_lock(DatumGetTextPP(elements[i]), needed);
		names[i].position = i;
	}
	qsort(names, n, sizeof(Named), compare_named);
	for (i = 1; i < n; i++)
	{
		if (compare_named(&names[i - 1], &names[i]) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("array of lock names must not contain \"%s\" twice",
							names[i].lock.name)));
	}
	return names;
}

/*
 * The arguments are the names and the timeout.  Returns the tokens in the order
 * of the array, or NULL if the timeout ended.
 */
static Datum *
acquire_all(FunctionCallInfo fcinfo, bool is_try, ZklLifetime lifetime, int *n)
{
	ArrayType  *array = array_of(fcinfo);
	Named	   *names;
	ZklLockRequest *requests;
	int64	   *tokens;
	Datum	   *result;
	int64		timeout_ms;
	int			i;

	zkl_gate_check();
	*n = length_of(array);
	zkl_under_way_check_number(*n, true);
	names = names_of(array, ZKL_MAY_LOCK);
	timeout_ms = zkl_target_timeout_ms(fcinfo, 1);
	requests = palloc0(*n * sizeof(ZklLockRequest));
	tokens = palloc(*n * sizeof(int64));
	result = palloc(*n * sizeof(Datum));
	for (i = 0; i < *n; i++)
	{
		requests[i].lock = names[i].lock;
		requests[i].mode = ZKL_EXCLUSIVE;
		requests[i].lifetime = lifetime;
		requests[i].timeout_ms = timeout_ms;
		requests[i].is_try = zkl_acquire_is_try(is_try, timeout_ms);
	}
	if (!zkl_acquire(requests, *n, tokens))
		return NULL;
	for (i = 0; i < *n; i++)
		result[names[i].position] = Int64GetDatum(tokens[i]);
	return result;
}

static Datum
multilock(FunctionCallInfo fcinfo, ZklLifetime lifetime)
{
	Datum	   *tokens;
	int			n;

	tokens = acquire_all(fcinfo, false, lifetime, &n);
	if (tokens == NULL)
		zkl_refusal_raise_timed_out(psprintf("all of %d distributed locks", n),
									zkl_target_timeout_ms(fcinfo, 1));
	PG_RETURN_ARRAYTYPE_P(construct_array(tokens, n, INT8OID, sizeof(int64),
										  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

static Datum
try_multilock(FunctionCallInfo fcinfo, ZklLifetime lifetime)
{
	int			n;

	PG_RETURN_BOOL(acquire_all(fcinfo, true, lifetime, &n) != NULL);
}

Datum
zkl_sql_multilock(PG_FUNCTION_ARGS)
{
	return multilock(fcinfo, ZKL_LIFETIME_SESSION);
}

Datum
zkl_sql_try_multilock(PG_FUNCTION_ARGS)
{
	return try_multilock(fcinfo, ZKL_LIFETIME_SESSION);
}

Datum
zkl_sql_xact_multilock(PG_FUNCTION_ARGS)
{
	return multilock(fcinfo, ZKL_LIFETIME_TRANSACTION);
}

Datum
zkl_sql_try_xact_multilock(PG_FUNCTION_ARGS)
{
	return try_multilock(fcinfo, ZKL_LIFETIME_TRANSACTION);
}

/*
 * Releases each lock, even if another is not held.  A session may release more
 * locks than it could acquire now, but not more than it could ever hold.
 */
Datum
zkl_sql_multiunlock(PG_FUNCTION_ARGS)
{
	ArrayType  *array = array_of(fcinfo);
	bool		all = true;
	Named	   *names;
	int			n,
				i;

	zkl_gate_check();
	n = length_of(array);
	zkl_under_way_check_number(n, false);
	names = names_of(array, ZKL_NEEDS_NOTHING);
	for (i = 0; i < n; i++)
		all &= zkl_held_release_lock(&names[i].lock, ZKL_EXCLUSIVE);
	PG_RETURN_BOOL(all);
}
