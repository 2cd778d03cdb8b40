/*
 * once.c
 *	  zk_once(): a turn of a job, for one transaction of all servers.
 *
 * Owns the way from SQL arguments to a turn.  Run by backends.  Takes no locks
 * but the job's own, through lifetime.h; keeps no state.
 *
 * Must not know how a turn is used up, nor read any clock of this server's.
 */
#include "postgres.h"

#include <ctype.h>

#include "acquire.h"
#include "ask.h"
#include "common/int.h"
#include "compat.h"
#include "encoding.h"
#include "mb/pg_wchar.h"
#include "refusal.h"
#include "release.h"
#include "turn.h"
#include "utils/builtins.h"
#include "zklock.h"

#define CLOCK_NODE		".clock"
#define MAX_TRIES		10

ZKL_FUNCTION(zkl_sql_once_period);
ZKL_FUNCTION(zkl_sql_once_key);

/* ---- arguments ---- */

static pg_noreturn void
bad_argument(const char *message, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("%s", message),
			 hint != NULL ? errhint("%s", hint) : 0));
	pg_unreachable();
}

static bool
is_at_least_once(const text *guarantee)
{
	const char *name = text_to_cstring(guarantee);

	if (strcmp(name, "at_most_once") == 0)
		return false;
	if (strcmp(name, "at_least_once") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid guarantee: \"%s\"", name),
				 errhint("It is \"at_most_once\" or \"at_least_once\".")));
	return true;
}

static int64
period_us_of(const Interval *period)
{
	int64		us;

	if (zkl_interval_is_infinite(period) ||
		zkl_interval_is_minus_infinite(period))
		bad_argument("period must be finite", NULL);
	if (period->month != 0)
		bad_argument("period must not have months or years",
					 "Their lengths differ.  Use a run key, such as to_char(now(), 'YYYY-MM').");
	if (pg_mul_s64_overflow(period->day, USECS_PER_DAY, &us) ||
		pg_add_s64_overflow(us, period->time, &us))
		bad_argument("period is too long", NULL);
	if (us <= 0)
		bad_argument("period must be greater than zero", NULL);
	return us;
}

/* Steps over a unit of time; false: there is none. */
static bool
skip_unit(const char **at)
{
	static const char *const units[] = {
		"ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins",
		"minute", "minutes", "h", "hr", "hrs", "hour", "hours", "d", "day",
		"days", "w", "week", "weeks", "mon", "mons", "month", "months", "y",
		"yr", "yrs", "year", "years", "quarter", "quarters"
	};
	Size		length = strspn(*at, "abcdefghijklmnopqrstuvwxyz"
								"ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	int			i;

	for (i = 0; i < lengthof(units); i++)
	{
		if (strlen(units[i]) == length &&
			pg_strncasecmp(*at, units[i], length) == 0)
		{
			*at += length;
			return true;
		}
	}
	return false;
}

/*
 * Numbers with units of time, a time of day, or ISO 8601's P1D: not likely to
 * be a key.  A bare number or a date may be one.
 */
static bool
is_like_period(const char *key)
{
	static const char digits[] = "0123456789.";
	const char *at = key + strspn(key, " @+-");

	if ((*at == 'P' || *at == 'p') &&
		(isdigit((unsigned char) at[1]) || at[1] == 'T' || at[1] == 't') &&
		strspn(at, "PTYMWDHSptymwdhs0123456789.") == strlen(at))
		return true;
	if (strchr(at, ':') != NULL && strspn(at, "0123456789.: ") == strlen(at))
		return true;
	do
	{
		Size		number = strspn(at, digits);

		at += number;
		at += strspn(at, " ");
		if (number == 0 || !skip_unit(&at))
			return false;
		at += strspn(at, " ");
	} while (*at != '\0');
	return true;
}

static void
read_key(const text *argument, char *key)
{
	char	   *name = text_to_cstring(argument);
	char	   *utf8 = name;
	const char *c;

	if (GetDatabaseEncoding() != PG_SQL_ASCII)
		utf8 = pg_server_to_any(name, strlen(name), PG_UTF8);
	if (utf8[0] == '\0')
		bad_argument("run key must not be empty", NULL);
	if (strlen(utf8) > ZKL_MAX_RUN_KEY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("run key is too long"),
				 errdetail("It must have at most %d bytes in UTF-8.",
						   ZKL_MAX_RUN_KEY)));
	if (pg_encoding_verifymbstr(PG_UTF8, utf8, strlen(utf8)) !=
		(int) strlen(utf8))
		bad_argument("run key must be valid UTF-8", NULL);
	for (c = utf8; *c != '\0'; c++)
	{
		if ((uint8) *c < ' ' || *c == '\x7f')
			bad_argument("run key must not contain control characters", NULL);
	}
	if (is_like_period(name))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("run key \"%s\" looks like a period", name),
				 errhint("A period is written interval '%s', or period => '%s'.",
						 name, name)));
	strlcpy(key, utf8, ZKL_MAX_RUN_KEY + 1);
}

/* ---- what ZooKeeper says ---- */

/* Whether it was done; false if it must be tried again. */
static bool
is_done(const ZklErrand *errand, const ZklTarget *job)
{
	if (errand->rc != ZKL_RC_OK && errand->rc != ZKL_RC_NONODE &&
		errand->rc != ZKL_RC_NODEEXISTS && errand->rc != ZKL_RC_UNKNOWN)
		zkl_raise_failed(job->name, ZKL_ERROR_ZOOKEEPER, errand->rc);
	return errand->rc == ZKL_RC_OK;
}

