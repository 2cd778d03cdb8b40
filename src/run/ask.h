/*
 * ask.h
 *	  Questions to the server before and behind the program, and the end of zklock-run.
 */
#ifndef ZKL_RUN_ASK_H
#define ZKL_RUN_ASK_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

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

/* Whether the error's SQLSTATE begins so */
extern bool zkl_ask_has_sqlstate(const PGresult *result, const char *sqlstate);

/* Says what the error is, and ends zklock-run with the status that belongs to it. */
extern void zkl_ask_fail(const PGresult *result) __attribute__((noreturn));

/* From now on, who leaves cancels this reservation. */
extern void zkl_ask_reserved(const char *lock, const char *token);

/*
 * The program is not to run, or has run.  Nobody has to wait for the end of the
 * reservation.
 */
extern void zkl_ask_leave(int status) __attribute__((noreturn));

#endif							/* ZKL_RUN_ASK_H */
