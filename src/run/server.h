/*
 * server.h
 *	  The connection to the PostgreSQL server, without ever waiting for it.
 */
#ifndef ZKL_RUN_SERVER_H
#define ZKL_RUN_SERVER_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "run/options.h"

/* Begins to connect.  zkl_server_poll() goes on, also when the connection breaks. */
extern void zkl_server_begin(const ZklRunOptions *options);

/* Whether a statement can be sent */
extern bool zkl_server_is_ready(void);

/*
 * Once it is ready.  False: a ROLLBACK would only warn.  A connection that broke took its
 * transaction along.
 */
extern bool zkl_server_is_in_transaction(void);

/* Sends one; its parameters are texts.  A connection that breaks is its end, too. */
extern void zkl_server_ask(const char *sql, int n, const char *const *values);

/*
 * Goes on as far as it can.  A result, which the caller clears, if a statement has
 * ended; NULL: not yet, or the connection broke.
 */
extern PGresult *zkl_server_poll(void);

/*
 * If it has taken longer than that to connect, or to answer, the connection is as good
 * as broken: a server that is stopped does not close it.
 */
extern void zkl_server_expect(int64_t ms);

/* Whether the connection broke since the last call of this, and why */
extern bool zkl_server_has_broken(const char **why);

/*
 * For poll(): the socket or -1, its events, and when to go on anyway, by clock.h.  What is
 * expected has to be looked at in time.
 */
extern int	zkl_server_socket(short *events);
extern int64_t zkl_server_timer(void);

/* Cancels the statement, if there is one, and ends the connection. */
extern void zkl_server_end(void);

/* Ends the connection without a word.  zkl_server_begin() makes another one. */
extern void zkl_server_drop(void);

#endif							/* ZKL_RUN_SERVER_H */
