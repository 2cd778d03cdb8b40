/*
 * once.c
 *	  zk_once(): gives a turn of a job to one transaction among all servers; and
 *	  zk_once_reset(), which forgets the turns that were used up.
 *
 * Owns the way from SQL arguments to a turn.  Run by backends.  Takes no locks
 * but the distributed one of the job.
 *
 * Must not know how a turn is used up, nor read any clock of this server.
 */
#include "postgres.h"

#include "backend/hold.h"
#include "backend/target.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "recipes/jobs.h"
#include "recipes/once.h"
#include "shared/compat.h"
#include "utils/builtins.h"

ZKL_FUNCTION(zkl_sql_once);
ZKL_FUNCTION(zkl_sql_time);
ZKL_FUNCTION(zkl_sql_once_reset);

/* ---- arguments ---- */

pg_noreturn static void
bad_argument(const char *message)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s", message)));
	pg_unreachable();
}

bool
zkl_once_is_at_least(const text *guarantee)
{
	const char *name = text_to_cstring(guarantee);

	if (strcmp(name, "at_most_once") == 0)
		return false;
	if (strcmp(name, "at_least_once") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid guarantee: \"%s\"", name),
				 errhint("Valid guarantees are \"at_most_once\" and \"at_least_once\".")));
	return true;
}

static void
read_run_key(const text *argument, char *key)
{
	char	   *name = text_to_cstring(argument);
	char	   *utf8 = name;
	const char *c;

	if (GetDatabaseEncoding() != PG_SQL_ASCII)
		utf8 = pg_server_to_any(name, strlen(name), PG_UTF8);
	if (utf8[0] == '\0')
		bad_argument("run key must not be empty");
	if (strlen(utf8) > ZKL_MAX_RUN_KEY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("run key is too long"),
				 errdetail("It must have at most %d bytes in UTF-8.",
						   ZKL_MAX_RUN_KEY)));
	if (pg_encoding_verifymbstr(PG_UTF8, utf8, strlen(utf8)) !=
		(int) strlen(utf8))
		bad_argument("run key must be valid UTF-8");
	for (c = utf8; *c != '\0'; c++)
	{
		if ((uint8) *c < ' ' || *c == '\x7f')
			bad_argument("run key must not contain control characters");
	}
	strlcpy(key, utf8, ZKL_MAX_RUN_KEY + 1);
}

void
zkl_once_read_id(FunctionCallInfo fcinfo, int period, int zone, int key, ZklTurnId *id)
{
	if (PG_ARGISNULL(key))
	{
		zkl_target_need(fcinfo, period, "period or run key");
		zkl_target_need(fcinfo, zone, "time zone");
		id->period = zkl_history_make(PG_GETARG_INTERVAL_P(period),
									  text_to_cstring(PG_GETARG_TEXT_PP(zone)));
		return;
	}
	if (!PG_ARGISNULL(period))
		bad_argument("a run must not have both a period and a run key");
	read_run_key(PG_GETARG_TEXT_PP(key), id->key);
}

/* ---- the turn ---- */

ZklTarget
zkl_once_job(const text *name)
{
	return zkl_target_reserved(name, ZKL_ONCE_DIRECTORY, ZKL_MAY_ONCE);
}

/* The name of the job, as the caller gave it */
static const char *
user_name(const ZklTarget *job)
{
	return zkl_text_for_client(job->name + strlen(ZKL_ONCE_DIRECTORY));
}

static const char *
time_string(int64 ms)
{
	return pstrdup(timestamptz_to_str(time_t_to_timestamptz(ms / 1000) +
									  ms % 1000 * 1000));
}

/*
 * If ZooKeeper's clock was ahead then, or is behind now, a turn may count as used
 * up although no transaction had it.  While this call waited for the lock, a
 * later call may have run first: so it looks at the time again.
 */
static void
warn_if_ahead(const ZklTarget *job, const ZklHistory *history,
			  const ZklTurnId *id, int64 called_ms)
{
	int64		now_ms;

	if (!zkl_history_is_ahead(history, id, called_ms))
		return;
	now_ms = zkl_job_time();
	if (!zkl_history_is_ahead(history, id, now_ms))
		return;
	ereport(WARNING,
			(errmsg("last run of \"%s\" is in the future",
					user_name(job)),
			 errdetail("It was recorded at %s, but ZooKeeper's clock now says %s.  Every period up to that time counts as done.",
					   time_string(history->period_at), time_string(now_ms)),
			 errhint("Check the clocks of the ZooKeeper servers.  To let the job run before that time, call zk_once_reset().")));
}

static bool
is_same_turn(const ZklTurn *turn, const ZklTurnId *id, bool at_least_once)
{
	return zkl_history_equal(&turn->id.period, &id->period) &&
		strcmp(turn->id.key, id->key) == 0 &&
		turn->at_least_once == at_least_once;
}

