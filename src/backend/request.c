/*
 * request.c
 *	  Submit, wait, cancel: what this backend asks for.
 *
 * Owns the guard of a semaphore that is being acquired; the slots of requests
 * under way are wait.c's, until the answers are handed to the caller, who then
 * owns them.  Run by backends.
 *
 * Takes no lock of its own; what it reads and writes of a slot it does through
 * slot.h.  Waits on the process latch only.
 *
 * Must not know what locks the backend holds, nor anything of ZooKeeper but
 * the numbers of its errors, which refusal.c puts into words.
 *
 * No slot may leak.  So all that can throw comes before the claim, or inside
 * the PG_TRY that covers the time from the submit to the hand-over; and since
 * a FATAL error goes past PG_CATCH, an exit callback looks as well.  Whether a
 * cancel or the grant came first is decided by zkl_slot_release alone: either
 * way the request ends.
 *
 * Several locks are asked for in one order, all at once, so that they ride in
 * one batch.  But nobody may stand in a queue while he waits in one that comes
 * before: who holds the earlier lock might want the later one next, and each
 * would wait for the other.  So when one has to wait for others, those behind
 * it are given up, also what was granted, and asked for again once it is
 * granted.
 */
#include "postgres.h"

#include "backend/claim.h"
#include "backend/refusal.h"
#include "backend/request.h"
#include "backend/wait.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/lease.h"
#include "shared/loaded.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "storage/ipc.h"

static uint64 my_owner = 0;		/* 0: never asked for anything */

/* The guard of a semaphore, and its number among those under way; -1: none */
static int	guard_at = -1;
static ZklGrant guard;

/* ---- the slot ---- */

static void
abandon_at_exit(int code, Datum arg)
{
	zkl_wait_abandon(0);
}

static void
become_owner(void)
{
	if (my_owner != 0)
		return;
	on_shmem_exit(abandon_at_exit, 0);
	my_owner = pg_atomic_fetch_add_u64(&zkl_control->ctl_next_owner, 1);
}

int
zkl_request_claim(const ZklTarget *target, ZklSlotKind kind)
{
	zkl_loaded_check_worker();
	become_owner();
	zkl_wait_make_room();
	return zkl_claim_slot(target, kind, my_owner);
}

void
zkl_request_check_room(int held, int wanted)
{
	zkl_claim_check_room(held, wanted, my_owner);
}

static void
waiting_context(void *name)
{
	errcontext("while waiting for distributed lock \"%s\"",
			   (const char *) name);
}

/* Answered, or known to have to wait for others */
static bool
is_decided(int slotno)
{
	ZklSlot		slot;

	if (zkl_wait_is_answered(slotno))
		return true;
	zkl_slot_copy(slotno, &slot);
	return slot.s_blocked;
}

/* ---- locks ---- */

void
zkl_request_deadlines(const ZklLockRequest *ask, ZklDeadlines *at)
{
	int64		start = zkl_wait_clock();

	at->expired = false;
	at->expire = at->answer = at->lock_timeout = at->look = ZKL_NEVER;
	at->start = start;
	if (LockTimeout > 0)
		at->lock_timeout = zkl_wait_after_ms(start, LockTimeout);
	if (ask->is_try)
	{
		int64		over = zkl_wait_after_ms(start, ask->timeout_ms);

		at->answer = zkl_wait_after_ms(over, zkl_connect_timeout);
		if (ask->timeout_ms > 0)
			at->expire = over;
	}
	else
		at->look = zkl_wait_after_ms(start, zkl_connect_timeout);
}

static ZklDeadlines *
deadlines_of(const ZklLockRequest *ask, ZklDeadlines *own)
{
	if (ask->at != NULL)
		return ask->at;
	zkl_request_deadlines(ask, own);
	return own;
}

