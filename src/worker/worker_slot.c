/*
 * worker_slot.c
 *	  The steps that the worker makes with slots, each under the slot's mutex.
 *
 * Owns the fields in s_answer and s_record; shared/slot.h tells who writes the
 * others.  Run by the worker, for all slots.
 *
 * Takes s_mutex, a spinlock: what runs under it neither throws nor blocks, and
 * it is never held together with any other lock.
 *
 * Must not know who may have a lock, nor anything of ZooKeeper.
 */
#include "postgres.h"

#include <signal.h>

#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/settings.h"
#include "utils/timestamp.h"
#include "worker/report.h"
#include "worker/worker_slot.h"

/* ---- the worker's steps ---- */

/*
 * What becomes of a WAITING slot that is granted.  No session waits for a ticket: it is
 * released at once, and kept until it has to be claimed.
 */
static void
grant_locked(ZklSlot *slot, int64 now_us)
{
	int64		now_ms = now_us / 1000;

	if (slot->s_request.at_most != 0)
		slot->s_until = now_ms + slot->s_request.at_most;
	if (slot->s_request.at_least != 0)
		slot->s_keep_until = now_ms + slot->s_request.at_least;
	slot->s_answer.granted_us = now_us;
	slot->s_state = slot->s_request.ticket != 0 ? ZKL_SLOT_RELEASED : ZKL_SLOT_GRANTED;
}

bool
zkl_worker_slot_grant(int slotno, int64 token, bool solitary)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	TimestampTz now = GetCurrentTimestamp();
	int64		now_us = zkl_boottime_us();
	bool		done;
	bool		ticket;
	int			procno;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_state == ZKL_SLOT_WAITING;
	ticket = slot->s_request.ticket != 0;
	procno = slot->s_request.procno;
	if (done)
	{
		slot->s_answer.token = token;
		slot->s_answer.solitary = solitary;
		slot->s_answer.granted_at = now;
		grant_locked(slot, now_us);
	}
	SpinLockRelease(&slot->s_mutex);
	if (done && ticket)
		zkl_dirty_set(slotno, ZKL_WAKE_NOW);
	else if (done)
		zkl_control_wake_later(procno);
	return done;
}

/* If it was released before, the worker looks at it within a moment anyway. */
void
zkl_worker_slot_set_asked(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	if (slot->s_state == ZKL_SLOT_GRANTED)
		slot->s_answer.solitary = false;
	SpinLockRelease(&slot->s_mutex);
}

void
zkl_worker_slot_block(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		together;
	int			procno;

	SpinLockAcquire(&slot->s_mutex);
	slot->s_answer.blocked = true;
	together = slot->s_request.together;
	procno = slot->s_request.procno;
	SpinLockRelease(&slot->s_mutex);
	if (together)
		zkl_control_wake_later(procno);
}

void
zkl_worker_slot_set_behind_cached(int slotno, const char *server)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_answer.behind_cached = server != NULL;
	if (server != NULL)
		strlcpy(slot->s_answer.caching_server, server,
				sizeof(slot->s_answer.caching_server));
	SpinLockRelease(&slot->s_mutex);
}

/* WAITING -> an answer that is no; a ticket stays for its role to be told */
static bool
answer_no(int slotno, ZklSlotState to, ZklError error, int32 zkrc)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		done;
	bool		ticket;
	int			procno;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_state == ZKL_SLOT_WAITING;
	ticket = slot->s_request.ticket != 0;
	procno = slot->s_request.procno;
	if (done)
	{
		slot->s_answer.error = error;
		slot->s_answer.zkrc = zkrc;
		slot->s_answer.denied = to == ZKL_SLOT_DENIED;
		slot->s_state = ticket ? ZKL_SLOT_RELEASED : to;
		if (ticket)
			slot->s_lost_until = zkl_boottime_ms() + slot->s_request.at_least;
	}
	SpinLockRelease(&slot->s_mutex);
	if (done && ticket)
		zkl_dirty_set(slotno, ZKL_WAKE_NOW);
	else if (done)
		zkl_control_wake_later(procno);
	return done;
}

bool
zkl_worker_slot_deny(int slotno)
{
	return answer_no(slotno, ZKL_SLOT_DENIED, ZKL_ERROR_NONE, 0);
}

