/*
 * peer_address.h
 *	  The address at which a server's worker hears from those of other servers.  For
 *	  the worker, and for the check of "zklock.peer_address".
 */
#ifndef ZKL_SHARED_PEER_ADDRESS_H
#define ZKL_SHARED_PEER_ADDRESS_H

#include <sys/socket.h>

/* "[", an IPv6 address, "]:", a port, and the NUL */
#define ZKL_PEER_ADDRESS_TEXT	64

typedef struct ZklPeerAddress
{
	struct sockaddr_storage address;
	socklen_t	length;			/* 0: none */
} ZklPeerAddress;

/*
 * Reads "10.0.0.1", "10.0.0.1:5433", "fd00::1" or "[fd00::1]:5433".  "port" is for
 * an address without one.  Names are not looked up.  False: it is none of one host;
 * *address is empty.
 */
extern bool zkl_peer_address_read(const char *text, int port, ZklPeerAddress *address);

/* Writes it with its port; text has ZKL_PEER_ADDRESS_TEXT bytes. */
extern void zkl_peer_address_format(const ZklPeerAddress *address, char *text);

extern void zkl_peer_address_set_port(ZklPeerAddress *address, int port);

/* Makes it that of all interfaces of its family. */
extern void zkl_peer_address_widen(ZklPeerAddress *address);

extern bool zkl_peer_address_is_loopback(const ZklPeerAddress *address);
extern bool zkl_peer_address_is_link_local(const ZklPeerAddress *address);

#endif							/* ZKL_SHARED_PEER_ADDRESS_H */
