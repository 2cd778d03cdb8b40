/*
 * signals.h
 *	  The signals that zklock-run takes, and those that it leaves alone.
 */
#ifndef ZKL_RUN_SIGNALS_H
#define ZKL_RUN_SIGNALS_H

#include <stdbool.h>

/* From now on signals wait to be read.  Those that were ignored stay so. */
extern void zkl_signals_begin(void);

/* For poll() */
extern int	zkl_signals_fd(void);

/*
 * The next signal that has come, or 0.  "by_terminal": the kernel has sent it to all of
 * the process group.
 */
extern int	zkl_signals_next(bool *by_terminal);

/* Whether one of them told the job to end */
extern bool zkl_signals_is_end_told(void);

/* Whether it is one that stops a process, if nothing is done about it */
extern bool zkl_signals_is_stop(int signo);

/* Does what the signal would have done; returns when this process goes on. */
extern void zkl_signals_obey(int signo);

/* Ends this process, by SIGINT if that is the cause. */
extern void zkl_signals_exit(int status) __attribute__((noreturn));

/* In a child that becomes the program: it has what zklock-run was given. */
extern void zkl_signals_restore(void);

/* In a child that becomes a guard: no signal that can be blocked, but the end of a child */
extern void zkl_signals_take_children_only(void);

#endif							/* ZKL_RUN_SIGNALS_H */
