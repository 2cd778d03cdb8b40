/*
 * holding.c
 *	  The reservation that is zklock-run's lock, and for how long it is sure.
 *
 * Owns the reservation, and the renewal that is under way.
 *
 * The lock is a reservation, which outlasts the connection: so the program goes on while
 * zklock-run connects again.  A statement renews it every twelfth of the session
 * timeout, or without a pause while ZooKeeper does not answer, and is answered when ZooKeeper has just confirmed it.  The next one tells for
 * how long nobody else can have the lock.  That time counts from when the statement was
 * sent: an answer that comes late makes it no longer.  Then the program must be dead,
 * whatever has become of the server and of zklock-run: guard.c sees to that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/clock.h"
#include "run/guard.h"
#include "run/holding.h"
#include "run/server.h"

#define LAST_WORD_MS	10000	/* who has the lock is not worth more */

static const ZklRunOptions *options;
static int64_t timeout_ms;		/* of the ZooKeeper session */
static char duration[32];		/* of the reservation, an interval */
static int64_t duration_ms;
static char token[32];
static int64_t limit = ZKL_RUN_NEVER;	/* of the program */

/* The renewal that is under way, and the question behind it */
typedef enum
{
	NOTHING,
	RENEWAL,
	QUESTION
} Asked;

static Asked asked = NOTHING;
static int64_t renew_at;		/* the next renewal is due */
static int64_t sent_at;			/* the question */
static int64_t sure_until;
static bool gone = false;		/* nothing is left to renew */
static char trouble[512] = "";	/* the first one since the lock was sure for
								 * long */

static int64_t
earliest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- ahead of the program ---- */

static bool
may_wait(void)
{
	return options->timeout == NULL || strcmp(options->timeout, "0") != 0;
}

/*
 * Whether the database has the functions, and the role may call all that may be needed: a
 * right that is missing shows now, not only when another one has the lock.
 */
static void
check_database(void)
{
	static const char sql[] =
	"SELECT e.oid IS NOT NULL, pg_catalog.current_database(), pg_catalog.quote_ident(current_user),"
	" (SELECT pg_catalog.string_agg(p.proname::pg_catalog.text, ', ' ORDER BY p.proname)"
	" FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_proc p ON p.oid = d.objid"
	" WHERE d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND d.refobjid = e.oid"
	" AND d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass"
	" AND p.proname = ANY (pg_catalog.string_to_array($1, ' '))"
	" AND NOT pg_catalog.has_function_privilege(p.oid, 'EXECUTE'))"
	" FROM (VALUES (0)) AS always LEFT JOIN pg_catalog.pg_extension e ON e.extname = 'zklock'";
	char		needed[256];
	const char *values[] = {needed};
	PGresult   *result;
	const char *missing;

	snprintf(needed, sizeof(needed),
			 "zk_try_reserve zk_renew_reservation zk_assert_lock zk_cancel_reservation%s%s",
			 may_wait() ? " zk_await_reservation" : "",
			 options->period != NULL ? " zk_once zk_time" : "");
	result = zkl_ask_or_leave(sql, 1, values);
	if (PQgetvalue(result, 0, 0)[0] != 't')
	{
		zkl_options_say("database \"%s\" has no extension zklock: name another one with -d, or CREATE EXTENSION zklock there",
						PQgetvalue(result, 0, 1));
		zkl_ask_leave(ZKL_RUN_CONFIGURATION);
	}
	missing = PQgetvalue(result, 0, 3);
	if (missing[0] != '\0')
	{
		zkl_options_say("role %s may not call what it needs: GRANT EXECUTE ON ROUTINE %s TO %s",
						PQgetvalue(result, 0, 2), missing, PQgetvalue(result, 0, 2));
		zkl_ask_leave(ZKL_RUN_NO_PERMISSION);
	}
	PQclear(result);
}

/*
 * A wrong time is refused ahead of the lock: while somebody else has that, the refusal
 * would look like a skip.
 */
static void
check_times(void)
{
	static const char sql[] =
	"SELECT $1::pg_catalog.interval OPERATOR(pg_catalog.<) '0',"
	" $2::pg_catalog.interval OPERATOR(pg_catalog.<=) '0',"
	" pg_catalog.timezone($3, pg_catalog.now())";
	const char *values[] = {options->timeout, options->period, options->zone};
	PGresult   *result = zkl_ask_or_leave(sql, 3, values);
	bool		negative = PQgetvalue(result, 0, 0)[0] == 't';

	if (negative || PQgetvalue(result, 0, 1)[0] == 't')
	{
		zkl_options_say(negative ? "--timeout must not be negative" : "--once must be positive");
		zkl_ask_leave(ZKL_RUN_USAGE);
	}
	PQclear(result);
}

