/*
 * zkevent.c
 *	  What the client tells unasked: events of the session and of watches, and its
 *	  log, from which alone one learns why a connection broke.
 *
 * Owns the frames about them, and that reason.  Runs in zklock_session only.  Takes
 * no lock.  It decides nothing, and no secret passes it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* strcasestr */
#endif

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/relay.h"
#include "session/zkstate.h"
#include "wire/version.h"

#define MIN_TIMEOUT_MS	200		/* two ticks of a server that is in a hurry */
#define MAX_TIMEOUT_MS	(3600 * 1000)	/* zklock.session_timeout has the same */

static bool wants_log;
static char client_error[256] = "connection failed";
static bool was_closed;			/* by the server: that is the error */

/* ----------
 * Events
 * ----------
 */

static void
put_tls(void)
{
	ZklTlsFacts facts = {"", "", 0, 0, 0};

	if (zkl_relay_is_on())
		facts = zkl_tls_facts();
	zkl_wire_put_text(zkl_zk.out, facts.version);
	zkl_wire_put_text(zkl_zk.out, facts.cipher);
	zkl_wire_put_i64(zkl_zk.out, facts.certificate_until);
	zkl_wire_put_i64(zkl_zk.out, facts.ca_until);
	zkl_wire_put_i64(zkl_zk.out, facts.server_until);
}

static void
send_connected(void)
{
	const clientid_t *id = zoo_client_id(zkl_zk.handle);
	int			timeout_ms = zoo_recv_timeout(zkl_zk.handle);
	char		address[64];
	size_t		frame;

	/* No server of ZooKeeper's offers that, whatever it is asked for. */
	if (id->client_id == 0 || timeout_ms < MIN_TIMEOUT_MS ||
		timeout_ms > MAX_TIMEOUT_MS)
	{
		zkl_zk_gone(ZKL_WIRE_GONE_DISCONNECTED,
					"\"%s\" offers a session timeout of %d ms", zkl_zk.start->host,
					timeout_ms);
		return;
	}
	zkl_zk.connected = true;
	frame = zkl_zkstate_begin_frame(ZKL_WIRE_CONNECTED, 0, 0);
	zkl_wire_put_i64(zkl_zk.out, id->client_id);
	zkl_wire_put_string(zkl_zk.out, id->passwd, ZKL_PASSWORD_BYTES);
	zkl_wire_put_u32(zkl_zk.out, (uint32_t) timeout_ms);
	zkl_wire_put_text(zkl_zk.out, ZKL_VERSION);
	zkl_wire_put_u32(zkl_zk.out, ZKL_LINK_PROTOCOL);
	put_tls();
	zkl_wire_put_u8(zkl_zk.out, (uint8_t) zkl_zk.access);
	zkl_zk_own_address(address, sizeof(address));
	zkl_wire_put_text(zkl_zk.out, address);
	zkl_wire_end(zkl_zk.out, frame);
}

/* The client does not tell which of several were refused. */
static void
tell_refused(void)
{
	const ZklZkStart *start = zkl_zk.start;
	char		schemes[256] = "";
	size_t		length = 0;

	for (uint32_t i = 0; i < start->ncredentials && length < sizeof(schemes); i++)
		length += (size_t) snprintf(schemes + length, sizeof(schemes) - length,
									"%s\"%s\"", i > 0 ? " or " : "",
									start->credentials[i].scheme);
	zkl_zk_gone(ZKL_WIRE_GONE_AUTH_FAILED,
				"\"%s\" refused the credentials of scheme %s", start->host,
				schemes);
}

/*
 * ClickHouse Keeper ends sessions by the wall clock (SessionExpiryQueue.h), so a step of
 * its leader's clock ends one inside of our lease.
 */
void
zkl_zkevent_refuse_keeper(void)
{
	zkl_zk_gone(ZKL_WIRE_GONE_UNSUITABLE,
				"\"%s\" is ClickHouse Keeper, whose sessions end by the wall clock",
				zkl_zk.start->host);
}

/*
 * It cannot attach a session again, so it gives none a password
 * (KeeperTCPHandler::sendHandshake).  Those of ZooKeeper are random.
 */
