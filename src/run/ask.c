/*
 * ask.c
 *	  Questions to the server before and behind the program, and the end of zklock-run.
 *
 * Owns the reservation that is to be cancelled at the end.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "run/ask.h"
#include "run/clock.h"
#include "run/guard.h"
#include "run/options.h"
#include "run/server.h"
#include "run/signals.h"

#define LAST_WORD_MS	10000
#define MOST_SLEEP_MS	60000

static const char *reserved_lock = NULL;	/* NULL: there is none */
static const char *reserved_token;

void
zkl_ask_wait(int64_t until)
{
	struct pollfd fds[3] = {{.events = POLLIN}, {.events = POLLIN}};
	int64_t		timer = zkl_server_timer();
	int64_t		left = timer < until ? timer : until;

	if (left != ZKL_RUN_NEVER)
	{
		left = left - zkl_clock_ms() + 1;
		left = left < 0 ? 0 : left > MOST_SLEEP_MS ? MOST_SLEEP_MS : left;
	}
	fds[0].fd = zkl_signals_fd();
	fds[1].fd = zkl_guard_news();
	fds[2].fd = zkl_server_socket(&fds[2].events);
	(void) poll(fds, 3, left == ZKL_RUN_NEVER ? -1 : (int) left);
}

const char *
zkl_ask_words(const PGresult *result)
{
	static char line[1024];
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);

	snprintf(line, sizeof(line), "%s%s%s", message != NULL ? message : "unknown error",
			 detail != NULL ? ": " : "", detail != NULL ? detail : "");
	return line;
}

bool
zkl_ask_has_sqlstate(const PGresult *result, const char *sqlstate)
{
	const char *found = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	return found != NULL && strncmp(found, sqlstate, strlen(sqlstate)) == 0;
}

/* Others have the lock; the request or its server is wrong; or nobody knows. */
void
zkl_ask_fail(const PGresult *result)
{
	static const struct
	{
		const char *sqlstate;	/* its beginning */
		int			status;
	}			meanings[] = {
		{"55P03", ZKL_RUN_BUSY},
		{"22", ZKL_RUN_USAGE},
		{"42501", ZKL_RUN_NO_PERMISSION},
		{"42", ZKL_RUN_CONFIGURATION},	/* no extension here, or an old one */
		{"0A", ZKL_RUN_CONFIGURATION},
	};
	int			status = ZKL_RUN_UNAVAILABLE;
	size_t		i;

	for (i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
	{
		if (!zkl_ask_has_sqlstate(result, meanings[i].sqlstate))
			continue;
		status = meanings[i].status;
		break;
	}
	if (status != ZKL_RUN_BUSY || !zkl_options_is_quiet())
		zkl_options_say("%s", zkl_ask_words(result));
	zkl_ask_leave(status);
}

void
zkl_ask_reserved(const char *lock, const char *token)
{
	reserved_lock = lock;
	reserved_token = token;
}

/*
 * Until a statement can be sent.  The answer to a renewal that was under way is that to
 * nothing else.
 */
static bool
await_ready(int64_t until)
{
	for (;;)
	{
		const char *why;

		PQclear(zkl_server_poll());
		zkl_ask_heed_signals();
		if (zkl_server_has_broken(&why) && !zkl_guard_has_started())
		{
			zkl_options_say("%s", why);
			return false;
		}
		if (zkl_server_is_ready())
			return true;
		if (zkl_clock_ms() >= until)
			return false;
		zkl_ask_wait(until);
	}
}

/* A transaction may have failed. */
void
zkl_ask_leave(int status)
{
	const char *values[] = {reserved_lock, reserved_token};
	int64_t		until = zkl_clock_ms() + LAST_WORD_MS;

	/* A signal leads here again. */
	reserved_lock = NULL;
	if (values[0] != NULL)
	{
		if (await_ready(until) && zkl_server_is_in_transaction())
			PQclear(zkl_ask_until(until, "ROLLBACK", 0, NULL));
		PQclear(zkl_ask_until(until, "SELECT zk_cancel_reservation($1, $2)", 2, values));
	}
	zkl_server_end();
	zkl_signals_exit(status);
}

void
zkl_ask_heed_signals(void)
{
	bool		by_terminal;
	int			signo;

	while ((signo = zkl_signals_next(&by_terminal)) != 0)
	{
		if (zkl_signals_is_stop(signo))
			zkl_signals_obey(signo);
		else if (signo != SIGCHLD)
			zkl_ask_leave(128 + signo);
	}
}

PGresult *
zkl_ask_until(int64_t until, const char *sql, int n, const char *const *values)
{
	const char *why;

	if (!await_ready(until))
		return NULL;
	zkl_server_ask(sql, n, values);
	while (zkl_clock_ms() < until)
	{
		PGresult   *result = zkl_server_poll();

		if (result != NULL)
			return result;
		zkl_ask_heed_signals();
		if (zkl_server_has_broken(&why))
		{
			zkl_options_say("%s", why);
			return NULL;
		}
		zkl_ask_wait(until);
	}
	return NULL;
}

PGresult *
zkl_ask_or_leave(const char *sql, int n, const char *const *values)
{
	PGresult   *result = zkl_ask_until(ZKL_RUN_NEVER, sql, n, values);
	ExecStatusType status = PQresultStatus(result);

	if (result == NULL)
		zkl_ask_leave(ZKL_RUN_UNAVAILABLE);
	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
		zkl_ask_fail(result);
	return result;
}
