/*
 * backend_slot.c
 *	  The steps that a backend makes with its slots, each under the slot's
 *	  mutex, and those of zk_drain() with all slots.
 *
 * Owns the fields in s_holder, and with acquire.c and refusal.c,
 * which fill it in, those in s_request; shared/slot.h tells who writes
 * the others.  Run by backends, each for its own slots but in zk_drain().
 *
 * Takes s_mutex, a spinlock: what runs under it neither throws nor blocks, and
 * it is never held together with any other lock.
 *
 * Must not know what a lock is, who may have it, or anything of ZooKeeper.
 */
#include "postgres.h"

#include "backend/backend_slot.h"
#include "backend/hold.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/slot.h"

/* How often what sessions do without the worker wakes it, to be counted */
#define COUNTED_MS	100

/* How many slots this process released that are kept, at the most */
static int	most_kept = 0;

/* Sets one field of a slot under its mutex. */
#define SET_FIELD(slotno, field, value) \
	do { \
		SpinLockAcquire(&zkl_slots[slotno].s_mutex); \
		zkl_slots[slotno].field = (value); \
		SpinLockRelease(&zkl_slots[slotno].s_mutex); \
	} while (0)

/* ---- the backend's steps ---- */

/*
 * What a claim and a take fill in, so that nothing is left of a holder before:
 * all but the slot's number, its state, its serial and the record of its znode
 */
static void
fill_in(ZklSlot *slot, const ZklSlotTaker *taker)
{
	memcpy(&slot->s_request, &taker->request, sizeof(ZklSlotRequest));
	slot->s_owner = taker->owner;
	memset(&slot->s_holder, 0, sizeof(ZklSlotHolder));
	slot->s_holder.timed_out = taker->timed_out;
	slot->s_holder.quiet = true;
	slot->s_holder.holds = 1;
	memset(&slot->s_answer, 0, sizeof(ZklSlotAnswer));
	memset(&slot->s_dependents, 0, sizeof(ZklSlotDependents));
	slot->s_dependents_due = false;
	slot->s_dsm = DSM_HANDLE_INVALID;
	slot->s_epilogue = false;
	slot->s_until = slot->s_keep_until = slot->s_promised_until = slot->s_lost_until = 0;
	slot->s_signal_due = false;
	slot->s_drain = 0;
	slot->s_resigned = false;
	slot->s_withdrawn = false;
	slot->s_late = ZKL_LATE_NOT;
}

/* FREE -> CLAIMED, of a slot that no other process can claim */
static int
claim_free_slot(int slotno, const ZklSlotTaker *taker)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	uint32		serial;

	SpinLockAcquire(&slot->s_mutex);
	Assert(slot->s_state == ZKL_SLOT_FREE);
	serial = slot->s_serial + 1;
	if (serial == 0)
		serial = 1;				/* 0 is for "none" */
	slot->s_serial = serial;
	fill_in(slot, taker);
	memset(&slot->s_record, 0, sizeof(ZklRecord));
	slot->s_record.seq = -1;
	slot->s_cacheable = slot->s_wanted = false;
	memset(&slot->s_uncounted, 0, sizeof(ZklLockstatsCounts));
	slot->s_state = ZKL_SLOT_CLAIMED;
	SpinLockRelease(&slot->s_mutex);
	return slotno;
}

int
zkl_backend_slot_claim(const ZklSlotTaker *taker, int spare)
{
	int			slotno = zkl_control_pop_free(spare);

	return slotno < 0 ? -1 : claim_free_slot(slotno, taker);
}

/* The number of a free slot of this process's own, or -1 */
static int
find_own_slot(void)
{
	int			first = zkl_control->ctl_nrequests +
	zkl_compat_my_procno() * ZKL_OWN_SLOTS;
	int			i;

	Assert(first + ZKL_OWN_SLOTS <= zkl_control->ctl_nslots);
	for (i = first; i < first + ZKL_OWN_SLOTS; i++)
	{
		if (zkl_slot_peek(i) == ZKL_SLOT_FREE)
			return i;
	}
	return -1;
}

bool
zkl_backend_slot_has_own(void)
{
	return find_own_slot() >= 0;
}

int
zkl_backend_slot_claim_own(const ZklSlotTaker *taker)
{
	int			slotno = find_own_slot();

	Assert(slotno >= 0);
	return claim_free_slot(slotno, taker);
}

/* ---- what the statistics have yet to count ---- */

/* At most one of all sessions wakes the worker in each such time. */
static void
have_counted(int slotno, int64 now_ms)
{
	uint64		due = pg_atomic_read_u64(&zkl_control->ctl_count_due);

	zkl_dirty_set(slotno, (uint64) now_ms >= due &&
				  pg_atomic_compare_exchange_u64(&zkl_control->ctl_count_due,
												 &due, now_ms + COUNTED_MS) ?
				  ZKL_WAKE_AT_LEISURE : ZKL_WAKE_LATER);
}

