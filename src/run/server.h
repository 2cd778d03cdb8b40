/*
 * server.h
 *	  The connection to the PostgreSQL server, without ever waiting for it, and
 *	  the questions that it is asked.
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

/* The detail of the last WARNING of the statement that was asked last; empty: none */
extern const char *zkl_server_warning(void);

/* Ends the connection without a word.  zkl_server_begin() makes another one. */
extern void zkl_server_drop(void);

/* ---- ask ---- */

/*
 * Questions to the server before and behind the program, and the end of zklock-run.
 */

/* Sleeps until something happens, or until then. */
extern void zkl_ask_wait(int64_t until);

/* A signal that has come ends zklock-run, or stops it. */
extern void zkl_ask_heed_signals(void);

/*
 * The answer to a statement; NULL: none came, and no connection lasts.  "until": by clock.h.
 */
extern PGresult *zkl_ask_until(int64_t until, const char *sql, int n, const char *const *values);

/* An answer without an error; else zklock-run ends. */
extern PGresult *zkl_ask_or_leave(const char *sql, int n, const char *const *values);

/* The server's words for an error, in a line */
extern const char *zkl_ask_words(const PGresult *result);

/* From now on, who leaves cancels this reservation; NULL: none. */
extern void zkl_ask_reserved(const char *lock, const char *token);

/*
 * The program is not to run, or has run.  Nobody has to wait for the end of the
 * reservation.
 */
extern void zkl_ask_leave(int status) __attribute__((noreturn));

#endif							/* ZKL_RUN_SERVER_H */
