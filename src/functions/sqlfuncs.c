/*
 * sqlfuncs.c
 *	  The SQL-callable functions that acquire and release locks, those of
 *	  zklock_advisory included.
 *
 * Turns SQL arguments into requests, and the answers into results.  Run by backends.
 * Takes no locks, keeps no state but the database's segment of the names of
 * zklock_advisory.
 *
 * Must not know how a lock is requested, nor when a hold ends.
 */
#include "postgres.h"

#include "backend/acquire.h"
#include "backend/commit.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "backend/wait.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "recipes/reservation.h"
#include "recipes/ticket.h"
#include "recipes/semaphore.h"
#include "shared/compat.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "storage/lock.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Ten thousand years, which fit into 64 bits even as µs */
#define LONGEST_MS		((int64) 10000 * 365 * 86400000)

ZKL_FUNCTION(zkl_sql_multiunlock);
ZKL_FUNCTION(zkl_sql_unlock_all);
ZKL_FUNCTION(zkl_sql_extend);
ZKL_FUNCTION(zkl_sql_reserve);
ZKL_FUNCTION(zkl_sql_try_reserve);
ZKL_FUNCTION(zkl_sql_await_reservation);
ZKL_FUNCTION(zkl_sql_renew_reservation);
ZKL_FUNCTION(zkl_sql_cancel_reservation);
ZKL_FUNCTION(zkl_sql_enqueue);
ZKL_FUNCTION(zkl_sql_enqueue_all);
ZKL_FUNCTION(zkl_sql_claim_ticket);
ZKL_FUNCTION(zkl_sql_claim_next);
ZKL_FUNCTION(zkl_sql_await_ticket);
ZKL_FUNCTION(zkl_sql_withdraw);
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

/* How long a lock is to be kept without a holder: "what" is the argument. */
static void
check_max_at_least(const char *what, int64 ms)
{
	if (ms <= zkl_max_at_least)
		return;
	if (zkl_max_at_least == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to use %s", what),
				 errdetail("\"zklock.max_at_least\" is 0.")));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("%s must not be greater than \"zklock.max_at_least\"", what),
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
	check_max_at_least("at_least", ms);
	return ms;
}

/* A time for which a lock is reserved, in ms */
static int64
reserved_for(FunctionCallInfo fcinfo, int arg, const char *what)
{
	int64		ms;

	zkl_target_need(fcinfo, arg, what);
	ms = zkl_target_interval_ms(PG_GETARG_INTERVAL_P(arg));
	if (ms <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be positive", what)));
	check_max_at_least(what, ms);
	return ms;
}

/* The duration of a reservation, in ms */
static int64
duration_of(FunctionCallInfo fcinfo, int arg)
{
	return reserved_for(fcinfo, arg, "duration");
}

/* ---- acquiring: (path, timeout, at_most, at_least) ---- */

static void
read_request(ZklLockRequest *request, bool is_try, FunctionCallInfo fcinfo,
			 ZklLockMode mode, ZklLifetime lifetime)
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
}

pg_noreturn static void
raise_timed_out(const ZklLockRequest *request)
{
	zkl_refusal_raise_timed_out(psprintf("distributed lock \"%s\"",
										 request->lock.name), request->timeout_ms);
}

static int64
acquire_or_raise(ZklLockRequest *request)
{
	int64		token;

	if (!zkl_acquire(request, 1, &token))
		raise_timed_out(request);
	return token;
}

static Datum
lock_or_raise(FunctionCallInfo fcinfo, ZklLockMode mode, ZklLifetime lifetime)
{
	ZklLockRequest request;

	read_request(&request, false, fcinfo, mode, lifetime);
	PG_RETURN_INT64(acquire_or_raise(&request));
}

/* The procedures: the wait holds nothing back. */
static Datum
await_lock(FunctionCallInfo fcinfo, ZklLockMode mode, ZklLifetime lifetime)
{
	ZklLockRequest request;

	read_request(&request, false, fcinfo, mode, lifetime);
	request.keeps_snapshot = zkl_snapshot_give_up(fcinfo);
	(void) acquire_or_raise(&request);
	zkl_snapshot_regain();
	PG_RETURN_VOID();
}

