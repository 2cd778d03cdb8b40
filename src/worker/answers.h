/*
 * answers.h
 *	  Questions of backends that need no operation of their own: zk_dump(), what
 *	  is ahead, zk_reconnect(), renewals, and claims of tickets.
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

/* ---- tickets ---- */

/* Tickets that are granted, and who claims them.  Worker only. */

extern void zkl_tickets_begin(void);

/* A slot was granted: if it is a ticket's, somebody may claim it. */
extern void zkl_tickets_granted(int slotno);

/* Nobody claimed it in time. */
extern void zkl_tickets_lapsed(int slotno);

/* The server takes no requests any more: ends all tickets that were not claimed. */
extern void zkl_tickets_withdraw_all(void);

/* zk_claim_ticket() and zk_claim_next() */
extern const ZklTaskOwner zkl_claims_owner;

/* Gives granted tickets to those who claim them, in the order of both. */
extern void zkl_claims_tick(void);

/*
 * A session has done with its question.  If it has not looked at the answer, the ticket is
 * to be claimed once more.
 */
extern void zkl_claims_give_back(const ZklSlot *question);

#endif							/* ZKL_WORKER_ANSWERS_H */