static void
submit_lock(const ZklLockRequest *ask, bool together, bool more, const ZklDeadlines *at)
{
	int			slotno = zkl_request_claim(&ask->lock, ZKL_KIND_LOCK);
	ZklSlot    *slot = &zkl_slots[slotno];

	slot->s_mode = ask->mode;
	slot->s_lifetime = ask->lifetime;
	slot->s_try = ask->is_try;
	slot->s_together = together;
	slot->s_max = ask->max;
	slot->s_guard = ask->guard;
	if (ask->guard)
		slot->s_lost_action = ZKL_LOST_NONE;

	/* A try that must not wait at all is submitted as expired. */
	slot->s_timed_out = ask->is_try && (ask->timeout_ms == 0 || at->expired);
	slot->s_sibling = ask->sibling;
	slot->s_at_most = ask->at_most_ms;
	slot->s_at_least = ask->at_least_ms;
	slot->s_holds = 1;
	if (ask->guard)
		slot->s_on_revoke = ZKL_REVOKE_IGNORE;
	if (ask->leader_id != NULL)
		strlcpy(slot->s_leader_id, ask->leader_id, sizeof(slot->s_leader_id));
	zkl_wait_submit(slotno, more);
}

/*
 * A grant counts only if it is of the session that the worker has now: a
 * stopped worker's grant of long ago is none.
 */
static bool
judge(const ZklLockRequest *ask, int slotno, ZklGrant *grant)
{
	ZklSlot		answer;

	zkl_slot_take(slotno, &answer);
	switch ((ZklSlotState) answer.s_state)
	{
		case ZKL_SLOT_GRANTED:
			if (!zkl_lease_is_current(answer.s_generation))
				zkl_refusal_raise_lost(ask->lock.name, ask->lifetime, ZKL_ERROR_NONE);
			if (answer.s_until != 0 && zkl_boottime_ms() >= answer.s_until)
				zkl_refusal_raise_lost(ask->lock.name, ask->lifetime,
									   ZKL_ERROR_OVERDUE);
			grant->slotno = slotno;
			grant->token = answer.s_token;
			grant->generation = answer.s_generation;
			return true;
		case ZKL_SLOT_DENIED:
			return false;
		case ZKL_SLOT_FAILED:
			zkl_refusal_raise_failed(ask->lock.name, answer.s_error, answer.s_zkrc);
			break;
		case ZKL_SLOT_LOST:
			zkl_refusal_raise_lost(ask->lock.name, ask->lifetime, answer.s_error);
			break;
		default:
			elog(ERROR, "request slot %d is in unexpected state %u",
				 slotno, answer.s_state);
	}
	return false;
}

static bool
get_locks(const ZklLockRequest *asks, int n, ZklGrant *grants, ZklDeadlines *at)
{
	int			first = zkl_wait_under_way();
	int			i,
				j;

	for (i = 0; i < n; i++)
	{
		const char *name = asks[i].lock.name;

		for (j = zkl_wait_under_way() - first; j < n; j++)
		{
			CHECK_FOR_INTERRUPTS();
			submit_lock(&asks[j], n > 1, j + 1 < n, at);
		}
		if (i + 1 < n)
		{
			zkl_wait_until(is_decided, zkl_wait_slot(first + i),
						   waiting_context, name, at);
			if (!zkl_wait_is_answered(zkl_wait_slot(first + i)))
				zkl_wait_abandon(first + i + 1);
		}
		zkl_wait_until(zkl_wait_is_answered, zkl_wait_slot(first + i),
					   waiting_context, name, at);
		if (!judge(&asks[i], zkl_wait_slot(first + i), &grants[i]))
			return false;
	}

	/* While the last one was waited for, the first may have been lost. */
	for (i = 0; i < n - 1; i++)
		(void) judge(&asks[i], zkl_wait_slot(first + i), &grants[i]);
	return true;
}

bool
zkl_lock_request_run(const ZklLockRequest *asks, int n, ZklGrant *grants)
{
	int			first = zkl_wait_under_way();
	bool		granted = false;
	ZklDeadlines own;
	ZklDeadlines *at = deadlines_of(&asks[0], &own);

	PG_TRY();
	{
		granted = get_locks(asks, n, grants, at);
	}
	PG_CATCH();
	{
		zkl_wait_abandon(first);
		PG_RE_THROW();
	}
	PG_END_TRY();

	if (granted)
		zkl_wait_hand_over(first);
	else
		zkl_wait_abandon(first);
	return granted;
}

void
zkl_lock_request_confirm(const ZklLockRequest *ask, int slotno)
{
	ZklDeadlines own;
	ZklDeadlines at = *deadlines_of(ask, &own);

	at.expire = ZKL_NEVER;
	zkl_wait_until(zkl_wait_is_answered, slotno, waiting_context,
				   ask->lock.name, &at);
}

