/*
 * dial.c
 *	  A socket of our own to a ZooKeeper server, beside the client's.
 *
 * Owns nothing.  Runs in zklock_session only.  Takes no lock.  It must not know what
 * is said over the socket.
 */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "session/dial.h"

int
zkl_dial(const char *address)
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
	if (fd >= 0)
		(void) connect(fd, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return fd;
}
