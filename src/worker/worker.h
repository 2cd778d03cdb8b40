/*
 * worker.h
 *	  The background worker: its beginning, its loop and its end.
 */
#ifndef ZKL_WORKER_WORKER_H
#define ZKL_WORKER_WORKER_H

#include "core/manager.h"

/* ---- closing ---- */

/*
 * Closing the gate for new requests, and then the ZooKeeper session.  Worker only.
 *
 * Times are in µs of boottime.h; "connection" is the generation of the frames
 * on the link.
 */

/*
 * Whether the server needs a ZooKeeper session: not if "zklock.enabled" is off
 * and all that began before has ended.
 */
extern bool zkl_closing_needs_session(void);

#define ZKL_CLOSING_TIME	1000000 /* for a session to be closed */

/* Begins to close a session that cannot be used: all its locks are lost. */
extern void zkl_closing_give_up(uint32 connection, int64 now);

/*
 * Begins to close it while the server is idle, so that another session can follow:
 * once this one has surely ended, see zkl_closing_not_before.
 */
extern void zkl_closing_replace(uint32 connection, int64 now);

/* Until when to wait for that; 0: no session is being closed */
extern int64 zkl_closing_until(void);

/*
 * The session is closed, or its process is gone.  Returns whether the session was
 * to be replaced, and not one that cannot be used.
 */
extern bool zkl_closing_end(bool acknowledged);

/* Until when a session that may not have been closed can live on */
extern int64 zkl_closing_not_before(void);

/* Closes the session; waits up to a few seconds.  Whether ZooKeeper has done so. */
extern bool zkl_closing_wait(uint32 connection);

/* ---- worker ---- */

/* What the files of the worker share.  Worker only. */

/* The core; made before any other part of the worker begins */
extern ZklManager *zkl_core;

/* Tells it an event that happens now. */
extern void zkl_worker_tell(const ZklEvent *event);

#endif							/* ZKL_WORKER_WORKER_H */
