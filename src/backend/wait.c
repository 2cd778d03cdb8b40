/*
 * wait.c
 *	  The wait for the answer to a request, and its deadlines.
 *
 * Owns no slot: under_way.c has those of the requests under way, and this looks
 * at them.  Run by backends.
 *
 * Takes no locks but, through backend_slot.h, those of slots.  Waits on the
 * process latch only.
 *
 * Must not know what a request is for, nor what an answer means.
 */
#include "postgres.h"

#include <time.h>

#include "backend/admission.h"
#include "backend/backend_slot.h"
#include "backend/long_wait.h"
#include "backend/refusal.h"
#include "backend/stall.h"
#include "backend/text.h"
#include "backend/under_way.h"
#include "backend/wait.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/fleet.h"
#include "shared/gate.h"
#include "shared/status.h"
#include "storage/proc.h"
#include "utils/snapmgr.h"

/* The worker does not tell when it has freed a slot. */
#define OWN_SLOT_LOOK_MS	10

/*
 * While the wait event says that ZooKeeper is to answer, it may become one for other
 * sessions, of which nothing tells: at first, and later, in ms
 */
#define EVENT_LOOK_MS		100
#define MOST_EVENT_LOOK_MS	1000

/* How often a wait whose time is over looks whether the answer has come */
#define ANSWER_LOOK_MS		5

/* How often a wait for an answer notices that this process was stopped */
#define STOPPED_LOOK_MS		1000

/* For how long this process was stopped during its waits, as far as it knows, in µs */
static int64 stopped = 0;

/* ---- time ---- */

/*
 * Never the wall clock, nor instr_time: that may be the processor's counter, which
 * may start again when a virtual machine is moved.  It stands still while the
 * machine sleeps, as nobody can answer meanwhile.
 */
int64
zkl_wait_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64
zkl_wait_after_ms(int64 start, int64 ms)
{
	if (start == ZKL_NEVER || ms >= (ZKL_NEVER - start) / 1000)
		return ZKL_NEVER;
	return start + ms * 1000;
}

static void
set_answer(ZklDeadlines *at, int64 answer)
{
	at->answer = answer;
	at->stopped = stopped;
}

int64
zkl_wait_answer_due(const ZklDeadlines *at)
{
	return at->answer == ZKL_NEVER ? ZKL_NEVER :
		at->answer + stopped - at->stopped;
}

/* A call begins now, for which no time is set yet. */
static void
begin_call(ZklDeadlines *at, bool at_gate, bool takes)
{
	memset(at, 0, sizeof(*at));
	at->start = zkl_wait_clock();
	at->at_gate = at_gate;
	at->takes = takes;
	at->time_out = at->lock_timeout = at->look = at->warn = ZKL_NEVER;
	set_answer(at, ZKL_NEVER);
	if (at_gate && LockTimeout > 0)
		at->lock_timeout = zkl_wait_after_ms(at->start, LockTimeout);
}

void
zkl_wait_begin_lock(ZklDeadlines *at, bool is_try, int64 timeout_ms)
{
	int			patience = zkl_status_answer_timeout_ms();
	int64		over;

	begin_call(at, true, true);
	over = zkl_wait_after_ms(at->start, timeout_ms);
	if (is_try)
	{
		set_answer(at, zkl_wait_after_ms(over, patience));
		if (timeout_ms > 0)
			at->time_out = over;
	}
	else if (timeout_ms > 0 && over < at->lock_timeout)
	{
		at->lock_timeout = over;
		at->raises_after_ms = timeout_ms;
	}
	if (!is_try || timeout_ms > patience)
		at->look = zkl_wait_after_ms(at->start, patience);
}

void
zkl_wait_warn_of_snapshot(ZklDeadlines *at, const char *why)
{
	at->keeps_snapshot = why;
	at->warn = zkl_wait_after_ms(at->start, DeadlockTimeout);
}

