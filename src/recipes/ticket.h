/*
 * ticket.h
 *	  Tickets: requests that wait for their lock without a session.
 *
 * A ticket is a number.  Its request stands in the lock's queue as any other; the server
 * keeps it, whatever becomes of the session that made it.  Once it is granted, its role
 * has some time to claim it: from then on it is a reservation.  What nobody claims is
 * given back.
 */
#ifndef ZKL_RECIPES_TICKET_H
#define ZKL_RECIPES_TICKET_H

#include "backend/acquire.h"
#include "shared/slot.h"

/*
 * Requests n locks, of which "lock" and at_least_ms, the time for the claim, are filled in,
 * and returns at once: numbers[] are their tickets.  All or none; error 53400 if the role
 * may not have so many.
 */
extern void zkl_ticket_enqueue(ZklLockRequest *requests, int n, int64 duration_ms,
							   Datum *numbers);

/* A ticket that became a reservation */
typedef struct ZklClaimed
{
	int64		ticket;
	int64		token;
	const char *path;			/* in UTF-8; palloc'd */
} ZklClaimed;

/*
 * Claims a ticket of this session's user.  False: it still waits, or this server has no
 * lease now.  Error 55000 if it is over, which is told once, or claimed already; 42501 if
 * it is another one's.
 */
extern bool zkl_ticket_claim(int64 number, ZklClaimed *claimed);

/*
 * Waits for a ticket of this session's user to be granted, and claims it; names: of one of
 * these locks, n of them in UTF-8, or NULL.  keeps_snapshot: see
 * zkl_wait_warn_of_snapshot(); or NULL.  False: none was within that time.
 */
extern bool zkl_ticket_claim_next(int64 timeout_ms, const char **names, int n,
								  const char *keeps_snapshot, ZklClaimed *claimed);

/*
 * Ends a ticket that is not claimed, or all of this session's user.  False: there is none;
 * with a WARNING if this server cannot have made it since it was started.
 */
extern bool zkl_ticket_withdraw(int64 number);
extern bool zkl_ticket_withdraw_all(void);

/*
 * For a loop over the slots: the first one, from slot "from" on, that has a ticket of this
 * session's user, or what became of one, and a copy of it.  -1: there is no other one.
 */
extern int	zkl_ticket_next(int from, ZklSlot *copy);

/* What became of it: a state of the view zk_tickets; NULL: the slot has no ticket. */
extern const char *zkl_ticket_state(const ZklSlot *slot);

#endif							/* ZKL_RECIPES_TICKET_H */