bool
zkl_worker_slot_fail(int slotno, ZklError error, int32 zkrc)
{
	return answer_no(slotno, ZKL_SLOT_FAILED, error, zkrc);
}

void
zkl_worker_slot_too_large(int slotno, uint64 size)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_answer.dsm_size = size;
	SpinLockRelease(&slot->s_mutex);
	(void) answer_no(slotno, ZKL_SLOT_FAILED, ZKL_ERROR_TOO_LARGE, 0);
}

/* ---- cached locks ---- */

/* CACHED -> RELEASED: whether it was; no release makes it CACHED again. */
static bool
stop_caching(ZklSlot *slot)
{
	bool		cached = slot->s_state == ZKL_SLOT_CACHED;

	slot->s_cacheable = slot->s_wanted = false;
	if (cached)
		slot->s_state = ZKL_SLOT_RELEASED;
	return cached;
}

void
zkl_worker_slot_offer(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_cacheable = slot->s_state == ZKL_SLOT_GRANTED ||
		slot->s_state == ZKL_SLOT_WAITING;
	SpinLockRelease(&slot->s_mutex);
}

/* Somebody waits from now on: the release of a holder wakes the worker. */
bool
zkl_worker_slot_recall(int slotno, int64 idle_since, ZklSlot *before)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		done;

	SpinLockAcquire(&slot->s_mutex);
	done = idle_since == 0 ||
		(slot->s_state == ZKL_SLOT_CACHED &&
		 slot->s_holder.released_us <= idle_since);
	memcpy(before, slot, sizeof(ZklSlot));
	if (done)
	{
		slot->s_answer.solitary = false;
		(void) stop_caching(slot);
	}
	SpinLockRelease(&slot->s_mutex);
	return done;
}

void
zkl_worker_slot_take_over(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	(void) stop_caching(slot);
	slot->s_answer.behind_cached = false;
	if (slot->s_state == ZKL_SLOT_WAITING)
	{
		memset(&slot->s_record, 0, sizeof(ZklRecord));
		slot->s_record.seq = -1;
	}
	SpinLockRelease(&slot->s_mutex);
}

/* ---- losses ---- */

/*
 * GRANTED -> LOST.  The signal is sent under the mutex: the holder cannot pass
 * its commit check, nor leave and have its pid used again, between the look and
 * the signal.
 */
static void
lose_locked(ZklSlot *slot, ZklError error, int64 now_us)
{
	slot->s_answer.error = error;
	slot->s_answer.lost_us = now_us;
	slot->s_state = ZKL_SLOT_LOST;
	if (!slot->s_holder.quiet && slot->s_request.lost_action == ZKL_LOST_CANCEL)
	{
		slot->s_answer.cancelled_by = MyProcPid;
		kill(slot->s_request.pid, SIGINT);
	}
	else if (!slot->s_holder.quiet && slot->s_request.lost_action == ZKL_LOST_TERMINATE)
		kill(slot->s_request.pid, SIGTERM);
}

/*
 * The holder has left, and the lock is kept.  It ends as soon as nobody relies on what
 * was promised.  False: its time is over, or it was lost before.
 */
static bool
lose_kept_locked(ZklSlot *slot, ZklError error, int64 now_us)
{
	bool		news;

	if (slot->s_state != ZKL_SLOT_RELEASED || slot->s_keep_until <= now_us / 1000)
		return false;
	news = !zkl_slot_is_lost_kept(slot);
	if (news)
		slot->s_answer.error = error;
	if (news && slot->s_request.lifetime >= ZKL_HELD_LIFETIMES)
	{
		slot->s_answer.lost_us = now_us;
		slot->s_lost_until = slot->s_keep_until;
	}
	slot->s_keep_until = Min(slot->s_keep_until, slot->s_promised_until);
	return news;
}

static void
announce_loss(int procno)
{
	pg_atomic_fetch_add_u64(&zkl_control->ctl_losses, 1);
	zkl_control_wake(procno);
}

