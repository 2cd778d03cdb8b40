/*
 * claim.h
 *	  A slot for a new request: which one, and who asks.
 */
#ifndef ZKL_BACKEND_CLAIM_H
#define ZKL_BACKEND_CLAIM_H

#include "backend/target.h"
#include "shared/slot.h"

/*
 * Claims a slot and fills in what all kinds of requests have.  Error 53400 if
 * it is for a lock, and there is none.  The other kinds have slots of their
 * own, for which it may have to wait: error 08006 if the worker does not run.
 */
extern int	zkl_claim_slot(const ZklTarget *target, ZklSlotKind kind,
						   uint64 owner);

/*
 * Error 53400 if a session could never have so many requests for locks at a
 * time, whatever others do.
 */
extern void zkl_claim_check_number(int64 wanted);

/* The same if there could never be so many on this server. */
extern void zkl_claim_check_total(int n);

/*
 * Error 53400 if a session that has slots for "held" locks may not have
 * "wanted" more.  What it has released and is kept counts, too.
 */
extern void zkl_claim_check_room(int held, int wanted, uint64 owner);

#endif							/* ZKL_BACKEND_CLAIM_H */
