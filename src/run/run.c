/*
 * run.c
 *	  zklock-run: runs a program while it has a distributed lock.
 *
 * Owns the reservation, and what is known of how long it is sure.
 *
 * The lock is a reservation, which outlasts the connection: so the program goes on while
 * zklock-run connects again.  A statement renews it every twelfth of the session
 * timeout, and tells for how long nobody else can have the lock.  That time counts
 * from when the statement was sent: an answer that comes late makes it no longer.  Then
 * the program must be dead, whatever has become of the server and of zklock-run: guard.c
 * sees to that.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/clock.h"
#include "run/guard.h"
#include "run/options.h"
#include "run/server.h"

#define NO_PERMISSION	77		/* of sysexits.h */
#define LAST_WORD_MS	10000	/* for what is to be said behind the program */
#define MOST_SLEEP_MS	60000

static ZklRunOptions options;
static int	signals;			/* of signalfd() */
static int64_t timeout_ms;		/* of the ZooKeeper session */
static char duration[32];		/* of the reservation, an interval */
static int64_t duration_ms;
static char token[32];
static char called_at[64];		/* when the run began, by ZooKeeper's clock */

/* The program */
static pid_t program = 0;
static int64_t program_until = ZKL_RUN_NEVER;	/* --at-most */

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

/* ---- waiting ---- */

