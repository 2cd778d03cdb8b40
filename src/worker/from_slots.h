/*
 * from_slots.h
 *	  From the slots to the core and to operation.c.  Worker only.
 */
#ifndef ZKL_WORKER_FROM_SLOTS_H
#define ZKL_WORKER_FROM_SLOTS_H

#include "core/manager.h"

extern void zkl_from_slots_begin(ZklManager *manager);

/* Takes all requests that an earlier worker left in the slots. */
extern void zkl_from_slots_restore(void);

/* Takes what changed in the slots. */
extern void zkl_from_slots_take(void);

/* The core needs this slot no longer. */
extern void zkl_from_slots_forget(int slotno);

#endif							/* ZKL_WORKER_FROM_SLOTS_H */
