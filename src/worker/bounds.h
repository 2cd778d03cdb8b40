/*
 * bounds.h
 *	  Holds that end after some time, and locks that are kept for some time
 *	  after their release.  Worker only.
 */
#ifndef ZKL_WORKER_BOUNDS_H
#define ZKL_WORKER_BOUNDS_H

#include "core/manager.h"
#include "shared/slot.h"

extern void zkl_bounds_begin(ZklManager *manager);

/* A slot was granted: by an action of the core, which cannot act just then. */
extern void zkl_bounds_granted(int slotno);

/*
 * Its time has changed, or its holder has ended a transaction.  If its time is
 * over, the slot becomes LOST, and the core is told when the znode may go.
 */
extern void zkl_bounds_look(int slotno);

/* The same without the core; returns whether the znode may go. */
extern bool zkl_bounds_end(int slotno);

/*
 * Logs, once, that its holder committed after the lock was lost; "slot" is a
 * copy of it.
 */
extern void zkl_bounds_log_late(int slotno, const ZklSlot *slot);

/* Ends the holds whose time is over. */
extern void zkl_bounds_tick(void);

/* When to call tick at the latest, in µs of CLOCK_BOOTTIME; -1: no need. */
extern int64 zkl_bounds_timer(void);

#endif							/* ZKL_WORKER_BOUNDS_H */
