/*
 * from_slots.h
 *	  From the slots to the core.  Worker only.
 */
#ifndef ZKL_WORKER_FROM_SLOTS_H
#define ZKL_WORKER_FROM_SLOTS_H

#include "core/manager.h"

extern void zkl_from_slots_begin(ZklManager *manager);

/* Gives the core all requests that an earlier worker left in the slots. */
extern void zkl_from_slots_restore(void);

/* Tells the core what changed in the slots. */
extern void zkl_from_slots_take(void);

/* The core is through with this slot. */
extern void zkl_from_slots_forget(int slotno);

#endif							/* ZKL_WORKER_FROM_SLOTS_H */
