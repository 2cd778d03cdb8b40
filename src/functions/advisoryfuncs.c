/*
 * advisoryfuncs.c
 *	  The functions of extension zklock_advisory, which are called as those of
 *	  PostgreSQL's advisory locks (lockfuncs.c there).
 *
 * Turns keys into names of locks: prefix, database, key.  Run by backends.  Takes no
 * locks, keeps no state but the database's segment of these names.
 *
 * Must not know how a lock is requested, nor when a hold ends.
 */
#include "postgres.h"

#include "backend/acquire.h"
#include "backend/held.h"
#include "backend/hold.h"
#include "backend/lifetime.h"
#include "backend/target.h"
#include "backend/text.h"
#include "commands/dbcommands.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "shared/compat.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

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

/* ---- acquiring ---- */

/* False: a try was denied. */
static bool
acquire_key(FunctionCallInfo fcinfo, bool is_try, ZklLockMode mode, ZklLifetime lifetime)
{
	ZklLockRequest request = {
		.lock = read_lock(fcinfo, mode == ZKL_SHARED ? ZKL_MAY_SHARE : ZKL_MAY_LOCK),
		.mode = mode,
		.lifetime = lifetime,
		.is_try = is_try,
		.timeout_ms = is_try ? 0 : ZKL_FOREVER
	};
	int64		token;

	return zkl_acquire(&request, 1, &token);
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

/* Of a lock that is not held, PostgreSQL's own warning tells (lock.c there). */
static Datum
unlock_key(FunctionCallInfo fcinfo, ZklLockMode mode)
{
	ZklTarget	target = read_lock(fcinfo, ZKL_NEEDS_NOTHING);

	zkl_lifetime_check();
	if (zkl_hold_find(&target, mode, ZKL_LIFETIME_SESSION) != NULL)
		PG_RETURN_BOOL(zkl_held_release_lock(&target, mode));
	ereport(WARNING,
			(errmsg("you don't own a lock of type %s",
					mode == ZKL_EXCLUSIVE ? "ExclusiveLock" : "ShareLock")));
	PG_RETURN_BOOL(false);
}

ZKL_SQL_CALL(zkl_sql_advisory_unlock, unlock_key, ZKL_EXCLUSIVE);
ZKL_SQL_CALL(zkl_sql_advisory_unlock_shared, unlock_key, ZKL_SHARED);

Datum
zkl_sql_advisory_unlock_all(PG_FUNCTION_ARGS)
{
	char	   *name;
	char	   *path;

	zkl_lifetime_check();
	name = psprintf("%s0", beginning());
	path = zkl_text_name_to_utf8(name, (int) strlen(name));
	path[strlen(path) - 1] = '\0';
	zkl_held_release_all(path);
	PG_RETURN_VOID();
}