/* ---- cached locks ---- */

static bool
can_be_taken(const ZklSlot *slot, const ZklSlotTaker *taker)
{
	return slot->s_state == ZKL_SLOT_CACHED && !slot->s_wanted &&
		slot->s_request.dialect == taker->request.dialect &&
		strcmp(slot->s_request.path, taker->request.path) == 0 &&
		zkl_lease_is_current(slot->s_record.generation);
}

bool
zkl_backend_slot_take_cached(int slotno, const ZklSlotTaker *taker,
							 int64 *token, uint32 *generation)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		now_us = zkl_boottime_us();
	bool		done;

	if (zkl_slot_peek(slotno) != ZKL_SLOT_CACHED)
		return false;
	SpinLockAcquire(&slot->s_mutex);
	done = can_be_taken(slot, taker);
	if (done)
	{
		zkl_slot_tally(slot, &slot->s_uncounted);
		*token = slot->s_answer.token + 1;
		*generation = slot->s_record.generation;
		fill_in(slot, taker);
		slot->s_holder.quiet = false;
		slot->s_holder.taken = true;
		slot->s_answer.solitary = true;
		slot->s_answer.token = *token;
		slot->s_answer.granted_at = taker->request.requested_at;
		slot->s_answer.granted_us = now_us;
		slot->s_state = ZKL_SLOT_GRANTED;
	}
	SpinLockRelease(&slot->s_mutex);
	if (!done)
		return false;
	pg_atomic_fetch_add_u64(&zkl_control->ctl_cache_takes, 1);
	have_counted(slotno, now_us / 1000);
	return true;
}

void
zkl_backend_slot_end_takes(const char *path, ZklDialect dialect)
{
	int			slotno = zkl_control_find_slot(path, dialect);
	ZklSlot    *slot;

	if (slotno < 0)
		return;
	slot = &zkl_slots[slotno];
	SpinLockAcquire(&slot->s_mutex);
	if (slot->s_request.dialect == dialect && strcmp(slot->s_request.path, path) == 0)
		slot->s_wanted = true;
	SpinLockRelease(&slot->s_mutex);
}

/*
 * Not if something has to happen between the release and the next grant, or when
 * the znode has no token left for that grant.  Nor if all grants are logged: the
 * worker does that, and would not see the next one.
 */
static bool
can_be_cached(const ZklSlot *slot)
{
	return slot->s_cacheable && !slot->s_wanted && zkl_cache_time > 0 &&
		zkl_log_locks != ZKL_LOG_LOCKS_ALL && slot->s_state == ZKL_SLOT_GRANTED &&
		slot->s_holder.taken && slot->s_until == 0 && slot->s_keep_until == 0 &&
		slot->s_dsm == DSM_HANDLE_INVALID && slot->s_late == ZKL_LATE_NOT &&
		(slot->s_answer.token + 1) % ZKL_TOKENS_PER_ZXID != 0 &&
		zkl_lease_is_current(slot->s_record.generation);
}

void
zkl_backend_slot_submit(int slotno, bool more)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	/* One that its owner's hold covers, or a try, may be answered at once. */
	bool		prompt = slot->s_request.kind != ZKL_KIND_LOCK || slot->s_request.is_try ||
	slot->s_request.sibling >= 0 || slot->s_request.together;

	SpinLockAcquire(&slot->s_mutex);
	Assert(slot->s_state == ZKL_SLOT_CLAIMED);
	slot->s_state = ZKL_SLOT_WAITING;
	SpinLockRelease(&slot->s_mutex);
	zkl_dirty_set(slotno, more ? ZKL_WAKE_LATER :
				  prompt ? ZKL_WAKE_NOW : ZKL_WAKE_FOR_REQUEST);
}

/*
 * What was promised outlives the holder's process.  That is so of a lock that is
 * lost, too: its znode may be there still.
 */
