/*
 * options.h
 *	  The command line of zklock-run.
 */
#ifndef ZKL_RUN_OPTIONS_H
#define ZKL_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Exit codes: those of sysexits.h, and of shells */
#define ZKL_RUN_USAGE			64
#define ZKL_RUN_UNAVAILABLE		69	/* nobody knows whether it is to be had */
#define ZKL_RUN_BUSY			75
#define ZKL_RUN_NO_PERMISSION	77
#define ZKL_RUN_CONFIGURATION	78
#define ZKL_RUN_NOT_EXECUTABLE	126
#define ZKL_RUN_NOT_FOUND		127

typedef struct ZklRunOptions
{
	/* of the connection; NULL: libpq's default */
	const char *host;
	const char *port;
	const char *user;
	const char *dbname;

	const char *lock;
	char	  **program;		/* and its arguments; NULL at the end */
	const char *timeout;		/* an interval; NULL: none; "0": a try */
	const char *period;			/* an interval; NULL: it is no job of
								 * zk_once() */
	const char *zone;
	bool		at_least_once;
	int64_t		at_most_ms;		/* 0: no limit */
	int64_t		grace_ms;		/* behind --at-most */
	int64_t		lost_grace_ms;	/* when the lock cannot be kept; -1: the
								 * default */
} ZklRunOptions;

/* Exits with 0 for --help and --version, with ZKL_RUN_USAGE if they make no sense. */
extern ZklRunOptions zkl_options_read(int argc, char **argv);

/* Writes a line to standard error. */
extern void zkl_options_say(const char *format,...) __attribute__((format(printf, 1, 2)));

/* Whether nothing is to be said if others have the lock, or the period */
extern bool zkl_options_is_quiet(void);

#endif							/* ZKL_RUN_OPTIONS_H */
