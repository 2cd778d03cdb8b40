/*
 * trial.h
 *	  Tries new settings of the connection beside the present one.  Worker only.
 *
 * Times are in µs, as zkl_boottime_us() counts them.
 */
#ifndef ZKL_WORKER_TRIAL_H
#define ZKL_WORKER_TRIAL_H

/* The settings have changed: try them, until they work or change again. */
extern void zkl_trial_begin(void);

/* No settings are to be tried any more. */
extern void zkl_trial_end(void);

/* Not now: the process that tries them ends, and the next tick starts again. */
extern void zkl_trial_put_off(void);

/* Whether there are settings that have not worked yet */
extern bool zkl_trial_is_pending(void);

/* Why they have not, or NULL */
extern const char *zkl_trial_fault(void);

/* Goes on with the trial.  True: the settings work, and the trial has ended. */
extern bool zkl_trial_tick(int64 now);

/* When to call tick at the latest; -1: no need */
extern int64 zkl_trial_timer(void);

#endif							/* ZKL_WORKER_TRIAL_H */
