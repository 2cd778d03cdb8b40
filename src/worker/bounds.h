/*
 * bounds.h
 *	  Holds that end after some time, and locks that are kept for some time
 *	  after their release.  Worker only.
 */
#ifndef ZKL_WORKER_BOUNDS_H
#define ZKL_WORKER_BOUNDS_H

#include "shared/slot.h"

extern void zkl_bounds_begin(void);

/* A slot was granted.  Does not call the core, whose action that was. */
extern void zkl_bounds_granted(int slotno);

/*
 * The end of a hold has changed, or its holder has ended a transaction.  If the
 * time is over, the slot becomes LOST, and the core learns when the znode may go.
 */
extern void zkl_bounds_look(int slotno);

/*
 * If a holder committed after its lock was lost, logs that once; "slot" is a copy
 * of its slot.
 */
extern void zkl_bounds_log_late(int slotno, const ZklSlot *slot);

/* Ends the holds whose time is over. */
extern void zkl_bounds_tick(void);

/* When to call tick at the latest, in µs of boottime.h; -1: no need. */
extern int64 zkl_bounds_timer(void);

#endif							/* ZKL_WORKER_BOUNDS_H */
