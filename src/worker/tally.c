/*
 * tally.c
 *	  What a request for a lock has to add to the statistics.
 *
 * Owns what counts as a timeout, a denial, a loss and a deadlock.  Runs in the
 * worker only.  Takes no locks.
 *
 * Must not know how the statistics are kept.
 *
 * Backends and the worker note in the slot what happens to the request.  A
 * RELEASED slot is the worker's, so it is read without its mutex.
 */
#include "postgres.h"

#include "shared/lockstats.h"
#include "shared/slot.h"
#include "worker/tally.h"
#include "worker/worker_slot.h"

static void
add(const ZklSlot *slot, const ZklLockstatsCounts *counts)
{
	if (counts->acquires + counts->timeouts + counts->denials + counts->losses +
		counts->deadlocks > 0)
		zkl_lockstats_add(slot->s_request.path, zkl_slot_shown_length(slot),
						  counts);
}

void
zkl_tally_uncounted(int slotno, const ZklSlot *slot)
{
	ZklLockstatsCounts counts = zkl_worker_slot_take_uncounted(slotno);

	add(slot, &counts);
}

/*
 * A grant that the backend has not taken counts for nothing: a timeout, a cancel
 * or the wait for another lock of the same call came first.  Nor does the guard
 * of a semaphore, whose requests may be many in one call; but if the call times
 * out there, that is a timeout of the semaphore.  A try for permits may be refused
 * without any request: so permits have no denials.
 */
void
zkl_tally_slot(const ZklSlot *slot)
{
	bool		guard = slot->s_request.guard;
	ZklLockstatsCounts counts = slot->s_uncounted;

	if (slot->s_holder.taken && !guard)
		zkl_slot_tally(slot, &counts);
	counts.timeouts += slot->s_holder.gave_up;
	counts.denials += slot->s_answer.denied && !guard &&
		slot->s_request.dialect != ZKL_DIALECT_PERMIT;
	counts.losses += slot->s_answer.lost_us != 0 && !guard;
	counts.deadlocks += slot->s_answer.error == ZKL_ERROR_DEADLOCK;
	add(slot, &counts);
}
