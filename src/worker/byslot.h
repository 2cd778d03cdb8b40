/*
 * byslot.h
 *	  What the worker keeps for some of the slots, found by their numbers.
 *
 * An answer from ZooKeeper names the slot that it is for, and so do backends:
 * with a thousand operations under way, a walk would be made for each.
 */
#ifndef ZKL_WORKER_BYSLOT_H
#define ZKL_WORKER_BYSLOT_H

#include "shared/control.h"
#include "utils/memutils.h"

typedef void **ZklBySlot;

/* For all slots, and for as long as the worker lives */
static inline ZklBySlot
zkl_byslot_make(void)
{
	return MemoryContextAllocZero(TopMemoryContext,
								  zkl_control->ctl_nslots * sizeof(void *));
}

/* NULL: nothing is kept, or there is no such slot. */
static inline void *
zkl_byslot_get(ZklBySlot table, int slotno)
{
	return slotno >= 0 && slotno < zkl_control->ctl_nslots ?
		table[slotno] : NULL;
}

#endif							/* ZKL_WORKER_BYSLOT_H */
