/*
 * assert.c
 *	  Asking whether this session still has what it was granted.
 *
 * Owns nothing.  Run by backends.  Takes the slots' mutexes through slot.h.
 *
 * Must not know when a hold begins, nor what else can end it.
 */
#include "postgres.h"

#include "backend/assert.h"
#include "backend/refusal.h"
#include "shared/boottime.h"
#include "shared/lease.h"

/* The lease is read before the clock: so the time that is left is not too long. */
int64
zkl_assert_hold(ZklHold *hold)
{
	ZklError	error = ZKL_ERROR_NONE;
	ZklSlot		slot;
	uint32		generation;
	int64		until;
	int64		now;

	zkl_slot_copy(hold->grant.slotno, &slot);
	zkl_lease_read(&generation, &until);
	now = zkl_boottime_ms();
	if (!zkl_hold_is_good(hold, &error) ||
		!zkl_lease_same_generation(generation, hold->grant.generation))
	{
		hold->told = true;
		zkl_refusal_raise_lost(hold->name, zkl_hold_release_function(hold), error);
	}
	if (now >= until)
		zkl_refusal_raise_lease_ended(hold->name);
	if (slot.s_until != 0)
		until = Min(until, slot.s_until);
	return Max(until - now, 1);
}

bool
zkl_assert_lock(const ZklTarget *lock, int64 *left_ms)
{
	ZklHeldLock *held = zkl_hold_lookup(lock);
	bool		found = false;
	int			i;

	for (i = 0; i < ZKL_HOLDS_PER_LOCK; i++)
	{
		ZklHold    *hold = zkl_hold_nth(held, i);

		if (hold == NULL)
			continue;
		*left_ms = Min(*left_ms, zkl_assert_hold(hold));
		found = true;
	}
	return found;
}
