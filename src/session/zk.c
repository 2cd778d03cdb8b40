/*
 * zk.c
 *	  One connection to ZooKeeper, through the single-threaded C client.
 *
 * Owns the client's handle and socket, the frames about the connection and about
 * events, the reason why a connection broke, and the socket of the question for the
 * version.  Runs in zklock_session only.  Takes no lock.  It must not know
 * PostgreSQL, the link's descriptor, locks, leases or retries: it decides nothing,
 * it connects and reports.  Requests are zkrequest.c's.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* strcasestr */
#endif
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "session/host_look.h"
#include "session/relay.h"
#include "session/zkstate.h"
#include "wire/version.h"

/* ---- zkraw ---- */

/*
 * What is said to a ZooKeeper server past the client: which version it has, whether
 * its port speaks ZooKeeper's protocol or TLS, and whether it has closed the
 * session.
 *
 * It must not know how the connection comes and goes, nor what the answers are for.
 */

static int64_t
clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ----------
 * The version
 *
 * ZooKeeper's protocol does not tell it.  The four letters "srvr", sent in place
 * of a handshake, make a server answer in words and close the connection, if its
 * 4lw.commands.whitelist has them, as by default.
 * ----------
 */

#define QUESTION	"srvr"
#define MARK		"Zookeeper version: "
#define KEEPER_MARK	"ClickHouse Keeper version: "
#define VERSION		"0123456789."

static int	asking = -1;
static bool asked;				/* the question was sent */
static char answer[256];
static size_t answer_length;

static void
hang_up(void)
{
	close(asking);
	asking = -1;
}

void
zkl_zkraw_ask_version(const char *address)
{
	if (asking >= 0)
		return;
	asking = zkl_resolve_dial(address);
	asked = false;
	answer_length = 0;
}

void
zkl_zkraw_interest(struct pollfd *pfd)
{
	pfd->fd = asking;
	pfd->events = asked ? POLLIN : POLLOUT;
}

/*
 * "Zookeeper version: 3.8.0-<commit>, built on ...".  Whatever answers on the port,
 * nothing but a number gets into the log.
 */
static const char *
version_of(void)
{
	char	   *version = strstr(answer, MARK);

	if (version == NULL)
		return NULL;
	version += strlen(MARK);
	if (version[strspn(version, VERSION)] == '\0')
		return NULL;
	version[strspn(version, VERSION)] = '\0';
	return version;
}

static const char *
read_answer(void)
{
	size_t		room = sizeof(answer) - 1 - answer_length;
	ssize_t		n = recv(asking, answer + answer_length, room, MSG_DONTWAIT);
	const char *version;

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return NULL;
	answer_length += n > 0 ? (size_t) n : 0;
	answer[answer_length] = '\0';
	if (strstr(answer, KEEPER_MARK) != NULL)
		zkl_zkevent_refuse_keeper();
	version = version_of();
	if (version != NULL || n <= 0 || answer_length == sizeof(answer) - 1)
		hang_up();
	return version;
}

const char *
zkl_zkraw_version(const struct pollfd *pfd)
{
	if (asking < 0 || pfd->revents == 0)
		return NULL;
	if (asked)
		return read_answer();
	asked = send(asking, QUESTION, strlen(QUESTION), MSG_NOSIGNAL) > 0;
	if (!asked)
		hang_up();
	return NULL;
}

/* ----------
 * TLS, or something else
 *
 * A ZooKeeper server that takes TLS only closes the connection of a client that
 * does not speak it, without a word, as one without a quorum does.  What tells
 * them apart is a ClientHello: whatever a TLS server thinks of it, it answers
 * with a record of TLS, a ServerHello or an alert.
 * ----------
 */

#define RECORD_ALERT		0x15
#define RECORD_HANDSHAKE	0x16
#define RECORD_MAJOR		3
#define TLS_PATIENCE_MS		500

/* The least that is a ClientHello: TLS 1.2, four common ciphers */
static const unsigned char client_hello[] = {
	RECORD_HANDSHAKE, 3, 1, 0, 51,	/* a record of 51 bytes */
	1, 0, 0, 47,				/* a ClientHello of 47 bytes */
	3, 3,						/* TLS 1.2 */
	'z', 'k', 'l', 'o', 'c', 'k', ' ', 'l',
	'o', 'o', 'k', 's', ' ', 'f', 'o', 'r',
	' ', 'T', 'L', 'S', ' ', 'a', 'n', 'd',
	' ', 'g', 'o', 'e', 's', '.', '.', '.',
	0,							/* no session to resume */
	0, 8, 0xc0, 0x2f, 0xc0, 0x2b, 0, 0x9c, 0, 0x2f,
	1, 0						/* no compression */
};

/* How the records of TLS 1.0 to 1.3 begin; n may be too short to tell. */
static bool
is_tls(const unsigned char *bytes, ssize_t n)
{
	return n >= 2 && bytes[1] == RECORD_MAJOR &&
		(bytes[0] == RECORD_ALERT || bytes[0] == RECORD_HANDSHAKE);
}

/* Whether the socket is ready for that in time; an error counts as ready. */
static bool
wait_for(int fd, short events, int64_t until)
{
	struct pollfd pfd = {fd, events, 0};
	int64_t		left = until - clock_ms();

	return left > 0 && poll(&pfd, 1, (int) left) == 1;
}

