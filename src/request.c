/*
 * request.c
 *	  Submit, wait, cancel: what this backend asks for.
 *
 * Owns the slots of the requests under way, from their submission until the
 * answers are handed to the caller, who then owns the slots.  Run by backends.
 *
 * Takes no lock of its own; what it reads and writes of a slot it does through
 * shmem.h.  Waits on the process latch only.
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

#include "claim.h"
#include "compat.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "refusal.h"
#include "request.h"
#include "storage/ipc.h"
#include "zklock.h"

#define NEVER	PG_INT64_MAX

/* When a wait changes its mind; times of zkl_request_clock() */
typedef struct Deadlines
{
	bool		expired;		/* a try's time is over */
	int64		expire;			/* then it is */
	int64		answer;			/* nobody answers */
	int64		lock_timeout;	/* the setting of that name */
} Deadlines;

static uint64 my_owner = 0;		/* 0: never asked for anything */

/* The slots of what was submitted, in that order; in TopMemoryContext */
static int *under_way = NULL;
static int	nunder_way = 0;
static int	under_way_room = 0;

/* The guard is one of them: the one of this number, or -1 */
static int	guard_at = -1;
static ZklGrant guard;

/* ---- time ---- */

/* Never the wall clock */
int64
zkl_request_clock(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return (int64) INSTR_TIME_GET_MICROSEC(now);
}

static int64
after_ms(int64 start, int64 ms)
{
	if (start == NEVER || ms >= (NEVER - start) / 1000)
		return NEVER;
	return start + ms * 1000;
}

/* For WaitLatch: ms until the first deadline, rounded up, or -1 */
static long
next_timeout(const Deadlines *at, int64 now)
{
	int64		first = Min(at->expire, Min(at->answer, at->lock_timeout));

	if (first == NEVER)
		return -1;
	return (long) Min((first - now + 999) / 1000, INT_MAX);
}

/* ---- the slot ---- */

/* Ends the requests under way from the one of that number on. */
static void
abandon_from(int first)
{
	while (nunder_way > first)
		(void) zkl_slot_release(under_way[--nunder_way]);
}

/* Makes room for one more request under way: submitting it cannot fail. */
static void
make_room(void)
{
	int			room = Max(8, 2 * under_way_room);

	if (nunder_way < under_way_room)
		return;
	if (under_way == NULL)
		under_way = MemoryContextAlloc(TopMemoryContext, room * sizeof(int));
	else
		under_way = repalloc(under_way, room * sizeof(int));
	under_way_room = room;
}

static void
abandon_at_exit(int code, Datum arg)
{
	abandon_from(0);
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
	zkl_check_worker();
	become_owner();
	make_room();
	return zkl_claim_slot(target, kind, my_owner);
}

static void
submit(int slotno, bool more)
{
	Assert(nunder_way < under_way_room);
	under_way[nunder_way++] = slotno;
	zkl_slot_submit(slotno, more);
}

/* ---- the wait ---- */

static void
waiting_context(void *name)
{
	errcontext("while waiting for distributed lock \"%s\"",
			   (const char *) name);
}

/* Acts on the deadlines that have passed. */
static void
heed(Deadlines *at, int64 now)
{
	int			i;

	if (now >= at->lock_timeout)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("canceling statement due to lock timeout")));
	if (now >= at->answer)
		zkl_raise_unreachable();
	if (now >= at->expire)
	{
		at->expire = NEVER;
		at->expired = true;
		for (i = 0; i < nunder_way; i++)
			zkl_slot_expire(under_way[i]);
	}
}

/*
 * Whether the wait is over.  A grant whose lease has passed meanwhile, because
 * the worker or this backend was stopped, say, is none yet: the worker will
 * renew the lease, or find the lock lost.
 */
static bool
is_answered(int slotno)
{
	ZklSlot		slot;

	switch (zkl_slot_peek(slotno))
	{
		case ZKL_SLOT_WAITING:
			return false;
		case ZKL_SLOT_GRANTED:
			zkl_slot_copy(slotno, &slot);
			return slot.s_kind != ZKL_KIND_LOCK ||
				!zkl_lease_is_current(slot.s_generation) ||
				zkl_lease_is_valid(slot.s_generation);
		default:
			return true;
	}
}

