/*
 * zk.c
 *	  One connection to ZooKeeper, through the single-threaded C client.
 *
 * Owns the client's handle and socket, and the frames about the connection.
 * Runs in zklock_session only.  Takes no lock.  It must not know PostgreSQL,
 * the link's descriptor, locks, leases or retries: it decides nothing, it
 * connects and reports.  Events and the client's log are zkevent.c's, requests
 * zkrequest.c's, and zkraw.c speaks to servers past the client.
 *
 * The client would reconnect by itself, register its watches again and send
 * what is queued; the worker wants to do that with its eyes open.  So the
 * first sign that an established connection broke ends in GONE, and the
 * caller exits before the client gets another turn.
 *
 * With TLS the client's socket leads to the relay (relay.c).
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session/relay.h"
#include "session/zkstate.h"

/* Polls in a row that found bytes which the client does not read. */
#define MAX_STALLS		100
#define CLOSE_PATIENCE_MS	800 /* the worker waits a second */

ZklZkState	zkl_zk;

static int	tried;				/* addresses tried, with the present one */
static int	client_fd = -1;		/* the client's socket, or -1 */
static int	stalls;
static bool accepted;			/* that was told */

void
zkl_zk_init(ZklWireBuffer *out, uint32_t generation)
{
	zkl_zk.out = out;
	zkl_zk.generation = generation;
}

bool
zkl_zk_is_gone(void)
{
	return zkl_zk.gone;
}

void
zkl_zk_tell_step(ZklWireStep step)
{
	size_t		frame = zkl_zkstate_begin_frame(ZKL_WIRE_STEP, 0, 0);

	zkl_wire_put_u8(zkl_zk.out, (uint8_t) step);
	zkl_wire_end(zkl_zk.out, frame);
}

static void
say_gone(ZklWireGone reason, const char *text)
{
	size_t		frame = zkl_zkstate_begin_frame(ZKL_WIRE_GONE, 0, 0);

	zkl_wire_put_u8(zkl_zk.out, reason);
	zkl_wire_put_text(zkl_zk.out, text);
	zkl_wire_end(zkl_zk.out, frame);
}

void
zkl_zk_gone(ZklWireGone reason, const char *format,...)
{
	char		text[512];
	va_list		args;

	if (zkl_zk.gone)
		return;
	zkl_zk.gone = true;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say_gone(reason, text);
}

/* ----------
 * Connecting
 * ----------
 */

static void
open_next_address(void)
{
	const ZklZkStart *start = zkl_zk.start;
	int			index = (start->first + tried) % start->naddresses;
	clientid_t	id;

	tried++;
	memset(&id, 0, sizeof(id));
	id.client_id = start->session_id;
	memcpy(id.passwd, start->password, sizeof(id.passwd));

	zkl_zk.handle = zookeeper_init2(start->addresses[index], zkl_zkevent_watcher,
									(int) start->timeout_ms,
									id.client_id != 0 ? &id : NULL, NULL,
									ZOO_NO_LOG_CLIENTENV, zkl_zkevent_log);
	if (zkl_zk.handle == NULL)
	{
		zkl_zk_gone(ZKL_WIRE_GONE_UNREACHABLE,
					"could not connect to \"%s\": %s", start->host,
					strerror(errno));
		return;
	}

	/* The address is a number; the client would resolve it at each poll. */
	zoo_set_servers_resolution_delay(zkl_zk.handle, -1);

	for (uint32_t i = 0; i < start->ncredentials; i++)
	{
		const ZklZkCredentials *one = &start->credentials[i];

		zoo_add_auth(zkl_zk.handle, one->scheme, one->secret,
					 (int) one->length, zkl_zkevent_authenticated, NULL);
	}
}

/* Those of the scheme "ensemble" say whom we want to talk to, not who we are. */
static bool
names_us(const ZklZkStart *start)
{
	for (uint32_t i = 0; i < start->ncredentials; i++)
	{
		if (strcmp(start->credentials[i].scheme, ZKL_SCHEME_ENSEMBLE) != 0)
			return true;
	}
	return false;
}

static void
choose_acls(const ZklZkStart *start)
{
	static struct ACL acl[2];

	if (!names_us(start))
	{
		zkl_zk.acls = zkl_zk.private_acls = ZOO_OPEN_ACL_UNSAFE;
		return;
	}
	acl[0].perms = ZOO_PERM_ALL;
	acl[0].id = ZOO_AUTH_IDS;
	acl[1].perms = ZOO_PERM_READ;
	acl[1].id = ZOO_ANYONE_ID_UNSAFE;
	zkl_zk.access = start->is_private ? ZKL_ACCESS_PRIVATE : ZKL_ACCESS_READ;
	zkl_zk.acls.count = start->is_private ? 1 : 2;
	zkl_zk.private_acls.count = 1;
	zkl_zk.acls.data = zkl_zk.private_acls.data = acl;
}