static Datum
try_lock(FunctionCallInfo fcinfo, ZklLockMode mode, ZklLifetime lifetime)
{
	ZklLockRequest request;
	int64		token;

	read_request(&request, true, fcinfo, mode, lifetime);
	PG_RETURN_BOOL(zkl_acquire(&request, 1, &token));
}

ZKL_SQL_CALL(zkl_sql_lock, lock_or_raise, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION);
ZKL_SQL_CALL(zkl_sql_lock_shared, lock_or_raise, ZKL_SHARED, ZKL_LIFETIME_SESSION);
ZKL_SQL_CALL(zkl_sql_await_lock, await_lock, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION);
ZKL_SQL_CALL(zkl_sql_await_lock_shared, await_lock, ZKL_SHARED, ZKL_LIFETIME_SESSION);
ZKL_SQL_CALL(zkl_sql_await_xact_lock, await_lock, ZKL_EXCLUSIVE, ZKL_LIFETIME_TRANSACTION);
ZKL_SQL_CALL(zkl_sql_await_xact_lock_shared, await_lock, ZKL_SHARED, ZKL_LIFETIME_TRANSACTION);
ZKL_SQL_CALL(zkl_sql_try_lock, try_lock, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION);
ZKL_SQL_CALL(zkl_sql_try_lock_shared, try_lock, ZKL_SHARED, ZKL_LIFETIME_SESSION);
ZKL_SQL_CALL(zkl_sql_xact_lock, lock_or_raise, ZKL_EXCLUSIVE, ZKL_LIFETIME_TRANSACTION);
ZKL_SQL_CALL(zkl_sql_xact_lock_shared, lock_or_raise, ZKL_SHARED, ZKL_LIFETIME_TRANSACTION);
ZKL_SQL_CALL(zkl_sql_try_xact_lock, try_lock, ZKL_EXCLUSIVE, ZKL_LIFETIME_TRANSACTION);
ZKL_SQL_CALL(zkl_sql_try_xact_lock_shared, try_lock, ZKL_SHARED, ZKL_LIFETIME_TRANSACTION);

/* ---- releasing ---- */

/* For what pg_advisory_lock() acquired, below: PostgreSQL's own locks go, too. */
static bool unlock_with_local(const ZklTarget *lock, ZklLockMode mode);
static void release_all_local(void);

static Datum
unlock(FunctionCallInfo fcinfo, ZklLockMode mode)
{
	ZklTarget	lock = zkl_target_lock(zkl_target_name(fcinfo), ZKL_NEEDS_NOTHING);

	PG_RETURN_BOOL(unlock_with_local(&lock, mode));
}

ZKL_SQL_CALL(zkl_sql_unlock, unlock, ZKL_EXCLUSIVE);
ZKL_SQL_CALL(zkl_sql_unlock_shared, unlock, ZKL_SHARED);

Datum
zkl_sql_unlock_all(PG_FUNCTION_ARGS)
{
	zkl_lifetime_check();
	release_all_local();
	zkl_held_release_all("");
	PG_RETURN_VOID();
}

/* ---- holding ---- */

Datum
zkl_sql_extend(PG_FUNCTION_ARGS)
{
	ZklTarget	lock = zkl_target_lock(zkl_target_name(fcinfo), ZKL_NEEDS_NOTHING);

	PG_RETURN_BOOL(zkl_held_extend(&lock, at_most_of(fcinfo, 1)));
}

/* ---- reserving ---- */

static void
read_reservation(ZklLockRequest *request, bool is_try, FunctionCallInfo fcinfo)
{
	memset(request, 0, sizeof(*request));
	request->lock = zkl_target_lock(zkl_target_name(fcinfo), ZKL_MAY_LOCK | ZKL_MAY_KEEP);
	request->at_least_ms = duration_of(fcinfo, 1);
	request->timeout_ms = zkl_target_timeout_ms(fcinfo, 2);
	request->is_try = zkl_acquire_is_try(is_try, request->timeout_ms);
}

/* "once": what the role has reserved is an error, in place of a wait for its end. */
static int64
reserve_or_raise(ZklLockRequest *request, bool once)
{
	int64		token;

	if (!zkl_reservation_make(request, once, &token))
		raise_timed_out(request);
	return token;
}