static void
read_session_timeout(void)
{
	PGresult   *result;

	/* If zklock-run is gone, its session must not go on waiting for the lock. */
	PQclear(zkl_ask_or_leave("SET client_connection_check_interval = '1s'", 0, NULL));
	check_times();
	result =
		zkl_ask_or_leave("SELECT setting FROM pg_catalog.pg_settings WHERE name = 'zklock.session_timeout'",
						 0, NULL);
	if (PQntuples(result) != 1)
	{
		zkl_options_say("zklock is not loaded by that server: see \"shared_preload_libraries\"");
		zkl_ask_leave(ZKL_RUN_CONFIGURATION);
	}
	timeout_ms = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);

	/*
	 * It lasts longer than the program, whatever ends zklock-run or its
	 * connection.
	 */
	duration_ms = timeout_ms + options->grace_ms + 1000;
	snprintf(duration, sizeof(duration), "%lld ms", (long long) duration_ms);
}

static void
take_token(PGresult *result)
{
	snprintf(token, sizeof(token), "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
}

/* Asks only if the role may know that: a refusal would be an error in the server's log. */
static bool
may_look(int64_t until)
{
	PGresult   *result = zkl_ask_until(until,
									   "SELECT pg_catalog.has_function_privilege('zk_queue(text)', 'EXECUTE')",
									   0, NULL);
	bool		may = PQresultStatus(result) == PGRES_TUPLES_OK &&
	PQgetvalue(result, 0, 0)[0] == 't';

	PQclear(result);
	return may;
}

/* Who has the lock, as far as the role may see it */
static void
say_who_has_it(const char *what)
{
	const char *values[] = {options->lock};
	int64_t		until = zkl_clock_ms() + LAST_WORD_MS;
	PGresult   *result = NULL;

	if (may_look(until))
		result = zkl_ask_until(until,
							   "SELECT pg_catalog.concat_ws(', ', 'server \"' || server || '\"', 'process ' || pid, 'user \"' || usename || '\"')"
							   " FROM zk_queue($1) WHERE granted LIMIT 1", 1, values);
	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1 &&
		PQgetvalue(result, 0, 0)[0] != '\0')
		zkl_options_say("%s \"%s\", which another one has: %s", what, options->lock,
						PQgetvalue(result, 0, 0));
	else
		zkl_options_say("%s \"%s\", which another one has", what, options->lock);
	PQclear(result);
}

/* First a look whether it is free: that is no error in the server's log. */
static void
get_token(void)
{
	const char *values[] = {options->lock, duration, options->timeout};
	PGresult   *result = zkl_ask_or_leave("SELECT zk_try_reserve($1, $2)", 2, values);

	if (!PQgetisnull(result, 0, 0))
	{
		take_token(result);
		return;
	}
	PQclear(result);
	if (!zkl_options_is_quiet())
		say_who_has_it(may_wait() ? "waits for" : "could not get");
	if (!may_wait())
		zkl_ask_leave(ZKL_RUN_BUSY);
	take_token(zkl_ask_or_leave("CALL zk_await_reservation($1, $2, $3, NULL)", 3, values));
}

/* ---- while it runs ---- */

/*
 * How long before its end the program is told, if the lock cannot be kept.  By default
 * that is short: a longer one ends programs for a pause that they would have survived.
 */
static int64_t
lost_grace(void)
{
	if (options->lost_grace_ms < 0)
		return timeout_ms / 24;
	return earliest(options->lost_grace_ms, timeout_ms / 4);
}

/* The program is to be dead as long before the lock is not sure as signals may take. */
static void
set_deadlines(void)
{
	int64_t		grace = lost_grace();

	if (gone)
		return;
	zkl_guard_set_deadlines(earliest(sure_until - grace, limit),
							limit == ZKL_RUN_NEVER ? sure_until :
							earliest(sure_until, limit + options->grace_ms));
}

static void
send_renewal(void)
{
	const char *values[] = {options->lock, token, duration};

	renew_at = zkl_clock_ms() + timeout_ms / 12;
	asked = RENEWAL;
	zkl_server_ask("SELECT NULLIF(zk_renew_reservation($1, $2, $3), false)", 3, values);
}

static void
send_question(void)
{
	const char *values[] = {options->lock, token};

	sent_at = zkl_clock_ms();
	asked = QUESTION;
	zkl_server_ask("SELECT (extract(epoch FROM zk_assert_lock($1, $2)) * 1000)::pg_catalog.int8",
				   2, values);
}

static void
note_trouble(const char *words)
{
	if (trouble[0] == '\0')
		snprintf(trouble, sizeof(trouble), "%s", words);
}

