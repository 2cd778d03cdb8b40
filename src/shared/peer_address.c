/*
 * peer_address.c
 *	  The address at which a server's worker hears from those of other servers.
 *
 * Owns no state, takes no locks.  Run by the worker, and by every process that checks
 * a new value of "zklock.peer_address".  It must not know what is sent there.
 */
#include "postgres.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "shared/peer_address.h"

static struct sockaddr_in *
v4(const ZklPeerAddress *address)
{
	return (struct sockaddr_in *) &address->address;
}

static struct sockaddr_in6 *
v6(const ZklPeerAddress *address)
{
	return (struct sockaddr_in6 *) &address->address;
}

static bool
is_v6(const ZklPeerAddress *address)
{
	return address->address.ss_family == AF_INET6;
}

/*
 * Splits "[host]:port", "[host]", "host:port" and "host" in place.  More than one
 * colon without brackets is an IPv6 address.  False: the port is none.
 */
static bool
split(char *text, char **host, int *port)
{
	char	   *colon = strchr(text, ':');
	char	   *end;
	long		number;

	*host = text;
	if (text[0] == '[')
	{
		*host = text + 1;
		end = strchr(text, ']');
		if (end == NULL || (end[1] != '\0' && end[1] != ':'))
			return false;
		colon = end[1] == ':' ? end + 1 : NULL;
		*end = '\0';
	}
	else if (colon != NULL && strchr(colon + 1, ':') != NULL)
		colon = NULL;
	if (colon == NULL)
		return true;
	*colon++ = '\0';
	if (colon[0] < '1' || colon[0] > '9')
		return false;
	number = strtol(colon, &end, 10);
	*port = (int) Min(number, PG_INT32_MAX);
	return *end == '\0';
}

/* 224.0.0.0/4 is multicast; 240.0.0.0/4 is reserved, its last address broadcast. */
static bool
is_one_host_v4(struct in_addr host)
{
	return host.s_addr != htonl(INADDR_ANY) && ntohl(host.s_addr) >> 28 < 0xe;
}

static bool
is_one_host_v6(const struct in6_addr *host)
{
	return !IN6_IS_ADDR_UNSPECIFIED(host) && !IN6_IS_ADDR_MULTICAST(host);
}

bool
zkl_peer_address_read(const char *text, int port, ZklPeerAddress *address)
{
	char		copy[ZKL_PEER_ADDRESS_TEXT];
	char	   *host;

	memset(address, 0, sizeof(*address));
	if (strlcpy(copy, text, sizeof(copy)) >= sizeof(copy) ||
		!split(copy, &host, &port) || port < 1 || port > 65535)
		return false;
	if (inet_pton(AF_INET, host, &v4(address)->sin_addr) == 1 &&
		is_one_host_v4(v4(address)->sin_addr))
	{
		address->address.ss_family = AF_INET;
		address->length = sizeof(struct sockaddr_in);
	}
	else if (inet_pton(AF_INET6, host, &v6(address)->sin6_addr) == 1 &&
			 is_one_host_v6(&v6(address)->sin6_addr))
	{
		address->address.ss_family = AF_INET6;
		address->length = sizeof(struct sockaddr_in6);
	}
	else
		return false;
	zkl_peer_address_set_port(address, port);
	return true;
}

void
zkl_peer_address_format(const ZklPeerAddress *address, char *text)
{
	char		host[INET6_ADDRSTRLEN] = "";

	if (is_v6(address))
		inet_ntop(AF_INET6, &v6(address)->sin6_addr, host, sizeof(host));
	else
		inet_ntop(AF_INET, &v4(address)->sin_addr, host, sizeof(host));
	snprintf(text, ZKL_PEER_ADDRESS_TEXT, is_v6(address) ? "[%s]:%d" : "%s:%d", host,
			 ntohs(is_v6(address) ? v6(address)->sin6_port : v4(address)->sin_port));
}

void
zkl_peer_address_set_port(ZklPeerAddress *address, int port)
{
	if (is_v6(address))
		v6(address)->sin6_port = htons((uint16) port);
	else
		v4(address)->sin_port = htons((uint16) port);
}

void
zkl_peer_address_widen(ZklPeerAddress *address)
{
	if (is_v6(address))
		v6(address)->sin6_addr = in6addr_any;
	else
		v4(address)->sin_addr.s_addr = htonl(INADDR_ANY);
}

bool
zkl_peer_address_is_loopback(const ZklPeerAddress *address)
{
	return is_v6(address) ? IN6_IS_ADDR_LOOPBACK(&v6(address)->sin6_addr) :
		ntohl(v4(address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* 169.254.0.0/16 */
bool
zkl_peer_address_is_link_local(const ZklPeerAddress *address)
{
	return is_v6(address) ? IN6_IS_ADDR_LINKLOCAL(&v6(address)->sin6_addr) :
		ntohl(v4(address)->sin_addr.s_addr) >> 16 == 0xa9fe;
}
