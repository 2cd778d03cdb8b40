/*
 * holding.c
 *	  The reservation that is zklock-run's lock, and for how long it is sure.
 *
 * Owns the reservation, and the renewal that is under way.
 *
 * The lock is a reservation, which outlasts the connection: so the program goes on while
 * zklock-run connects again.  A statement renews it every twelfth of the session
 * timeout, and tells for how long nobody else can have the lock.  That time counts
 * from when the statement was sent: an answer that comes late makes it no longer.  Then
 * the program must be dead, whatever has become of the server and of zklock-run: guard.c
 * sees to that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/ask.h"
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

/* The renewal that is under way */
static int64_t sent_at;
static int64_t sure_until;
static bool asked = false;
static bool gone = false;		/* nothing is left to renew */

static int64_t
earliest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- ahead of the program ---- */

static void
read_session_timeout(void)
{
	PGresult   *result;

	/* If zklock-run is gone, its session must not go on waiting for the lock. */
	PQclear(zkl_ask_or_leave("SET client_connection_check_interval = '1s'", 0, NULL));
	result =
		zkl_ask_or_leave("SELECT setting FROM pg_catalog.pg_settings WHERE name = 'zklock.session_timeout'",
						 0, NULL);
	if (PQntuples(result) != 1)
	{
		zkl_options_say("zklock is not loaded by that server: see \"shared_preload_libraries\"");
		zkl_ask_leave(ZKL_RUN_NOT_TO_BE_HAD);
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

/* Who has the lock, if the role may know that */
static void
say_who_has_it(const char *what)
{
	const char *values[] = {options->lock};
	PGresult   *result = zkl_ask_until(zkl_clock_ms() + LAST_WORD_MS,
									   "SELECT server, pid, usename FROM zk_queue($1) WHERE granted LIMIT 1",
									   1, values);

	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
		zkl_options_say("%s \"%s\": process %s of server \"%s\" (user \"%s\") has it", what,
						options->lock, PQgetvalue(result, 0, 1), PQgetvalue(result, 0, 0),
						PQgetvalue(result, 0, 2));
	else
		zkl_options_say("%s \"%s\"", what, options->lock);
	PQclear(result);
}

/* First a look whether it is free. */
static void
get_token(void)
{
	const char *values[] = {options->lock, duration, "0"};
	PGresult   *result = zkl_ask_until(ZKL_RUN_NEVER, "SELECT zk_reserve($1, $2, $3)", 3, values);
	bool		may_wait = options->timeout == NULL || strcmp(options->timeout, "0") != 0;

	if (result != NULL && PQresultStatus(result) == PGRES_TUPLES_OK)
	{
		take_token(result);
		return;
	}
	if (result == NULL)
		zkl_ask_leave(ZKL_RUN_NOT_TO_BE_HAD);
	if (!zkl_ask_has_sqlstate(result, "55P03"))
		zkl_ask_fail(result);
	PQclear(result);
	if (!options->quiet || !may_wait)
		say_who_has_it(may_wait ? "waits for" : "could not get");
	if (!may_wait)
		zkl_ask_leave(ZKL_RUN_NOT_TO_BE_HAD);
	values[2] = options->timeout;
	take_token(zkl_ask_or_leave("CALL zk_await_reservation($1, $2, $3, NULL)", 3, values));
}

/* ---- while it runs ---- */

/* The program is to be dead as long before the lock is not sure as signals may take. */
static void
set_deadlines(void)
{
	int64_t		grace = earliest(options->grace_ms, timeout_ms / 4);

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

	sent_at = zkl_clock_ms();
	asked = true;
	zkl_server_ask("SELECT CASE WHEN zk_renew_reservation($1, $2, $3)"
				   " THEN (extract(epoch FROM zk_assert_lock($1, $2)) * 1000)::pg_catalog.int8 END",
				   3, values);
}

/*
 * The reservation is gone: an operator may have broken it, and somebody else have the
 * lock in a moment.
 */
static void
take_loss(void)
{
	int64_t		now = zkl_clock_ms();
	int64_t		grace = earliest(options->grace_ms, timeout_ms / 4);

	gone = true;
	zkl_options_say("the reservation of \"%s\" is gone", options->lock);
	zkl_guard_set_deadlines(now, earliest(sure_until, now + grace));
}

/* A renewal that failed changes nothing: the next one may not. */
static void
take_renewal(PGresult *result)
{
	asked = false;
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		zkl_options_say("could not renew \"%s\": %s", options->lock, zkl_ask_words(result));
	else if (PQgetisnull(result, 0, 0))
		take_loss();
	else
	{
		int64_t		sure_ms = strtoll(PQgetvalue(result, 0, 0), NULL, 10);

		sure_until = sent_at + earliest(sure_ms, duration_ms) - timeout_ms / 24;
		set_deadlines();
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
		take_renewal(result);
	if (zkl_server_has_broken(&why))
	{
		zkl_options_say("connects again: %s", why);
		asked = false;
	}
	zkl_server_expect(timeout_ms / 8);
	next = zkl_guard_enforce();
	if (!gone && !asked && zkl_server_is_ready())
	{
		if (zkl_clock_ms() >= sent_at + timeout_ms / 12)
			send_renewal();
		next = earliest(next, sent_at + timeout_ms / 12);
	}
	else
		next = earliest(next, zkl_clock_ms() + timeout_ms / 16);
	zkl_ask_wait(next);
}

/* The first renewal tells for how long the reservation is sure. */
void
zkl_holding_prove(void)
{
	PGresult   *result = NULL;

	send_renewal();
	while (result == NULL)
	{
		const char *why;

		zkl_ask_heed_signals();
		result = zkl_server_poll();
		if (zkl_server_has_broken(&why))
		{
			zkl_options_say("%s", why);
			zkl_ask_leave(ZKL_RUN_NOT_TO_BE_HAD);
		}
		if (result == NULL)
			zkl_ask_wait(ZKL_RUN_NEVER);
	}
	if (PQresultStatus(result) != PGRES_TUPLES_OK || PQgetisnull(result, 0, 0))
	{
		zkl_options_say("%s", PQresultStatus(result) != PGRES_TUPLES_OK ? zkl_ask_words(result) :
						"the reservation is gone");
		zkl_ask_leave(ZKL_RUN_NOT_TO_BE_HAD);
	}
	if (options->at_most_ms != 0)
		limit = zkl_clock_ms() + options->at_most_ms;
	take_renewal(result);
}

void
zkl_holding_reserve(const ZklRunOptions *chosen)
{
	options = chosen;
	read_session_timeout();
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

void
zkl_holding_pause(void)
{
	zkl_server_drop();
	asked = false;
}

void
zkl_holding_resume(void)
{
	zkl_server_begin(options);
}
