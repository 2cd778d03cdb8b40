/*
 * host_look.c
 *	  Whether a host is there, and the addresses of one.
 *
 * Owns the sockets to the addresses of one host, while it is looked at.  Runs in
 * zklock_session only; a look in one that a backend has started, and ends: the
 * backend ends one that takes too long.  Takes no lock.  It must not know
 * ZooKeeper's client, nor TLS.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* asprintf */
#endif
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session/host_look.h"
#include "wire/look_answer.h"
#include "wire/wire.h"

/* ---- resolve: the addresses of a host, and sockets to them ---- */

/* For good */
static char *format(const char *pattern,...)
			__attribute__((format(printf, 1, 2)));

static char *
format(const char *pattern,...)
{
	char	   *text;
	va_list		args;

	va_start(args, pattern);
	if (vasprintf(&text, pattern, args) < 0)
		_exit(1);
	va_end(args);
	return text;
}

/* Turns what getaddrinfo found into "address:port[/chroot]". */
static int
list_addresses(struct addrinfo *found, const char *port, const char *chroot,
			   char ***addresses)
{
	int			most = 1;		/* calloc is never asked for none */
	int			n = 0;

	for (struct addrinfo *a = found; a != NULL; a = a->ai_next)
		most++;
	*addresses = calloc((size_t) most, sizeof(char *));
	if (*addresses == NULL)
		_exit(1);

	for (struct addrinfo *a = found; a != NULL; a = a->ai_next)
	{
		char		address[NI_MAXHOST];

		if (getnameinfo(a->ai_addr, a->ai_addrlen, address, sizeof(address),
						NULL, 0, NI_NUMERICHOST) == 0)
			(*addresses)[n++] = format("%s:%s%s", address, port, chroot);
	}
	return n;
}

static int
look_up(const char *node, const char *port, struct addrinfo **found)
{
	struct addrinfo hints;
	int			rc;

	memset(&hints, 0, sizeof(hints));
	hints.ai_family = AF_UNSPEC;
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
	rc = getaddrinfo(node, port, &hints, found);
	if (rc != EAI_ADDRFAMILY && rc != EAI_BADFLAGS)
		return rc;

	/* With no interface of its family up, even ::1 is refused. */
	hints.ai_flags = AI_NUMERICSERV;
	return getaddrinfo(node, port, &hints, found);
}

int
zkl_resolve(const char *host, const char **name, char ***addresses,
			const char **fault)
{
	const char *chroot = host + strcspn(host, "/");
	char	   *node = format("%.*s", (int) (chroot - host), host);
	char	   *port = strrchr(node, ':');
	struct addrinfo *found = NULL;
	int			n = 0;
	int			rc;

	*fault = NULL;
	if (port == NULL || port == node || port[1] == '\0')
	{
		*fault = format("\"%s\" is not of the form host:port", host);
		return 0;
	}
	*port++ = '\0';

	/* [::1]:2181 */
	if (node[0] == '[' && port[-2] == ']')
	{
		port[-2] = '\0';
		node++;
	}
	*name = node;
	rc = look_up(node, port, &found);
	if (rc == 0)
	{
		n = list_addresses(found, port, chroot, addresses);
		freeaddrinfo(found);
	}
	if (n == 0)
		*fault = format("could not resolve \"%s\": %s", host,
						rc != 0 ? gai_strerror(rc) : "no usable address");
	return n;
}

int
zkl_resolve_dial(const char *address)
{
	struct addrinfo hints;
	struct addrinfo *found = NULL;
	char		host[NI_MAXHOST + 32];
	char	   *port;
	int			fd;

	snprintf(host, sizeof(host), "%s", address);
	host[strcspn(host, "/")] = '\0';
	port = strrchr(host, ':');
	if (port == NULL)
		return -1;
	*port++ = '\0';
	memset(&hints, 0, sizeof(hints));
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
	if (getaddrinfo(host, port, &hints, &found) != 0)
		return -1;
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
				0);
	if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) < 0 && errno != EINPROGRESS)
	{
		int			error = errno;

		close(fd);
		errno = error;
		fd = -1;
	}
	freeaddrinfo(found);
	return fd;
}

/* ---- host_look: whether a host is there: for zk_healthcheck() ---- */

