/*
 * relay.h
 *	  Stands between the client library and the network, and speaks TLS there.
 */
#ifndef ZKL_SESSION_RELAY_H
#define ZKL_SESSION_RELAY_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * From now on every connection that this program makes goes through the relay, to
 * a server of that name.  zkl_tls_begin comes first.
 */
extern void zkl_relay_begin(const char *server_name);

/* Without zkl_relay_begin, this is false and the others do nothing. */
extern bool zkl_relay_is_on(void);

/* Whether what is written to this socket goes to the relay, not the network */
extern bool zkl_relay_owns(int client_fd);

/*
 * Moves bytes between the client and the server, until it would have to wait.
 * "reads": also those that come from the server.  When the connection ends, the
 * client reads to the end of the stream.
 */
extern void zkl_relay_move(bool reads);

/* What to poll the network for, after zkl_relay_move */
extern void zkl_relay_interest(struct pollfd *pfd, bool reads);

/* How many bytes the relay has taken in and not passed on */
extern size_t zkl_relay_held(void);

/* The socket on the network; -1: none */
extern int	zkl_relay_network(void);

/* TCP_CORK, for the network */
extern void zkl_relay_cork(int on);

/* Whether the server has accepted the present connection */
extern bool zkl_relay_is_accepted(void);

/* Why the connection has ended; NULL if it has not */
extern const char *zkl_relay_error(void);

#endif							/* ZKL_SESSION_RELAY_H */