/* Takes a turn whose job, lifetime and token are known, under the job's lock. */
static bool
take_locked(ZklTurn *turn, const ZklTurnId *id, bool at_least_once, int64 now_ms)
{
	ZklHistory	history;

	zkl_job_read(turn, &history, zkl_jobs_check_room);
	if (zkl_history_has(&history, id, now_ms))
	{
		warn_if_ahead(&turn->target, &history, id, now_ms);
		return false;
	}
	turn->id = *id;
	turn->at_least_once = at_least_once;
	turn->to_length = zkl_history_write(&history, id, now_ms, turn->to);
	zkl_job_take(turn);
	return true;
}

bool
zkl_once_take_for_session(const ZklTarget *job, const ZklTurnId *id, bool at_least_once,
						  int64 called_ms)
{
	ZklTurn		turn = {.target = *job,.lifetime = ZKL_LIFETIME_SESSION};

	turn.token = zkl_hold_find(job, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION)->grant.token;
	return take_locked(&turn, id, at_least_once, called_ms);
}

/*
 * A turn that was taken is ours until the transaction ends, whatever the time;
 * the commit checks its lock.  The time of the call decides which period is
 * meant: if the call waits while another transaction runs a long job, it still
 * does not mean the next period.  called_ms is the time of an earlier call, or 0.
 */
bool
zkl_once_take(const ZklTarget *job, const ZklTurnId *id, bool at_least_once, int64 called_ms)
{
	ZklTurn    *had = zkl_job_find(job);
	ZklTurn		turn = {.target = *job,.lifetime = ZKL_LIFETIME_TRANSACTION};
	int64		now_ms;

	if (had != NULL && is_same_turn(had, id, at_least_once))
		return true;
	if (had != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot take two turns of \"%s\" in one transaction",
						user_name(job)),
				 errhint("Use a separate transaction or a different name for each.")));
	now_ms = zkl_job_time();
	if (called_ms > now_ms)
		bad_argument("called_at must not be in the future");
	if (called_ms != 0)
		now_ms = called_ms;
	turn.token = zkl_job_lock(job);
	if (take_locked(&turn, id, at_least_once, now_ms))
		return true;
	zkl_job_unlock(job);
	return false;
}

/* ---- forgetting ---- */

/*
 * Waits under the job's lock until no other transaction has a turn.  Returns
 * whether there was anything to forget.
 */
static bool
reset_job(const text *name)
{
	ZklTarget	job = zkl_once_job(name);
	bool		had;

	if (zkl_job_find(&job) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("cannot reset \"%s\" in a transaction that has a turn of it",
						user_name(&job)),
				 errhint("Call zk_once_reset() in a separate transaction.")));
	if (!zkl_job_has_history(&job))
		return false;
	(void) zkl_job_lock(&job);
	had = zkl_job_forget(&job);
	zkl_job_unlock(&job);
	if (had)
		ereport(LOG,
				(errmsg("history of \"%s\" was reset by process %d (user \"%s\")",
						job.name, MyProcPid,
						GetUserNameFromId(GetUserId(), true))));
	return had;
}

/* ---- SQL ---- */

/* In ms since 1970 */
static int64
read_called_at(TimestampTz time)
{
	int64		ms = time / 1000 +
	(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * INT64CONST(86400000);

	if (TIMESTAMP_NOT_FINITE(time) || ms <= 0)
		bad_argument("called_at must be finite, and later than 1970");
	return ms;
}

/* (path, period, zone, guarantee, called_at, key) */
Datum
zkl_sql_once(PG_FUNCTION_ARGS)
{
	text	   *name = zkl_target_name(fcinfo);
	ZklTurnId	id = {0};
	ZklTarget	job;

	zkl_target_need(fcinfo, 3, "guarantee");
	zkl_once_read_id(fcinfo, 1, 2, 5, &id);
	if (!PG_ARGISNULL(4) && !PG_ARGISNULL(5))
		bad_argument("called_at is for a period");
	job = zkl_once_job(name);
	PG_RETURN_BOOL(zkl_once_take(&job, &id, zkl_once_is_at_least(PG_GETARG_TEXT_PP(3)),
								 PG_ARGISNULL(4) ? 0 : read_called_at(PG_GETARG_TIMESTAMPTZ(4))));
}

Datum
zkl_sql_time(PG_FUNCTION_ARGS)
{
	int64		ms = zkl_job_time();

	PG_RETURN_TIMESTAMPTZ(time_t_to_timestamptz(ms / 1000) + ms % 1000 * 1000);
}

Datum
zkl_sql_once_reset(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(reset_job(PG_GETARG_TEXT_PP(0)));
}
