/*
 * dirty.h
 *	  Which slots changed since the worker looked at them.
 */
#ifndef ZKL_SHARED_DIRTY_H
#define ZKL_SHARED_DIRTY_H

#include "storage/shmem.h"

/* ---- postmaster; processes that attach ---- */

/* The bytes that the bits of so many slots take; where they are; all clear. */
extern Size zkl_dirty_size(int nslots);
extern void zkl_dirty_attach(void *memory);
extern void zkl_dirty_init(int nslots);

/* ---- backends ---- */

/* Sets the mark of a slot and wakes the worker. */
extern void zkl_dirty_set(int slotno);

/* Sets the mark only: who wakes the worker comes next. */
extern void zkl_dirty_set_quietly(int slotno);

/*
 * Likewise for a new demand, or for a release that nobody waits for; but the
 * worker sleeps on while it awaits more demands and looks by itself soon.
 */
extern void zkl_dirty_set_demand(int slotno);
extern void zkl_dirty_set_leisurely(int slotno);

/* ---- worker ---- */

/*
 * The worker is about to sleep for a moment, and need not be woken before so
 * many demands are there; 0: it looks at everything from now on.
 */
extern void zkl_dirty_await(uint32 demands);

/*
 * Takes the marks of the slots that changed since the last call: their
 * numbers, in ascending order, into an array with room for all slots.  Returns
 * how many.
 */
extern int	zkl_dirty_take(int *slots);

/* Gives marks back, for a later call, and wakes the worker for it. */
extern void zkl_dirty_return(const int *slots, int nslots);

#endif							/* ZKL_SHARED_DIRTY_H */