/* ---- leases ---- */

bool
zkl_guard_begin(const ZklLockRequest *ask)
{
	if (!zkl_lock_request_run(ask, 1, &guard))
		return false;
	guard_at = zkl_wait_under_way();
	zkl_wait_take_back(guard.slotno);
	return true;
}

void
zkl_guard_end(void)
{
	if (guard_at >= 0)
		zkl_wait_abandon(guard_at);
	guard_at = -1;
}

static bool
is_guarded(void)
{
	ZklError	error;

	return zkl_slot_is_held(guard.slotno, guard.generation, &error) &&
		zkl_lease_is_current(guard.generation);
}

/* Answered, or to be given up */
static bool
is_settled(int slotno)
{
	return zkl_wait_is_answered(slotno) || !is_guarded();
}

static bool
is_lost(int slotno)
{
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	return slot.s_state == ZKL_SLOT_LOST ||
		(slot.s_state == ZKL_SLOT_GRANTED &&
		 !zkl_lease_is_current(slot.s_generation));
}

/*
 * Nothing is picked up before all are there: until then a loss sends no
 * signal, for the leases are asked for again.
 */
static ZklAnswer
get_leases(const ZklLockRequest *ask, int n, ZklGrant *grants, ZklDeadlines *at)
{
	int			first = zkl_wait_under_way();
	int			i;

	for (i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		submit_lock(ask, false, i + 1 < n, at);
	}
	for (i = 0; i < n; i++)
	{
		zkl_wait_until(is_settled, zkl_wait_slot(first + i), waiting_context,
					   ask->lock.name, at);
		if (zkl_slot_peek(zkl_wait_slot(first + i)) == ZKL_SLOT_DENIED)
			return ZKL_ANSWER_DENIED;
		if (!is_guarded())
			return ZKL_ANSWER_UNGUARDED;
	}
	for (i = 0; i < n; i++)
	{
		if (is_lost(zkl_wait_slot(first + i)))
			return ZKL_ANSWER_UNGUARDED;
		(void) judge(ask, zkl_wait_slot(first + i), &grants[i]);
	}
	return ZKL_ANSWER_GRANTED;
}

ZklAnswer
zkl_guard_get_permits(const ZklLockRequest *ask, int n, ZklGrant *grants)
{
	int			first = zkl_wait_under_way();
	ZklAnswer	answer = ZKL_ANSWER_UNGUARDED;
	ZklDeadlines own;
	ZklDeadlines *at = deadlines_of(ask, &own);

	PG_TRY();
	{
		answer = get_leases(ask, n, grants, at);
	}
	PG_CATCH();
	{
		zkl_wait_abandon(first);
		PG_RE_THROW();
	}
	PG_END_TRY();

	if (answer == ZKL_ANSWER_GRANTED)
		zkl_wait_hand_over(first);
	else
		zkl_wait_abandon(first);
	return answer;
}

/* ---- all else ---- */

static void
set_deadlines(const ZklPatience *patience, ZklDeadlines *at)
{
	int64		start = zkl_wait_clock();

	if (patience->at != NULL)
	{
		*at = *patience->at;
		at->expire = at->look = ZKL_NEVER;
		return;
	}
	at->expired = false;
	at->start = start;
	at->look = ZKL_NEVER;
	at->expire = zkl_wait_after_ms(start, patience->expire_ms);
	at->answer = zkl_wait_after_ms(start, patience->answer_ms);
	at->lock_timeout = patience->is_lock_wait && LockTimeout > 0 ?
		zkl_wait_after_ms(start, LockTimeout) : ZKL_NEVER;
}

void
zkl_request_run(int slotno, const ZklPatience *patience, ZklSlot *answer)
{
	int			first = zkl_wait_under_way();
	ZklDeadlines at;

	set_deadlines(patience, &at);
	zkl_wait_submit(slotno, false);

	PG_TRY();
	{
		zkl_wait_until(zkl_wait_is_answered, slotno, patience->context,
					   patience->name, &at);
		zkl_slot_copy(slotno, answer);
	}
	PG_FINALLY();
	{
		zkl_wait_abandon(first);
	}
	PG_END_TRY();
}
