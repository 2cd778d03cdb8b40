/*
 * zkraw.c
 *	  What is said to a ZooKeeper server past the client: which version it has,
 *	  whether its port speaks ZooKeeper's protocol or TLS, and whether it has
 *	  closed the session.
 *
 * Owns the socket of the question for the version.  Runs in zklock_session only.
 * Takes no lock.  It must not know how the connection comes and goes, nor what the
 * answers are for.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "session/relay.h"
#include "session/resolve.h"
#include "session/zkstate.h"

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
