/*
 * server.c
 *	  The connection to the PostgreSQL server, without ever waiting for it, and
 *	  the questions that it is asked.
 *
 * Owns the connection, and the reservation that is to be cancelled at the end.  When
 * the connection breaks, it is made again after a pause: what a reservation is for,
 * as any session can renew it.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "run/clock.h"
#include "run/guard.h"
#include "run/server.h"
#include "run/signals.h"

#define PAUSE_MS	500

static const ZklRunOptions *opened_by = NULL;
static PGconn *connection = NULL;
static PostgresPollingStatusType connecting = PGRES_POLLING_OK;
static bool busy = false;
static PGresult *last_result = NULL;
static int64_t since = 0;		/* it connects, or is busy */
static int64_t again_at = ZKL_RUN_NEVER;
static char why_broken[512] = "";
static char last_words[512] = "";	/* of a FATAL error, ahead of the
									 * connection's end */
static char warning[512] = "";	/* the detail of the statement's last one */

static int	server_socket(short *events);
static void ask_fail(const PGresult *result)
			__attribute__((noreturn));

static void
connection_start(void)
{
	static const char *const names[] = {
		"host", "port", "user", "dbname", "fallback_application_name", NULL
	};
	const char *values[] = {
		opened_by->host, opened_by->port, opened_by->user, opened_by->dbname, "zklock-run",
		NULL
	};

	again_at = ZKL_RUN_NEVER;
	since = zkl_clock_ms();
	last_words[0] = '\0';
	connection = PQconnectStartParams(names, values, 1);
	connecting = PGRES_POLLING_WRITING;
	if (connection == NULL)
		again_at = since + PAUSE_MS;	/* out of memory */
}

static void
give_connection_up(const char *why)
{
	size_t		n;

	snprintf(why_broken, sizeof(why_broken), "%s", last_words[0] != '\0' ? last_words : why);
	last_words[0] = '\0';
	n = strcspn(why_broken, "\n");
	why_broken[n] = '\0';
	if (n == 0)
		strcpy(why_broken, "the connection was closed");
	PQclear(last_result);
	last_result = NULL;
	PQfinish(connection);
	connection = NULL;
	busy = false;

	/* One that was good is made again at once. */
	again_at = zkl_clock_ms() + (connecting == PGRES_POLLING_OK ? 0 : PAUSE_MS);
}

/* To a client that waits for nothing, libpq passes on a FATAL error as a notice. */
static void
take_notice(void *arg, const PGresult *result)
{
	const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);

	if (severity == NULL || message == NULL)
		return;
	if (strcmp(severity, "FATAL") == 0)
		snprintf(last_words, sizeof(last_words), "%s", message);
	else if (strcmp(severity, "WARNING") == 0)
		snprintf(warning, sizeof(warning), "%s", detail != NULL ? detail : message);
}

static void
go_on_connecting(void)
{
	short		events;
	struct pollfd fd = {.fd = server_socket(&events)};

	fd.events = events;
	if (poll(&fd, 1, 0) <= 0)
		return;
	connecting = PQconnectPoll(connection);
	if (connecting == PGRES_POLLING_FAILED)
		give_connection_up(PQerrorMessage(connection));
	else if (connecting == PGRES_POLLING_OK)
	{
		(void) PQsetNoticeReceiver(connection, take_notice, NULL);
		(void) PQsetnonblocking(connection, 1);
	}
}

void
zkl_server_begin(const ZklRunOptions *options)
{
	opened_by = options;
	connection_start();
}

bool
zkl_server_is_ready(void)
{
	return connection != NULL && connecting == PGRES_POLLING_OK && !busy;
}

/*
 * Once it is ready.  False: a ROLLBACK would only warn.  A connection that broke took its
 * transaction along.
 */
