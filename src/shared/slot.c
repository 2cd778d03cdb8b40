/*
 * slot.c
 *	  The steps of a slot, each under the slot's mutex.
 *
 * Owns what is in a slot; slot.h tells its life and which field is whose.
 * Run by backends for their own slots, by the worker for all of them, and by
 * whoever shows them.
 *
 * Takes s_mutex, a spinlock: what runs under it neither throws nor blocks, and
 * it is never held together with any other lock.
 *
 * Must not know what a lock is, who may have it, or anything of ZooKeeper.
 */
#include "postgres.h"

#include <signal.h>

#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/dirty.h"
#include "shared/lease.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/wakeup.h"
#include "utils/timestamp.h"

/* ---- the backend's steps ---- */

/* How many slots this process released that are kept, at the most */
static int	most_kept = 0;

/* FREE -> CLAIMED, of a slot that nobody else can claim */
static int
claim(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	uint32		serial;

	SpinLockAcquire(&slot->s_mutex);
	Assert(slot->s_state == ZKL_SLOT_FREE);
	serial = slot->s_serial + 1;
	if (serial == 0)
		serial = 1;				/* 0 is for "none" */
	memset((char *) slot + offsetof(ZklSlot, s_state), 0,
		   sizeof(ZklSlot) - offsetof(ZklSlot, s_state));
	slot->s_serial = serial;
	slot->s_sibling = -1;
	slot->s_znode_seq = -1;
	slot->s_quiet = true;
	slot->s_state = ZKL_SLOT_CLAIMED;
	SpinLockRelease(&slot->s_mutex);
	return slotno;
}

int
zkl_slot_claim(void)
{
	int			slotno = zkl_control_pop_free();

	return slotno < 0 ? -1 : claim(slotno);
}

int
zkl_slot_claim_own(int procno)
{
	int			first = zkl_control->ctl_nrequests + procno * ZKL_OWN_SLOTS;
	int			i;

	Assert(first + ZKL_OWN_SLOTS <= zkl_control->ctl_nslots);
	for (i = first; i < first + ZKL_OWN_SLOTS; i++)
	{
		if (zkl_slot_peek(i) == ZKL_SLOT_FREE)
			return claim(i);
	}
	return -1;
}

/* Whether a hold has lasted for as long as it may; under s_mutex */
static bool
is_over(const ZklSlot *slot, int64 now_ms)
{
	return slot->s_until != 0 && now_ms >= slot->s_until;
}

/* Makes a step that is due: the slot is known to be in the state "from". */
static void
step(int slotno, ZklSlotState from, ZklSlotState to)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	Assert(slot->s_state == from);
	slot->s_state = to;
	SpinLockRelease(&slot->s_mutex);
}

void
zkl_slot_submit(int slotno, bool more)
{
	const ZklSlot *slot = &zkl_slots[slotno];

	/* One that its owner's hold covers, or a try, may be answered at once. */
	bool		prompt = slot->s_kind != ZKL_KIND_LOCK || slot->s_try ||
	slot->s_sibling >= 0 || slot->s_together;

	step(slotno, ZKL_SLOT_CLAIMED, ZKL_SLOT_WAITING);
	zkl_dirty_set(slotno, more ? ZKL_WAKE_LATER :
				  prompt ? ZKL_WAKE_NOW : ZKL_WAKE_FOR_DEMAND);
}

ZklSlotState
zkl_slot_release(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	ZklSlotState left;
	int64		now = zkl_boottime_ms();
	bool		solitary;
	bool		kept;

	SpinLockAcquire(&slot->s_mutex);
	left = slot->s_state;
	if (left != ZKL_SLOT_GRANTED || !slot->s_taken || is_over(slot, now))
		slot->s_keep_until = 0;
	kept = slot->s_keep_until != 0;
	solitary = slot->s_solitary;
	Assert(left != ZKL_SLOT_FREE && left != ZKL_SLOT_CLAIMED);
	slot->s_state = ZKL_SLOT_RELEASED;
	SpinLockRelease(&slot->s_mutex);
	if (kept)
		most_kept++;
	zkl_dirty_set(slotno, left == ZKL_SLOT_GRANTED && solitary ?
				  ZKL_WAKE_AT_LEISURE : ZKL_WAKE_NOW);
	return left;
}

