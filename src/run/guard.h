/*
 * guard.h
 *	  The program that runs under the lock, its processes, and what ends them in
 *	  time.
 */
#ifndef ZKL_RUN_GUARD_H
#define ZKL_RUN_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- family: the processes that descend from one ---- */

#define ZKL_FAMILY_SPARED	4

typedef struct ZklFamily
{
	pid_t		root;			/* 0: the family is empty */
	pid_t		spared[ZKL_FAMILY_SPARED];	/* no members, but their children
											 * are; 0: none */
} ZklFamily;

/* ---- guard: the program that runs under the lock, and what ends it in time ---- */

/*
 * Starts the program, with guards above it.  Both deadlines have to be set before.
 * False, with a line on standard error, if it cannot be started; that there is no such
 * program shows later.
 */
extern bool zkl_guard_start(char **program, const char *lock, const char *token);

extern bool zkl_guard_has_started(void);

/* Whether the program has a process yet, which signals can be passed on to */
extern bool zkl_guard_has_begun(void);

/*
 * When the program's processes get SIGTERM, and SIGKILL: times of clock.h.  Each call
 * replaces what was set before.
 */
extern void zkl_guard_set_deadlines(int64_t term, int64_t kill);

/* Sends signals that are due; returns when the next one is. */
extern int64_t zkl_guard_enforce(void);

/* Whether a deadline has come, and there was something to end */
extern bool zkl_guard_has_ended(void);

/*
 * Whether the program itself was told to end before it did.  One that had ended by then
 * was not, whatever has become of what it had left.
 */
extern bool zkl_guard_has_ended_program(void);

/* Passes a signal on to all processes of the program. */
extern void zkl_guard_signal(int signo);

/* Whether a signal from the terminal reaches the program, too */
extern bool zkl_guard_is_on_terminal(void);

/* Whether the program itself is stopped, as with Ctrl-Z */
extern bool zkl_guard_is_suspended(void);

/* Takes note of children that have ended, and replaces a guard. */
extern void zkl_guard_reap(void);

/* For poll(): news of the program; -1: there will be none. */
extern int	zkl_guard_news(void);

/*
 * Reads them.  -1: the program runs.  Else it has ended: the exit status, as shells
 * have it.
 */
extern int	zkl_guard_read_news(void);

/* Whether the program has ended, and all that it has started */
extern bool zkl_guard_is_over(void);

/* Behind that: lets the guards go. */
extern void zkl_guard_finish(void);

/*
 * In a child of zklock-run that keeps the lock while zklock-run is suspended: it moves
 * deadlines, and enforces them.  It ends with zklock-run.
 */
extern void zkl_guard_depute(void);

#endif							/* ZKL_RUN_GUARD_H */