void
zkl_wait_begin_answer(ZklDeadlines *at, int64 timeout_ms, int64 answer_ms,
					  bool is_lock_wait)
{
	int			patience = zkl_status_answer_timeout_ms();

	begin_call(at, is_lock_wait, false);
	at->time_out = zkl_wait_after_ms(at->start, timeout_ms);
	set_answer(at, zkl_wait_after_ms(at->start, answer_ms));
	if (is_lock_wait && timeout_ms > patience)
		at->look = zkl_wait_after_ms(at->start, patience);
}

/* ---- the wait ---- */

/*
 * If the wait has been one for ZooKeeper for "zklock.answer_timeout", the
 * client is told: once for all waits of the same call.  Otherwise sets when to
 * look again.
 */
static void
look_for_stall(ZklDeadlines *at, int slotno, const char *name, int64 now)
{
	static int64 told = 0;		/* the start of the call that was told */
	int64		allowed = (int64) zkl_status_answer_timeout_ms() * 1000;
	int64		stalled = Min(zkl_stall_time(slotno), now - at->start);

	if (told == at->start)
		at->look = ZKL_NEVER;
	else if (stalled < 0)
		at->look = zkl_wait_after_ms(now, Max(zkl_status_answer_timeout_ms(),
											  zkl_lease_look_ms()));
	else if (stalled < allowed)
		at->look = now + allowed - stalled;
	else
	{
		told = at->start;
		at->look = ZKL_NEVER;
		zkl_stall_notice(slotno, name);
	}
}

/*
 * The worker answers these from memory, whether there is a session or not, and whether
 * new locks are allowed or not.  All others wait in vain for a server that was refused.
 */
static void
look_at_gate(const ZklDeadlines *at, ZklSlotKind kind)
{
	if (kind != ZKL_KIND_DUMP && kind != ZKL_KIND_RENEWAL)
	{
		zkl_admission_check_gate(at->at_gate);
		zkl_refusal_check_server();
	}
}

/* A wait for the lease of what is granted goes on. */
static void
look_at_drain(const ZklDeadlines *at, int slotno)
{
	if (at->takes && zkl_slot_peek(slotno) == ZKL_SLOT_WAITING)
		zkl_admission_check_drain();
}

/* Whether the wait is one for the answer to a try, whose own time is over */
static bool
is_try_over(const ZklDeadlines *at)
{
	return at->takes && at->answer != ZKL_NEVER && at->time_out == ZKL_NEVER;
}

/* Only a wait for other sessions is worth a warning: what else it waits for ends soon. */
static void
warn_of_snapshot(ZklDeadlines *at, int slotno, const char *name, int64 now)
{
	if (zkl_stall_time(slotno) >= 0)
	{
		at->warn = zkl_wait_after_ms(now, DeadlockTimeout);
		return;
	}
	at->warn = ZKL_NEVER;
	ereport(WARNING,
			(errmsg("the wait for distributed lock \"%s\" holds back VACUUM and CREATE INDEX CONCURRENTLY",
					name),
			 errdetail("%s", at->keeps_snapshot),
			 errhint("Wait in a CALL of its own, at the isolation level READ COMMITTED.")));
}

/*
 * An answer that has not had the time to come is waited for: it tells whether the lock is
 * free, or who has it.
 */
static void
end_by_lock_timeout(ZklDeadlines *at, int slotno, const char *name, int64 now)
{
	ZklStallReason reason;

	zkl_stall_explain(slotno, name, now - at->start, &reason);
	if (!reason.young)
		zkl_stall_raise_timeout(slotno, name, &reason, at->raises_after_ms);
	at->lock_timeout = zkl_wait_after_ms(now, ANSWER_LOOK_MS);
}

/* Returns whether to look at the answer again, because a message was sent. */
static bool
act_on_deadlines(ZklDeadlines *at, int slotno, const char *name, int64 now)
{
	bool		looks = now >= at->look && at->look < at->lock_timeout;
	bool		warns = now >= at->warn;
	TimestampTz since;

	if (now >= at->time_out && now < at->lock_timeout)
	{
		zkl_under_way_time_out_all();
		at->time_out = ZKL_NEVER;
		at->timed_out = true;
	}
	if (looks)
		look_for_stall(at, slotno, name, now);
	if (warns)
		warn_of_snapshot(at, slotno, name, now);
	if (now >= at->lock_timeout)
		end_by_lock_timeout(at, slotno, name, now);
	if (is_try_over(at) && zkl_status_is_away(&since))
		zkl_refusal_raise_away(since);
	if (now >= zkl_wait_answer_due(at))
		zkl_stall_raise_unanswered(slotno, name);
	return looks || warns;
}

