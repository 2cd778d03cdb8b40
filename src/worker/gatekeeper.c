/*
 * gatekeeper.c
 *	  Opens and closes the gate for new requests, and knows when all that came
 *	  through it has ended.
 *
 * Owns the decision whether the gate is open.  Runs in the worker only.  Takes the
 * slots' mutexes, one at a time.  It must not know how a session is closed.
 *
 * Holders keep their locks, go on, and commit.  Sessions that wait are woken, and
 * find the gate closed.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "worker/gatekeeper.h"
#include "worker/worker_slot.h"

/*
 * A hold that was lost may still be relied on by a transaction that is past its
 * commit check.
 */
static bool
is_used(const ZklSlot *slot, bool kept)
{
	switch ((ZklSlotState) slot->s_state)
	{
		case ZKL_SLOT_WAITING:
		case ZKL_SLOT_GRANTED:
			return true;
		case ZKL_SLOT_LOST:
			return slot->s_holder.quiet;
		case ZKL_SLOT_RELEASED:
			return slot->s_epilogue ||
				(kept && slot->s_keep_until > zkl_boottime_ms());
		default:
			return false;
	}
}

bool
zkl_gatekeeper_is_in_use(bool kept)
{
	ZklSlot		slot;
	int			i;

	if (pg_atomic_read_u32(&zkl_control->ctl_breaks) > 0)
		return true;
	for (i = 0; i < zkl_control->ctl_nslots; i++)
	{
		if (zkl_slot_peek(i) <= ZKL_SLOT_CLAIMED)
			continue;
		zkl_slot_copy(i, &slot);
		if (is_used(&slot, kept))
			return true;
	}
	return false;
}

bool
zkl_gatekeeper_needs_session(void)
{
	return zkl_enabled || zkl_gatekeeper_is_in_use(true);
}

static void
log_change(ZklGate gate)
{
	if (gate == ZKL_GATE_DISABLED)
		ereport(LOG,
				(errmsg("distributed locks are disabled"),
				 errdetail("Sessions keep the locks that they hold.")));
	else
		ereport(LOG,
				(errmsg("distributed locks are enabled")));
}

void
zkl_gatekeeper_tick(void)
{
	ZklGate		gate = zkl_enabled ? ZKL_GATE_OPEN : ZKL_GATE_DISABLED;

	if (gate == zkl_gate_read())
		return;
	zkl_gate_set(gate);
	log_change(gate);
	if (gate != ZKL_GATE_OPEN)
		zkl_worker_slot_wake_waiters();
}