void
zkl_zk_start(const ZklZkStart *start)
{
	zkl_zk.start = start;
	zkl_zkevent_want_log(start->wants_log);
	choose_acls(start);

	if (start->tls && !zkl_tls_begin(&start->trust))
	{
		zkl_zk_gone(zkl_tls_is_distrusted() ? ZKL_WIRE_GONE_DISTRUSTED :
					ZKL_WIRE_GONE_UNREACHABLE, "%s", zkl_tls_error());
		return;
	}
	if (start->tls)
		zkl_relay_begin(start->name);
	open_next_address();
}

/* What the relay knows is nearer to the cause. */
static const char *
why_failed(void)
{
	const char *error = zkl_relay_error();

	return error != NULL ? error : zkl_zkevent_error();
}

static const char *
last_address(void)
{
	const ZklZkStart *start = zkl_zk.start;

	return start->addresses[(start->first + tried - 1) % start->naddresses];
}

/*
 * The client gave the connection, or the attempt at one, up.  Its own list of
 * addresses is of no use: after a failure it skips the next one.
 */
static void
connection_failed(void)
{
	const ZklZkStart *start = zkl_zk.start;

	if (zkl_zk.gone)
		return;
	if (zkl_zk.established)
		zkl_zk_gone(ZKL_WIRE_GONE_DISCONNECTED,
					"connection to \"%s\" lost: %s", start->host,
					why_failed());
	else if (tried < start->naddresses)
	{
		zookeeper_close(zkl_zk.handle);
		client_fd = -1;
		open_next_address();
	}
	else if (!zkl_zkraw_requires_tls(last_address()))
		zkl_zk_gone(zkl_tls_is_distrusted() ? ZKL_WIRE_GONE_DISTRUSTED :
					ZKL_WIRE_GONE_UNREACHABLE,
					"could not connect to \"%s\": %s", start->host,
					why_failed());
}

/*
 * A negative frame length makes the client ignore a socket that stays
 * readable.  A frame of which only a part has arrived leaves nothing unread.
 */
static bool
is_stalled(void)
{
	int			unread = 0;

	if (ioctl(client_fd, FIONREAD, &unread) != 0 || unread == 0)
		stalls = 0;
	return unread > 0 && ++stalls > MAX_STALLS;
}

/*
 * Whether the client waits for the network or for the answer to its handshake.  It
 * would give up after two thirds of the session timeout, but how long that may take
 * the worker decides, so the client is not asked.  It works only when something has
 * happened.
 */
static bool
is_shaking_hands(void)
{
	int			state = zoo_state(zkl_zk.handle);

	return client_fd >= 0 && (state == ZOO_CONNECTING_STATE ||
							  state == ZOO_ASSOCIATING_STATE);
}

static void
tell_accepted(void)
{
	if (accepted || (zkl_relay_is_on() ? !zkl_relay_is_accepted() :
					 zoo_state(zkl_zk.handle) != ZOO_ASSOCIATING_STATE))
		return;
	accepted = true;
	zkl_zk_tell_step(ZKL_WIRE_STEP_ACCEPTED);
}

/* With TLS, the port for plain text is not known. */
void
zkl_zk_ask_version(void)
{
	if (!zkl_zk.start->tls)
		zkl_zkraw_ask_version(last_address());
}

static void
tell_version(const char *version)
{
	size_t		frame = zkl_zkstate_begin_frame(ZKL_WIRE_VERSION, 0, 0);

	zkl_wire_put_text(zkl_zk.out, version);
	zkl_wire_end(zkl_zk.out, frame);
}

void
zkl_zk_own_address(char *address, size_t size)
{
	int			fd = zkl_relay_is_on() ? zkl_relay_network() : client_fd;
	struct sockaddr_storage own;
	socklen_t	length = sizeof(own);

	if (getsockname(fd, (struct sockaddr *) &own, &length) != 0 ||
		getnameinfo((struct sockaddr *) &own, length, address, (socklen_t) size,
					NULL, 0, NI_NUMERICHOST) != 0)
		address[0] = '\0';
}

