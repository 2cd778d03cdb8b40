/*
 * tally.c
 *	  What a request for a lock has to add to the statistics.
 *
 * Owns what counts as an acquire, a wait, a timeout, a denial, a loss and a
 * deadlock.  Runs in the worker only.  Takes no locks.
 *
 * Must not know how the statistics are kept.
 *
 * Backends and the worker note in the slot what happens to the request.  A
 * RELEASED slot is the worker's, so it is read without its mutex.
 */
#include "postgres.h"

#include "shared/lockstats.h"
#include "worker/tally.h"

static void
tally_hold(const ZklSlot *slot, ZklLockstatsCounts *counts)
{
	int64		from = slot->s_answer.granted_us;
	int64		to = slot->s_answer.lost_us != 0 ? slot->s_answer.lost_us :
	slot->s_holder.released_us;

	counts->acquires = 1;
	counts->waited = slot->s_answer.blocked || slot->s_request.waited;
	counts->wait_time = counts->longest_wait =
		Max(from - slot->s_request.asked_us, 0);
	counts->hold_time = counts->longest_hold = Max(to - from, 0);
}

/*
 * A grant that the backend has not taken counts for nothing: a timeout, a cancel
 * or the wait for another lock of the same call came first.  Nor does the guard
 * of a semaphore, whose requests may be many in one call; but if the call times
 * out there, that is a timeout of the semaphore.  A try for leases may be refused
 * without any request: so leases have no denials.
 */
void
zkl_tally_slot(const ZklSlot *slot)
{
	bool		guard = slot->s_request.guard;
	ZklLockstatsCounts counts = {0};

	if (slot->s_holder.taken && !guard)
		tally_hold(slot, &counts);
	counts.timeouts = slot->s_holder.gave_up;
	counts.denials = slot->s_answer.denied && !guard &&
		slot->s_request.dialect != ZKL_DIALECT_PERMIT;
	counts.denials += slot->s_denials;
	counts.losses = slot->s_answer.lost_us != 0 && !guard;
	counts.deadlocks = slot->s_answer.error == ZKL_ERROR_DEADLOCK;
	if (counts.acquires + counts.timeouts + counts.denials + counts.losses +
		counts.deadlocks > 0)
		zkl_lockstats_add(slot->s_request.path, zkl_slot_shown_length(slot),
						  &counts);
}

void
zkl_tally_denials(const ZklSlot *slot, uint32 denials)
{
	ZklLockstatsCounts counts = {0};

	counts.denials = denials;
	zkl_lockstats_add(slot->s_request.path, zkl_slot_shown_length(slot), &counts);
}
