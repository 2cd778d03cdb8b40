/*
 * closing.c
 *	  Closing the gate for new requests, and then the ZooKeeper session.
 *
 * Owns the decision whether the gate is open, and the state of a session that is being
 * closed.  Runs in the worker only.  Takes the slots' mutexes, one at a time, and locks
 * through identity.c.  It must not know how the next session begins.
 *
 * When the gate closes, holders keep their locks, go on, and commit.  Sessions that wait
 * are woken, and find the gate closed.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "storage/latch.h"
#include "worker/closing.h"
#include "worker/from_slots.h"
#include "worker/identity.h"
#include "worker/link.h"
#include "worker/worker.h"
#include "worker/worker_slot.h"

/* ---- the gate ---- */

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
			return slot->s_holder.quiet ||
				(kept && slot->s_promised_until > zkl_boottime_ms());
		case ZKL_SLOT_RELEASED:
			return slot->s_epilogue ||
				(kept && slot->s_keep_until > zkl_boottime_ms());
		default:
			return false;
	}
}

bool
zkl_closing_is_in_use(bool kept)
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
zkl_closing_needs_session(void)
{
	return zkl_enabled || zkl_closing_is_in_use(true);
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
zkl_closing_tick(void)
{
	ZklGate		gate = zkl_enabled ? ZKL_GATE_OPEN : ZKL_GATE_DISABLED;

	if (gate == zkl_gate_read())
		return;
	zkl_gate_set(gate);
	log_change(gate);
	if (gate != ZKL_GATE_OPEN)
		zkl_worker_slot_wake_waiters();
}

/* ---- when the server stops ---- */

/*
 * Whether a slot keeps a lock that somebody relies on, who outlives the server: a time
 * was told, or the lock is reserved.
 */
static bool
is_promised(const ZklSlot *slot)
{
	return (slot->s_state == ZKL_SLOT_RELEASED || slot->s_state == ZKL_SLOT_LOST) &&
		(slot->s_promised_until > zkl_boottime_ms() || zkl_slot_is_reserved(slot));
}

bool
zkl_closing_is_promised(void)
{
	ZklSlot		slot;
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		if (zkl_slot_peek(i) <= ZKL_SLOT_CLAIMED)
			continue;
		zkl_slot_copy(i, &slot);
		if (is_promised(&slot))
			return true;
	}
	return false;
}

bool
zkl_closing_let_go(void)
{
	bool		gone = true;
	ZklSlot		slot;
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		if (zkl_slot_peek(i) <= ZKL_SLOT_CLAIMED)
			continue;
		zkl_slot_copy(i, &slot);
		if (is_promised(&slot) || zkl_from_slots_is_left(i) || slot.s_record.stays)
			continue;
		gone = false;
		if (slot.s_state != ZKL_SLOT_RELEASED || slot.s_keep_until == 0)
			continue;
		zkl_worker_slot_keep(i, 0);
		zkl_dirty_set(i, ZKL_WAKE_NOW);
	}
	return gone;
}

/* ---- the session ---- */

#define SHUTDOWN_MS		3000

static int64 closing_until = 0; /* 0: no session is being closed */
static bool replacing = false;	/* it could be used: no pause behind it */

/* ZooKeeper may carry out the close late, so the core loses the session first. */
static void
begin_closing(uint32 connection, int64 now)
{
	zkl_worker_tell(ZKL_EVENT(SESSION_LOST));
	zkl_link_say(ZKL_WIRE_CLOSE, connection);
	closing_until = now + ZKL_CLOSING_TIME;
}

void
zkl_closing_give_up(uint32 connection, int64 now)
{
	zkl_identity_lose();
	begin_closing(connection, now);
}

/*
 * The server is idle.  New requests wait for the next session, which begins once
 * the present one has surely ended.
 */
void
zkl_closing_replace(uint32 connection, int64 now)
{
	replacing = true;
	zkl_identity_left(zkl_status_timeout_ms());
	zkl_identity_leave();
	begin_closing(connection, now);
}

int64
zkl_closing_until(void)
{
	return closing_until;
}

bool
zkl_closing_end(bool acknowledged)
{
	bool		replaced = replacing;

	if (replaced && acknowledged)
		zkl_identity_left(0);
	else if (replaced)
		ereport(LOG,
				(errmsg("ZooKeeper did not acknowledge that the session is closed"),
				 errdetail("The next session begins when the old one has expired.")));
	closing_until = 0;
	replacing = false;
	return replaced;
}

int64
zkl_closing_not_before(void)
{
	return zkl_control->ctl_status.left_until * 1000;
}

bool
zkl_closing_wait(uint32 connection)
{
	ZklWireHeader header;
	ZklWireReader body;
	int64		until = zkl_boottime_ms() + SHUTDOWN_MS;
	bool		up = true,
				closed = false;

	zkl_link_say(ZKL_WIRE_CLOSE, connection);
	while (up && zkl_boottime_ms() < until)
	{
		if (!zkl_link_flush() || !zkl_link_read())
			break;
		while (zkl_link_next(&header, &body) > 0)
		{
			if (header.type != ZKL_WIRE_GONE)
				continue;
			up = false;
			closed = zkl_wire_get_u8(&body) == ZKL_WIRE_GONE_CLOSED;
		}
		if (up)
		{
			zkl_link_wait(Max(until - zkl_boottime_ms(), 0));
			ResetLatch(MyLatch);
		}
	}
	return closed;
}