bool
zkl_wait_is_answered(int slotno)
{
	ZklSlot		slot;

	switch (zkl_slot_peek(slotno))
	{
		case ZKL_SLOT_WAITING:
			return false;
		case ZKL_SLOT_GRANTED:
			zkl_slot_copy(slotno, &slot);
			return slot.s_request.kind != ZKL_KIND_LOCK ||
				!zkl_lease_is_current(slot.s_record.generation) ||
				(zkl_lease_is_valid(slot.s_record.generation) &&
				 !zkl_root_is_awaited(&slot));
		default:
			return true;
	}
}

/*
 * Sleeps for that many ms, or -1, unless the latch is set.  While this process is
 * stopped, and others with it perhaps, those who are to answer have no time to.
 */
static void
sleep_on_latch(long timeout, ZklWaitEvent event, int64 now)
{
	int64		due = zkl_wait_after_ms(now, timeout);

	/*
	 * A message may have looked at a catalog, and nothing else has a
	 * snapshot.
	 */
	InvalidateCatalogSnapshotConditionally();
	(void) WaitLatch(MyLatch,
					 WL_LATCH_SET | WL_EXIT_ON_PM_DEATH |
					 (timeout >= 0 ? WL_TIMEOUT : 0),
					 timeout, zkl_compat_wait_event(event));
	if (timeout >= 0)
		stopped += Max(zkl_wait_clock() - due, 0);
}

/*
 * For WaitLatch: ms until the first deadline or the next look, rounded up; -1: only
 * the latch tells of changes.
 */
static long
next_look(const ZklDeadlines *at, int slotno, ZklWaitEvent event, int64 due,
		  int64 now)
{
	int64		first = Min(Min(at->time_out, zkl_wait_answer_due(at)),
							Min(Min(at->lock_timeout, at->look), Min(at->warn, due)));
	int64		most = at->answer != ZKL_NEVER ? STOPPED_LOOK_MS : ZKL_NEVER;

	if (slotno == ZKL_NO_SLOT)
		most = OWN_SLOT_LOOK_MS;
	else if (zkl_slot_peek(slotno) == ZKL_SLOT_GRANTED)
		most = Min(most, zkl_lease_look_ms());
	else if (ZKL_EVENTS_HAVE_NAMES && event == ZKL_EVENT_ZOOKEEPER)
		most = Min(Max((now - at->start) / 1000, EVENT_LOOK_MS), MOST_EVENT_LOOK_MS);
	first = Min(first, zkl_wait_after_ms(now, most));
	return first == ZKL_NEVER ? -1 :
		(long) Min((Max(first - now, 0) + 999) / 1000, INT_MAX);
}

/*
 * A cancel is about to end the wait: so the time to find out what it was for is now.
 * PostgreSQL raises the error.
 */
static void
explain_cancel(const ZklDeadlines *at, int slotno, const char *name, ZklStallReason *reason)
{
	if (QueryCancelPending && !ProcDiePending && InterruptHoldoffCount == 0 &&
		QueryCancelHoldoffCount == 0 && CritSectionCount == 0)
		zkl_stall_explain(slotno, name, zkl_wait_clock() - at->start, reason);
}

static void
cancel_callback(void *arg)
{
	const ZklStallReason *reason = arg;

	if (reason->detail == NULL || geterrcode() != ERRCODE_QUERY_CANCELED)
		return;
	errdetail("%s", reason->detail);
	if (reason->hint != NULL)
		errhint("%s", reason->hint);
}

