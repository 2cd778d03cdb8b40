/*
 * main.c
 *	  zklock_session: keeps one connection to ZooKeeper for the worker.
 *
 * Owns the process itself, the link (a socket to the worker, descriptor 3)
 * and the poll loop.  Is the whole of the session process; takes no lock.  It
 * must not know PostgreSQL, or ZooKeeper's client, which is zk.c's.
 *
 * The worker's life is ours: when the link ends, so does the process, at
 * once, without closing the ZooKeeper session and without executing what it
 * has read but not yet executed.  The worker may be gone for good, or its
 * successor may be about to attach the same session.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* POLLRDHUP */
#endif

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session/zk.h"
#include "wire/wire.h"

#define LINK_FD			3
#define READ_SIZE		((size_t) 64 * 1024)

/* With this much unsent, neither the link nor ZooKeeper is read. */
#define MAX_UNSENT		((size_t) 4 * 1024 * 1024)

/* How long the last frames wait for a worker that does not read. */
#define FAREWELL_MS		1000

static ZklWireBuffer input;
static ZklWireBuffer output;
static uint32_t generation;
static bool started;

/* ----------
 * The process
 * ----------
 */

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

	if (getsockopt(LINK_FD, SOL_SOCKET, SO_TYPE, &type, &length) != 0 ||
		type != SOCK_STREAM)
	{
		fprintf(stderr, "zklock_session is started by the zklock background "
				"worker\n");
		exit(1);
	}
	flags = fcntl(LINK_FD, F_GETFL);
	if (flags < 0 || fcntl(LINK_FD, F_SETFL, flags | O_NONBLOCK) != 0)
		_exit(1);
	fcntl(LINK_FD, F_SETFD, FD_CLOEXEC);
}

