/*
 * hold_tally.h
 *	  What a hold of a lock has to add to the statistics.
 */
#ifndef ZKL_SHARED_HOLD_TALLY_H
#define ZKL_SHARED_HOLD_TALLY_H

#include "shared/slot.h"

/* Adds the hold of a slot, which is over: it was lost, or released. */
extern void zkl_hold_tally(const ZklSlot *slot, ZklLockstatsCounts *counts);

#endif							/* ZKL_SHARED_HOLD_TALLY_H */
