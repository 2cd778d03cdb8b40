/*
 * retreat.h
 *	  What follows for sessions while this server is being drained.
 */
#ifndef ZKL_BACKEND_RETREAT_H
#define ZKL_BACKEND_RETREAT_H

#include "shared/slot.h"

/*
 * Whether this server is being drained and this session holds nothing, and the
 * error 55000 if so.  A session that waits in a barrier does not hold that.
 */
extern bool zkl_retreat_refuses(void);
extern void zkl_retreat_check(void);

/*
 * At the end of a transaction: if this server is being drained, gives up the
 * leaderships of this session.  Takes spinlocks only, and cannot fail.
 */
extern void zkl_retreat_resign(void);

/*
 * For the session that drains: asks all holders to release what they hold, wakes
 * all waiters, so that they find the drain, and has leaders resign that are in no
 * transaction.  Returns how many requests are left.  Stops when that drain ends.
 */
extern int	zkl_retreat_ask_all(uint32 drain);

/* Whether a request keeps the server from being drained */
extern bool zkl_retreat_is_left(const ZklSlot *slot);

#endif							/* ZKL_BACKEND_RETREAT_H */
