/*
 * in_use.h
 *	  Which settings of the connection are in use.  Worker only.
 */
#ifndef ZKL_WORKER_IN_USE_H
#define ZKL_WORKER_IN_USE_H

#include "worker/connect_settings.h"

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

#endif							/* ZKL_WORKER_IN_USE_H */
