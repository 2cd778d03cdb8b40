/*
 * from_slots.h
 *	  From the slots to the core and to operation.c.  Worker only.
 */
#ifndef ZKL_WORKER_FROM_SLOTS_H
#define ZKL_WORKER_FROM_SLOTS_H

#include "shared/slot.h"

extern void zkl_from_slots_begin(void);

/* Takes all requests that an earlier worker left in the slots. */
extern void zkl_from_slots_restore(void);

/* Takes what changed in the slots. */
extern void zkl_from_slots_take(void);

/*
 * Writes what other servers may know of a slot's session, as data of a znode, into
 * ZKL_MAX_NODE_DATA bytes; returns its length.
 */
extern size_t zkl_from_slots_node_data(const ZklSlot *slot, char *buf);

/* The core needs this slot no longer. */
extern void zkl_from_slots_forget(int slotno);

#endif							/* ZKL_WORKER_FROM_SLOTS_H */