void
zkl_slot_time_out(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_timed_out = true;
	SpinLockRelease(&slot->s_mutex);
	zkl_dirty_set(slotno, ZKL_WAKE_NOW);
}

void
zkl_slot_set_holds(int slotno, uint32 holds)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_holds = holds;
	SpinLockRelease(&slot->s_mutex);
}

/* Under s_mutex: the holder is asked for its lock, and was not told so yet. */
static void
signal_if_due(ZklSlot *slot)
{
	if (!slot->s_signal_due || slot->s_state != ZKL_SLOT_GRANTED)
		return;
	slot->s_signal_due = false;
	if (slot->s_on_revoke == ZKL_REVOKE_CANCEL)
		kill(slot->s_pid, SIGINT);
	else if (slot->s_on_revoke == ZKL_REVOKE_TERMINATE)
		kill(slot->s_pid, SIGTERM);
}

void
zkl_slot_set_quiet(int slotno, bool quiet)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		lost;

	SpinLockAcquire(&slot->s_mutex);
	slot->s_quiet = quiet;
	lost = slot->s_state == ZKL_SLOT_LOST;

	/* A cancel would hit what comes after the commit, or seem to undo it. */
	if (!quiet && slot->s_on_revoke == ZKL_REVOKE_TERMINATE)
		signal_if_due(slot);
	SpinLockRelease(&slot->s_mutex);
	if (lost && !quiet)
		zkl_dirty_set(slotno, ZKL_WAKE_NOW);
}

/* A session lock stays: nothing else would have the worker look at it. */
void
zkl_slot_set_late(int slotno, ZklLate late)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_late = late;
	SpinLockRelease(&slot->s_mutex);
	zkl_dirty_set(slotno, ZKL_WAKE_NOW);
}

/* ---- for how long ---- */

void
zkl_slot_rebound(int slotno, int64 at_most, int64 at_least)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		now = zkl_boottime_ms();

	if (at_most == 0 && at_least == 0)
		return;
	SpinLockAcquire(&slot->s_mutex);
	if (slot->s_state == ZKL_SLOT_GRANTED)
	{
		if (at_most != 0 && slot->s_until != 0)
			slot->s_until = Max(slot->s_until, now + at_most);
		if (at_least != 0)
			slot->s_keep_until = Max(slot->s_keep_until, now + at_least);
	}
	SpinLockRelease(&slot->s_mutex);
	zkl_dirty_set(slotno, ZKL_WAKE_NOW);
}

bool
zkl_slot_extend(int slotno, uint32 generation, int64 at_most)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		now = zkl_boottime_ms();
	bool		held;

	SpinLockAcquire(&slot->s_mutex);
	held = slot->s_state == ZKL_SLOT_GRANTED && !is_over(slot, now) &&
		zkl_same_generation(slot->s_generation, generation);
	if (held)
		slot->s_until = at_most != 0 ? now + at_most : 0;
	SpinLockRelease(&slot->s_mutex);
	if (held)
		zkl_dirty_set(slotno, ZKL_WAKE_NOW);
	return held;
}

void
zkl_slot_set_epilogue(int slotno, dsm_handle segment)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_dsm = segment;
	SpinLockRelease(&slot->s_mutex);
}

void
zkl_slot_want_epilogue(int slotno, bool wanted)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_epilogue = wanted;
	SpinLockRelease(&slot->s_mutex);
}

/* ---- looking ---- */

ZklSlotState
zkl_slot_peek(int slotno)
{
	return (ZklSlotState) *(volatile uint32 *) &zkl_slots[slotno].s_state;
}

void
zkl_slot_copy(int slotno, ZklSlot *copy)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	memcpy(copy, slot, sizeof(ZklSlot));
	SpinLockRelease(&slot->s_mutex);
}

void
zkl_slot_take(int slotno, ZklSlot *copy)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	if (slot->s_state == ZKL_SLOT_GRANTED)
	{
		slot->s_quiet = false;
		slot->s_taken = true;
		signal_if_due(slot);
	}
	memcpy(copy, slot, sizeof(ZklSlot));
	SpinLockRelease(&slot->s_mutex);
}