bool
zkl_worker_slot_lose(int slotno, ZklError error)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		now_us = zkl_boottime_us();
	bool		done,
				kept,
				reserved,
				released;
	int			procno;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_state == ZKL_SLOT_GRANTED;
	procno = slot->s_request.procno;
	if (done)
		lose_locked(slot, error, now_us);
	kept = lose_kept_locked(slot, error, now_us);
	reserved = kept && slot->s_request.lifetime >= ZKL_HELD_LIFETIMES;
	(void) stop_caching(slot);
	released = slot->s_state == ZKL_SLOT_RELEASED;
	SpinLockRelease(&slot->s_mutex);
	if (done)
		announce_loss(procno);
	else if (reserved)
		pg_atomic_fetch_add_u64(&zkl_control->ctl_losses, 1);

	/* The core kept it, perhaps, and leaves its end to us. */
	if (released)
		zkl_dirty_set(slotno, ZKL_WAKE_NOW);
	return done || kept;
}

/* Signals as zkl_worker_slot_lose does. */
bool
zkl_worker_slot_request_release(int slotno, int64 zxid, const char *asker)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		done;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_state == ZKL_SLOT_GRANTED;
	if (done)
	{
		slot->s_answer.asked_zxid = zxid;
		strlcpy(slot->s_answer.asker, asker, sizeof(slot->s_answer.asker));
		zkl_slot_signal(slot);
	}
	SpinLockRelease(&slot->s_mutex);
	if (done)
		pg_atomic_fetch_add_u64(&zkl_control->ctl_release_requests, 1);
	return done;
}

/*
 * The znode may go as soon as the holder cannot commit any more.  A backend sets
 * s_holder.quiet before its commit check looks at the slot: if it is not quiet
 * when the slot becomes LOST, its check will find the loss.  A backend that has
 * not taken the grant yet finds the loss when it takes it.  Until what was promised is
 * over, whoever was told may go on.
 */
bool
zkl_worker_slot_overdue(int slotno, bool *just_now)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		now_us = zkl_boottime_us();
	bool		may_go;
	int			procno;

	SpinLockAcquire(&slot->s_mutex);
	*just_now = slot->s_state == ZKL_SLOT_GRANTED &&
		zkl_slot_is_over(slot, now_us / 1000);
	procno = slot->s_request.procno;
	if (*just_now)
		lose_locked(slot, zkl_slot_why_over(slot), now_us);
	may_go = slot->s_state == ZKL_SLOT_LOST &&
		zkl_slot_error_ends_znode((ZklError) slot->s_answer.error) &&
		slot->s_promised_until <= now_us / 1000 &&
		!(slot->s_holder.quiet && slot->s_holder.taken);
	SpinLockRelease(&slot->s_mutex);
	if (*just_now)
		announce_loss(procno);
	return may_go;
}

int64
zkl_worker_slot_until(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		until;

	SpinLockAcquire(&slot->s_mutex);
	until = slot->s_state == ZKL_SLOT_GRANTED ? slot->s_until : 0;
	if (slot->s_state == ZKL_SLOT_LOST &&
		zkl_slot_error_ends_znode((ZklError) slot->s_answer.error) &&
		slot->s_promised_until > zkl_boottime_ms())
		until = slot->s_promised_until;

	/*
	 * Once the slot has no znode, only this time frees it, even if it is over
	 * by now.
	 */
	if (zkl_slot_is_untold(slot) ||
		(slot->s_state == ZKL_SLOT_RELEASED && !slot->s_record.sent))
		until = slot->s_lost_until;
	SpinLockRelease(&slot->s_mutex);
	return until;
}

static void
wake_owners(ZklSlotState state, int nslots)
{
	int			i;

	for (i = 0; i < nslots; i++)
	{
		if (zkl_slot_peek(i) == state)
			zkl_control_wake(zkl_slots[i].s_request.procno);
	}
}

void
zkl_worker_slot_wake_holders(void)
{
	wake_owners(ZKL_SLOT_GRANTED, zkl_control->ctl_nrequests);
}

/* A grant that the lease does not cover yet is still awaited. */
void
zkl_worker_slot_wake_waiters(void)
{
	wake_owners(ZKL_SLOT_WAITING, zkl_control->ctl_nslots);
	zkl_worker_slot_wake_holders();
}

