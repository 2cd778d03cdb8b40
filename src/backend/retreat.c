/*
 * retreat.c
 *	  What follows for sessions while this server is being drained.
 *
 * Owns nothing: shared/draining.c has the state.  Run by backends.  Takes no
 * locks but, through backend_slot.h, those of slots, one at a time.
 *
 * Must not know how a request is answered, nor anything of ZooKeeper.
 *
 * A session that holds something may go on to take more, because it may need that
 * to finish.  All others are refused, also those that wait already.  Holders are
 * asked as zk_request_release() asks them, by a mark in their slots.
 *
 * A leader cannot be asked: it leads until it ends.  So it loses the leadership,
 * but never under a transaction.  Between two transactions it is lost to the
 * session as any lock, so that no later transaction relies on it unnoticed.  The
 * leader's session ends it at the end of a transaction; the session that drains
 * does it if the leader is in none.  The leader's session ends its transaction, and
 * then looks whether there is a drain.  The session that drains begins the drain,
 * and then looks for transactions.  So one of them sees the other.
 */
#include "postgres.h"

#include "backend/backend_slot.h"
#include "backend/hold.h"
#include "backend/retreat.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/dirty.h"
#include "shared/draining.h"
#include "shared/wakeup.h"

/* ---- in each session ---- */

/* While a member waits in a barrier, its slot is quiet. */
static bool
is_waiting_member(const ZklHold *hold)
{
	ZklSlot		slot;

	if (hold->lock->key.dialect != ZKL_DIALECT_MEMBER)
		return false;
	zkl_slot_copy(hold->grant.slotno, &slot);
	return slot.s_holder.quiet;
}

static bool
holds_something(void)
{
	ZklError	error;
	int			i;

	for (i = 0; i < lengthof(zkl_holds); i++)
	{
		dlist_iter	iter;

		dlist_foreach(iter, &zkl_holds[i])
		{
			ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);

			if (zkl_hold_is_good(hold, &error) && !is_waiting_member(hold))
				return true;
		}
	}
	return false;
}

bool
zkl_retreat_refuses(void)
{
	return zkl_draining_number() != 0 && !holds_something();
}

void
zkl_retreat_check(void)
{
	if (!zkl_retreat_refuses())
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("distributed locks are refused because this server is being drained"),
			 errdetail("Only sessions that hold a lock can acquire another one."),
			 errhint("Use another server of the fleet, or wait until zk_undrain() is called here.")));
}

void
zkl_retreat_resign(void)
{
	dlist_iter	iter;

	pg_memory_barrier();
	if (zkl_draining_number() == 0)
		return;
	dlist_foreach(iter, &zkl_holds[ZKL_LIFETIME_SESSION])
	{
		ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);

		if (hold->lock->key.dialect == ZKL_DIALECT_LATCH)
			(void) zkl_backend_slot_resign(hold->grant.slotno,
										   zkl_slots[hold->grant.slotno].s_serial,
										   false);
	}
}

/* ---- in the session that drains ---- */

static void
ask(int slotno, const ZklSlot *slot, uint32 drain)
{
	if (slot->s_state == ZKL_SLOT_WAITING)
		zkl_wakeup_process(slot->s_request.procno);
	else if (slot->s_state == ZKL_SLOT_CACHED)
		zkl_dirty_set(slotno, ZKL_WAKE_NOW);
	else if (slot->s_state != ZKL_SLOT_GRANTED)
		return;
	else if (slot->s_request.dialect == ZKL_DIALECT_LATCH &&
			 slot->s_holder.taken &&
			 zkl_backend_slot_resign(slotno, slot->s_serial, true))
		return;
	else
		zkl_backend_slot_ask(slotno, drain);
}

/*
 * A transaction that is past its commit check relies on what was lost since; and
 * what was released is with ZooKeeper until its slot is free.
 */
bool
zkl_retreat_is_left(const ZklSlot *slot)
{
	if (slot->s_request.kind != ZKL_KIND_LOCK)
		return false;
	switch ((ZklSlotState) slot->s_state)
	{
		case ZKL_SLOT_WAITING:
		case ZKL_SLOT_GRANTED:
		case ZKL_SLOT_CACHED:
		case ZKL_SLOT_RELEASED:
			return true;
		case ZKL_SLOT_LOST:
			return slot->s_holder.quiet && slot->s_holder.taken;
		default:
			return false;
	}
}

int
zkl_retreat_ask_all(uint32 drain)
{
	int			left = 0;
	int			i;

	pg_memory_barrier();
	for (i = 0; i < zkl_control->ctl_nslots && zkl_draining_number() == drain; i++)
	{
		ZklSlot		slot;

		if (zkl_slot_peek(i) <= ZKL_SLOT_CLAIMED)
			continue;
		zkl_slot_copy(i, &slot);
		ask(i, &slot, drain);
		left += zkl_retreat_is_left(&slot);
	}
	return left;
}