int
zkl_slot_count_kept(uint64 claimer, int harmless)
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
			slot->s_claimer == claimer && slot->s_keep_until > now;
		SpinLockRelease(&slot->s_mutex);
	}
	most_kept = kept;
	return kept;
}

bool
zkl_slot_is_held(int slotno, uint32 generation, ZklError *error)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		now = zkl_boottime_ms();
	bool		held;

	SpinLockAcquire(&slot->s_mutex);
	held = slot->s_state == ZKL_SLOT_GRANTED &&
		zkl_same_generation(slot->s_generation, generation);
	*error = slot->s_error;
	if (held && is_over(slot, now))
	{
		held = false;
		*error = ZKL_ERROR_OVERDUE;
	}
	SpinLockRelease(&slot->s_mutex);
	return held;
}

/* ---- the worker's steps ---- */

bool
zkl_slot_grant(int slotno, int64 token, uint32 generation, bool solitary)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	TimestampTz now = GetCurrentTimestamp();
	int64		now_ms = zkl_boottime_ms();
	bool		done;
	int			procno;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_state == ZKL_SLOT_WAITING;
	procno = slot->s_procno;
	if (done)
	{
		if (slot->s_at_most != 0)
			slot->s_until = now_ms + slot->s_at_most;
		if (slot->s_at_least != 0)
			slot->s_keep_until = now_ms + slot->s_at_least;
		slot->s_token = token;
		slot->s_solitary = solitary;
		slot->s_generation = generation;
		slot->s_granted_at = now;
		slot->s_state = ZKL_SLOT_GRANTED;
	}
	SpinLockRelease(&slot->s_mutex);
	if (done)
		zkl_wakeup_later(procno);
	return done;
}

void
zkl_slot_block(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int			procno;

	SpinLockAcquire(&slot->s_mutex);
	slot->s_blocked = true;
	procno = slot->s_procno;
	SpinLockRelease(&slot->s_mutex);
	zkl_wakeup_later(procno);
}

/* WAITING -> an answer that is no */
static bool
refuse(int slotno, ZklSlotState to, ZklError error, int32 zkrc)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		done;
	int			procno;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_state == ZKL_SLOT_WAITING;
	procno = slot->s_procno;
	if (done)
	{
		slot->s_error = error;
		slot->s_zkrc = zkrc;
		slot->s_state = to;
	}
	SpinLockRelease(&slot->s_mutex);
	if (done)
		zkl_wakeup_later(procno);
	return done;
}

bool
zkl_slot_deny(int slotno)
{
	return refuse(slotno, ZKL_SLOT_DENIED, ZKL_ERROR_NONE, 0);
}

bool
zkl_slot_fail(int slotno, ZklError error, int32 zkrc)
{
	return refuse(slotno, ZKL_SLOT_FAILED, error, zkrc);
}

void
zkl_slot_too_large(int slotno, uint64 size)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_dsm_size = size;
	SpinLockRelease(&slot->s_mutex);
	(void) refuse(slotno, ZKL_SLOT_FAILED, ZKL_ERROR_TOO_LARGE, 0);
}

/*
 * GRANTED -> LOST.  The signal is sent under the mutex: the holder cannot pass
 * its commit check, nor leave and have its pid used again, between the look and
 * the signal.
 */
static void
lose_locked(ZklSlot *slot, ZklError error)
{
	slot->s_error = error;
	slot->s_state = ZKL_SLOT_LOST;
	if (!slot->s_quiet && slot->s_lost_action == ZKL_LOST_CANCEL)
		kill(slot->s_pid, SIGINT);
	else if (!slot->s_quiet && slot->s_lost_action == ZKL_LOST_TERMINATE)
		kill(slot->s_pid, SIGTERM);
}

static void
tell_loss(int procno)
{
	pg_atomic_fetch_add_u64(&zkl_control->ctl_losses, 1);
	zkl_wakeup_process(procno);
}

