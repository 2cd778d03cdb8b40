/*
 * dirty.h
 *	  Which slots changed since the worker looked at them.
 */
#ifndef ZKL_SHARED_DIRTY_H
#define ZKL_SHARED_DIRTY_H

#include "storage/shmem.h"

/* How soon the worker has to look at a slot that was set dirty */
typedef enum ZklWake
{
	ZKL_WAKE_NOW,
	ZKL_WAKE_FOR_REQUEST,		/* for a new request: the worker sleeps on
								 * while it awaits more of them */
	ZKL_WAKE_AT_LEISURE,		/* for a release that no other session waits
								 * for: the worker sleeps on while it awaits
								 * requests, and this one does not count */
	ZKL_WAKE_LATER				/* the caller sets another slot dirty next, or
								 * there is time until the worker wakes */
} ZklWake;

/* ---- postmaster; processes that attach ---- */

/* The bytes that the bits of so many slots take; where they are; all clear. */
extern Size zkl_dirty_size(int nslots);
extern void zkl_dirty_attach(void *memory);
extern void zkl_dirty_init(int nslots);

/* ---- backends and the worker ---- */

/* Sets the dirty bit of a slot, and wakes the worker if necessary. */
extern void zkl_dirty_set(int slotno, ZklWake wake);

/* Whether the worker has yet to look at a slot that was set dirty. */
extern bool zkl_dirty_is_set(int slotno);

/* ---- worker ---- */

/*
 * The worker is about to sleep for a moment, and need not be woken before so
 * many requests have come.  0: it looks at everything from now on.
 */
extern void zkl_dirty_await(uint32 requests);

/*
 * Clears the dirty bits.  Puts the numbers of the slots that had one, in
 * ascending order, into an array with room for all slots, and returns how many
 * there are.
 */
extern int	zkl_dirty_take(int *slots);

#endif							/* ZKL_SHARED_DIRTY_H */