void
zkl_wait_until(bool (*is_over) (int slotno), int slotno,
			   void (*context) (void *name), const char *name,
			   ZklDeadlines *at)
{
	const char *shown = zkl_text_for_client(name);
	ErrorContextCallback callback;
	ErrorContextCallback on_cancel;
	ZklStallReason reason = {ZKL_STALL_OTHERS};
	ZklLongWait long_wait;

	callback.callback = context;
	callback.arg = unconstify(char *, shown);
	callback.previous = error_context_stack;
	on_cancel.callback = cancel_callback;
	on_cancel.arg = &reason;
	on_cancel.previous = &callback;
	error_context_stack = &on_cancel;
	zkl_long_wait_begin(&long_wait, slotno, shown);

	for (;;)
	{
		bool		acted;
		int64		now;
		ZklWaitEvent event;

		ResetLatch(MyLatch);
		explain_cancel(at, slotno, shown, &reason);
		CHECK_FOR_INTERRUPTS();
		if (is_over(slotno))
			break;
		now = zkl_wait_clock();
		if (slotno != ZKL_NO_SLOT)
		{
			look_at_gate(at, (ZklSlotKind) zkl_slots[slotno].s_request.kind);
			look_at_drain(at, slotno);
			(void) zkl_admission_check_slot(slotno, name);
		}
		acted = act_on_deadlines(at, slotno, shown, now);
		acted |= zkl_long_wait_act(&long_wait);

		/*
		 * Sending a message, or looking at other sessions, can reset the
		 * latch (secure_write in be-secure.c, CHECK_FOR_INTERRUPTS), so a
		 * wake-up may be lost.
		 */
		if (acted)
			continue;
		event = zkl_stall_event(slotno);
		sleep_on_latch(next_look(at, slotno, event, long_wait.due, now), event, now);
	}

	zkl_long_wait_end(&long_wait);
	error_context_stack = callback.previous;
}

void
zkl_wait_sleep_until(int64 due)
{
	for (;;)
	{
		int64		now = zkl_boottime_us();

		if (now >= due)
			break;
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) ((due - now + 999) / 1000),
						 zkl_compat_wait_event(ZKL_EVENT_ZOOKEEPER));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/* ---- requests of the other kinds ---- */

static bool
has_own_slot(int slotno)
{
	return zkl_backend_slot_has_own();
}

/*
 * The worker frees a slot as soon as it sees the release, whatever ZooKeeper
 * does.  So this waits only for a worker that is stopped or restarts, and for no
 * longer than ZooKeeper has for an answer.
 */
static void
wait_for_own_slot(void (*context) (void *name), const char *name,
				  const ZklDeadlines *at)
{
	ZklDeadlines until = *at;

	if (zkl_backend_slot_has_own())
		return;
	set_answer(&until, Min(zkl_wait_answer_due(at),
						   zkl_wait_after_ms(zkl_wait_clock(), zkl_status_answer_timeout_ms())));
	until.time_out = until.look = ZKL_NEVER;
	until.takes = false;		/* ZooKeeper does not matter */
	zkl_wait_until(has_own_slot, ZKL_NO_SLOT, context, name, &until);
}

void
zkl_wait_for_answer(const ZklTarget *target, const ZklQuestion *question,
					void (*context) (void *name),
					ZklDeadlines *at, ZklSlot *answer)
{
	int			first = zkl_under_way_count();
	int			slotno;

	zkl_gate_check_worker();
	look_at_gate(at, question->kind);
	wait_for_own_slot(context, target->name, at);
	slotno = zkl_under_way_claim(target, question->kind);
	zkl_slots[slotno].s_dsm = question->segment;
	zkl_slots[slotno].s_request.about = question->about;
	zkl_slots[slotno].s_request.awaits = question->awaits;
	zkl_slots[slotno].s_request.token = question->token;
	zkl_slots[slotno].s_request.renewed_for = question->renewed_for;
	zkl_slots[slotno].s_request.by_other = question->by_other;
	zkl_under_way_submit(slotno, false);
	PG_TRY();
	{
		zkl_wait_until(zkl_wait_is_answered, slotno, context, target->name, at);
		zkl_slot_copy(slotno, answer);
	}
	PG_FINALLY();
	{
		zkl_under_way_abandon(first);
	}
	PG_END_TRY();
}