Datum
zkl_sql_reserve(PG_FUNCTION_ARGS)
{
	ZklLockRequest request;

	read_reservation(&request, false, fcinfo);
	PG_RETURN_INT64(reserve_or_raise(&request, true));
}

Datum
zkl_sql_try_reserve(PG_FUNCTION_ARGS)
{
	ZklLockRequest request;
	int64		token;

	read_reservation(&request, true, fcinfo);
	if (!zkl_reservation_make(&request, false, &token))
		PG_RETURN_NULL();
	PG_RETURN_INT64(token);
}

/* The result of a procedure is a row of its output arguments. */
Datum
zkl_sql_await_reservation(PG_FUNCTION_ARGS)
{
	ZklLockRequest request;
	TupleDesc	columns;
	Datum		token;
	bool		isnull = false;

	read_reservation(&request, false, fcinfo);
	request.keeps_snapshot = zkl_snapshot_give_up(fcinfo);
	token = Int64GetDatum(reserve_or_raise(&request, false));
	zkl_snapshot_regain();
	if (get_call_result_type(fcinfo, NULL, &columns) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(columns), &token, &isnull)));
}

static int64
token_of(FunctionCallInfo fcinfo, int arg)
{
	zkl_target_need(fcinfo, arg, "token");
	return PG_GETARG_INT64(arg);
}

Datum
zkl_sql_renew_reservation(PG_FUNCTION_ARGS)
{
	ZklTarget	lock = zkl_target_lock(zkl_target_name(fcinfo), ZKL_NEEDS_NOTHING);

	PG_RETURN_BOOL(zkl_reservation_renew(&lock, token_of(fcinfo, 1),
										 duration_of(fcinfo, 2)));
}

Datum
zkl_sql_cancel_reservation(PG_FUNCTION_ARGS)
{
	ZklTarget	lock = zkl_target_lock(zkl_target_name(fcinfo), ZKL_NEEDS_NOTHING);

	PG_RETURN_BOOL(zkl_reservation_renew(&lock, token_of(fcinfo, 1), 0));
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
	if (!PG_ARGISNULL(1))
		left_ms = zkl_reservation_assert(&lock, PG_GETARG_INT64(1));
	else if (!zkl_held_assert_lock(&lock, &left_ms) && !zkl_held_assert_lock(&latch, &left_ms) &&
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

/* ---- several at once ----
 *
 * An array may have millions of elements, and each of them would take hundreds
 * of bytes here.  So the number of elements is checked first.
 */

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

static Datum *
elements_of(ArrayType *array, int *n)
{
	Datum	   *elements;
	bool	   *nulls;
	int			i;

	(void) length_of(array);
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls, n);
	for (i = 0; i < *n; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("array of lock names must not contain nulls")));
	}
	return elements;
}