/* The server tells once why: to a question, perhaps.  Nothing is left to cancel, either. */
static void
say_reservation_gone(void)
{
	const char *warning = zkl_server_warning();

	note_trouble(warning[0] != '\0' ? warning : "its reservation has ended");
	zkl_options_say("the reservation of \"%s\" is gone: %s", options->lock, trouble);
	zkl_ask_reserved(NULL, NULL);
}

/*
 * The reservation is gone: an operator may have broken it, and somebody else have the
 * lock in a moment.
 */
static void
take_loss(void)
{
	int64_t		now = zkl_clock_ms();
	int64_t		grace = lost_grace();

	gone = true;
	say_reservation_gone();
	zkl_guard_set_deadlines(now, earliest(sure_until, now + grace));
}

/* A renewal, or question, that failed changes nothing: the next one may not. */
static void
take_answer_of_holding(PGresult *result)
{
	Asked		answered = asked;

	asked = NOTHING;
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
	{
		zkl_options_say("could not renew \"%s\": %s", options->lock, zkl_ask_words(result));
		note_trouble(zkl_ask_words(result));
	}
	else if (PQgetisnull(result, 0, 0))
		take_loss();
	else if (answered == RENEWAL)
	{
		renew_at = zkl_clock_ms() + timeout_ms / 12;
		if (zkl_server_is_ready())
			send_question();
	}
	else
	{
		int64_t		sure_ms = strtoll(PQgetvalue(result, 0, 0), NULL, 10);

		sure_until = sent_at + earliest(sure_ms, duration_ms) - timeout_ms / 24;
		set_deadlines();

		/*
		 * ZooKeeper is late to confirm the lock.  The next renewal waits in
		 * the server until it does, so the program learns of it at once.
		 */
		if (sure_ms < timeout_ms / 2)
		{
			renew_at = sent_at;
			note_trouble("ZooKeeper did not confirm it in time");
		}
		else
			trouble[0] = '\0';
	}
	PQclear(result);
}

void
zkl_holding_keep(void)
{
	PGresult   *result = zkl_server_poll();
	const char *why;
	int64_t		next;

	if (result != NULL)
		take_answer_of_holding(result);
	if (zkl_server_has_broken(&why))
	{
		zkl_options_say("connects again: %s", why);
		note_trouble(why);
		asked = NOTHING;
	}
	zkl_server_expect(timeout_ms / 6);
	next = zkl_guard_enforce();
	if (!gone && asked == NOTHING && zkl_server_is_ready())
	{
		if (zkl_clock_ms() >= renew_at)
			send_renewal();
		next = earliest(next, renew_at);
	}
	else
		next = earliest(next, zkl_clock_ms() + timeout_ms / 16);
	zkl_ask_wait(next);
}

/* The answer to what was just sent; an error, or none, ends zklock-run. */
static PGresult *
await_answer(void)
{
	PGresult   *result = NULL;

	while (result == NULL)
	{
		const char *why;

		zkl_ask_heed_signals();
		result = zkl_server_poll();
		if (zkl_server_has_broken(&why))
		{
			zkl_options_say("%s", why);
			zkl_ask_leave(ZKL_RUN_UNAVAILABLE);
		}
		if (result == NULL)
			zkl_ask_wait(ZKL_RUN_NEVER);
	}
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
	{
		zkl_options_say("%s", zkl_ask_words(result));
		zkl_ask_leave(ZKL_RUN_UNAVAILABLE);
	}
	if (PQgetisnull(result, 0, 0))
	{
		say_reservation_gone();
		zkl_ask_leave(ZKL_RUN_UNAVAILABLE);
	}
	return result;
}

/* The first renewal tells for how long the reservation is sure. */
void
zkl_holding_prove(void)
{
	PGresult   *result;

	send_renewal();
	take_answer_of_holding(await_answer());
	result = await_answer();
	if (options->at_most_ms != 0)
		limit = zkl_clock_ms() + options->at_most_ms;
	take_answer_of_holding(result);
}

void
zkl_holding_reserve(const ZklRunOptions *chosen)
{
	options = chosen;
	read_session_timeout();
	check_database();
	get_token();
	zkl_ask_reserved(options->lock, token);
}

const char *
zkl_holding_token(void)
{
	return token;
}

void
zkl_holding_limit(int64_t until)
{
	limit = earliest(limit, until);
	set_deadlines();
}

bool
zkl_holding_is_limited(int64_t now)
{
	return now >= limit;
}

const char *
zkl_holding_trouble(void)
{
	return trouble[0] != '\0' ? trouble : "no renewal was confirmed in time";
}

void
zkl_holding_pause(void)
{
	zkl_server_drop();
	asked = NOTHING;
}

void
zkl_holding_resume(void)
{
	zkl_server_begin(options);
}