/* Answered, or known to have to wait for others */
static bool
is_decided(int slotno)
{
	ZklSlot		slot;

	if (is_answered(slotno))
		return true;
	zkl_slot_copy(slotno, &slot);
	return slot.s_blocked;
}

static void
wait_until(bool (*is_over) (int slotno), int slotno,
		   void (*where) (void *name), const char *name, Deadlines *at)
{
	ErrorContextCallback context;

	context.callback = where;
	context.arg = unconstify(char *, name);
	context.previous = error_context_stack;
	error_context_stack = &context;

	while (!is_over(slotno))
	{
		int64		now = zkl_request_clock();
		long		timeout;

		heed(at, now);
		timeout = next_timeout(at, now);
		if (zkl_slot_peek(slotno) == ZKL_SLOT_GRANTED &&
			(timeout < 0 || timeout > zkl_lease_look_ms()))
			timeout = zkl_lease_look_ms();
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_EXIT_ON_PM_DEATH |
						 (timeout >= 0 ? WL_TIMEOUT : 0),
						 timeout, zkl_wait_event());
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}

	error_context_stack = context.previous;
}

/* ---- locks ---- */

static void
set_deadlines(const ZklAsk *ask, Deadlines *at)
{
	int64		start = ask->since != 0 ? ask->since : zkl_request_clock();

	at->expired = false;
	at->expire = at->answer = at->lock_timeout = NEVER;
	if (LockTimeout > 0)
		at->lock_timeout = after_ms(start, LockTimeout);
	if (ask->is_try)
	{
		int64		over = after_ms(start, ask->timeout_ms);

		at->answer = after_ms(over, zkl_connect_timeout);
		if (ask->timeout_ms > 0)
			at->expire = over;
	}
}

static void
submit_lock(const ZklAsk *ask, bool together, bool more, const Deadlines *at)
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
	slot->s_expired = ask->is_try && (ask->timeout_ms == 0 || at->expired);
	slot->s_sibling = ask->sibling;
	slot->s_holds = 1;
	submit(slotno, more);
}

/*
 * A grant counts only if it is of the session that the worker has now: a
 * stopped worker's grant of long ago is none.
 */
static bool
judge(const ZklAsk *ask, int slotno, ZklGrant *grant)
{
	ZklSlot		answer;

	zkl_slot_take(slotno, &answer);
	switch ((ZklSlotState) answer.s_state)
	{
		case ZKL_SLOT_GRANTED:
			if (!zkl_lease_is_current(answer.s_generation))
				zkl_raise_lost(ask->lock.name, ask->lifetime, ZKL_ERROR_NONE);
			grant->slotno = slotno;
			grant->token = answer.s_token;
			grant->generation = answer.s_generation;
			return true;
		case ZKL_SLOT_DENIED:
			return false;
		case ZKL_SLOT_FAILED:
			zkl_raise_failed(ask->lock.name, answer.s_error, answer.s_zkrc);
			break;
		case ZKL_SLOT_LOST:
			zkl_raise_lost(ask->lock.name, ask->lifetime, answer.s_error);
			break;
		default:
			elog(ERROR, "request slot %d is in unexpected state %u",
				 slotno, answer.s_state);
	}
	return false;
}

static bool
get_locks(const ZklAsk *asks, int n, ZklGrant *grants, Deadlines *at)
{
	int			first = nunder_way;
	int			i,
				j;

	for (i = 0; i < n; i++)
	{
		const char *name = asks[i].lock.name;

		for (j = nunder_way - first; j < n; j++)
			submit_lock(&asks[j], n > 1, j + 1 < n, at);
		if (i + 1 < n)
		{
			wait_until(is_decided, under_way[first + i], waiting_context, name,
					   at);
			if (!is_answered(under_way[first + i]))
				abandon_from(first + i + 1);
		}
		wait_until(is_answered, under_way[first + i], waiting_context, name,
				   at);
		if (!judge(&asks[i], under_way[first + i], &grants[i]))
			return false;
	}

	/* While the last one was waited for, the first may have been lost. */
	for (i = 0; i < n - 1; i++)
		(void) judge(&asks[i], under_way[first + i], &grants[i]);
	return true;
}