/*
 * All addresses are tried at once, and one that is good is enough.  A bare connection
 * shows only that a kernel is there.  So the server is asked with the four letters
 * "srvr".  If its 4lw.commands.whitelist lacks them, it says so, which is an answer, too.
 */

#define QUESTION		"srvr"
#define NOT_SERVING		"not currently serving" /* as without a quorum */
#define KEEPER			"ClickHouse Keeper version: "

static char fault[512];			/* of the address that failed last */
static bool accepted;			/* by any address */

static void
put_bytes(const char *bytes, size_t length)
{
	(void) !send(ZKL_WIRE_LINK_FD, bytes, length, MSG_NOSIGNAL);
}

static void
put_byte(char step)
{
	put_bytes(&step, 1);
}

static void finish_bad(const char *why) __attribute__((noreturn));
static void finish_good(void) __attribute__((noreturn));

static void
finish_bad(const char *why)
{
	put_byte(ZKL_LOOK_BAD);
	put_bytes(why, strlen(why));
	_exit(0);
}

static void
finish_good(void)
{
	put_byte(ZKL_LOOK_GOOD);
	_exit(0);
}

static void
give_up_address(struct pollfd *pfd, const char *host, const char *why, const char *more)
{
	snprintf(fault, sizeof(fault), "\"%s\" %s%s", host, why, more);
	close(pfd->fd);
	pfd->fd = -1;
}

/* The connection is made, or refused. */
static void
see_connection(struct pollfd *pfd, const char *host, bool asks)
{
	int			error = 0;
	socklen_t	length = sizeof(error);

	if (getsockopt(pfd->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
		error = errno;
	if (error != 0)
	{
		give_up_address(pfd, host, "cannot be reached: ", strerror(error));
		return;
	}
	if (!accepted)
		put_byte(ZKL_LOOK_ACCEPTED);
	accepted = true;
	if (!asks)
		finish_good();
	(void) !send(pfd->fd, QUESTION, strlen(QUESTION), MSG_NOSIGNAL);
	pfd->events = POLLIN;
}

static void
hear_answer(struct pollfd *pfd, const char *host)
{
	char		answer[256];
	ssize_t		n = recv(pfd->fd, answer, sizeof(answer) - 1, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	answer[n > 0 ? n : 0] = '\0';
	if (n <= 0)
		give_up_address(pfd, host, "closes connections without an answer", "");
	else if (strstr(answer, NOT_SERVING) != NULL)
		give_up_address(pfd, host, "does not serve requests", "");
	else if (strstr(answer, KEEPER) != NULL)
		give_up_address(pfd, host, "is ClickHouse Keeper", "");
	else
		finish_good();
}

static int
dial_all(struct pollfd *fds, char **addresses, int n, const char *host)
{
	int			left = 0;

	for (int i = 0; i < n; i++)
	{
		fds[i].fd = zkl_resolve_dial(addresses[i]);
		fds[i].events = POLLOUT;
		if (fds[i].fd < 0)
			snprintf(fault, sizeof(fault), "\"%s\" cannot be reached: %s", host,
					 strerror(errno));
		left += fds[i].fd >= 0;
	}
	return left;
}

void
zkl_host_look(const char *host, const char *how)
{
	bool		asks = strcmp(how, ZKL_LOOK_TLS) != 0;
	const char *name;
	const char *wrong;
	char	  **addresses;
	struct pollfd *fds;
	int			n;
	int			left;

	put_byte(ZKL_LOOK_STARTED);
	n = zkl_resolve(host, &name, &addresses, &wrong);
	if (n == 0)
		finish_bad(wrong);
	put_byte(ZKL_LOOK_RESOLVED);
	fds = calloc((size_t) n, sizeof(struct pollfd));
	if (fds == NULL)
		_exit(1);
	left = dial_all(fds, addresses, n, host);
	while (left > 0)
	{
		left = 0;
		(void) poll(fds, (nfds_t) n, -1);
		for (int i = 0; i < n; i++)
		{
			if (fds[i].fd >= 0 && fds[i].revents != 0 && fds[i].events == POLLIN)
				hear_answer(&fds[i], host);
			else if (fds[i].fd >= 0 && fds[i].revents != 0)
				see_connection(&fds[i], host, asks);
			left += fds[i].fd >= 0;
		}
	}
	finish_bad(fault);
}
