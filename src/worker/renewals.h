/*
 * renewals.h
 *	  Reservations that are renewed or cancelled.  Worker only.
 */
#ifndef ZKL_WORKER_RENEWALS_H
#define ZKL_WORKER_RENEWALS_H

#include "worker/operation.h"

/* zk_renew_reservation() and zk_cancel_reservation() */
extern const ZklTaskOwner zkl_renewals_owner;

/* Answers renewals that have waited for a beat; and when to call it at the latest. */
extern void zkl_renewals_tick(void);
extern int64 zkl_renewals_timer(void);

/* The server stops: logs which reservations end with it. */
extern void zkl_renewals_log_end(void);

#endif							/* ZKL_WORKER_RENEWALS_H */
