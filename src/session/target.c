/*
 * target.c
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

#include "session/target.h"

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
read_trust(ZklZkTarget *target, ZklWireReader *body)
{
	uint8_t		tls = zkl_wire_get_u8(body);

	target->tls = tls != ZKL_WIRE_TLS_OFF;
	target->trust.check_name = tls != ZKL_WIRE_TLS_VERIFY_CA;
	target->trust.ca = keep_string(body, NULL);
	target->trust.certificate = keep_string(body, NULL);
	target->trust.key = keep_string(body, NULL);
}

/* The least that credentials take in the frame */
#define MIN_CREDENTIALS	8

static void
read_credentials(ZklZkTarget *target, ZklWireReader *body)
{
	uint32_t	n = zkl_wire_get_u32(body);

	if (n > body->left / MIN_CREDENTIALS)
	{
		body->bad = true;
		return;
	}
	target->credentials = calloc((size_t) n + 1, sizeof(ZklZkCredentials));
	if (target->credentials == NULL)
		_exit(1);
	target->ncredentials = n;
	for (uint32_t i = 0; i < n; i++)
	{
		ZklZkCredentials *one = &target->credentials[i];

		one->scheme = keep_string(body, NULL);
		one->secret = keep_string(body, &one->length);
	}
	target->is_private = zkl_wire_get_u8(body) != 0;
}

bool
zkl_target_read(ZklZkTarget *target, ZklWireReader *body)
{
	const char *password;
	uint32_t	length;

	target->host = keep_string(body, NULL);
	target->session_id = zkl_wire_get_i64(body);
	password = zkl_wire_get_string(body, &length);
	if (length == ZKL_ZK_PASSWORD_BYTES)
		memcpy(target->password, password, ZKL_ZK_PASSWORD_BYTES);
	else if (length != 0 || target->session_id != 0)
		body->bad = true;
	target->timeout_ms = zkl_wire_get_u32(body);
	read_credentials(target, body);
	target->wants_log = zkl_wire_get_u8(body) != 0;
	read_trust(target, body);
	return !body->bad && body->left == 0 && target->timeout_ms <= INT32_MAX;
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

void
zkl_target_resolve(ZklZkTarget *target)
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
	target->name = strdup(node);
	if (target->name == NULL)
		_exit(1);
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
