/*
 * renewal.h
 *	  Whether the ZooKeeper session is to be replaced by one with another
 *	  timeout.  Worker only.
 */
#ifndef ZKL_WORKER_RENEWAL_H
#define ZKL_WORKER_RENEWAL_H

/* The settings may have changed, or another session has begun. */
extern void zkl_renewal_reload(void);

/* Whether it is time to close the session: the server is idle. */
extern bool zkl_renewal_due(void);

/* Logs that the session is being closed. */
extern void zkl_renewal_begun(void);

#endif							/* ZKL_WORKER_RENEWAL_H */