static void
attend_to_client(int *interest, struct timeval *tv)
{
	/* A send that failed closes the client's socket without a word. */
	if (zkl_zk.established && zoo_state(zkl_zk.handle) != ZOO_CONNECTED_STATE)
		connection_failed();

	while (!zkl_zk.gone && zookeeper_interest(zkl_zk.handle, &client_fd,
											  interest, tv) != ZOK)
		connection_failed();

	/* Never in plaintext what was to go through TLS */
	if (zkl_relay_is_on() && client_fd >= 0 && !zkl_relay_owns(client_fd))
		zkl_zk_gone(ZKL_WIRE_GONE_UNREACHABLE,
					"TLS is not possible with this build of ZooKeeper's client library, which connects by itself");
}

void
zkl_zk_interest(struct pollfd *fds, int *timeout_ms, bool reads)
{
	struct timeval tv = {0, 0};
	int			interest = 0;

	if (is_shaking_hands())
	{
		tell_accepted();
		interest = ZOOKEEPER_READ;
		if (zoo_state(zkl_zk.handle) == ZOO_CONNECTING_STATE)
			interest |= ZOOKEEPER_WRITE;
		*timeout_ms = -1;
	}
	else
	{
		attend_to_client(&interest, &tv);
		*timeout_ms = (int) (tv.tv_sec * 1000 + (tv.tv_usec + 999) / 1000);
	}
	if (zkl_zk.gone)
		return;

	if ((interest & ZOOKEEPER_READ) && reads)
		fds[0].events |= POLLIN;
	if (interest & ZOOKEEPER_WRITE)
		fds[0].events |= POLLOUT;

	/* poll reports errors unasked, and the client would not take them in. */
	fds[0].fd = fds[0].events != 0 ? client_fd : -1;

	zkl_relay_move(reads);
	zkl_relay_interest(&fds[1], reads);
	zkl_zkraw_interest(&fds[2]);
}

void
zkl_zk_close(void)
{
	int			fd = zkl_zk.connected && client_fd >= 0 ? dup(client_fd) : -1;
	bool		closed;

	/* Nothing that the client says while it closes is of interest. */
	zkl_zk.gone = true;
	zookeeper_close(zkl_zk.handle);
	closed = fd >= 0 && zkl_zkraw_await_close(fd, CLOSE_PATIENCE_MS);
	if (fd >= 0)
		close(fd);
	say_gone(closed ? ZKL_WIRE_GONE_CLOSED : ZKL_WIRE_GONE_DISCONNECTED,
			 closed ? "session closed" :
			 "no answer to the request to close the session");
}

static bool
has_room(size_t limit)
{
	return zkl_zk.out->end - zkl_zk.out->start < limit;
}

/* The client takes in one frame per call. */
static void
let_client_work(int events, size_t limit)
{
	bool		first = true;

	while (!zkl_zk.gone)
	{
		int			rc;

		/* What is to be sent is sent even then, or poll would not wait. */
		if (!has_room(limit))
			events &= ~ZOOKEEPER_READ;
		if (events == 0)
			break;
		if (zkl_zkraw_is_garbage(client_fd))
			return;

		rc = zookeeper_process(zkl_zk.handle, events);
		if (rc == ZNOTHING)
		{
			if (first && is_stalled())
			{
				zkl_zkevent_set_error("invalid frame");
				connection_failed();
			}
			break;
		}
		if (rc != ZOK)
		{
			connection_failed();
			break;
		}
		stalls = 0;
		first = false;
		events &= ZOOKEEPER_READ;
	}
}

void
zkl_zk_process(const struct pollfd *fds, size_t limit)
{
	short		revents = fds[0].revents;
	int			events = 0;
	const char *version = zkl_zkraw_version(&fds[2]);

	if (version != NULL)
		tell_version(version);

	/* What has just arrived the client can have at once. */
	if (fds[1].revents != 0)
	{
		zkl_relay_move(has_room(limit));
		revents |= POLLIN;
	}
	if (revents & (POLLIN | POLLERR | POLLHUP))
		events |= ZOOKEEPER_READ;
	if (revents & (POLLOUT | POLLERR | POLLHUP))
		events |= ZOOKEEPER_WRITE;
	let_client_work(events, limit);

	if (zkl_zk.closing && zkl_zk.in_flight == 0 && !zkl_zk.gone)
		zkl_zk_close();
}

static void
set_cork(int on)
{
	if (!zkl_zk.connected || zkl_zk.gone || client_fd < 0)
		return;
	if (zkl_relay_is_on())
		zkl_relay_cork(on);
	else
		setsockopt(client_fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
}

void
zkl_zk_hold(void)
{
	set_cork(1);
}

void
zkl_zk_release(void)
{
	zkl_relay_move(false);
	set_cork(0);
}