ZklSlotState
zkl_backend_slot_release(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	ZklSlotState left;
	int64		now_us = zkl_boottime_us();
	bool		cached;
	bool		solitary;
	bool		kept;
	bool		by_holder = zkl_promise_ends_by_holder(slotno);

	SpinLockAcquire(&slot->s_mutex);
	left = slot->s_state;
	if (left != ZKL_SLOT_GRANTED || !slot->s_holder.taken ||
		zkl_slot_is_over(slot, now_us / 1000))
		slot->s_keep_until = 0;
	if (by_holder || slot->s_promised_until <= now_us / 1000)
		slot->s_promised_until = 0;
	slot->s_keep_until = Max(slot->s_keep_until, slot->s_promised_until);
	cached = can_be_cached(slot);
	slot->s_holder.released_us = now_us;
	kept = slot->s_keep_until != 0;
	solitary = slot->s_answer.solitary;
	Assert(left != ZKL_SLOT_FREE && left != ZKL_SLOT_CLAIMED &&
		   left != ZKL_SLOT_CACHED);
	slot->s_state = cached ? ZKL_SLOT_CACHED : ZKL_SLOT_RELEASED;
	SpinLockRelease(&slot->s_mutex);
	if (cached)
		return left;
	if (kept)
		most_kept++;
	zkl_dirty_set(slotno, left == ZKL_SLOT_GRANTED && solitary ?
				  ZKL_WAKE_AT_LEISURE : ZKL_WAKE_NOW);
	return left;
}

void
zkl_backend_slot_time_out(int slotno)
{
	SET_FIELD(slotno, s_holder.timed_out, true);
	zkl_dirty_set(slotno, ZKL_WAKE_NOW);
}

void
zkl_backend_slot_give_up(int slotno)
{
	SET_FIELD(slotno, s_holder.gave_up, true);
}

void
zkl_backend_slot_set_patient(int slotno)
{
	SET_FIELD(slotno, s_holder.patient, true);
}

void
zkl_backend_slot_set_holds(int slotno, uint32 holds)
{
	SET_FIELD(slotno, s_holder.holds, holds);
}

void
zkl_backend_slot_set_quiet(int slotno, bool quiet)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		lost;

	SpinLockAcquire(&slot->s_mutex);
	slot->s_holder.quiet = quiet;
	lost = slot->s_state == ZKL_SLOT_LOST;

	/* A cancel would hit what comes after the commit, or seem to undo it. */
	if (!quiet && slot->s_request.on_release_request == ZKL_ON_REQUEST_TERMINATE)
		zkl_slot_signal_if_due(slot);
	SpinLockRelease(&slot->s_mutex);
	if (lost && !quiet)
		zkl_dirty_set(slotno, ZKL_WAKE_NOW);
}

/* A session lock stays: nothing else would have the worker look at it. */
void
zkl_backend_slot_set_late(int slotno, ZklLate late)
{
	SET_FIELD(slotno, s_late, late);
	zkl_dirty_set(slotno, ZKL_WAKE_NOW);
}

/* ---- for how long ---- */

void
zkl_backend_slot_rebound(int slotno, int64 at_most, int64 at_least)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		now = zkl_boottime_ms();

	if (at_most == 0 && at_least == 0)
		return;
	SpinLockAcquire(&slot->s_mutex);
	if (slot->s_state == ZKL_SLOT_GRANTED)
	{
		if (at_most != 0 && slot->s_until != 0 && !slot->s_resigned)
			slot->s_until = Max(slot->s_until, now + at_most);
		if (at_least != 0)
			slot->s_keep_until = Max(slot->s_keep_until, now + at_least);
	}
	SpinLockRelease(&slot->s_mutex);
	zkl_dirty_set(slotno, ZKL_WAKE_NOW);
}

bool
zkl_backend_slot_extend(int slotno, uint32 generation, int64 at_most)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		now = zkl_boottime_ms();
	bool		held;

	SpinLockAcquire(&slot->s_mutex);
	held = slot->s_state == ZKL_SLOT_GRANTED && !zkl_slot_is_over(slot, now) &&
		!slot->s_resigned &&
		zkl_lease_same_generation(slot->s_record.generation, generation);
	if (held)
		slot->s_until = at_most != 0 ? now + at_most : 0;
	if (held && at_most != 0)
		slot->s_promised_until = Min(slot->s_promised_until, slot->s_until);
	SpinLockRelease(&slot->s_mutex);
	if (held)
		zkl_dirty_set(slotno, ZKL_WAKE_NOW);
	return held;
}

/* ---- while the server is being drained ---- */

void
zkl_backend_slot_ask(int slotno, uint32 drain)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		done;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_state == ZKL_SLOT_GRANTED && slot->s_drain != drain;
	if (done)
	{
		slot->s_drain = drain;
		zkl_slot_signal(slot);
	}
	SpinLockRelease(&slot->s_mutex);
	if (done)
		pg_atomic_fetch_add_u64(&zkl_control->ctl_release_requests, 1);
}

/*
 * A leader that was told until when it leads does so until then.
 *
 * A transaction may begin at any moment.  The session shows it, and then looks at
 * the slot under its mutex.  Here the slot is written before we look for the
 * transaction: so if it has begun before, we see it, and take the end back.
 */
