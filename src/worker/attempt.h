/*
 * attempt.h
 *	  How long an attempt to connect may take, and when the next one begins.
 *	  Worker only.
 *
 * Times are in µs of boottime.h.
 */
#ifndef ZKL_WORKER_ATTEMPT_H
#define ZKL_WORKER_ATTEMPT_H

#include "wire/wire.h"

/*
 * The worker stops waiting for ZooKeeper's answers: the settings have changed, or a
 * connection is proved.  What was learned from earlier attempts is forgotten.
 */
extern void zkl_attempt_start_anew(void);

/* A connection has ended that was proved.  Its session can be saved for a while. */
extern void zkl_attempt_parted(int64 now);

/* Whether ZooKeeper may still have this server's session, as far as the time tells */
extern bool zkl_attempt_may_save(int64 now);

/*
 * An attempt begins, or has a step behind it: until when it has time for the next
 * one, the last of which is TLS and the session.
 */
extern int64 zkl_attempt_begin(int64 now);
extern int64 zkl_attempt_step(ZklWireStep step, int64 now);

/* The last step of the present attempt, or of the last one */
extern ZklWireStep zkl_attempt_last_step(void);

/* How long a connection that is not proved yet may be silent */
extern int64 zkl_attempt_patience(int64 now);

/* The time for the attempt is over. */
extern void zkl_attempt_timed_out(void);

/* The attempt has failed, for whatever reason: when to begin the next one. */
extern int64 zkl_attempt_failed(int64 now);

#endif							/* ZKL_WORKER_ATTEMPT_H */
