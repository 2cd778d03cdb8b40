/*
 * tally.h
 *	  What a request for a lock has to add to the statistics.  Worker only.
 */
#ifndef ZKL_WORKER_TALLY_H
#define ZKL_WORKER_TALLY_H

#include "shared/slot.h"

/* Counts a RELEASED slot of a lock, which is about to be freed. */
extern void zkl_tally_slot(const ZklSlot *slot);

/*
 * Counts so many tries that a slot's hold has denied to other sessions, before it
 * is over.
 */
extern void zkl_tally_denials(const ZklSlot *slot, uint32 denials);

#endif							/* ZKL_WORKER_TALLY_H */
