/*
 * tally.h
 *	  What a request for a lock has to add to the statistics.  Worker only.
 */
#ifndef ZKL_WORKER_TALLY_H
#define ZKL_WORKER_TALLY_H

#include "shared/slot.h"

/* Counts a RELEASED slot of a lock, which is about to be freed. */
extern void zkl_tally_slot(const ZklSlot *slot);

/* Counts what sessions had of a slot's lock without the worker. */
extern void zkl_tally_uncounted(int slotno, const ZklSlot *slot);

#endif							/* ZKL_WORKER_TALLY_H */
