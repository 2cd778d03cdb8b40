/*
 * backend_slot.h
 *	  The steps that a backend makes with its slots; shared/slot.h has the rest.
 */
#ifndef ZKL_BACKEND_BACKEND_SLOT_H
#define ZKL_BACKEND_BACKEND_SLOT_H

#include "shared/slot.h"

/* Whose a slot becomes, and for what: all that a claim and a take fill in */
typedef struct ZklSlotTaker
{
	ZklSlotRequest request;
	uint64		owner;
	bool		timed_out;		/* a try that is not to wait at all */
} ZklSlotTaker;

/*
 * Takes a free slot for a lock into CLAIMED, with a new serial, what the taker
 * says, s_record.seq -1, and all other fields zero.  Returns its number, or -1 if no
 * more than "spare" are free.
 */
extern int	zkl_backend_slot_claim(const ZklSlotTaker *taker, int spare);

/*
 * The same with a slot of this process's own, for the other kinds: one must be
 * free.  If there is none, the worker has yet to free them.
 */
extern bool zkl_backend_slot_has_own(void);
extern int	zkl_backend_slot_claim_own(const ZklSlotTaker *taker);

/*
 * CACHED -> GRANTED, and picked up, in one step under s_mutex, if the slot is
 * CACHED with the path and the dialect of the taker's request.  "slotno" is a
 * guess: any slot for locks will do, and false changes nothing.  True: *token and
 * *generation are those of the grant.  The caller then looks whether the lease
 * of that generation is valid, as it does with any grant; if not, it releases the
 * slot and submits a request instead.  Only locks without bounds, wanted
 * exclusively, and of which this session has no hold may be taken so.  Cannot
 * fail, and does not wake the worker.
 */
extern bool zkl_backend_slot_take_cached(int slotno, const ZklSlotTaker *taker,
										 int64 *token, uint32 *generation);

/*
 * A lock is not taken so from here on, until the worker has seen who wants it.  Who has it
 * now keeps it.
 */
extern void zkl_backend_slot_end_takes(const char *path, ZklDialect dialect);

/*
 * CLAIMED -> WAITING; sets the slot dirty, and wakes the worker unless it awaits
 * more requests.  "more": another slot follows at once, and the worker is to
 * look at both together.
 */
extern void zkl_backend_slot_submit(int slotno, bool more);

/*
 * Any state but FREE, CLAIMED and CACHED -> RELEASED; sets the slot dirty and
 * wakes the worker, at leisure if no other session seemed to wait when the lock
 * was granted.  But if it can be cached, GRANTED -> CACHED, and the worker need
 * not know.  Returns the state that the slot left, so that a cancel learns
 * whether the grant came first.  From then on the slot is not the caller's.
 * Only flags and SetLatch: safe in a transaction callback and on exit.
 */
extern ZklSlotState zkl_backend_slot_release(int slotno);

/* Sets s_holder.timed_out of a WAITING try, and has the worker look at the slot. */
extern void zkl_backend_slot_time_out(int slotno);

/*
 * Whether a slot is still granted by the given session generation, and its time
 * is not over.  If not, *error says why, as far as the worker does.
 */
extern bool zkl_backend_slot_is_held(int slotno, uint32 generation,
									 ZklError *error);

/* Notes, for the statistics, that the wait ends with the error of a timeout. */
extern void zkl_backend_slot_give_up(int slotno);

/* Notes that the wait has lasted for as long as the request's patience. */
extern void zkl_backend_slot_set_patient(int slotno);

extern void zkl_backend_slot_set_holds(int slotno, uint32 holds);

/*
 * How many locks are kept now that this process, the claimer of their slots,
 * has released; perhaps fewer than the result if that is "harmless" or less,
 * which saves looking at all slots.
 */
extern int	zkl_backend_slot_count_kept(uint64 claimer, int harmless);

/*
 * Another acquisition of a held lock, with bounds of its own in ms, 0 for none:
 * the later times count.  A hold without a bound stays without.
 */
extern void zkl_backend_slot_rebound(int slotno, int64 at_most, int64 at_least);

/*
 * The hold may last for as many ms from now, or without limit if that is 0.  If
 * zkl_backend_slot_is_held is not true of the slot: false, and nothing changes.
 */
extern bool zkl_backend_slot_extend(int slotno, uint32 generation, int64 at_most);

/*
 * Sets or clears s_holder.quiet: see the commit check in commit.c.  If the slot became
 * LOST meanwhile, clearing it has the worker look at the slot: its znode may go.
 */
extern void zkl_backend_slot_set_quiet(int slotno, bool quiet);

/*
 * A transaction has committed or was prepared, and its lock was lost before.
 * Only a flag, which the worker logs: safe in a transaction callback.
 */
extern void zkl_backend_slot_set_late(int slotno, ZklLate late);

/*
 * Whether another owner of this server surely holds a lock exclusively, now.  If
 * so, a try is denied, which is counted.  False: only the worker can tell.
 */
extern bool zkl_backend_slot_deny_try(const char *path, ZklDialect dialect,
									  uint64 owner);

/*
 * Names the pinned segment of a hold's epilogue: see errand_layout.h.  From then on
 * the worker sees to it that it is unpinned.
 */
extern void zkl_backend_slot_set_epilogue(int slotno, dsm_handle segment);

/* Whether it is wanted.  Only a flag: safe in a transaction callback. */
extern void zkl_backend_slot_want_epilogue(int slotno, bool wanted);

/*
 * A consistent copy of a slot whose wait is over; a grant counts as picked up
 * from then on, so that its loss is acted upon.
 */
extern void zkl_backend_slot_take(int slotno, ZklSlot *copy);

/* ---- for drains, on slots of any session ---- */

/* Asks a holder to release its lock, once in each drain. */
extern void zkl_backend_slot_ask(int slotno, uint32 drain);

/*
 * A leader's time is over.  False: the slot does not lead any more, has been claimed
 * again, or, if "idle", its session is in a transaction.
 */
extern bool zkl_backend_slot_resign(int slotno, uint32 serial, bool idle);

#endif							/* ZKL_BACKEND_BACKEND_SLOT_H */
