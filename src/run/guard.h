/*
 * guard.h
 *	  The program that runs under the lock, and what ends it in time.
 */
#ifndef ZKL_RUN_GUARD_H
#define ZKL_RUN_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Starts the program in a process group of its own, with a guard beside it.  Both
 * deadlines have to be set before.  Returns its pid; or -126 or -127, with a line on standard error, if it cannot
 * be started.
 */
extern pid_t zkl_guard_start(char **program, const char *lock, const char *token);

/*
 * When the program's processes get SIGTERM, and SIGKILL: times of clock.h.  Each call
 * replaces what was set before.
 */
extern void zkl_guard_set_deadlines(int64_t term, int64_t kill);

/* Sends signals that are due; returns when the next one is. */
extern int64_t zkl_guard_enforce(void);

/* Whether a deadline has ended the program */
extern bool zkl_guard_has_ended(void);

/* Passes a signal on to all processes of the program. */
extern void zkl_guard_signal(int signo);

/*
 * The program has ended: lets the guard go.  If a deadline ended it, nothing is left of
 * its process group, either.
 */
extern void zkl_guard_finish(void);

#endif							/* ZKL_RUN_GUARD_H */
