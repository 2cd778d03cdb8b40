/*
 * bounds.h
 *	  Holds that end after some time, and locks that are kept for some time
 *	  after their release.  Worker only.
 */
#ifndef ZKL_BOUNDS_H
#define ZKL_BOUNDS_H

#include "core/manager.h"
#include "shmem.h"

extern void zkl_bounds_begin(ZklManager *manager);

/* A slot was granted: by an action of the core, which cannot act just then. */
extern void zkl_bounds_granted(int slotno);

/* Its time has changed, or its holder has ended a transaction. */
extern void zkl_bounds_look(int slotno);

/* The same for all: after a restart of the worker. */
extern void zkl_bounds_look_at_all(void);

/* Tells the core that a slot is RELEASED; "slot" is a copy of it. */
extern void zkl_bounds_release(int slotno, const ZklSlot *slot);

/* Ends the holds whose time is over. */
extern void zkl_bounds_tick(void);

/* When to call tick at the latest, in µs of CLOCK_BOOTTIME; -1: no need. */
extern int64 zkl_bounds_timer(void);

#endif							/* ZKL_BOUNDS_H */
