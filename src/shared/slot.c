/*
 * slot.c
 *	  What backends and the worker both do with slots: mostly, to look at them.
 *
 * Owns the words for losses, and no field: backend_slot.c and worker_slot.c make the steps.  Takes
 * s_mutex.
 *
 * Must not know what a lock is, who may have it, or anything of ZooKeeper.
 */
#include "postgres.h"

#include <signal.h>

#include "shared/boottime.h"
#include "shared/control.h"
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

const char *
zkl_slot_lifetime_name(const ZklSlot *slot)
{
	static const char *const names[] = {"session", "transaction", "reservation", "ticket"};

	return names[slot->s_answer.claimed ? ZKL_LIFETIME_RESERVATION : slot->s_request.lifetime];
}

bool
zkl_slot_is_ticket(const ZklSlot *slot)
{
	return slot->s_request.lifetime == ZKL_LIFETIME_TICKET && !slot->s_answer.claimed &&
		(slot->s_state == ZKL_SLOT_WAITING ||
		 (slot->s_state == ZKL_SLOT_RELEASED && slot->s_answer.error == ZKL_ERROR_NONE &&
		  slot->s_keep_until > zkl_boottime_ms()));
}

bool
zkl_slot_withdraw(int slotno, int64 ticket, bool tell)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		done;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_request.ticket == ticket && zkl_slot_is_ticket(slot);
	if (done)
	{
		slot->s_withdrawn = true;
		slot->s_keep_until = 0;
		if (tell)
			slot->s_lost_until = zkl_boottime_ms() + slot->s_request.at_least;
		slot->s_state = ZKL_SLOT_RELEASED;
	}
	SpinLockRelease(&slot->s_mutex);
	if (done)
		zkl_dirty_set(slotno, ZKL_WAKE_NOW);
	return done;
}

void
zkl_slot_lapse(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		now_ms = zkl_boottime_ms();

	SpinLockAcquire(&slot->s_mutex);
	if (slot->s_request.ticket != 0 && slot->s_state == ZKL_SLOT_RELEASED &&
		!slot->s_answer.claimed && !slot->s_withdrawn &&
		slot->s_answer.error == ZKL_ERROR_NONE && slot->s_keep_until <= now_ms)
	{
		slot->s_answer.error = ZKL_ERROR_UNCLAIMED;
		slot->s_lost_until = now_ms + slot->s_request.at_least;
	}
	SpinLockRelease(&slot->s_mutex);
}

bool
zkl_slot_is_reserved(const ZklSlot *slot)
{
	return slot->s_state == ZKL_SLOT_RELEASED &&
		slot->s_request.kind == ZKL_KIND_LOCK && zkl_slot_is_reservation(slot) &&
		slot->s_keep_until > zkl_boottime_ms() && !zkl_slot_is_lost_kept(slot);
}

bool
zkl_slot_is_relied_on(int slotno)
{
	ZklSlotState state = zkl_slot_peek(slotno);
	ZklSlot		slot;

	if (state != ZKL_SLOT_RELEASED)
		return state == ZKL_SLOT_GRANTED;
	zkl_slot_copy(slotno, &slot);
	return zkl_slot_is_reserved(&slot);
}

bool
zkl_slot_is_untold(const ZklSlot *slot)
{
	return (zkl_slot_is_lost_kept(slot) || slot->s_withdrawn) &&
		slot->s_lost_until > zkl_boottime_ms();
}

const char *
zkl_slot_lost_detail(ZklError error)
{
	if (error == ZKL_ERROR_NODE_DELETED)
		return "Its znode is gone: it was deleted, or its ZooKeeper session has ended.";
	if (error == ZKL_ERROR_SESSION_EXPIRED)
		return "The ZooKeeper session that held it has expired.";
	if (error == ZKL_ERROR_WORKER_ENDED)
		return "The zklock worker that held it has ended, and its ZooKeeper session expires.";
	if (error == ZKL_ERROR_BROKEN)
		return "An operator broke it with zk_break_lock().";
	if (error == ZKL_ERROR_UNREADABLE)
		return "ZooKeeper no longer lets this server read its znode or list its directory.";
	if (error == ZKL_ERROR_OVERTAKEN)
		return "The lease had ended before ZooKeeper elected a leader, and another client that waited for the lock may have got it.";
	if (error == ZKL_ERROR_OVERDUE)
		return "It was held for longer than its at_most.";
	if (error == ZKL_ERROR_RESIGNED)
		return "This server is being drained, so its leaders resigned.";
	if (error == ZKL_ERROR_CANCELLED)
		return "A superuser cancelled the reservation.";
	if (error == ZKL_ERROR_UNCLAIMED)
		return "Nobody claimed it in time after its grant.";
	if (error == ZKL_ERROR_LAPSED)
		return "Since then, ZooKeeper has not confirmed that this server still holds the lock.";
	return "The ZooKeeper session that held it no longer belongs to this server.";
}

void
zkl_slot_tally(const ZklSlot *slot, ZklLockstatsCounts *counts)
{
	int64		from = slot->s_answer.granted_us;
	int64		to = slot->s_answer.lost_us != 0 ? slot->s_answer.lost_us :
	slot->s_holder.released_us;
	int64		waited = Max(from - slot->s_request.asked_us, 0);
	int64		held = Max(to - from, 0);

	counts->acquires++;
	counts->waited += slot->s_answer.blocked || slot->s_request.waited;
	counts->wait_time += waited;
	counts->longest_wait = Max(counts->longest_wait, waited);
	counts->hold_time += held;
	counts->longest_hold = Max(counts->longest_hold, held);
}