bool
zkl_ask_locks(const ZklAsk *asks, int n, ZklGrant *grants)
{
	int			first = nunder_way;
	bool		granted = false;
	Deadlines	at;

	set_deadlines(&asks[0], &at);
	PG_TRY();
	{
		granted = get_locks(asks, n, grants, &at);
	}
	PG_CATCH();
	{
		abandon_from(first);
		PG_RE_THROW();
	}
	PG_END_TRY();

	if (granted)
		nunder_way = first;
	else
		abandon_from(first);
	return granted;
}

void
zkl_ask_again(const ZklAsk *ask, int slotno)
{
	Deadlines	at;

	set_deadlines(ask, &at);
	at.expire = NEVER;
	wait_until(is_answered, slotno, waiting_context, ask->lock.name, &at);
}

/* ---- leases ---- */

bool
zkl_ask_guard(const ZklAsk *ask)
{
	if (!zkl_ask_locks(ask, 1, &guard))
		return false;
	guard_at = nunder_way++;
	Assert(under_way[guard_at] == guard.slotno);
	return true;
}

void
zkl_ask_guard_end(void)
{
	if (guard_at >= 0)
		abandon_from(guard_at);
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
	return is_answered(slotno) || !is_guarded();
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
get_leases(const ZklAsk *ask, int n, ZklGrant *grants, Deadlines *at)
{
	int			first = nunder_way;
	int			i;

	for (i = 0; i < n; i++)
		submit_lock(ask, false, i + 1 < n, at);
	for (i = 0; i < n; i++)
	{
		wait_until(is_settled, under_way[first + i], waiting_context,
				   ask->lock.name, at);
		if (zkl_slot_peek(under_way[first + i]) == ZKL_SLOT_DENIED)
			return ZKL_ANSWER_DENIED;
		if (!is_guarded())
			return ZKL_ANSWER_UNGUARDED;
	}
	for (i = 0; i < n; i++)
	{
		if (is_lost(under_way[first + i]))
			return ZKL_ANSWER_UNGUARDED;
		(void) judge(ask, under_way[first + i], &grants[i]);
	}
	return ZKL_ANSWER_GRANTED;
}

ZklAnswer
zkl_ask_leases(const ZklAsk *ask, int n, ZklGrant *grants)
{
	int			first = nunder_way;
	ZklAnswer	answer = ZKL_ANSWER_UNGUARDED;
	Deadlines	at;

	set_deadlines(ask, &at);
	PG_TRY();
	{
		answer = get_leases(ask, n, grants, &at);
	}
	PG_CATCH();
	{
		abandon_from(first);
		PG_RE_THROW();
	}
	PG_END_TRY();

	if (answer == ZKL_ANSWER_GRANTED)
		nunder_way = first;
	else
		abandon_from(first);
	return answer;
}

/* ---- all else ---- */

void
zkl_request_run(int slotno, const ZklPatience *patience, ZklSlot *answer)
{
	int			first = nunder_way;
	int64		start = zkl_request_clock();
	Deadlines	at;

	at.expired = false;
	at.expire = after_ms(start, patience->expire_ms);
	at.answer = after_ms(start, patience->answer_ms);
	at.lock_timeout = patience->is_lock_wait && LockTimeout > 0 ?
		after_ms(start, LockTimeout) : NEVER;
	submit(slotno, false);

	PG_TRY();
	{
		wait_until(is_answered, slotno, patience->context, patience->name, &at);
		zkl_slot_copy(slotno, answer);
	}
	PG_FINALLY();
	{
		abandon_from(first);
	}
	PG_END_TRY();
}
