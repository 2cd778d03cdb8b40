/*
 * hold_tally.c
 *	  What a hold of a lock has to add to the statistics.
 *
 * Owns what counts as an acquire, and as a wait.  A pure function: the worker calls
 * it for the last hold of a slot, and a backend that takes a cached lock for the
 * hold before its own.
 */
#include "postgres.h"

#include "shared/hold_tally.h"

void
zkl_hold_tally(const ZklSlot *slot, ZklLockstatsCounts *counts)
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