static bool
server_is_in_transaction(void)
{
	PGTransactionStatusType status = PQtransactionStatus(connection);

	return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

void
zkl_server_ask(const char *sql, int n, const char *const *values)
{
	warning[0] = '\0';
	if (PQsendQueryParams(connection, sql, n, NULL, values, NULL, NULL, 0) != 1)
		give_connection_up(PQerrorMessage(connection));
	else
	{
		busy = true;
		since = zkl_clock_ms();
	}
}

/* The last result of a statement, which is over when libpq has no other one */
static PGresult *
read_result(void)
{
	PGresult   *next;

	while (!PQisBusy(connection))
	{
		next = PQgetResult(connection);
		if (next == NULL)
		{
			next = last_result;
			last_result = NULL;
			busy = false;
			return next;
		}
		PQclear(last_result);
		last_result = next;
	}
	return NULL;
}

PGresult *
zkl_server_poll(void)
{
	PGresult   *result;
	bool		lives;

	if (connection == NULL && zkl_clock_ms() >= again_at)
		connection_start();
	if (connection == NULL)
		return NULL;
	if (PQstatus(connection) == CONNECTION_BAD)
	{
		give_connection_up(PQerrorMessage(connection));
		return NULL;
	}
	if (connecting != PGRES_POLLING_OK)
	{
		go_on_connecting();
		return NULL;
	}
	lives = PQflush(connection) >= 0 && PQconsumeInput(connection) == 1;

	/* Last words may have come. */
	(void) PQisBusy(connection);
	if (!lives)
	{
		give_connection_up(PQerrorMessage(connection));
		return NULL;
	}
	result = busy ? read_result() : NULL;
	if (PQstatus(connection) == CONNECTION_BAD)
	{
		PQclear(result);
		give_connection_up(PQerrorMessage(connection));
		return NULL;
	}
	return result;
}

void
zkl_server_expect(int64_t ms)
{
	bool		waits = connection != NULL && (busy || connecting != PGRES_POLLING_OK);

	if (waits && zkl_clock_ms() >= since + ms)
		give_connection_up("the server does not answer");
}

bool
zkl_server_has_broken(const char **why)
{
	static char told[sizeof(why_broken)];

	if (why_broken[0] == '\0')
		return false;
	strcpy(told, why_broken);
	why_broken[0] = '\0';
	*why = told;
	return true;
}

const char *
zkl_server_warning(void)
{
	return warning;
}

/*
 * For poll(): the socket or -1, its events, and when to go on anyway, by clock.h.  What is
 * expected has to be looked at in time.
 */
static int
server_socket(short *events)
{
	*events = POLLIN;
	if (connection == NULL)
		return -1;
	if (connecting == PGRES_POLLING_WRITING || PQflush(connection) > 0)
		*events = connecting == PGRES_POLLING_WRITING ? POLLOUT : POLLIN | POLLOUT;
	return PQsocket(connection);
}

static int64_t
server_timer(void)
{
	return again_at;
}

/* Cancels the statement, if there is one, and ends the connection. */
static void
server_end(void)
{
	PGcancel   *cancel;
	char		error[256];

	if (busy && (cancel = PQgetCancel(connection)) != NULL)
	{
		(void) PQcancel(cancel, error, sizeof(error));
		PQfreeCancel(cancel);
	}
	zkl_server_drop();
}

void
zkl_server_drop(void)
{
	PQclear(last_result);
	last_result = NULL;
	PQfinish(connection);
	connection = NULL;
	busy = false;
	again_at = ZKL_RUN_NEVER;
}

/* ---- ask ---- */

/*
 * Questions to the server before and behind the program, and the end of zklock-run.
 */

#define LAST_WORD_MS	10000
#define MOST_SLEEP_MS	60000

static const char *reserved_lock = NULL;	/* NULL: there is none */
static const char *reserved_token;

void
zkl_ask_wait(int64_t until)
{
	struct pollfd fds[3] = {{.events = POLLIN}, {.events = POLLIN}};
	int64_t		timer = server_timer();
	int64_t		left = timer < until ? timer : until;

	if (left != ZKL_RUN_NEVER)
	{
		left = left - zkl_clock_ms() + 1;
		left = left < 0 ? 0 : left > MOST_SLEEP_MS ? MOST_SLEEP_MS : left;
	}
	fds[0].fd = zkl_signals_fd();
	fds[1].fd = zkl_guard_news();
	fds[2].fd = server_socket(&fds[2].events);
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

/* Whether the error's SQLSTATE begins so */
static bool
ask_has_sqlstate(const PGresult *result, const char *sqlstate)
{
	const char *found = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	return found != NULL && strncmp(found, sqlstate, strlen(sqlstate)) == 0;
}

/*
 * Says what the error is, and ends zklock-run with the status that belongs to it.
 *
 * Others have the lock; the request or its server is wrong; or nobody knows.
 */
static void
ask_fail(const PGresult *result)
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
		if (!ask_has_sqlstate(result, meanings[i].sqlstate))
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
		if (await_ready(until) && server_is_in_transaction())
			PQclear(zkl_ask_until(until, "ROLLBACK", 0, NULL));
		PQclear(zkl_ask_until(until, "SELECT zk_cancel_reservation($1, $2)", 2, values));
	}
	server_end();
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
		ask_fail(result);
	return result;
}
