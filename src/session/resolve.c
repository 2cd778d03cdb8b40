/*
 * resolve.c
 *	  The addresses of a host, and sockets to them.
 *
 * Owns no state; what it returns stays.  Runs in zklock_session only.  Takes no lock.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* asprintf */
#endif

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session/resolve.h"

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
