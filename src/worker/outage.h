/*
 * outage.h
 *	  What the server's log says when the lease ends under held locks.  Worker
 *	  only.
 */
#ifndef ZKL_WORKER_OUTAGE_H
#define ZKL_WORKER_OUTAGE_H

/* Logs the beginning and the end of each outage. */
extern void zkl_outage_tick(void);

/* When to call tick at the latest, in µs of boottime.h; -1: no need. */
extern int64_t zkl_outage_timer(void);

#endif							/* ZKL_WORKER_OUTAGE_H */
