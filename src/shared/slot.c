/*
 * slot.c
 *	  What backends and the worker both do with slots: mostly, to look at them.
 *
 * Owns nothing: backend_slot.c and worker_slot.c make the steps.  Takes
 * s_mutex.
 *
 * Must not know what a lock is, who may have it, or anything of ZooKeeper.
 */
#include "postgres.h"

#include <signal.h>

#include "shared/settings.h"
#include "shared/slot.h"

void
zkl_slot_signal_if_due(ZklSlot *slot)
{
	if (!slot->s_signal_due || slot->s_state != ZKL_SLOT_GRANTED)
		return;
	slot->s_signal_due = false;
	if (slot->s_request.on_release_request == ZKL_ON_REQUEST_CANCEL)
		kill(slot->s_request.pid, SIGINT);
	else if (slot->s_request.on_release_request == ZKL_ON_REQUEST_TERMINATE)
		kill(slot->s_request.pid, SIGTERM);
}

void
zkl_slot_signal(ZklSlot *slot)
{
	slot->s_signal_due = true;
	if (!slot->s_holder.quiet)
		zkl_slot_signal_if_due(slot);
}

ZklSlotState
zkl_slot_peek(int slotno)
{
	return (ZklSlotState) *(volatile uint32 *) &zkl_slots[slotno].s_state;
}

void
zkl_slot_copy(int slotno, ZklSlot *copy)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	memcpy(copy, slot, sizeof(ZklSlot));
	SpinLockRelease(&slot->s_mutex);
}
