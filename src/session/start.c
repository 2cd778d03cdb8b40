/*
 * start.c
 *	  What the worker's START says: where to connect to, and as whom.
 *
 * Owns nothing.  Runs in zklock_session only.  Takes no lock.  It must not know
 * ZooKeeper's client.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* asprintf */
#endif

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "session/zk.h"

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

bool
zkl_start_read(ZklZkStart *start, ZklWireReader *body)
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

/* Turns what getaddrinfo found into "address:port[/chroot]". */
static void
list_addresses(ZklZkStart *start, struct addrinfo *found, const char *port,
			   const char *chroot)
{
	int			n = 1;			/* calloc is never asked for none */

	for (struct addrinfo *a = found; a != NULL; a = a->ai_next)
		n++;
	start->addresses = calloc((size_t) n, sizeof(char *));
	if (start->addresses == NULL)
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
		start->addresses[start->naddresses++] = text;
	}
}

void
zkl_start_resolve(ZklZkStart *start)
{
	char	   *host = strdup(start->host);
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
					"\"%s\" is not of the form host:port", start->host);
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
	start->name = strdup(node);
	if (start->name == NULL)
		_exit(1);
	if (rc == 0)
	{
		list_addresses(start, found, port,
					   slash ? start->host + (slash - host) : "");
		freeaddrinfo(found);
	}
	if (start->naddresses == 0)
		zkl_zk_gone(ZKL_WIRE_GONE_UNREACHABLE,
					"could not resolve \"%s\": %s", start->host,
					rc != 0 ? gai_strerror(rc) : "no usable address");
	free(host);
}
