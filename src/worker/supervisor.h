/*
 * supervisor.h
 *	  Keeps a session process running and connected.  Worker only.
 */
#ifndef ZKL_WORKER_SUPERVISOR_H
#define ZKL_WORKER_SUPERVISOR_H

#include "wire/wire.h"

/* Times are in µs of boottime.h. */

/* No session process runs yet. */
extern void zkl_supervisor_begin(void);

/* The settings may have changed, and another connection may be needed. */
extern void zkl_supervisor_reload(int64 now);

/*
 * Somebody wants another connection, and soon.  True: the settings are tried first.
 * False: there is no session to lose.
 */
extern bool zkl_supervisor_move(void);

/* The number of the last attempt to connect */
extern uint32 zkl_supervisor_attempt(void);

/* Starts, replaces or gives up the session process when it is time to. */
extern void zkl_supervisor_tick(int64 now);

/* When to call tick at the latest; -1: no need. */
extern int64 zkl_supervisor_timer(void);

/* Frames of the kinds STEP, CONNECTED, GONE, PONG, LOG. */
extern void zkl_supervisor_frame(const ZklWireHeader *header,
								 ZklWireReader *body, int64 now);

/*
 * The link broke.  The core wants another connection, and rc says why: it gets
 * one at the next tick, after the frames that have arrived are read.
 */
extern void zkl_supervisor_link_broken(int64 now);
extern void zkl_supervisor_reconnect(int32 rc);

/* An answer came, and was handed on. */
extern void zkl_supervisor_answered(int64 now);

/* The connection's generation, which frames carry; 0: not connected. */
extern uint32 zkl_supervisor_generation(void);

/* Closes the ZooKeeper session properly; waits up to a few seconds. */
extern void zkl_supervisor_close_session(void);

#endif							/* ZKL_WORKER_SUPERVISOR_H */
