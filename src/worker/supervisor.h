/*
 * supervisor.h
 *	  Keeps a session process running and connected to ZooKeeper.
 */
#ifndef ZKL_WORKER_SUPERVISOR_H
#define ZKL_WORKER_SUPERVISOR_H

#include "wire/wire.h"

/* ---- attempt ---- */

/*
 * How long an attempt to connect may take, and when the next one begins.  Worker
 * only.
 *
 * Times are in µs of boottime.h.
 */

/*
 * The worker stops waiting for ZooKeeper's answers: the settings have changed, or a
 * connection is proved.  What was learned from earlier attempts is forgotten.
 */
extern void zkl_attempt_start_anew(void);

/* ---- liveness ---- */

/*
 * Whether the session process and the ZooKeeper server still answer.  Worker only.
 *
 * Times are in µs of boottime.h.  "timeout" is that of the ZooKeeper
 * session, "patience" how long the server may take for an answer; "busy" tells
 * whether a backend waits for a lock or holds one.
 */

typedef enum ZklLiveness
{
	ZKL_LIVENESS_GOOD,
	ZKL_LIVENESS_PING_DUE,
	ZKL_LIVENESS_PROCESS_SILENT,
	ZKL_LIVENESS_SERVER_SILENT
} ZklLiveness;

/* A ping, or an operation, went out; an operation was answered. */
extern void zkl_liveness_sent(int64 now);

/* ---- supervisor ---- */

/* Keeps a session process running and connected.  Worker only. */

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
