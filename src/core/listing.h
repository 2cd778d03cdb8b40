/*
 * listing.h
 *	  What the listing of a lock's directory tells us.
 */
#ifndef ZKL_CORE_LISTING_H
#define ZKL_CORE_LISTING_H

#include "core/state.h"

/* Takes over a listing that was sent as number "order". */
extern void zkl_listing_take(ZklManager *m, ZklLock *lock, uint64_t order,
							 const ZklReply *reply);

#endif							/* ZKL_CORE_LISTING_H */