/* ----------
 * The link
 * ----------
 */

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
		ssize_t		n = send(LINK_FD, output.data + output.start, unsent(),
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
	n = recv(LINK_FD, input.data + input.end, input.capacity - input.end, 0);
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
	struct pollfd link = {LINK_FD, POLLOUT, 0};

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

/* ----------
 * START
 * ----------
 */

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

/* Turns what getaddrinfo found into "address:port[/chroot]". */
static void
list_addresses(ZklZkTarget *target, struct addrinfo *found, const char *port,
			   const char *chroot)
{
	int			n = 1;			/* calloc is never asked for none */

	for (struct addrinfo *a = found; a != NULL; a = a->ai_next)
		n++;
	target->addresses = calloc((size_t) n, sizeof(char *));
	if (target->addresses == NULL)
		_exit(1);

	for (struct addrinfo *a = found; a != NULL; a = a->ai_next)
	{
		char		address[NI_MAXHOST];
		char	   *text;

		if (getnameinfo(a->ai_addr, a->ai_addrlen, address, sizeof(address),
						NULL, 0, NI_NUMERICHOST) != 0)
			continue;
		if (asprintf(&text, "%s:%s%s", address, port, chroot) < 0)
			_exit(1);
		target->addresses[target->naddresses++] = text;
	}
}

/*
 * Finds the addresses of target->host, "host:port[/chroot]".  A host that
 * cannot be found is reported as unreachable; naddresses then stays 0.
 */
static void
resolve(ZklZkTarget *target)
{
	char	   *host = strdup(target->host);
	char	   *node = host;
	char	   *slash;
	char	   *port;
	struct addrinfo hints;
	struct addrinfo *found = NULL;
	int			rc;

	if (host == NULL)
		_exit(1);
	slash = strchr(host, '/');
	if (slash != NULL)
		*slash = '\0';
	port = strrchr(host, ':');
	if (port == NULL || port == host || port[1] == '\0')
	{
		zkl_zk_gone(ZKL_WIRE_GONE_UNREACHABLE,
					"\"%s\" is not of the form host:port", target->host);
		free(host);
		return;
	}
	*port++ = '\0';

	/* [::1]:2181 */
	if (node[0] == '[' && port[-2] == ']')
	{
		port[-2] = '\0';
		node++;
	}

	memset(&hints, 0, sizeof(hints));
	hints.ai_family = AF_UNSPEC;
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
	rc = getaddrinfo(node, port, &hints, &found);
	if (rc == EAI_ADDRFAMILY || rc == EAI_BADFLAGS)
	{
		/* With no interface of its family up, even ::1 is refused. */
		hints.ai_flags = AI_NUMERICSERV;
		rc = getaddrinfo(node, port, &hints, &found);
	}
	if (rc == 0)
	{
		list_addresses(target, found, port,
					   slash ? target->host + (slash - host) : "");
		freeaddrinfo(found);
	}
	if (target->naddresses == 0)
		zkl_zk_gone(ZKL_WIRE_GONE_UNREACHABLE,
					"could not resolve \"%s\": %s", target->host,
					rc != 0 ? gai_strerror(rc) : "no usable address");
	free(host);
}

static void
start(const ZklWireHeader *header, ZklWireReader *body)
{
	static ZklZkTarget target;
	const char *password;
	uint32_t	length;

	started = true;
	generation = header->generation;
	zkl_zk_init(&output, generation);

	target.host = keep_string(body, NULL);
	target.session_id = zkl_wire_get_i64(body);
	password = zkl_wire_get_string(body, &length);
	if (length == ZKL_ZK_PASSWORD_BYTES)
		memcpy(target.password, password, ZKL_ZK_PASSWORD_BYTES);
	else if (length != 0 || target.session_id != 0)
		body->bad = true;
	target.timeout_ms = zkl_wire_get_u32(body);
	target.auth_scheme = keep_string(body, NULL);
	target.auth_credentials = keep_string(body, &target.auth_length);
	target.log_level = zkl_wire_get_u32(body);
	if (body->bad || body->left != 0 || target.timeout_ms > INT32_MAX)
		malformed();

	resolve(&target);
	if (zkl_zk_is_gone())
		return;

	/*
	 * An address that swallows packets may cost this process all the time
	 * that it has; the next one begins with the next address.
	 */
	target.first = (int) (generation % (uint32_t) target.naddresses);
	zkl_zk_start(&target);
}

/* ----------
 * The loop
 * ----------
 */

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

static void
run_frames(void)
{
	ZklWireHeader header;
	ZklWireReader body;
	bool		held = false;
	int			whole = 0;

	while (!zkl_zk_is_gone() && unsent() < MAX_UNSENT &&
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

/* Fills in what to wait for on the link, and may leave ZooKeeper out. */
static void
choose_events(struct pollfd *link, struct pollfd *zk)
{
	link->fd = LINK_FD;
	link->events = POLLRDHUP;
	if (unsent() > 0)
		link->events |= POLLOUT;
	if (unsent() < MAX_UNSENT)
		link->events |= POLLIN;
	else
		zk->events &= ~POLLIN;

	/* poll reports errors unasked, and nobody would take them in. */
	if (zk->events == 0)
		zk->fd = -1;
}

int
main(void)
{
	pid_t		parent = getppid();

	set_up_signals();
	check_link();
	tie_to_parent(parent);

	for (;;)
	{
		struct pollfd fds[2] = {{-1, 0, 0}, {-1, 0, 0}};
		struct pollfd *link = &fds[0];
		struct pollfd *zk = &fds[1];
		int			timeout_ms = -1;

		if (started && !zkl_zk_is_gone())
			zkl_zk_interest(zk, &timeout_ms);
		if (input.failed || output.failed)
			_exit(1);
		if (zkl_zk_is_gone())
			leave(0);
		link_write();

		choose_events(link, zk);
		if (poll(fds, 2, timeout_ms) < 0)
			continue;
		if (link->revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL))
			_exit(0);
		if (link->revents & POLLIN)
			link_read();
		run_frames();
		if (zk->revents != 0 && !zkl_zk_is_gone())
			zkl_zk_process(zk->revents, MAX_UNSENT);
	}
}