static void
block_signals(void)
{
	static const int taken[] = {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
	sigset_t	set;
	size_t		i;

	sigemptyset(&set);
	for (i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		sigaddset(&set, taken[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
	{
		zkl_options_say("could not take signals: %s", strerror(errno));
		exit(EXIT_FAILURE);
	}
}

/* The next signal that has come, or 0 */
static int
next_signal(void)
{
	struct signalfd_siginfo info;

	return read(signals, &info, sizeof(info)) == sizeof(info) ? (int) info.ssi_signo : 0;
}

/* Sleeps until something happens, or until then. */
static void
wait_for_anything(int64_t until)
{
	struct pollfd fds[2] = {{.fd = signals,.events = POLLIN}};
	int64_t		left = earliest(until, zkl_server_timer());

	if (left != ZKL_RUN_NEVER)
	{
		left = earliest(left - zkl_clock_ms() + 1, MOST_SLEEP_MS);
		left = left < 0 ? 0 : left;
	}
	fds[1].fd = zkl_server_socket(&fds[1].events);
	(void) poll(fds, 2, left == ZKL_RUN_NEVER ? -1 : (int) left);
}

/* ---- before and behind the program ---- */

/* The server's words for an error, in a line */
static const char *
words_of(const PGresult *result)
{
	static char line[1024];
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);

	snprintf(line, sizeof(line), "%s%s%s", message != NULL ? message : "unknown error",
			 detail != NULL ? ": " : "", detail != NULL ? detail : "");
	return line;
}

static bool
has_sqlstate(const PGresult *result, const char *sqlstate)
{
	const char *found = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	return found != NULL && strncmp(found, sqlstate, strlen(sqlstate)) == 0;
}

static int
status_of(const PGresult *result)
{
	if (has_sqlstate(result, "22"))
		return ZKL_RUN_USAGE;
	return has_sqlstate(result, "42501") ? NO_PERMISSION : ZKL_RUN_NOT_TO_BE_HAD;
}

/*
 * The program is not to run, or has run.  Nobody has to wait for the end of the
 * reservation.  A transaction may have failed.
 */
static void end_run(int status) __attribute__((noreturn));
static PGresult *ask_until(int64_t until, const char *sql, int n, const char *const *values);

static void
end_run(int status)
{
	char		own[sizeof(token)];
	const char *values[] = {options.lock, own};
	int64_t		until = zkl_clock_ms() + LAST_WORD_MS;

	strcpy(own, token);
	token[0] = '\0';
	if (own[0] != '\0')
	{
		if (zkl_server_may_be_in_transaction())
			PQclear(ask_until(until, "ROLLBACK", 0, NULL));
		PQclear(ask_until(until, "SELECT zk_cancel_reservation($1, $2)", 2, values));
	}
	zkl_server_end();
	exit(status);
}

/* A signal that comes now ends zklock-run. */
static void
heed_signals(void)
{
	int			signo;

	while ((signo = next_signal()) != 0)
	{
		if (signo != SIGCHLD)
			end_run(128 + signo);
	}
}

/*
 * The answer to a statement; NULL: none came, and no connection lasts.  "until": by clock.h.
 */
static PGresult *
ask_until(int64_t until, const char *sql, int n, const char *const *values)
{
	PGresult   *result = NULL;
	bool		sent = false;
	const char *why;

	while (result == NULL && zkl_clock_ms() < until)
	{
		result = zkl_server_poll();
		if (result != NULL)
			break;
		heed_signals();
		if (zkl_server_has_broken(&why) && (sent || program == 0))
		{
			zkl_options_say("%s", why);
			return NULL;
		}
		if (!sent && zkl_server_is_ready())
		{
			zkl_server_ask(sql, n, values);
			sent = true;
			continue;
		}
		wait_for_anything(until);
	}
	return result;
}

/* An answer without an error; else zklock-run ends. */
static PGresult *
ask_or_leave(const char *sql, int n, const char *const *values)
{
	PGresult   *result = ask_until(ZKL_RUN_NEVER, sql, n, values);
	ExecStatusType status = PQresultStatus(result);

	if (result == NULL)
		end_run(ZKL_RUN_NOT_TO_BE_HAD);
	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
	{
		zkl_options_say("%s", words_of(result));
		end_run(status_of(result));
	}
	return result;
}

static void
ask_for_nothing(const char *sql)
{
	PQclear(ask_or_leave(sql, 0, NULL));
}

/* ---- the reservation ---- */

static void
read_session_timeout(void)
{
	PGresult   *result;

	/* If zklock-run is gone, its session must not go on waiting for the lock. */
	ask_for_nothing("SET client_connection_check_interval = '1s'");
	result =
		ask_or_leave("SELECT setting FROM pg_catalog.pg_settings WHERE name = 'zklock.session_timeout'",
					 0, NULL);
	if (PQntuples(result) != 1)
	{
		zkl_options_say("zklock is not loaded by that server: see \"shared_preload_libraries\"");
		end_run(ZKL_RUN_NOT_TO_BE_HAD);
	}
	timeout_ms = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);

	/*
	 * It lasts longer than the program, whatever ends zklock-run or its
	 * connection.
	 */
	duration_ms = timeout_ms + options.grace_ms + 1000;
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
	const char *values[] = {options.lock};
	PGresult   *result = ask_until(zkl_clock_ms() + LAST_WORD_MS,
								   "SELECT server, pid, usename FROM zk_queue($1) WHERE granted LIMIT 1",
								   1, values);

	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
		zkl_options_say("%s \"%s\": process %s of server \"%s\" (user \"%s\") has it", what,
						options.lock, PQgetvalue(result, 0, 1), PQgetvalue(result, 0, 0),
						PQgetvalue(result, 0, 2));
	else
		zkl_options_say("%s \"%s\"", what, options.lock);
	PQclear(result);
}

/* First a look whether it is free. */
static void
reserve(void)
{
	const char *values[] = {options.lock, duration, "0"};
	PGresult   *result = ask_until(ZKL_RUN_NEVER, "SELECT zk_reserve($1, $2, $3)", 3, values);
	bool		may_wait = options.timeout == NULL || strcmp(options.timeout, "0") != 0;

	if (result != NULL && PQresultStatus(result) == PGRES_TUPLES_OK)
	{
		take_token(result);
		return;
	}
	if (result != NULL && !has_sqlstate(result, "55P03"))
	{
		zkl_options_say("%s", words_of(result));
		end_run(status_of(result));
	}
	if (result == NULL)
		end_run(ZKL_RUN_NOT_TO_BE_HAD);
	PQclear(result);
	if (!options.quiet || !may_wait)
		say_who_has_it(may_wait ? "waits for" : "could not get");
	if (!may_wait)
		end_run(ZKL_RUN_NOT_TO_BE_HAD);
	values[2] = options.timeout;
	take_token(ask_or_leave("CALL zk_await_reservation($1, $2, $3, NULL)", 3, values));
}

/* Behind an answer: the program is to be dead as long before as signals may take. */
static void
set_deadlines(int64_t sure_ms)
{
	int64_t		grace = earliest(options.grace_ms, timeout_ms / 4);
	int64_t		until = sent_at + earliest(sure_ms, duration_ms) - timeout_ms / 24;

	sure_until = until;
	zkl_guard_set_deadlines(earliest(until - grace, program_until),
							program_until == ZKL_RUN_NEVER ? until :
							earliest(until, program_until + options.grace_ms));
}

static void
send_renewal(void)
{
	const char *values[] = {options.lock, token, duration};

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
	int64_t		grace = earliest(options.grace_ms, timeout_ms / 4);

	gone = true;
	zkl_options_say("the reservation of \"%s\" is gone", options.lock);
	zkl_guard_set_deadlines(now, earliest(sure_until, now + grace));
}

/* A renewal that failed changes nothing: the next one may not. */
static void
take_renewal(PGresult *result)
{
	asked = false;
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		zkl_options_say("could not renew \"%s\": %s", options.lock, words_of(result));
	else if (PQgetisnull(result, 0, 0))
		take_loss();
	else
		set_deadlines(strtoll(PQgetvalue(result, 0, 0), NULL, 10));
	PQclear(result);
}

/* ---- --once ---- */

/* Whether the program is to run.  at_least_once: it is recorded when it has succeeded. */
static bool
is_due(void)
{
	const char *values[] = {options.lock, options.period, options.zone,
	options.at_least_once ? "at_least_once" : "at_most_once"};
	PGresult   *result;
	bool		due;

	if (options.period == NULL)
		return true;
	ask_for_nothing("BEGIN");
	result = ask_or_leave("SELECT zk_time(), zk_once($1, $2, $3, $4)", 4, values);
	snprintf(called_at, sizeof(called_at), "%s", PQgetvalue(result, 0, 0));
	due = PQgetvalue(result, 0, 1)[0] == 't';
	PQclear(result);
	ask_for_nothing(options.at_least_once ? "ROLLBACK" : "COMMIT");
	if (!due)
		zkl_options_say("another run of \"%s\" has this period", options.lock);
	return due;
}

/* The run succeeded, in the period in which it began. */
static bool
record_run(int64_t until)
{
	const char *values[] = {options.lock, options.period, options.zone, called_at};
	PGresult   *result;
	bool		done;

	if (options.period == NULL || !options.at_least_once)
		return true;
	result = ask_until(until, "SELECT zk_once($1, $2, $3, 'at_least_once', $4)", 4, values);
	done = PQresultStatus(result) == PGRES_TUPLES_OK;
	if (!done)
		zkl_options_say("could not record the run of \"%s\", so it may run again: %s", options.lock,
						result == NULL ? "no answer" : words_of(result));
	PQclear(result);
	return done;
}

/* ---- the program ---- */

/* Whether it has ended; *status is that of waitpid(). */
static bool
take_signals(int *status)
{
	bool		ended = false;
	int			signo;

	while ((signo = next_signal()) != 0)
	{
		if (signo == SIGCHLD)
			ended |= waitpid(program, status, WNOHANG) == program;
		else
			zkl_guard_signal(signo);
	}
	return ended;
}

static int
watch(void)
{
	const char *why;
	PGresult   *result;
	int			status = 0;

	while (!take_signals(&status))
	{
		int64_t		next = zkl_guard_enforce();

		result = zkl_server_poll();
		if (result != NULL)
			take_renewal(result);
		if (zkl_server_has_broken(&why))
		{
			zkl_options_say("connects again: %s", why);
			asked = false;
		}
		zkl_server_expect(timeout_ms / 8);
		if (!gone && !asked && zkl_server_is_ready())
		{
			if (zkl_clock_ms() >= sent_at + timeout_ms / 12)
				send_renewal();
			next = earliest(next, sent_at + timeout_ms / 12);
		}
		else
			next = earliest(next, zkl_clock_ms() + timeout_ms / 16);
		wait_for_anything(next);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The first renewal tells for how long the reservation is sure. */
static void
renew_before(void)
{
	PGresult   *result = NULL;

	send_renewal();
	while (result == NULL)
	{
		const char *why;

		heed_signals();
		result = zkl_server_poll();
		if (zkl_server_has_broken(&why))
		{
			zkl_options_say("%s", why);
			end_run(ZKL_RUN_NOT_TO_BE_HAD);
		}
		if (result == NULL)
			wait_for_anything(ZKL_RUN_NEVER);
	}
	if (PQresultStatus(result) != PGRES_TUPLES_OK || PQgetisnull(result, 0, 0))
	{
		zkl_options_say("%s", PQresultStatus(result) != PGRES_TUPLES_OK ? words_of(result) :
						"the reservation is gone");
		end_run(ZKL_RUN_NOT_TO_BE_HAD);
	}
	if (options.at_most_ms != 0)
		program_until = zkl_clock_ms() + options.at_most_ms;
	take_renewal(result);
}

int
main(int argc, char **argv)
{
	int64_t		until;
	int			status;

	options = zkl_options_read(argc, argv);
	block_signals();
	zkl_server_begin(&options);
	read_session_timeout();
	reserve();
	if (!is_due())
		end_run(0);
	renew_before();
	program = zkl_guard_start(options.program, options.lock, token);
	status = program < 0 ? -program : watch();
	if (zkl_guard_has_ended())
		zkl_options_say(zkl_clock_ms() >= program_until ? "ended the program after --at-most" :
						"ended the program, as the lock could not be kept");
	zkl_guard_finish();
	until = zkl_clock_ms() + LAST_WORD_MS;
	if (status == 0 && !record_run(until))
		status = ZKL_RUN_NOT_TO_BE_HAD;
	end_run(status);
}
