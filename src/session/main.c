/*
 * main.c
 *	  zklock_session: keeps one connection to ZooKeeper for the worker.
 *
 * Owns the process itself, the link (a socket to the worker, descriptor 3), the poll
 * loop, and what START says: where to connect to, and as whom.  Is the whole of the
 * session process; takes no lock.  It must not know PostgreSQL, or ZooKeeper's client,
 * which is zk.c's.  With arguments, a backend has started it, to look at a host: host_look.c.
 *
 * The worker's life is ours: when the link ends, so does the process, at
 * once, without closing the ZooKeeper session and without executing what it
 * has read but not yet executed.  The next worker counts the time of the session
 * from the end of this process.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* asprintf, POLLRDHUP */
#endif

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session/host_look.h"
#include "session/relay.h"
#include "session/zk.h"
#include "wire/version.h"
#include "wire/wire.h"

/* ---- START ---- */

/* A string of the frame, for good; it may not have a NUL inside. */
static char *
keep_string(ZklWireReader *body, uint32_t *length)
{
	uint32_t	n;
	const char *bytes = zkl_wire_get_string(body, &n);
	char	   *copy = malloc((size_t) n + 1);

	if (copy == NULL)
		_exit(1);
	memcpy(copy, bytes, n);
	copy[n] = '\0';
	if (strlen(copy) != n)
		body->bad = true;
	if (length != NULL)
		*length = n;
	return copy;
}

static void
read_trust(ZklZkStart *start, ZklWireReader *body)
{
	uint8_t		tls = zkl_wire_get_u8(body);

	start->tls = tls != ZKL_TLS_OFF;
	start->trust.check_name = tls != ZKL_TLS_VERIFY_CA;
	start->trust.ca = keep_string(body, NULL);
	start->trust.certificate = keep_string(body, NULL);
	start->trust.key = keep_string(body, NULL);
}

/* The least that credentials take in the frame */
#define MIN_CREDENTIALS	8

static void
read_credentials(ZklZkStart *start, ZklWireReader *body)
{
	uint32_t	n = zkl_wire_get_u32(body);
	ZklZkCredentials *all;

	if (n > body->left / MIN_CREDENTIALS)
	{
		body->bad = true;
		return;
	}
	all = calloc((size_t) n + 1, sizeof(ZklZkCredentials));
	if (all == NULL)
		_exit(1);
	for (uint32_t i = 0; i < n; i++)
	{
		all[i].scheme = keep_string(body, NULL);
		all[i].secret = keep_string(body, &all[i].length);
	}
	start->credentials = all;
	start->ncredentials = n;
	start->is_private = zkl_wire_get_u8(body) != 0;
}

/* Reads the body of START.  False: it is malformed. */
static bool
read_start(ZklZkStart *start, ZklWireReader *body)
{
	const char *password;
	uint32_t	length;

	start->host = keep_string(body, NULL);
	start->session_id = zkl_wire_get_i64(body);
	password = zkl_wire_get_string(body, &length);
	if (length == ZKL_PASSWORD_BYTES)
		memcpy(start->password, password, ZKL_PASSWORD_BYTES);
	else if (length != 0 || start->session_id != 0)
		body->bad = true;
	start->timeout_ms = zkl_wire_get_u32(body);
	read_credentials(start, body);
	start->wants_log = zkl_wire_get_u8(body) != 0;
	read_trust(start, body);
	return !body->bad && body->left == 0 && start->timeout_ms <= INT32_MAX;
}

/* ---- the process ---- */

#define READ_SIZE		((size_t) 64 * 1024)

/* With this much unsent, neither the link nor ZooKeeper is read. */
#define MAX_UNSENT		((size_t) 4 * 1024 * 1024)

/* How long the last frames wait for a worker that does not read. */
#define FAREWELL_MS		1000

static ZklWireBuffer input;
static ZklWireBuffer output;
static uint32_t generation;
static bool started;

static void
die_on_quit(int signo)
{
	(void) signo;
	_exit(2);
}

static void
die_on_abort(int signo)
{
	(void) signo;
	_exit(3);
}

/*
 * The postmaster signals whole process groups.  A shutdown must reach the
 * worker first, which still has locks to give back through us; only the
 * signals that mean "stop at once" count here.
 */
static void
set_up_signals(void)
{
	static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};
	struct sigaction action;
	sigset_t	none;

	memset(&action, 0, sizeof(action));
	sigemptyset(&action.sa_mask);

	action.sa_handler = SIG_IGN;
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		sigaction(ignored[i], &action, NULL);

	action.sa_handler = die_on_quit;
	sigaction(SIGQUIT, &action, NULL);
	action.sa_handler = die_on_abort;
	sigaction(SIGABRT, &action, NULL);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Dies with the worker, also when that happened a moment ago. */
static void
tie_to_parent(pid_t parent)
{
	struct rlimit no_core = {0, 0};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (parent == 1 || getppid() != parent)
		_exit(1);

	/* A core file would hold the session's password. */
	setrlimit(RLIMIT_CORE, &no_core);
}

static void
check_link(void)
{
	int			type = 0;
	socklen_t	length = sizeof(type);
	int			flags;

	if (getsockopt(ZKL_WIRE_LINK_FD, SOL_SOCKET, SO_TYPE, &type, &length) != 0 ||
		type != SOCK_STREAM)
	{
		fprintf(stderr, "zklock_session is started by the zklock background "
				"worker\n");
		exit(1);
	}
	flags = fcntl(ZKL_WIRE_LINK_FD, F_GETFL);
	if (flags < 0 || fcntl(ZKL_WIRE_LINK_FD, F_SETFL, flags | O_NONBLOCK) != 0)
		_exit(1);
	fcntl(ZKL_WIRE_LINK_FD, F_SETFD, FD_CLOEXEC);
}

