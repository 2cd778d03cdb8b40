/*
 * connect_settings.h
 *	  The settings of the connection: what their files contain, which are in use,
 *	  and the trial of new ones.
 *
 * A reload changes the variables of the settings at once, and anybody can write to a
 * file.  But the connection that works with what was read before goes on with that, and
 * so do the next ones, until the new settings work, too.
 */
#ifndef ZKL_WORKER_CONNECT_SETTINGS_H
#define ZKL_WORKER_CONNECT_SETTINGS_H

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
#include "shared/settings.h"

/* ---- credentials ---- */

/*
 * Reads the files that settings name: "zklock.auth_file" and those of TLS.  Worker
 * only.
 */

typedef struct ZklCredentials
{
	StringInfoData content;		/* of the file; lines points into it */
	List	   *lines;			/* char *, each scheme:secret */
	bool		is_private;
} ZklCredentials;

/* ---- connect_settings ---- */

/*
 * The settings of a connection, with what the files that they name contain.  Worker
 * only.
 */

typedef struct ZklConnectSettings
{
	MemoryContext context;		/* of all that is here */
	const char *connect_string;
	const char *auth_file;
	ZklTlsSettings tls;
	const char *fault;			/* why they cannot be used, or NULL; these
								 * four are not complete then */
	ZklCredentials credentials;
	StringInfoData ca;			/* the others, too: PEM, empty without TLS */
	StringInfoData certificate;
	StringInfoData key;
} ZklConnectSettings;

/* ---- trial ---- */

/*
 * Tries new settings of the connection beside the present one.  Worker only.
 *
 * Times are in µs, as zkl_boottime_us() counts them.
 */

typedef enum ZklTrialResult
{
	ZKL_TRIAL_GOES_ON,
	ZKL_TRIAL_FAILED,			/* a round has; there will be others */
	ZKL_TRIAL_WORKS				/* and has ended */
} ZklTrialResult;

/* No settings are to be tried any more. */
extern void zkl_trial_end(void);

/* Not now: the process that tries them ends, and the next tick starts again. */
extern void zkl_trial_put_off(void);

/* Whether there are settings that have not worked yet */
extern bool zkl_trial_is_pending(void);

/* When to call tick at the latest; -1: no need */
extern int64 zkl_trial_timer(void);

/* ---- in_use ---- */

/* Which settings of the connection are in use.  Worker only. */

/* NULL before the first reload */
extern const ZklConnectSettings *zkl_in_use_settings(void);

/*
 * The variables, or files, may have changed.  True: other settings are in use now.
 * Else those that are in use stay, and others are tried, if there are any.
 */
extern bool zkl_in_use_reload(void);

/*
 * The same before each connection.  Returns why no connection can be made, or
 * NULL.
 */
extern const char *zkl_in_use_refresh(void);

/* What is wanted is in use now, tried or not: there is nothing to lose. */
extern void zkl_in_use_take_wanted(void);

/*
 * Tries what is wanted, even if it is in use.  False: there is nothing to lose, so it
 * is used as it is.
 */
extern bool zkl_in_use_try(void);

/* Goes on with a trial.  True: other settings are in use now. */
extern bool zkl_in_use_tick(int64 now);

#endif							/* ZKL_WORKER_CONNECT_SETTINGS_H */
