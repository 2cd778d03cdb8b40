/*
 * answers.h
 *	  Questions of backends that need no operation of their own: zk_dump(), what
 *	  is ahead, zk_reconnect(), and renewals.
 */
#ifndef ZKL_WORKER_ANSWERS_H
#define ZKL_WORKER_ANSWERS_H

#include "worker/operation.h"

/* Slots of kind DUMP are answered at once. */
extern const ZklTaskOwner zkl_answers_of_dumps;

/* Slots of kind AHEAD, too, unless znodes have to be read. */
extern const ZklTaskOwner zkl_answers_of_ahead;

/* ---- reconnects ---- */

/* Backends that wait for another connection: zk_reconnect().  Worker only. */

/* Slots of kind RECONNECT */
extern const ZklTaskOwner zkl_reconnects_owner;

/* Whether any of them waits for a trial */
extern bool zkl_reconnects_are_waiting(void);

/* The trial has failed; or it has not, and another connection begins. */
extern void zkl_reconnects_failed(const char *fault);
extern void zkl_reconnects_move(void);

/* Answers those whose connection is there. */
extern void zkl_reconnects_tick(void);

/* ---- renewals ---- */

/* Reservations that are renewed or cancelled.  Worker only. */

/* zk_renew_reservation() and zk_cancel_reservation() */
extern const ZklTaskOwner zkl_renewals_owner;

/* Answers renewals that have waited for a beat; and when to call it at the latest. */
extern void zkl_renewals_tick(void);
extern int64 zkl_renewals_timer(void);

/* The server stops: logs which reservations end with it. */
extern void zkl_renewals_log_end(void);

#endif							/* ZKL_WORKER_ANSWERS_H */
