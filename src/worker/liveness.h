/*
 * liveness.h
 *	  Whether the session process and the ZooKeeper server still answer.  Worker
 *	  only.
 *
 * Times are in µs of boottime.h.  "timeout" is that of the ZooKeeper
 * session, "patience" how long the server may take for an answer; "busy" tells
 * whether a backend waits for a lock or holds one.
 */
#ifndef ZKL_WORKER_LIVENESS_H
#define ZKL_WORKER_LIVENESS_H

typedef enum ZklLiveness
{
	ZKL_LIVENESS_GOOD,
	ZKL_LIVENESS_PING_DUE,
	ZKL_LIVENESS_PROCESS_SILENT,
	ZKL_LIVENESS_SERVER_SILENT
} ZklLiveness;

/* A new process was started; it is connected. */
extern void zkl_liveness_begin(int64 now);
extern void zkl_liveness_connected(void);

/* It said something. */
extern void zkl_liveness_heard(int64 now);

/* A ping, or an operation, went out; an operation was answered. */
extern void zkl_liveness_pinged(int64 now);
extern void zkl_liveness_sent(int64 now);
extern void zkl_liveness_answered(int64 now);

/* For a connected process; and when to call check at the latest. */
extern ZklLiveness zkl_liveness_check(int64 now, int64 timeout, int64 patience,
									  bool busy);
extern int64 zkl_liveness_timer(int64 timeout, int64 patience, bool busy);

/* Whether the process has had so many requests that it has to be replaced. */
extern bool zkl_liveness_worn_out(void);

#endif							/* ZKL_WORKER_LIVENESS_H */