/* Greets a server in TLS; whether it answers in TLS within that time */
static bool
answers_in_tls(const char *address, int timeout_ms)
{
	int64_t		until = clock_ms() + timeout_ms;
	int			fd = zkl_resolve_dial(address);
	unsigned char bytes[2] = {0};
	ssize_t		n = 0;

	if (fd < 0)
		return false;
	if (wait_for(fd, POLLOUT, until) &&
		send(fd, client_hello, sizeof(client_hello), MSG_NOSIGNAL) ==
		(ssize_t) sizeof(client_hello) &&
		wait_for(fd, POLLIN, until))
		n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	close(fd);
	return is_tls(bytes, n);
}

static void
say_tls(void)
{
	zkl_zk_gone(ZKL_WIRE_GONE_UNREACHABLE,
				"\"%s\" requires TLS: set \"zklock.tls\"", zkl_zk.start->host);
}

/* A port without TLS may close a connection for other reasons: only TLS tells. */
bool
zkl_zkraw_requires_tls(const char *address)
{
	int			patience = (int) zkl_zk.start->timeout_ms / 20;

	if (zkl_zk.start->tls || !zkl_zkevent_was_closed() ||
		!answers_in_tls(address, patience < TLS_PATIENCE_MS ? patience :
						TLS_PATIENCE_MS))
		return false;
	say_tls();
	return true;
}

/*
 * The client takes any 41 bytes for the answer to its handshake, and an
 * unknown session id in them for an expired session.  A proxy's error page
 * must not cost the worker its locks, so look at the bytes first: a length of
 * 36 or 37, and protocol version 0.
 */
bool
zkl_zkraw_is_garbage(int fd)
{
	static const unsigned char expected[8] = {0, 0, 0, 37, 0, 0, 0, 0};
	unsigned char seen[8];
	ssize_t		n;
	bool		good = true;

	if (zoo_state(zkl_zk.handle) != ZOO_ASSOCIATING_STATE)
		return false;
	n = recv(fd, seen, sizeof(seen), MSG_PEEK | MSG_DONTWAIT);
	for (ssize_t i = 0; i < n; i++)
		good &= seen[i] == expected[i] || (i == 3 && seen[i] == 36);
	if (!good && !zkl_zk.start->tls && is_tls(seen, n))
		say_tls();
	else if (!good)
		zkl_zk_gone(ZKL_WIRE_GONE_UNREACHABLE,
					"\"%s\" does not speak ZooKeeper's protocol",
					zkl_zk.start->host);
	return !good;
}

/* ----------
 * The answer to the close
 *
 * The client sends the request and hangs up without waiting for the answer.  So
 * its socket is kept open under another descriptor, and read to the answer: the
 * only one that is still to come, beside those to pings and watch events, whose
 * numbers are negative.
 * ----------
 */

#define HEADER_BYTES	20		/* length, number, transaction id, error */
#define MOST_BYTES		(16 * 1024 * 1024)

typedef struct Frames
{
	unsigned char header[HEADER_BYTES];
	int			have;			/* bytes of the header */
	int32_t		skip;			/* bytes of the body that are to come */
	bool		garbage;
} Frames;

static int32_t
get_int(const unsigned char *bytes)
{
	return (int32_t) ((uint32_t) bytes[0] << 24 | (uint32_t) bytes[1] << 16 |
					  (uint32_t) bytes[2] << 8 | bytes[3]);
}

/* Whether it completes the header of the answer */
static bool
take_byte(Frames *frames, unsigned char byte)
{
	int32_t		length;

	if (frames->skip > 0)
	{
		frames->skip--;
		return false;
	}
	frames->header[frames->have++] = byte;
	if (frames->have < HEADER_BYTES)
		return false;
	frames->have = 0;
	length = get_int(frames->header);
	frames->skip = length - (HEADER_BYTES - 4);
	frames->garbage = frames->skip < 0 || length > MOST_BYTES;
	return !frames->garbage && get_int(frames->header + 4) > 0 &&
		get_int(frames->header + HEADER_BYTES - 4) == ZOK;
}

bool
zkl_zkraw_await_close(int fd, int timeout_ms)
{
	int64_t		until = clock_ms() + timeout_ms;
	Frames		frames;
	unsigned char bytes[4096];

	memset(&frames, 0, sizeof(frames));
	while (!frames.garbage)
	{
		struct pollfd fds[2] = {{fd, POLLIN, 0}, {-1, 0, 0}};
		int64_t		left = until - clock_ms();
		ssize_t		n;

		zkl_relay_move(true);
		zkl_relay_interest(&fds[1], true);
		if (left <= 0 || poll(fds, 2, (int) left) <= 0)
			return false;
		n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			return false;
		for (ssize_t i = 0; i < n && !frames.garbage; i++)
		{
			if (take_byte(&frames, bytes[i]))
				return true;
		}
	}
	return false;
}

/* ---- zkevent ---- */

/*
 * What the client tells unasked: events of the session and of watches, and its log,
 * from which alone one learns why a connection broke.
 *
 * It decides nothing, and no secret passes it.
 */

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

/* ---- zk ---- */

/*
 * The client would reconnect by itself, register its watches again and send
 * what is queued; the worker wants to do that with its eyes open.  So the
 * first sign that an established connection broke ends in GONE, and the
 * caller exits before the client gets another turn.
 *
 * With TLS the client's socket leads to the relay (relay.c).
 */

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