void
zkl_worker_slot_record(int slotno, const ZklRecord *record)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_record = *record;
	SpinLockRelease(&slot->s_mutex);
}

int64
zkl_worker_slot_renew(int slotno, int64 until, bool by_other)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	if (by_other && until < slot->s_promised_until &&
		slot->s_promised_until > zkl_boottime_ms())
	{
		if (until == 0)
		{
			slot->s_answer.error = ZKL_ERROR_CANCELLED;
			slot->s_lost_until = slot->s_promised_until;
		}
		until = slot->s_promised_until;
	}
	slot->s_promised_until = Min(slot->s_promised_until, until);
	slot->s_keep_until = Min(slot->s_keep_until, until);
	SpinLockRelease(&slot->s_mutex);
	return until;
}

void
zkl_worker_slot_keep(int slotno, int64 until)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	if (slot->s_state == ZKL_SLOT_RELEASED)
		slot->s_keep_until = until;
	SpinLockRelease(&slot->s_mutex);
}

/* ---- tickets ---- */

bool
zkl_worker_slot_claim(int slotno, int64 ticket, int64 until)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		done;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_request.ticket == ticket && slot->s_state == ZKL_SLOT_RELEASED &&
		zkl_slot_is_ticket(slot);
	if (done)
	{
		slot->s_answer.claimed = true;
		slot->s_keep_until = until;
	}
	SpinLockRelease(&slot->s_mutex);
	return done;
}

void
zkl_worker_slot_note_claimed(int slotno, int64 token)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_answer.token = token;
	SpinLockRelease(&slot->s_mutex);
}

int64
zkl_worker_slot_unclaim(int slotno, int64 token)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		now_ms = zkl_boottime_ms();
	int64		until = 0;

	SpinLockAcquire(&slot->s_mutex);
	if (slot->s_request.ticket != 0 && slot->s_answer.token == token &&
		zkl_slot_is_reserved(slot) && slot->s_promised_until <= now_ms)
	{
		slot->s_answer.claimed = false;
		until = now_ms + slot->s_request.at_least;
		slot->s_keep_until = until;
	}
	SpinLockRelease(&slot->s_mutex);
	return until;
}

bool
zkl_worker_slot_leave(int slotno, bool *lapsed)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	bool		left;

	zkl_slot_lapse(slotno);
	SpinLockAcquire(&slot->s_mutex);
	*lapsed = slot->s_answer.error == ZKL_ERROR_UNCLAIMED;
	left = zkl_slot_is_untold(slot);
	slot->s_record.sent = slot->s_record.sent && !left;
	SpinLockRelease(&slot->s_mutex);
	return left;
}

void
zkl_worker_slot_forget_epilogue(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	slot->s_dsm = DSM_HANDLE_INVALID;
	slot->s_epilogue = false;
	SpinLockRelease(&slot->s_mutex);
}

ZklLate
zkl_worker_slot_take_late(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	ZklLate		late;

	SpinLockAcquire(&slot->s_mutex);
	late = (ZklLate) slot->s_late;
	slot->s_late = ZKL_LATE_NOT;
	SpinLockRelease(&slot->s_mutex);
	return late;
}

ZklLockstatsCounts
zkl_worker_slot_take_uncounted(int slotno)
{
	ZklLockstatsCounts counts;
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	counts = slot->s_uncounted;
	memset(&slot->s_uncounted, 0, sizeof(ZklLockstatsCounts));
	SpinLockRelease(&slot->s_mutex);
	return counts;
}

ZklSlotDependents
zkl_worker_slot_take_dependents(int slotno)
{
	ZklSlotDependents seen;
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	seen = slot->s_dependents;
	slot->s_dependents_due = false;
	SpinLockRelease(&slot->s_mutex);
	return seen;
}

void
zkl_worker_slot_free(int slotno)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	if (slotno < zkl_control->ctl_nrequests)
		zkl_report_freed(slot);
	SpinLockAcquire(&slot->s_mutex);
	Assert(slot->s_state == ZKL_SLOT_RELEASED);
	slot->s_state = ZKL_SLOT_FREE;
	SpinLockRelease(&slot->s_mutex);
	if (slotno < zkl_control->ctl_nrequests)
		zkl_control_push_free(slotno);
}