/* ---- the link ---- */

static size_t
unsent(void)
{
	return output.end - output.start;
}

/* Writes what the link takes; exits when the worker is gone. */
static void
link_write(void)
{
	while (unsent() > 0)
	{
		ssize_t		n = send(ZKL_WIRE_LINK_FD, output.data + output.start, unsent(),
							 MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n <= 0)
			_exit(0);
		zkl_wire_consume(&output, (size_t) n);
	}
}

static void
link_read(void)
{
	ssize_t		n;

	if (!zkl_wire_reserve(&input, READ_SIZE))
		_exit(1);
	n = recv(ZKL_WIRE_LINK_FD, input.data + input.end, input.capacity - input.end, 0);
	if (n > 0)
		input.end += (size_t) n;
	else if (n == 0 ||
			 (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
		_exit(0);
}

/* Sends what is left, to a worker that may be slow but not stuck. */
static void
leave(int status)
{
	struct pollfd link = {ZKL_WIRE_LINK_FD, POLLOUT, 0};

	do
		link_write();
	while (unsent() > 0 && poll(&link, 1, FAREWELL_MS) > 0);
	_exit(status);
}

static void
malformed(void)
{
	if (!started)
		_exit(1);
	zkl_zk_gone(ZKL_WIRE_GONE_DISCONNECTED, "malformed frame from the worker");
	leave(1);
}

/* ---- the loop ---- */

static void
start(const ZklWireHeader *header, ZklWireReader *body)
{
	static ZklZkStart told;
	const char *fault;
	uint32_t	protocol;

	started = true;
	generation = header->generation;
	zkl_zk_init(&output, generation);
	protocol = zkl_wire_get_u32(body);
	if (protocol != ZKL_LINK_PROTOCOL)
	{
		zkl_zk_gone(ZKL_WIRE_GONE_DISCONNECTED,
					"zklock_session %s is not of the release of the library "
					"(their link protocols are %d and %u): restart PostgreSQL",
					ZKL_VERSION, ZKL_LINK_PROTOCOL, (unsigned) protocol);
		return;
	}
	if (!read_start(&told, body))
		malformed();

	/* To resolve a name can take long, so what is known is told before. */
	zkl_zk_tell_step(ZKL_WIRE_STEP_STARTED);
	link_write();
	told.naddresses = zkl_resolve(told.host, &told.name, &told.addresses, &fault);
	if (told.naddresses == 0)
	{
		zkl_zk_gone(ZKL_WIRE_GONE_UNREACHABLE, "%s", fault);
		return;
	}
	zkl_zk_tell_step(ZKL_WIRE_STEP_RESOLVED);
	link_write();

	/*
	 * An address that swallows packets may cost this process all the time
	 * that it has; the next one begins with the next address.
	 */
	told.first = (int) (generation % (uint32_t) told.naddresses);
	zkl_zk_start(&told);
}

static void
run_frame(const ZklWireHeader *header, ZklWireReader *body)
{
	if (!started)
	{
		if (header->type != ZKL_WIRE_START)
			_exit(1);
		start(header, body);
	}
	else if (!zkl_zkrequest_run(header, body))
		malformed();
}

static bool
is_full(void)
{
	return unsent() + zkl_relay_held() >= MAX_UNSENT;
}

static void
run_frames(void)
{
	ZklWireHeader header;
	ZklWireReader body;
	bool		held = false;
	int			whole = 0;

	while (!zkl_zk_is_gone() && !is_full() &&
		   (whole = zkl_wire_peek(&input, &header, &body)) == 1)
	{
		if (!held)
			zkl_zk_hold();
		held = true;
		run_frame(&header, &body);
		zkl_wire_consume(&input, sizeof(header) + header.length);
	}
	if (held)
		zkl_zk_release();
	if (whole < 0)
		malformed();
}

static void
choose_link_events(struct pollfd *link)
{
	link->fd = ZKL_WIRE_LINK_FD;
	link->events = POLLRDHUP;
	if (unsent() > 0)
		link->events |= POLLOUT;
	if (!is_full())
		link->events |= POLLIN;
}

int
main(int argc, char **argv)
{
	pid_t		parent = getppid();

	/* ps would show the name of the descriptor that was run. */
	prctl(PR_SET_NAME, "zklock_session");
	set_up_signals();
	check_link();
	close(ZKL_WIRE_PROGRAM_FD);
	tie_to_parent(parent);
	if (argc == 3)
		zkl_host_look(argv[1], argv[2]);

	for (;;)
	{
		struct pollfd fds[1 + ZKL_ZK_FDS];
		struct pollfd *link = &fds[0];
		struct pollfd *zk = &fds[1];
		int			timeout_ms = -1;

		for (int i = 0; i < 1 + ZKL_ZK_FDS; i++)
		{
			fds[i].fd = -1;
			fds[i].events = fds[i].revents = 0;
		}
		link_write();
		if (started && !zkl_zk_is_gone())
			zkl_zk_interest(zk, &timeout_ms, !is_full());
		if (input.failed || output.failed)
			_exit(1);
		if (zkl_zk_is_gone())
			leave(0);

		choose_link_events(link);
		if (poll(fds, 1 + ZKL_ZK_FDS, timeout_ms) < 0)
			continue;
		if (link->revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL))
			_exit(0);
		if (link->revents & POLLIN)
			link_read();
		run_frames();
		if (!zkl_zk_is_gone())
			zkl_zk_process(zk, MAX_UNSENT);
	}
}
