/*
 * renewals.h
 *	  Reservations that are renewed or cancelled.  Worker only.
 */
#ifndef ZKL_WORKER_RENEWALS_H
#define ZKL_WORKER_RENEWALS_H

#include "worker/operation.h"

/* zk_renew() and zk_cancel(): tasks that are answered at once */
extern const ZklTaskOwner zkl_renewals_owner;

/* The server stops: logs which reservations end with it. */
extern void zkl_renewals_log_end(void);

#endif							/* ZKL_WORKER_RENEWALS_H */
