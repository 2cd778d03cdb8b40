/*
 * zklog.c
 *	  What ZooKeeper's client writes into its log: LOG frames, and the reason
 *	  why a connection broke, which the client tells nowhere else.
 *
 * Owns that reason.  Runs in zklock_session only.  Takes no lock.  It must not
 * know how the connection comes and goes; and no secret passes it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* strcasestr */
#endif

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/zkstate.h"

static bool wants_log;
static const ZklZkStart *secrets;	/* in its credentials */
static char client_error[256] = "connection failed";
static bool was_closed;			/* by the server: that is the error */

void
zkl_zklog_begin(const ZklZkStart *start)
{
	secrets = start;
	zkl_zklog_want(start->wants_log);
}

/* Errors are always wanted here, for remember_error. */
void
zkl_zklog_want(bool wanted)
{
	wants_log = wanted;
	zoo_set_debug_level(wanted ? ZOO_LOG_LEVEL_DEBUG : ZOO_LOG_LEVEL_ERROR);
}

const char *
zkl_zklog_error(void)
{
	return client_error;
}

bool
zkl_zklog_was_closed(void)
{
	return was_closed;
}

void
zkl_zklog_set_error(const char *text)
{
	snprintf(client_error, sizeof(client_error), "%s", text);
	was_closed = false;
}

/*
 * Keeps the reason in "Socket <address> zk retcode=<n>, errno=<n>(<reason>):
 * ...": by the time that the client returns, errno is no longer reliable.
 */
static void
remember_error(const char *text)
{
	const char *from = strstr(text, "errno=");
	const char *to;
	int			number;

	if (strncmp(text, "Socket ", 7) != 0 || from == NULL)
		return;
	number = atoi(from + 6);
	from = strchr(from, '(');
	to = from ? strstr(from, "): ") : NULL;
	if (to == NULL)
		return;

	was_closed = number == EHOSTDOWN || number == ECONNRESET ||
		number == EPIPE;

	/* The client says so when it reads the end of the stream. */
	if (number == EHOSTDOWN)
		snprintf(client_error, sizeof(client_error),
				 "server closed the connection");
	else
		snprintf(client_error, sizeof(client_error), "%.*s",
				 (int) (to - from - 1), from + 1);
}

static bool
has_secret(const char *text)
{
	for (uint32_t i = 0; i < secrets->ncredentials; i++)
	{
		if (secrets->credentials[i].length > 0 &&
			strstr(text, secrets->credentials[i].secret) != NULL)
			return true;
	}
	return strcasestr(text, "passw") != NULL;
}

/* "<time>:<pid>:ZOO_<LEVEL>@<function>@<line>: <text>" */
void
zkl_zklog_write(const char *message)
{
	const char *mark = strstr(message, "ZOO_");
	const char *text = mark ? strstr(mark, ": ") : NULL;
	size_t		length;
	size_t		frame;

	text = text ? text + 2 : message;
	if (mark == NULL || strncmp(mark, "ZOO_ERROR@", 10) == 0)
		remember_error(text);

	if (zkl_zk.gone || !wants_log || has_secret(text))
		return;

	length = strlen(text);
	while (length > 0 && text[length - 1] == '\n')
		length--;
	frame = zkl_zkstate_begin_frame(ZKL_WIRE_LOG, 0, 0);
	zkl_wire_put_string(zkl_zk.out, text, length);
	zkl_wire_end(zkl_zk.out, frame);
}