bool
zkl_backend_slot_resign(int slotno, uint32 serial, bool idle)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		now = zkl_boottime_ms();
	int64		until;
	bool		done;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_serial == serial && slot->s_state == ZKL_SLOT_GRANTED &&
		!zkl_slot_is_over(slot, now);
	if (done)
	{
		until = slot->s_until;
		slot->s_until = Max(now, slot->s_promised_until);
		if (until != 0)
			slot->s_until = Min(slot->s_until, until);
		pg_memory_barrier();
		done = !idle || !zkl_compat_is_in_transaction(slot->s_request.procno);
		if (!done)
			slot->s_until = until;
	}
	if (done)
		slot->s_resigned = true;
	SpinLockRelease(&slot->s_mutex);
	if (done)
		zkl_dirty_set(slotno, ZKL_WAKE_NOW);
	return done;
}

/* ---- epilogues ---- */

void
zkl_backend_slot_set_epilogue(int slotno, dsm_handle segment)
{
	SET_FIELD(slotno, s_dsm, segment);
}

void
zkl_backend_slot_want_epilogue(int slotno, bool wanted)
{
	SET_FIELD(slotno, s_epilogue, wanted);
}

/*
 * Whether any other owner is denied the lock while this hold lasts: not those of
 * permits, nor the guard, which is held for a moment.
 */
static bool
denies_others(const ZklSlot *slot)
{
	return slot->s_request.kind == ZKL_KIND_LOCK &&
		slot->s_request.mode == ZKL_EXCLUSIVE && !slot->s_request.guard &&
		slot->s_request.dialect != ZKL_DIALECT_PERMIT;
}

void
zkl_backend_slot_take(int slotno, ZklSlot *copy)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	if (slot->s_state == ZKL_SLOT_GRANTED)
	{
		slot->s_holder.quiet = false;
		slot->s_holder.taken = true;
		zkl_slot_signal_if_due(slot);
	}
	memcpy(copy, slot, sizeof(ZklSlot));
	SpinLockRelease(&slot->s_mutex);
	if (copy->s_state == ZKL_SLOT_GRANTED && denies_others(copy))
		zkl_control_note_slot(copy->s_request.path,
							  (ZklDialect) copy->s_request.dialect, slotno);
}

/*
 * The lease is read first.  It covers the hold if that is older, and if it is
 * newer, the worker has just got the lock: so others cannot have had it for all of
 * the call.
 */
bool
zkl_backend_slot_deny_try(const char *path, ZklDialect dialect, uint64 owner)
{
	int			slotno = zkl_control_find_slot(path, dialect);
	int64		now = zkl_boottime_ms();
	bool		denied;
	uint32		generation;
	int64		deadline;
	ZklSlot    *slot;

	zkl_lease_read(&generation, &deadline);
	if (slotno < 0 || now >= deadline || zkl_slot_peek(slotno) != ZKL_SLOT_GRANTED)
		return false;
	slot = &zkl_slots[slotno];
	SpinLockAcquire(&slot->s_mutex);
	denied = slot->s_state == ZKL_SLOT_GRANTED && denies_others(slot) &&
		slot->s_owner != owner && !zkl_slot_is_over(slot, now) &&
		zkl_lease_same_generation(slot->s_record.generation, generation) &&
		slot->s_request.dialect == dialect &&
		strcmp(slot->s_request.path, path) == 0;
	if (denied)
		slot->s_uncounted.denials++;
	SpinLockRelease(&slot->s_mutex);
	if (denied)
		have_counted(slotno, now);
	return denied;
}

int
zkl_backend_slot_count_kept(uint64 claimer, int harmless)
{
	int64		now = zkl_boottime_ms();
	int			kept = 0;
	int			i;

	if (most_kept <= harmless)
		return most_kept;
	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		ZklSlot    *slot = &zkl_slots[i];

		if (zkl_slot_peek(i) != ZKL_SLOT_RELEASED)
			continue;
		SpinLockAcquire(&slot->s_mutex);
		kept += slot->s_state == ZKL_SLOT_RELEASED &&
			slot->s_request.lifetime < ZKL_HELD_LIFETIMES &&
			slot->s_request.claimer == claimer && slot->s_keep_until > now;
		SpinLockRelease(&slot->s_mutex);
	}
	most_kept = kept;
	return kept;
}

bool
zkl_backend_slot_is_held(int slotno, uint32 generation, ZklError *error)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		now = zkl_boottime_ms();
	bool		held;

	SpinLockAcquire(&slot->s_mutex);
	held = slot->s_state == ZKL_SLOT_GRANTED &&
		zkl_lease_same_generation(slot->s_record.generation, generation);
	*error = slot->s_answer.error;
	if (held && zkl_slot_is_over(slot, now))
	{
		held = false;
		*error = zkl_slot_why_over(slot);
	}
	SpinLockRelease(&slot->s_mutex);
	return held;
}
