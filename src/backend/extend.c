/*
 * extend.c
 *	  Extending the time for which a lock may be held.
 *
 * Owns nothing: it looks at this backend's holds, and changes their slots.  Run
 * by backends.  Takes the slots' mutexes through backend_slot.h.
 *
 * Must not know when a hold begins, nor what else can end it.
 */
#include "postgres.h"

#include "backend/backend_slot.h"
#include "backend/extend.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "backend/text.h"
#include "shared/lease.h"
#include "shared/loaded.h"

static void
extend_hold(ZklHold *hold, int64 at_most_ms)
{
	ZklError	error = ZKL_ERROR_OVERDUE;

	if (zkl_lease_is_current(hold->grant.generation) &&
		zkl_backend_slot_extend(hold->grant.slotno, hold->grant.generation,
								at_most_ms))
		return;
	(void) zkl_hold_is_good(hold, &error);
	hold->told = true;
	zkl_refusal_raise_lost(hold->name, zkl_hold_release_function(hold), error);
}

/*
 * All holds on the lock: their holder cannot tell which of them would let it
 * go.
 */
bool
zkl_extend_holds(const ZklTarget *lock, int64 at_most_ms)
{
	ZklHeldLock *held;
	bool		found = false;
	int			i;

	zkl_loaded_check();
	held = zkl_hold_lookup(lock);
	for (i = 0; i < ZKL_HOLDS_PER_LOCK; i++)
	{
		ZklHold    *hold = zkl_hold_nth(held, i);

		if (hold == NULL)
			continue;
		extend_hold(hold, at_most_ms);
		found = true;
	}
	if (!found)
		ereport(WARNING,
				(errmsg("you do not hold distributed lock \"%s\"",
						zkl_text_for_client(lock->name))));
	return found;
}