static bool
is_keeper(void)
{
	static const char none[ZKL_PASSWORD_BYTES];

	return memcmp(zoo_client_id(zkl_zk.handle)->passwd, none, sizeof(none)) == 0;
}

static void
session_event(int state)
{
	if (state == ZOO_CONNECTED_STATE && is_keeper())
		zkl_zkevent_refuse_keeper();
	else if (state == ZOO_CONNECTED_STATE)
	{
		zkl_zk.established = true;
		if (zkl_zk.start->ncredentials == 0)
			send_connected();
	}
	else if (state == ZOO_EXPIRED_SESSION_STATE)
		zkl_zk_gone(ZKL_WIRE_GONE_EXPIRED, "session has expired");
	else if (state == ZOO_AUTH_FAILED_STATE)
		tell_refused();
	else if (state == ZOO_READONLY_STATE)
		zkl_zk_gone(ZKL_WIRE_GONE_UNREACHABLE, "\"%s\" is read-only",
					zkl_zk.start->host);
	else if (zkl_zk.established)
		zkl_zk_gone(ZKL_WIRE_GONE_DISCONNECTED,
					"connection to \"%s\" lost: %s", zkl_zk.start->host,
					zkl_zkevent_error());
}

/*
 * The session's watcher, and every watch's too: one function with one context
 * makes the client report the deletion of a node that has several watches
 * once.
 */
void
zkl_zkevent_watcher(zhandle_t *handle, int type, int state, const char *path,
					void *context)
{
	ZklWireEvent event = ZKL_WIRE_EVENT_OTHER;
	size_t		frame;

	(void) handle;
	(void) context;

	if (zkl_zk.gone)
		return;
	if (type == ZOO_SESSION_EVENT)
	{
		session_event(state);
		return;
	}

	if (type == ZOO_DELETED_EVENT)
		event = ZKL_WIRE_EVENT_DELETED;
	else if (type == ZOO_CHANGED_EVENT)
		event = ZKL_WIRE_EVENT_CHANGED;
	else if (type == ZOO_CHILD_EVENT)
		event = ZKL_WIRE_EVENT_CHILDREN;

	frame = zkl_zkstate_begin_frame(ZKL_WIRE_EVENT, 0, 0);
	zkl_wire_put_u8(zkl_zk.out, event);
	zkl_wire_put_text(zkl_zk.out, path);
	zkl_wire_end(zkl_zk.out, frame);
}

/*
 * A server that takes only clients which authenticate says so in answer to the
 * first request, and then closes the connection.
 */
void
zkl_zkevent_heed(int rc)
{
	if (rc == ZSESSIONCLOSEDREQUIRESASLAUTH)
		zkl_zk_gone(ZKL_WIRE_GONE_AUTH_FAILED,
					"\"%s\" requires authentication", zkl_zk.start->host);
}

/*
 * A refusal arrives as a session event as well, which is where it counts.  All
 * credentials were sent before any request, and one answer stands for all of them.
 */
void
zkl_zkevent_authenticated(int rc, const void *data)
{
	(void) data;

	if (rc == ZOK && !zkl_zk.gone && !zkl_zk.connected)
		send_connected();
}

/* ----------
 * The log
 * ----------
 */

/* Errors are always wanted here, for remember_error. */
void
zkl_zkevent_want_log(bool wanted)
{
	wants_log = wanted;
	zoo_set_debug_level(wanted ? ZOO_LOG_LEVEL_DEBUG : ZOO_LOG_LEVEL_ERROR);
}

const char *
zkl_zkevent_error(void)
{
	return client_error;
}

bool
zkl_zkevent_was_closed(void)
{
	return was_closed;
}

void
zkl_zkevent_set_error(const char *text)
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
	const ZklZkStart *start = zkl_zk.start;

	for (uint32_t i = 0; i < start->ncredentials; i++)
	{
		if (start->credentials[i].length > 0 &&
			strstr(text, start->credentials[i].secret) != NULL)
			return true;
	}
	return strcasestr(text, "passw") != NULL;
}

/* "<time>:<pid>:ZOO_<LEVEL>@<function>@<line>: <text>" */
void
zkl_zkevent_log(const char *message)
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
