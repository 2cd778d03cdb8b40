/*
 * trial.h
 *	  Tries new settings of the connection beside the present one.  Worker only.
 *
 * Times are in µs, as zkl_boottime_us() counts them.
 */
#ifndef ZKL_WORKER_TRIAL_H
#define ZKL_WORKER_TRIAL_H

#include "worker/connect_settings.h"

typedef enum ZklTrialResult
{
	ZKL_TRIAL_GOES_ON,
	ZKL_TRIAL_FAILED,			/* a round has; there will be others */
	ZKL_TRIAL_WORKS				/* and has ended */
} ZklTrialResult;

/* Tries the present settings, until they work, or that begins or ends anew. */
extern void zkl_trial_begin(void);

/* No settings are to be tried any more. */
extern void zkl_trial_end(void);

/* Not now: the process that tries them ends, and the next tick starts again. */
extern void zkl_trial_put_off(void);

/* Whether there are settings that have not worked yet */
extern bool zkl_trial_is_pending(void);

/* Why they have not, or NULL; and whether the round before said something else */
extern const char *zkl_trial_fault(void);
extern bool zkl_trial_fault_is_news(void);

/* Goes on with the trial. */
extern ZklTrialResult zkl_trial_tick(int64 now);

/* What was tried, right after it failed; or works, for the caller to free */
extern const ZklConnectSettings *zkl_trial_settings(void);
extern ZklConnectSettings *zkl_trial_take_settings(void);

/* When to call tick at the latest; -1: no need */
extern int64 zkl_trial_timer(void);

#endif							/* ZKL_WORKER_TRIAL_H */