/* A persistent znode; that somebody else makes it is as good. */
static void
make_znode(const ZklTarget *directory, const char *name)
{
	ZklErrand  *create = zkl_errand_make(ZKL_ERRAND_CREATE, directory, name,
										 0);

	(void) zkl_errand_run(create, directory, 0);
	(void) is_done(create, directory);
	zkl_errand_free(create);
}

/* A write to a znode that is there for this: when its leader does it */
static bool
try_time(int64 *now_ms)
{
	ZklTarget	directory = {ZKL_ONCE_DIRECTORY, ZKL_ONCE_DIRECTORY,
	ZKL_DIALECT_CURATOR_RW};
	ZklErrand  *set = zkl_errand_make(ZKL_ERRAND_SET, &directory, CLOCK_NODE,
									  0);
	int32		rc = zkl_errand_run(set, &directory, 0);
	bool		done = is_done(set, &directory);

	*now_ms = set->stat.mtime;
	zkl_errand_free(set);
	if (rc == ZKL_RC_NONODE)
		make_znode(&directory, CLOCK_NODE);
	return done;
}

static bool
try_history(ZklTurn *turn)
{
	ZklErrand  *get = zkl_errand_make(ZKL_ERRAND_GET, &turn->target,
									  ZKL_HISTORY_NODE, ZKL_MAX_NODE_DATA);
	int32		rc = zkl_errand_run(get, &turn->target, 0);
	bool		done = is_done(get, &turn->target);

	turn->version = get->stat.version;
	turn->from_length = (uint32) get->size;
	if (done && get->size <= ZKL_MAX_NODE_DATA)
		memcpy(turn->from, get->answer, get->size);
	zkl_errand_free(get);
	if (rc == ZKL_RC_NONODE)
		make_znode(&turn->target, ZKL_HISTORY_NODE);
	return done;
}

static int64
read_time(void)
{
	int64		now_ms;
	int			tries = 0;

	while (!try_time(&now_ms))
	{
		if (++tries == MAX_TRIES)
			zkl_raise_unreachable();
	}
	return now_ms;
}

static void
read_history(ZklTurn *turn, ZklHistory *history)
{
	int			tries = 0;

	while (!try_history(turn))
	{
		if (++tries == MAX_TRIES)
			zkl_raise_unreachable();
	}
	if (turn->from_length > ZKL_MAX_NODE_DATA ||
		!zkl_history_read(turn->from, turn->from_length, history))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("history of \"%s\" is not readable",
						turn->target.name),
				 errdetail("It is not what zk_once() writes."),
				 errhint("If nobody needs it, delete the znode \"%s%s/%s\".",
						 zkl_root, turn->target.path, ZKL_HISTORY_NODE)));
}

/* ---- the turn ---- */

static int64
lock_job(const ZklTarget *job)
{
	ZklAsk		ask = {0};
	int64		token = 0;

	ask.lock = *job;
	ask.mode = ZKL_EXCLUSIVE;
	ask.lifetime = ZKL_LIFETIME_TRANSACTION;
	(void) zkl_acquire(&ask, 1, &token);
	return token;
}

static bool
is_same(const ZklTurn *turn, const ZklTurnId *id, bool at_least_once)
{
	return turn->id.period_us == id->period_us &&
		strcmp(turn->id.key, id->key) == 0 &&
		turn->at_least_once == at_least_once;
}

/*
 * A turn that was taken is ours until the transaction ends, whatever the time;
 * its lock is looked at by the commit.  Which period is meant is settled by the
 * time of the call: who waits for another to end a long job has not asked for
 * the next one.
 */
static bool
take_turn(const text *name, const ZklTurnId *id, bool at_least_once)
{
	ZklTarget	job = zkl_target_reserved(name, ZKL_ONCE_DIRECTORY);
	ZklTurn    *turn = zkl_turn_find(&job);
	ZklHistory	history;
	int64		token,
				now_ms;

	if (turn != NULL && is_same(turn, id, at_least_once))
		return true;
	if (turn != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot take two turns of \"%s\" in one transaction",
						job.name),
				 errhint("Use a transaction for each, or names of their own.")));
	now_ms = read_time();
	token = lock_job(&job);
	turn = zkl_turn_make(&job);
	read_history(turn, &history);
	if (zkl_history_has(&history, id, now_ms))
	{
		zkl_release_quietly(&job, ZKL_EXCLUSIVE,
							ZKL_LIFETIME_TRANSACTION);
		return false;
	}
	turn->id = *id;
	turn->at_least_once = at_least_once;
	turn->to_length = zkl_history_write(&history, id, now_ms, turn->to);
	turn->token = token;
	return true;
}

Datum
zkl_sql_once_period(PG_FUNCTION_ARGS)
{
	ZklTurnId	id = {0};

	id.period_us = period_us_of(PG_GETARG_INTERVAL_P(1));
	PG_RETURN_BOOL(take_turn(PG_GETARG_TEXT_PP(0), &id,
							 is_at_least_once(PG_GETARG_TEXT_PP(2))));
}

Datum
zkl_sql_once_key(PG_FUNCTION_ARGS)
{
	ZklTurnId	id = {0};

	read_key(PG_GETARG_TEXT_PP(1), id.key);
	PG_RETURN_BOOL(take_turn(PG_GETARG_TEXT_PP(0), &id,
							 is_at_least_once(PG_GETARG_TEXT_PP(2))));
}
