/*
 * server.c
 *	  The connection to the PostgreSQL server, without ever waiting for it.
 *
 * Owns the connection.  When it breaks, it is made again after a pause: what a
 * reservation is for, as any session can renew it.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "run/clock.h"
#include "run/server.h"

#define PAUSE_MS	500

static const ZklRunOptions *opened_by = NULL;
static PGconn *connection = NULL;
static PostgresPollingStatusType connecting = PGRES_POLLING_OK;
static bool busy = false;
static PGresult *last_result = NULL;
static int64_t since = 0;		/* it connects, or is busy */
static int64_t again_at = ZKL_RUN_NEVER;
static char why_broken[512] = "";

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
	connection = PQconnectStartParams(names, values, 1);
	connecting = PGRES_POLLING_WRITING;
	if (connection == NULL)
		again_at = since + PAUSE_MS;	/* out of memory */
}

static void
give_connection_up(const char *why)
{
	size_t		n;

	snprintf(why_broken, sizeof(why_broken), "%s", why);
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

static void
ignore_notice(void *arg, const PGresult *result)
{
}

static void
go_on_connecting(void)
{
	short		events;
	struct pollfd fd = {.fd = zkl_server_socket(&events)};

	fd.events = events;
	if (poll(&fd, 1, 0) <= 0)
		return;
	connecting = PQconnectPoll(connection);
	if (connecting == PGRES_POLLING_FAILED)
		give_connection_up(PQerrorMessage(connection));
	else if (connecting == PGRES_POLLING_OK)
	{
		(void) PQsetNoticeReceiver(connection, ignore_notice, NULL);
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

bool
zkl_server_is_in_transaction(void)
{
	PGTransactionStatusType status = PQtransactionStatus(connection);

	return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

void
zkl_server_ask(const char *sql, int n, const char *const *values)
{
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
	if (PQflush(connection) < 0 || PQconsumeInput(connection) != 1)
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
		give_connection_up("no answer in time");
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

int
zkl_server_socket(short *events)
{
	*events = POLLIN;
	if (connection == NULL)
		return -1;
	if (connecting == PGRES_POLLING_WRITING || PQflush(connection) > 0)
		*events = connecting == PGRES_POLLING_WRITING ? POLLOUT : POLLIN | POLLOUT;
	return PQsocket(connection);
}

int64_t
zkl_server_timer(void)
{
	return again_at;
}

void
zkl_server_end(void)
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
