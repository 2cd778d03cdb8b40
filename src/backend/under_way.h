/*
 * under_way.h
 *	  The requests of this backend that are under way, their slots, and how many it
 *	  may have.
 *
 * A request is known by the number of its slot.  Those under way are numbered
 * from 0 in the order of their submission.
 */
#ifndef ZKL_BACKEND_UNDER_WAY_H
#define ZKL_BACKEND_UNDER_WAY_H

#include "backend/backend_slot.h"
#include "backend/target.h"

/*
 * Fills in what all kinds of requests have, and zeroes the rest.  Whatever can
 * fail does so here, before a slot is claimed.
 */
extern void zkl_under_way_describe(ZklSlotTaker *taker, const ZklTarget *target,
								   ZklSlotKind kind);

/* How many free slots for locks this session leaves for superusers */
extern int	zkl_under_way_spare_slots(void);

/* The other kinds have slots of their own: one must be free. */
extern int	zkl_under_way_claim(const ZklTarget *target, ZklSlotKind kind);

/* Submits a claimed request; "more": see zkl_backend_slot_submit.  Cannot fail. */
extern void zkl_under_way_submit(int slotno, bool more);

/* How many are under way, and the slot of one of them */
extern int	zkl_under_way_count(void);
extern int	zkl_under_way_slot(int number);

/* The time of all tries under way is over. */
extern void zkl_under_way_time_out_all(void);

/* The requests from number "first" on end, however far they got.  Cannot fail. */
extern void zkl_under_way_abandon(int first);

/*
 * Calls "get", which submits requests and returns whether they are granted.  If
 * so, the caller owns their slots; if not, or after an error, they are abandoned.
 */
extern bool zkl_under_way_run(bool (*get) (void *arg), void *arg);

/* The number by which the slots of this backend are known; 0: none has any */
extern uint64 zkl_under_way_owner(void);

/*
 * Error 53400 if one call needs more requests at a time than a session, or all of this
 * session's role together, could ever have, whatever other sessions do.
 */
extern void zkl_under_way_check_number(int64 wanted, bool of_session);

/*
 * Error 53400 if this session, which has slots for "held" locks, may not have
 * "wanted" more.  Locks that are kept after their release count, too.
 */
extern void zkl_under_way_check_room(int held, int wanted);

/* The same if this session's user, who has so many reservations, may have no other. */
extern void zkl_under_way_check_reservations(int reserved);

#endif							/* ZKL_BACKEND_UNDER_WAY_H */
