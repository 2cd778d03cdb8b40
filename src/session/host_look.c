/*
 * host_look.c
 *	  Whether a host is there: for zk_healthcheck().
 *
 * Owns the sockets to the addresses of one host.  Runs in a zklock_session that a
 * backend has started, and ends it; the backend ends one that takes too long.  Takes no
 * lock.  It must not know ZooKeeper's client, nor TLS.
 *
 * All addresses are tried at once, and one that is good is enough.  A bare connection
 * shows only that a kernel is there.  So the server is asked with the four letters
 * "srvr".  If its 4lw.commands.whitelist lacks them, it says so, which is an answer, too.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session/host_look.h"
#include "session/resolve.h"
#include "wire/look_answer.h"
#include "wire/wire.h"

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