bool
zkl_slot_lose(int slotno, ZklError error)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		done;
	int			procno;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_state == ZKL_SLOT_GRANTED;
	procno = slot->s_procno;
	if (done)
		lose_locked(slot, error);
	SpinLockRelease(&slot->s_mutex);
	if (done)
		tell_loss(procno);
	return done;
}

/* Signals as zkl_slot_lose does. */
bool
zkl_slot_revoke(int slotno, int64 zxid, const char *asker)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		done;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_state == ZKL_SLOT_GRANTED;
	if (done)
	{
		slot->s_asked_zxid = zxid;
		strlcpy(slot->s_asker, asker, sizeof(slot->s_asker));
		slot->s_signal_due = true;
		if (!slot->s_quiet)
			signal_if_due(slot);
	}
	SpinLockRelease(&slot->s_mutex);
	if (done)
		pg_atomic_fetch_add_u64(&zkl_control->ctl_revocations, 1);
	return done;
}

/*
 * Its backend sets s_quiet before it looks at the slot for its commit check.
 * So who is not quiet when the slot becomes LOST will find it so; and neither
 * can who has not picked up the grant, for he looks at the slot to do that.
 */
bool
zkl_slot_overdue(int slotno, bool *just_now)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		now = zkl_boottime_ms();
	bool		may_go;
	int			procno;

	SpinLockAcquire(&slot->s_mutex);
	*just_now = slot->s_state == ZKL_SLOT_GRANTED && is_over(slot, now);
	procno = slot->s_procno;
	if (*just_now)
		lose_locked(slot, ZKL_ERROR_OVERDUE);
	may_go = slot->s_state == ZKL_SLOT_LOST &&
		zkl_error_ends_znode((ZklError) slot->s_error) &&
		!(slot->s_quiet && slot->s_taken);
	SpinLockRelease(&slot->s_mutex);
	if (*just_now)
		tell_loss(procno);
	return may_go;
}

int64
zkl_slot_until(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		until;

	SpinLockAcquire(&slot->s_mutex);
	until = slot->s_state == ZKL_SLOT_GRANTED ? slot->s_until : 0;
	SpinLockRelease(&slot->s_mutex);
	return until;
}

void
zkl_slot_wake_holders(void)
{
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		if (zkl_slot_peek(i) == ZKL_SLOT_GRANTED)
			zkl_wakeup_process(zkl_slots[i].s_procno);
	}
}

void
zkl_slot_set_znode(int slotno, const ZklUuid *uuid, uint32 index,
				   ZklLockMode mode, int64 seq, bool going, uint32 generation)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_znode_sent = true;
	slot->s_znode_uuid = *uuid;
	slot->s_znode_index = index;
	slot->s_znode_mode = mode;
	slot->s_znode_seq = seq;
	slot->s_znode_going = going;
	slot->s_generation = generation;
	SpinLockRelease(&slot->s_mutex);
}

void
zkl_slot_forget_epilogue(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_dsm = DSM_HANDLE_INVALID;
	slot->s_epilogue = false;
	SpinLockRelease(&slot->s_mutex);
}

ZklLate
zkl_slot_take_late(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	ZklLate		late;

	SpinLockAcquire(&slot->s_mutex);
	late = (ZklLate) slot->s_late;
	slot->s_late = ZKL_LATE_NOT;
	SpinLockRelease(&slot->s_mutex);
	return late;
}

void
zkl_slot_retire(int slotno, bool has_znode)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_retired = true;
	slot->s_znode_sent &= has_znode;
	SpinLockRelease(&slot->s_mutex);
}

void
zkl_slot_set_owner(int slotno, uint64 owner)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	Assert(slot->s_state == ZKL_SLOT_RELEASED);
	slot->s_owner = owner;
	SpinLockRelease(&slot->s_mutex);
}

void
zkl_slot_stop_keeping(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_keep_until = 0;
	SpinLockRelease(&slot->s_mutex);
}

void
zkl_slot_free(int slotno)
{
	step(slotno, ZKL_SLOT_RELEASED, ZKL_SLOT_FREE);
	if (slotno < zkl_control->ctl_nrequests)
		zkl_control_push_free(slotno);
}
