/*
 * advisoryfuncs.c
 *	  The functions of extension zklock_advisory, which are called as those of
 *	  PostgreSQL's advisory locks (lockfuncs.c there).
 *
 * Turns keys into names of locks: prefix, database, key.  Run by backends.  Keeps no
 * state but the database's segment of these names.  Takes PostgreSQL's advisory locks.
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
#include "postgres.h"

#include "backend/acquire.h"
#include "backend/commit.h"
#include "backend/hold.h"
#include "backend/target.h"
#include "commands/dbcommands.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "shared/compat.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/guc.h"
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
	LockReleaseSession(USER_LOCKMETHOD);
	name = psprintf("%s0", beginning());
	path = zkl_text_name_to_utf8(name, (int) strlen(name));
	path[strlen(path) - 1] = '\0';
	zkl_held_release_all(path);
	PG_RETURN_VOID();
}
