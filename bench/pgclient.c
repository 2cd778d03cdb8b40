/*
 * pgclient.c
 *	  Sessions of one PostgreSQL server that take locks when they are told to,
 *	  and say when they had them.
 *
 *	  pgclient CONNINFO PREFIX LOCK UNLOCK
 *
 * LOCK and UNLOCK are statements with the path as $1.  It reads commands and
 * answers each with one line, as CuratorBench.java does:
 *
 *	  lock ID PATH	 begins to wait, in the session ID, which is made if need be
 *	  held ID		 at=NS: waits until that has it; when that was
 *	  unlock ID		 at=NS: when it began to release it
 *	  forget		 ends all sessions
 *
 * Times are of CLOCK_MONOTONIC, which all processes share.  An answer is taken
 * in as soon as it is there, whatever is waited for.  One thread.
 */
#define _GNU_SOURCE
#include <libpq-fe.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_SESSIONS	1024
#define NAME_SIZE		64
#define LINE_SIZE		512

typedef struct Session
{
	char		id[NAME_SIZE];
	char		path[LINE_SIZE];
	PGconn	   *connection;
	bool		busy;
	int64_t		answered_at;	/* ns */
} Session;

static Session sessions[MAX_SESSIONS];
static int	nsessions = 0;
static const char *conninfo;
static const char *prefix;
static const char *lock_sql;
static const char *unlock_sql;
static char why[LINE_SIZE];		/* the first failure since the last answer */

static int64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static void
fail(const char *message)
{
	if (why[0] == '\0')
		snprintf(why, sizeof(why), "%.*s", (int) strcspn(message, "\n"),
				 message);
}

static void
check(Session *session, PGresult *result)
{
	if (PQresultStatus(result) != PGRES_TUPLES_OK &&
		PQresultStatus(result) != PGRES_COMMAND_OK)
		fail(PQerrorMessage(session->connection));
	PQclear(result);
}

/* Takes in what is there for a session. */
static void
receive(Session *session)
{
	PGresult   *result;

	if (!PQconsumeInput(session->connection))
	{
		fail(PQerrorMessage(session->connection));
		session->busy = false;
		return;
	}
	while (!PQisBusy(session->connection))
	{
		result = PQgetResult(session->connection);
		if (result == NULL)
		{
			session->answered_at = now_ns();
			session->busy = false;
			return;
		}
		check(session, result);
	}
}

static void
poll_for_input(struct pollfd *fd, int number)
{
	fd->fd = number;
	fd->events = POLLIN;
	fd->revents = 0;
}

/* Serves all sessions until "session" is not busy, or there is input. */
static void
serve(const Session *session)
{
	static struct pollfd fds[MAX_SESSIONS + 1];
	int			i;

	for (;;)
	{
		int			nfds = 0;

		poll_for_input(&fds[nfds++], session == NULL ? STDIN_FILENO : -1);
		for (i = 0; i < nsessions; i++)
			poll_for_input(&fds[nfds++], sessions[i].busy ?
						   PQsocket(sessions[i].connection) : -1);
		if (session != NULL && !session->busy)
			return;
		poll(fds, (nfds_t) nfds, -1);
		for (i = 0; i < nsessions; i++)
		{
			if (fds[i + 1].revents != 0)
				receive(&sessions[i]);
		}
		if (fds[0].revents != 0)
			return;
	}
}

static Session *
find_session(const char *id)
{
	int			i;

	for (i = 0; i < nsessions; i++)
	{
		if (strcmp(sessions[i].id, id) == 0)
			return &sessions[i];
	}
	return NULL;
}

static Session *
make_session(const char *id)
{
	Session    *session = &sessions[nsessions];

	if (nsessions == MAX_SESSIONS)
	{
		fail("too many sessions");
		return NULL;
	}
	memset(session, 0, sizeof(*session));
	snprintf(session->id, sizeof(session->id), "%s", id);
	session->connection = PQconnectdb(conninfo);
	if (PQstatus(session->connection) != CONNECTION_OK)
	{
		fail(PQerrorMessage(session->connection));
		PQfinish(session->connection);
		return NULL;
	}
	nsessions++;
	check(session, PQprepare(session->connection, "lock", lock_sql, 1, NULL));
	check(session,
		  PQprepare(session->connection, "unlock", unlock_sql, 1, NULL));
	return session;
}

/* Sends a statement; returns when, in ns. */
static int64_t
ask(Session *session, const char *statement)
{
	const char *parameters[1] = {session->path};
	int64_t		at = now_ns();

	session->busy = true;
	if (!PQsendQueryPrepared(session->connection, statement, 1, parameters,
							 NULL, NULL, 0) ||
		PQflush(session->connection) != 0)
	{
		fail(PQerrorMessage(session->connection));
		session->busy = false;
	}
	return at;
}

static void
forget(void)
{
	while (nsessions > 0)
	{
		PGconn	   *connection = sessions[--nsessions].connection;
		PGcancel   *cancel = PQgetCancel(connection);
		char		unused[256];

		if (sessions[nsessions].busy)
			PQcancel(cancel, unused, sizeof(unused));
		PQfreeCancel(cancel);
		PQfinish(connection);
	}
}

static void
answer(int64_t at)
{
	if (why[0] != '\0')
		printf("error %s\n", why);
	else
		printf("ok at=%lld\n", (long long) at);
	fflush(stdout);
	why[0] = '\0';
}

static void
command(char *line)
{
	const char *verb = strtok(line, " \n");
	const char *id = strtok(NULL, " \n");
	const char *path = strtok(NULL, " \n");
	Session    *session = id != NULL ? find_session(id) : NULL;
	int64_t		at = 0;

	if (verb != NULL && strcmp(verb, "forget") == 0)
		forget();
	else if (verb != NULL && strcmp(verb, "lock") == 0 && path != NULL)
	{
		if (session == NULL)
			session = make_session(id);
		if (session != NULL)
		{
			snprintf(session->path, sizeof(session->path), "%s%s", prefix,
					 path);
			serve(session);
			(void) ask(session, "lock");
		}
	}
	else if (session == NULL)
		fail("no such command or session");
	else if (strcmp(verb, "held") == 0)
	{
		serve(session);
		at = session->answered_at;
	}
	else if (strcmp(verb, "unlock") == 0)
	{
		at = ask(session, "unlock");
		serve(session);
	}
	answer(at);
}

int
main(int argc, char **argv)
{
	static char input[LINE_SIZE * 4];
	size_t		length = 0;

	if (argc != 5)
	{
		fprintf(stderr, "usage: pgclient CONNINFO PREFIX LOCK UNLOCK\n");
		return 2;
	}
	conninfo = argv[1];
	prefix = argv[2];
	lock_sql = argv[3];
	unlock_sql = argv[4];
	answer(0);
	for (;;)
	{
		ssize_t		n;
		char	   *end;

		serve(NULL);
		n = read(STDIN_FILENO, input + length, sizeof(input) - 1 - length);
		if (n <= 0)
			return 0;
		length += (size_t) n;
		input[length] = '\0';
		while ((end = strchr(input, '\n')) != NULL)
		{
			char		line[LINE_SIZE * 4];

			*end = '\0';
			memcpy(line, input, (size_t) (end - input) + 1);
			length -= (size_t) (end - input) + 1;
			memmove(input, end + 1, length + 1);
			command(line);
		}
	}
}