/* A token or a ticket for each */
static Datum
array_of_numbers(Datum *numbers, int n)
{
	PG_RETURN_ARRAYTYPE_P(construct_array(numbers, n, INT8OID, sizeof(int64),
										  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

static Named *
names_of(ArrayType *array, ZklPrivileges needed)
{
	Datum	   *elements;
	Named	   *names;
	int			n;
	int			i;

	elements = elements_of(array, &n);
	names = palloc(n * sizeof(Named));
	for (i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
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
	return array_of_numbers(tokens, n);
}

static Datum
try_multilock(FunctionCallInfo fcinfo, ZklLifetime lifetime)
{
	int			n;

	PG_RETURN_BOOL(acquire_all(fcinfo, true, lifetime, &n) != NULL);
}

ZKL_SQL_CALL(zkl_sql_multilock, multilock, ZKL_LIFETIME_SESSION);
ZKL_SQL_CALL(zkl_sql_try_multilock, try_multilock, ZKL_LIFETIME_SESSION);
ZKL_SQL_CALL(zkl_sql_xact_multilock, multilock, ZKL_LIFETIME_TRANSACTION);
ZKL_SQL_CALL(zkl_sql_try_xact_multilock, try_multilock, ZKL_LIFETIME_TRANSACTION);

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

/* ---- advisoryfuncs ---- */

/*
 * The functions of extension zklock_advisory, which are called as those of
 * PostgreSQL's advisory locks (lockfuncs.c there).
 *
 * Turns keys into names of locks: prefix, database, key.  Keeps no state but the
 * database's segment of these names.  Takes PostgreSQL's advisory locks.
 *
 * Must not know how a lock is requested, nor when a hold ends.
 *
 * Each call takes two locks: the distributed one, and behind it PostgreSQL's own of the
 * same key.  So pg_locks shows it, and those who call pg_catalog.pg_advisory_lock() on
 * this server are excluded, too.  The release goes the other way: here, and at the end of
 * a transaction, of DISCARD ALL and of a session, where PostgreSQL releases its locks
 * before zklock does.  Who waits for the local lock holds the distributed one, and so
 * takes part in the search for deadlocks as with any of PostgreSQL's locks (wait.c).
 * If the distributed lock is lost, the local one stays until it is released.
 */

ZKL_FUNCTION(zkl_sql_advisory_unlock_all);

/* ---- names ---- */

/* The database's name in UTF-8; of bytes that are not plain, %XX. */
static const char *
make_database_segment(void)
{
	char	   *name = get_database_name(MyDatabaseId);
	const char *c = name;
	StringInfoData segment;

	if (GetDatabaseEncoding() != PG_SQL_ASCII)
		c = pg_server_to_any(name, (int) strlen(name), PG_UTF8);
	initStringInfo(&segment);
	for (; *c != '\0'; c++)
	{
		if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
			(*c >= '0' && *c <= '9') || *c == '_' || *c == '-')
			appendStringInfoChar(&segment, *c);
		else
			appendStringInfo(&segment, "%%%02X", (unsigned char) *c);
	}
	return segment.data;
}

/* All names begin so.  A database that is in use is not renamed. */
static const char *
beginning(void)
{
	static const char *segment = NULL;

	if (segment == NULL)
		segment = MemoryContextStrdup(TopMemoryContext, make_database_segment());
	return psprintf("%s/%s/", zkl_advisory_prefix, segment);
}

/* The arguments are one key of 64 bits, or two of 32 bits. */
static ZklTarget
read_lock(FunctionCallInfo fcinfo, ZklPrivileges needed)
{
	const char *start;
	char	   *name;

	zkl_gate_check();
	start = beginning();
	name = PG_NARGS() == 1 ?
		psprintf("%s%lld", start, (long long) PG_GETARG_INT64(0)) :
		psprintf("%s%d,%d", start, PG_GETARG_INT32(0), PG_GETARG_INT32(1));
	return zkl_target_lock(cstring_to_text(name), needed);
}

/* ---- PostgreSQL's own lock ---- */

typedef struct LocalLock
{
	LOCKTAG		tag;
	LOCKMODE	mode;
	bool		of_session;
} LocalLock;

/* As lockfuncs.c has it */
static void
read_local(FunctionCallInfo fcinfo, ZklLockMode mode, ZklLifetime lifetime,
		   LocalLock *local)
{
	if (PG_NARGS() == 1)
		SET_LOCKTAG_ADVISORY(local->tag, MyDatabaseId,
							 (uint32) (PG_GETARG_INT64(0) >> 32),
							 (uint32) PG_GETARG_INT64(0), 1);
	else
		SET_LOCKTAG_ADVISORY(local->tag, MyDatabaseId, PG_GETARG_INT32(0),
							 PG_GETARG_INT32(1), 2);
	local->mode = mode == ZKL_SHARED ? ShareLock : ExclusiveLock;
	local->of_session = lifetime == ZKL_LIFETIME_SESSION;
}

static bool
try_local(const LocalLock *local)
{
	return LockAcquire(&local->tag, local->mode, local->of_session, true) !=
		LOCKACQUIRE_NOT_AVAIL;
}

/* For as long as "lock_timeout" has left the call.  An error restores the setting, too. */
static void
wait_for_local(const LocalLock *local, const ZklDeadlines *at)
{
	int			level = NewGUCNestLevel();

	if (at->lock_timeout != ZKL_NEVER)
	{
		int64		left = (at->lock_timeout - zkl_wait_clock()) / 1000;

		(void) set_config_option("lock_timeout", psprintf("%d", (int) Max(left, 1)),
								 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
								 true, 0, false);
	}
	(void) LockAcquire(&local->tag, local->mode, local->of_session, false);
	AtEOXact_GUC(true, level);
}

/* What a session holds locally outlives an error. */
static void
release_local(const LocalLock *local)
{
	if (local->of_session)
		(void) LockRelease(&local->tag, local->mode, true);
}

/* ---- acquiring ---- */

/* The distributed lock is held, but may be lost during the wait for the local one. */
static void
wait_behind(const ZklLockRequest *request, const LocalLock *local)
{
	bool volatile done = false;
	ZklHold    *hold;

	wait_for_local(local, request->at);
	PG_TRY();
	{
		hold = zkl_hold_find(&request->lock, request->mode, request->lifetime);
		zkl_acquire_confirm(request, hold->grant.slotno);
		zkl_hold_check_lock(hold->lock);
		done = true;
	}
	PG_FINALLY();
	{
		if (!done)
			release_local(local);
	}
	PG_END_TRY();
}

/* False: a try was denied, by others who hold the lock or the local one. */
static bool
acquire_both(ZklLockRequest *request, const LocalLock *local)
{
	bool volatile done = false;
	int64		token;

	if (!zkl_acquire(request, 1, &token))
		return false;
	PG_TRY();
	{
		done = try_local(local);
		if (!done && !request->is_try)
		{
			wait_behind(request, local);
			done = true;
		}
	}
	PG_FINALLY();
	{
		if (!done)
			zkl_held_abandon(&request->lock, request->mode, request->lifetime);
	}
	PG_END_TRY();
	return done;
}

static bool
acquire_key(FunctionCallInfo fcinfo, bool is_try, ZklLockMode mode, ZklLifetime lifetime)
{
	ZklDeadlines at;
	ZklLockRequest request = {
		.lock = read_lock(fcinfo, mode == ZKL_SHARED ? ZKL_MAY_SHARE : ZKL_MAY_LOCK),
		.mode = mode,
		.lifetime = lifetime,
		.is_try = is_try,
		.timeout_ms = is_try ? 0 : ZKL_FOREVER,
		.at = &at
	};
	LocalLock	local;

	zkl_wait_begin_lock(&at, is_try, request.timeout_ms);
	read_local(fcinfo, mode, lifetime, &local);
	return acquire_both(&request, &local);
}

static Datum
lock_key(FunctionCallInfo fcinfo, ZklLockMode mode, ZklLifetime lifetime)
{
	(void) acquire_key(fcinfo, false, mode, lifetime);
	PG_RETURN_VOID();
}

static Datum
try_key(FunctionCallInfo fcinfo, ZklLockMode mode, ZklLifetime lifetime)
{
	PG_RETURN_BOOL(acquire_key(fcinfo, true, mode, lifetime));
}

ZKL_SQL_CALL(zkl_sql_advisory_lock, lock_key, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION);
ZKL_SQL_CALL(zkl_sql_advisory_lock_shared, lock_key, ZKL_SHARED, ZKL_LIFETIME_SESSION);
ZKL_SQL_CALL(zkl_sql_try_advisory_lock, try_key, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION);
ZKL_SQL_CALL(zkl_sql_try_advisory_lock_shared, try_key, ZKL_SHARED, ZKL_LIFETIME_SESSION);
ZKL_SQL_CALL(zkl_sql_advisory_xact_lock, lock_key, ZKL_EXCLUSIVE, ZKL_LIFETIME_TRANSACTION);
ZKL_SQL_CALL(zkl_sql_advisory_xact_lock_shared, lock_key, ZKL_SHARED, ZKL_LIFETIME_TRANSACTION);
ZKL_SQL_CALL(zkl_sql_try_advisory_xact_lock, try_key, ZKL_EXCLUSIVE, ZKL_LIFETIME_TRANSACTION);
ZKL_SQL_CALL(zkl_sql_try_advisory_xact_lock_shared, try_key, ZKL_SHARED, ZKL_LIFETIME_TRANSACTION);

/* ---- releasing ---- */

/*
 * Both locks count once less.  The commit check, which may fail, comes before either.  If
 * the distributed lock was lost, that ends it, however often it was acquired, and so it
 * does the local one.
 */
static bool
release_both(const ZklTarget *target, ZklHold *hold, const LocalLock *local)
{
	ZklLockMode mode = hold->mode;
	uint32		n = hold->count;
	bool		good;

	(void) zkl_commit_check_release(hold);
	release_local(local);
	good = zkl_held_release_lock(target, mode);
	if (zkl_hold_find(target, mode, ZKL_LIFETIME_SESSION) == NULL)
	{
		while (--n > 0)
			release_local(local);
	}
	return good;
}

/* Of a lock that is not held, PostgreSQL's own warning tells (lock.c there). */
static Datum
unlock_key(FunctionCallInfo fcinfo, ZklLockMode mode)
{
	ZklTarget	target = read_lock(fcinfo, ZKL_NEEDS_NOTHING);
	ZklHold    *hold;
	LocalLock	local;

	zkl_lifetime_check();
	hold = zkl_hold_find(&target, mode, ZKL_LIFETIME_SESSION);
	read_local(fcinfo, mode, ZKL_LIFETIME_SESSION, &local);
	if (hold != NULL)
		PG_RETURN_BOOL(release_both(&target, hold, &local));
	PG_RETURN_BOOL(LockRelease(&local.tag, local.mode, true));
}

ZKL_SQL_CALL(zkl_sql_advisory_unlock, unlock_key, ZKL_EXCLUSIVE);
ZKL_SQL_CALL(zkl_sql_advisory_unlock_shared, unlock_key, ZKL_SHARED);

/* The same as a path: in UTF-8 */
static const char *
beginning_of_path(void)
{
	char	   *name = psprintf("%s0", beginning());
	char	   *path = zkl_text_name_to_utf8(name, (int) strlen(name));

	path[strlen(path) - 1] = '\0';
	return path;
}

Datum
zkl_sql_advisory_unlock_all(PG_FUNCTION_ARGS)
{
	zkl_lifetime_check();
	LockReleaseSession(USER_LOCKMETHOD);
	zkl_held_release_all(beginning_of_path());
	PG_RETURN_VOID();
}

/* ---- released by zk_unlock() ---- */

/* The local lock that this session has behind a hold; false: it has none. */
static bool
find_local(const ZklHold *hold, LocalLock *local)
{
	const char *start = beginning_of_path();
	const char *key = hold->lock->key.path + strlen(start);
	long long	whole;
	int			high,
				low;

	if (strncmp(hold->lock->key.path, start, strlen(start)) != 0)
		return false;
	if (sscanf(key, "%d,%d", &high, &low) == 2 &&
		strcmp(key, psprintf("%d,%d", high, low)) == 0)
		SET_LOCKTAG_ADVISORY(local->tag, MyDatabaseId, (uint32) high, (uint32) low, 2);
	else if (sscanf(key, "%lld", &whole) == 1 &&
			 strcmp(key, psprintf("%lld", whole)) == 0)
		SET_LOCKTAG_ADVISORY(local->tag, MyDatabaseId, (uint32) (whole >> 32),
							 (uint32) whole, 1);
	else
		return false;
	local->mode = hold->mode == ZKL_SHARED ? ShareLock : ExclusiveLock;
	local->of_session = true;
	return zkl_compat_has_lock(&local->tag, local->mode);
}

/* Warns if the lock is not held. */
static bool
unlock_with_local(const ZklTarget *lock, ZklLockMode mode)
{
	ZklHold    *hold = zkl_hold_find(lock, mode, ZKL_LIFETIME_SESSION);
	LocalLock	local;

	if (hold == NULL || !find_local(hold, &local))
		return zkl_held_release_lock(lock, mode);
	zkl_lifetime_check();
	return release_both(lock, hold, &local);
}

static void
release_all_local(void)
{
	dlist_iter	iter;

	dlist_foreach(iter, &zkl_holds[ZKL_LIFETIME_SESSION])
	{
		ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);
		LocalLock	local;
		uint32		n;

		for (n = 0; !hold->within_call && n < hold->count && find_local(hold, &local); n++)
			release_local(&local);
	}
}

/* ---- tickets ---- */

/* The arguments behind the names are the duration and the time for the claim. */
static Datum *
enqueue(FunctionCallInfo fcinfo, const Datum *names, int n)
{
	int64		duration_ms = duration_of(fcinfo, 1);
	int64		claim_ms = reserved_for(fcinfo, 2, "claim_within");
	ZklLockRequest *requests = palloc0(n * sizeof(ZklLockRequest));
	Datum	   *numbers = palloc(n * sizeof(Datum));
	int			i;

	for (i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		requests[i].lock = zkl_target_lock(DatumGetTextPP(names[i]),
										   ZKL_MAY_LOCK | ZKL_MAY_KEEP);
		requests[i].at_least_ms = claim_ms;
	}
	zkl_ticket_enqueue(requests, n, duration_ms, numbers);
	return numbers;
}

Datum
zkl_sql_enqueue(PG_FUNCTION_ARGS)
{
	Datum		name = PointerGetDatum(zkl_target_name(fcinfo));

	return *enqueue(fcinfo, &name, 1);
}

/* The same name may be there twice. */
Datum
zkl_sql_enqueue_all(PG_FUNCTION_ARGS)
{
	ArrayType  *array = array_of(fcinfo);
	Datum	   *names;
	int			n;

	zkl_gate_check();
	zkl_under_way_check_number(length_of(array), false);
	names = elements_of(array, &n);
	return array_of_numbers(enqueue(fcinfo, names, n), n);
}

Datum
zkl_sql_claim_ticket(PG_FUNCTION_ARGS)
{
	ZklClaimed	claimed;

	zkl_target_need(fcinfo, 0, "ticket");
	if (!zkl_ticket_claim(PG_GETARG_INT64(0), &claimed))
		PG_RETURN_NULL();
	PG_RETURN_INT64(claimed.token);
}

/* The row (ticket, path, token); of NULLs if there was none in time */
static Datum
claim_next(FunctionCallInfo fcinfo, const char **paths, int n, const char *keeps_snapshot)
{
	ZklClaimed	claimed;
	TupleDesc	columns;
	Datum		values[3] = {0};
	bool		nulls[3] = {true, true, true};

	if (zkl_ticket_claim_next(zkl_target_timeout_ms(fcinfo, 0), paths, n, keeps_snapshot,
							  &claimed))
	{
		char	   *path = zkl_text_to_display(claimed.path, (int) strlen(claimed.path));

		memset(nulls, false, sizeof(nulls));
		values[0] = Int64GetDatum(claimed.ticket);
		values[1] = CStringGetTextDatum(path);
		values[2] = Int64GetDatum(claimed.token);
	}
	if (get_call_result_type(fcinfo, NULL, &columns) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(columns), values, nulls));
}

Datum
zkl_sql_claim_next(PG_FUNCTION_ARGS)
{
	const char **paths = NULL;
	Datum	   *names;
	int			n = 0;
	int			i;

	if (!PG_ARGISNULL(1))
	{
		ArrayType  *array = PG_GETARG_ARRAYTYPE_P(1);

		/* The worker keeps a copy of them, and every role may call this. */
		zkl_gate_check();
		zkl_under_way_check_number(length_of(array), false);
		names = elements_of(array, &n);
		paths = palloc(n * sizeof(char *));
		for (i = 0; i < n; i++)
			paths[i] = zkl_target_lock(DatumGetTextPP(names[i]), ZKL_NEEDS_NOTHING).path;
	}
	PG_RETURN_DATUM(claim_next(fcinfo, paths, n, NULL));
}

Datum
zkl_sql_await_ticket(PG_FUNCTION_ARGS)
{
	Datum		row;

	row = claim_next(fcinfo, NULL, 0, zkl_snapshot_give_up(fcinfo));
	zkl_snapshot_regain();
	PG_RETURN_DATUM(row);
}

Datum
zkl_sql_withdraw(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_ARGISNULL(0) ? zkl_ticket_withdraw_all() :
				   zkl_ticket_withdraw(PG_GETARG_INT64(0)));
}
