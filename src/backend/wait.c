/*
 * wait.c
 *	  The wait for the answer to a request.
 *
 * Owns no slot but s_dependents of all: acquire.c has those of the requests under
 * way, and this looks at them.  Run by backends.  Takes no locks but, through
 * backend_slot.h, those of slots.  Waits on the process latch only.
 */
#include "postgres.h"

#include <time.h>

#include "access/xact.h"
#include "backend/acquire.h"
#include "backend/admission.h"
#include "backend/backend_slot.h"
#include "backend/hold.h"
#include "backend/wait.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/deadlocks.h"
#include "shared/fleet.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/status.h"
#include "storage/proc.h"
#include "tcop/pquery.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"

/* ---- snapshot: a procedure that waits without a snapshot ---- */

/*
 * Must not know what the wait is for.
 *
 * As long as a session has a snapshot, VACUUM removes no row of its database that was
 * deleted since, and CREATE INDEX CONCURRENTLY waits for it.  A statement has one
 * from its beginning to its end.  But a procedure may commit, so PostgreSQL expects
 * that the snapshot of a CALL is gone when the procedure returns, or is another one
 * (PortalRunUtility and EnsurePortalSnapshotExists in pquery.c).
 *
 * That holds only if the portal's snapshot is the one in use.  In a query, a function,
 * an exception block, or a procedure with SECURITY DEFINER, there is another one above
 * it.
 */

static bool
is_of_portal(void)
{
	return ActivePortal->portalSnapshot == GetActiveSnapshot();
}

/*
 * A CALL with output arguments registers it for values that are read later, from TOAST
 * tables (PortalRunUtility).  Ours has none.
 */
static void
give_hold_snapshot_up(void)
{
	if (ActivePortal->holdSnapshot == NULL)
		return;
	UnregisterSnapshotFromOwner(ActivePortal->holdSnapshot, ActivePortal->resowner);
	ActivePortal->holdSnapshot = NULL;
}

/* False: there is another one below it, and all is as before. */
static bool
pop_snapshot(void)
{
	Snapshot	snapshot = RegisterSnapshot(GetActiveSnapshot());
	bool		is_last;

	PopActiveSnapshot();
	is_last = !ActiveSnapshotSet();
	if (is_last)
		ActivePortal->portalSnapshot = NULL;
	else
	{
		PushActiveSnapshotWithLevel(snapshot, ActivePortal->createLevel);
		ActivePortal->portalSnapshot = GetActiveSnapshot();
	}
	UnregisterSnapshot(snapshot);
	return is_last;
}

const char *
zkl_snapshot_give_up(FunctionCallInfo fcinfo)
{
	if (IsolationUsesXactSnapshot())
		return "At this isolation level the transaction keeps its snapshot, and will not see what others commit during the wait.";
	if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		ActivePortal == NULL || (ActiveSnapshotSet() && !(is_of_portal() && pop_snapshot())))
		return "The CALL is within a query, a function, a trigger, an exception block, or a DO in a transaction block.";
	give_hold_snapshot_up();
	InvalidateCatalogSnapshot();
	if (!TransactionIdIsValid(MyProc->xmin))
		return NULL;
	zkl_snapshot_regain();
	return "The transaction has an open cursor, a loop over a query, or an exported snapshot.";
}

void
zkl_snapshot_regain(void)
{
	EnsurePortalSnapshotExists();
}

/* ---- long_wait ---- */

/*
 * What a session does while it waits for a lock for longer than "deadlock_timeout".
 *
 * Run by backends that wait: never by the worker, which must not wait for a lock
 * that a stopped process holds.  Takes, through pg_blocking_pids(), PostgreSQL's
 * locks on its own lock table, and slots' mutexes, one at a time.
 *
 * Must not know how the wait ends, nor what becomes of a deadlock.
 *
 * There are two things to do.  If "log_lock_waits" is on, the session logs once that
 * it waits, and once that it has got the lock, as PostgreSQL does.  The worker tells
 * it what is ahead; that may cost a request to ZooKeeper, so the session goes on
 * waiting for the lock meanwhile.
 *
 * And it looks again and again which sessions that hold distributed locks wait for
 * it in PostgreSQL's own locks: these depend on it.  ZooKeeper knows nothing of row
 * locks.  If session H holds a distributed lock and waits for a row lock of session W,
 * and W waits for a distributed lock, then whoever waits for H waits for W.  So W's
 * server publishes W's wait in the name of H's locks, too.
 *
 * One look serves all sessions of the server.  Most looks end after a glance at
 * the wait events of all processes: pg_blocking_pids() takes 16 LWLocks, even for
 * a process that does not wait, so it is called only for those that do.  A
 * prepared transaction, of which it says 0, waits for nothing.
 */

#define WAIT_EVENT_CLASS	0xFF000000U

/* A process that waits in PostgreSQL's locks */
typedef struct Blocked
{
	int			pid;
	uint64		owner;			/* 0: it holds no distributed lock */
	bool		known;			/* for which processes */
	int			nblockers;
	int		   *blockers;
	int			visit;			/* the last walk that came here */
} Blocked;

/* A session that waits for a distributed lock, and those that depend on it */
typedef struct Waiter
{
	int			pid;
	int			slotno;
	uint32		serial;
	int			patience;
	bool		had_any;
	ZklSlotDependents dependents;
} Waiter;

typedef struct Look
{
	int64		began;
	int			visit;
	Blocked    *blocked;		/* by pid */
	int			nblocked;
	Waiter	   *waiters;		/* by pid */
	int			nwaiters;
} Look;

/* ---- what there is ---- */

static int
compare_pids(const void *a, const void *b)
{
	int			x = *(const int *) a;
	int			y = *(const int *) b;

	return x < y ? -1 : x > y;
}

/* A parallel worker waits for its leader, as pg_blocking_pids() has it, too. */
static int
blocked_pid(volatile PGPROC *proc)
{
	PGPROC	   *leader = proc->lockGroupLeader;

	if ((proc->wait_event_info & WAIT_EVENT_CLASS) != PG_WAIT_LOCK)
		return 0;
	return leader != NULL ? leader->pid : proc->pid;
}

static void
find_blocked(Look *look)
{
	uint32		i;

	look->blocked = NULL;
	look->nblocked = 0;
	for (i = 0; i < ProcGlobal->allProcCount; i++)
	{
		int			pid = blocked_pid(&ProcGlobal->allProcs[i]);

		if (pid == 0)
			continue;
		if (look->blocked == NULL)
			look->blocked = palloc0(ProcGlobal->allProcCount * sizeof(Blocked));
		look->blocked[look->nblocked++].pid = pid;
	}
	if (look->nblocked > 1)
		qsort(look->blocked, look->nblocked, sizeof(Blocked), compare_pids);
}

static Blocked *
find_process(const Look *look, int pid)
{
	return look->nblocked == 0 ? NULL :
		bsearch(&pid, look->blocked, look->nblocked, sizeof(Blocked),
				compare_pids);
}

static void
note_slot(Look *look, int slotno)
{
	Blocked    *process;
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	if (slot.s_state == ZKL_SLOT_WAITING && slot.s_holder.patient)
	{
		Waiter	   *waiter = &look->waiters[look->nwaiters++];

		memset(waiter, 0, sizeof(*waiter));
		waiter->pid = slot.s_request.pid;
		waiter->slotno = slotno;
		waiter->serial = slot.s_serial;
		waiter->patience = slot.s_request.patience;
		waiter->had_any = slot.s_dependents.n > 0;
	}
	else if (slot.s_state == ZKL_SLOT_GRANTED &&
			 (process = find_process(look, slot.s_request.pid)) != NULL)
		process->owner = slot.s_owner;
}

static void
find_sessions(Look *look)
{
	int			n = zkl_control->ctl_nrequests;
	int			i;

	look->waiters = MemoryContextAllocHuge(CurrentMemoryContext,
										   n * sizeof(Waiter));
	look->nwaiters = 0;
	for (i = 0; i < n; i++)
	{
		ZklSlotState state = zkl_slot_peek(i);

		if (state == ZKL_SLOT_WAITING || state == ZKL_SLOT_GRANTED)
			note_slot(look, i);
	}
	qsort(look->waiters, look->nwaiters, sizeof(Waiter), compare_pids);
}

/* ---- who waits for whom ---- */

static void
ask_for_blockers(Blocked *process)
{
	ArrayType  *array;

	if (process->known)
		return;
	CHECK_FOR_INTERRUPTS();
	array = DatumGetArrayTypeP(DirectFunctionCall1(pg_blocking_pids,
												   Int32GetDatum(process->pid)));
	process->nblockers = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	process->blockers = (int *) ARR_DATA_PTR(array);
	process->known = true;
}

static void
add_dependent(ZklSlotDependents *dependents, uint64 owner)
{
	if (dependents->n < ZKL_MAX_DEPENDENTS_SLOT &&
		(dependents->n == 0 || dependents->owners[dependents->n - 1] != owner))
		dependents->owners[dependents->n++] = owner;
}

/* Walks to all processes that a holder waits for, from one of them on. */
static void
walk_from(Look *look, Blocked *process, uint64 owner)
{
	int			i;

	check_stack_depth();
	process->visit = look->visit;
	ask_for_blockers(process);
	for (i = 0; i < process->nblockers; i++)
	{
		int			pid = process->blockers[i];
		Waiter	   *waiter = bsearch(&pid, look->waiters, look->nwaiters,
									 sizeof(Waiter), compare_pids);
		Blocked    *next = find_process(look, pid);

		if (waiter != NULL)
			add_dependent(&waiter->dependents, owner);
		if (next != NULL && next->visit != look->visit)
			walk_from(look, next, owner);
	}
}

static void
walk(Look *look)
{
	int			i;

	for (i = 0; i < look->nblocked; i++)
	{
		look->visit++;
		if (look->blocked[i].owner != 0)
			walk_from(look, &look->blocked[i], look->blocked[i].owner);
	}
}

/* ---- what the worker sees ---- */

/* If this process was stopped meanwhile, what it found may be over. */
static bool
is_fresh(const Look *look, const Waiter *waiter)
{
	return zkl_boottime_us() - look->began < (int64) waiter->patience * 1000 / 4;
}

static bool
tell_slot(const Look *look, const Waiter *waiter)
{
	ZklSlot    *slot = &zkl_slots[waiter->slotno];
	bool		done;

	SpinLockAcquire(&slot->s_mutex);
	done = slot->s_state == ZKL_SLOT_WAITING &&
		slot->s_serial == waiter->serial &&
		slot->s_dependents.looked_us < look->began;
	if (done)
	{
		slot->s_dependents = waiter->dependents;
		slot->s_dependents.looked_us = look->began;
		slot->s_dependents_due = true;
	}
	SpinLockRelease(&slot->s_mutex);
	return done;
}

static bool
tell(Look *look)
{
	bool		found = false;
	int			i;

	for (i = 0; i < look->nwaiters; i++)
	{
		const Waiter *waiter = &look->waiters[i];

		found |= waiter->dependents.n > 0;
		if ((waiter->dependents.n > 0 || waiter->had_any) &&
			is_fresh(look, waiter) && tell_slot(look, waiter))
			zkl_dirty_set(waiter->slotno, ZKL_WAKE_NOW);
	}
	return found;
}

static bool
look_now(Look *look)
{
	find_blocked(look);
	if (look->nblocked == 0 && !zkl_deadlocks_found())
		return false;
	find_sessions(look);
	walk(look);
	return tell(look);
}

/* May throw. */
static void
look_at_sessions(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "zklock look at locks",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Look		look = {.began = zkl_boottime_us()};
	bool		found = look_now(&look);

	zkl_deadlocks_looked(look.began, zkl_boottime_us(), found);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/* ---- the wait ---- */

static bool
is_waiting(const ZklLongWait *wait)
{
	return wait->slotno != ZKL_NO_SLOT &&
		zkl_slot_peek(wait->slotno) == ZKL_SLOT_WAITING;
}

static void
set_due(ZklLongWait *wait)
{
	wait->due = Min(wait->look, wait->report);
}

/* The wait that was the last one to end: another one may go on with it. */
static struct
{
	int			slotno;
	uint32		serial;
	int64		start;
	bool		reported;
}			last = {ZKL_NO_SLOT};

static void
continue_wait(ZklLongWait *wait)
{
	if (wait->slotno == ZKL_NO_SLOT || wait->slotno != last.slotno ||
		zkl_slots[wait->slotno].s_serial != last.serial)
		return;
	wait->start = last.start;
	wait->reported = last.reported;
}

/*
 * A wait begins.  It counts only if it is for the grant of a lock; the patience
 * of its request tells whether it takes part in deadlocks across servers.
 */
static void
long_wait_begin(ZklLongWait *wait, int slotno, const char *name)
{
	const ZklSlotRequest *request;

	memset(wait, 0, sizeof(*wait));
	wait->slotno = slotno;
	wait->name = name;
	zkl_stall_ahead_init(&wait->ahead);
	wait->start = zkl_wait_clock();
	wait->due = wait->look = wait->report = ZKL_NEVER;
	continue_wait(wait);
	if (!is_waiting(wait))
		return;
	request = &zkl_slots[slotno].s_request;
	if (request->kind != ZKL_KIND_LOCK)
		return;
	if (request->patience > 0)
		wait->look = zkl_wait_after_ms(wait->start, request->patience);
	if (log_lock_waits && !wait->reported)
		wait->report = zkl_wait_after_ms(wait->start, DeadlockTimeout);
	set_due(wait);
}

/* ---- deadlocks ---- */

static void
look_for_dependents(ZklLongWait *wait, int64 now)
{
	const ZklSlot *slot = &zkl_slots[wait->slotno];
	int			patience = slot->s_request.patience;
	int64		boottime = zkl_boottime_us();
	int64		next;

	if (wait->since == 0)
	{
		zkl_backend_slot_set_patient(wait->slotno);
		wait->since = boottime;
	}
	/* Who has told of others looks on until they are taken back. */
	if (!zkl_deadlock_detection && slot->s_dependents.n == 0)
		next = boottime + (int64) patience * 1000;
	else if (zkl_deadlocks_may_look(boottime, &wait->since, patience, &next))
	{
		look_at_sessions();
		wait->since = zkl_boottime_us();
	}

	/* Only right behind a look does the core decide on a deadlock. */
	if (slot->s_dependents.n > 0)
		next = Min(next, boottime + (int64) patience * 1000 / 2);
	wait->look = now + next - boottime;
}

/* ---- the log ---- */

static void
report_wait(ZklLongWait *wait, int64 now)
{
	const char *ahead = zkl_stall_ahead_words(&wait->ahead, wait->name, true);
	int64		waited = now - wait->start;

	wait->report = ZKL_NEVER;
	wait->reported = true;
	ereport(LOG,
			(errmsg("process %d still waiting for distributed lock \"%s\" after %lld.%03d ms",
					MyProcPid, wait->name, (long long) (waited / 1000),
					(int) (waited % 1000)),
			 ahead != NULL ? errdetail_log("%s", ahead) : 0));
	zkl_stall_ahead_forget(&wait->ahead);
}

/* First asks, then reports, when the answer is there or takes too long. */
static bool
act_on_report(ZklLongWait *wait, int64 now)
{
	bool		is_asked = wait->ahead.segment != NULL;

	if (!is_asked && now < wait->report)
		return false;
	if (is_asked && now < wait->report && !zkl_stall_ahead_is_known(&wait->ahead))
		return false;
	if (!is_asked && zkl_stall_ahead_ask(&wait->ahead, wait->slotno, wait->name, true))
		wait->report = zkl_wait_after_ms(now, ZKL_AHEAD_WAIT_MS);
	else
		report_wait(wait, now);
	return true;
}

/*
 * Once it is due, or the latch is set.  Returns whether it did something, which can
 * have reset the latch.
 */
static bool
long_wait_act(ZklLongWait *wait)
{
	int64		now;
	bool		acted;

	if (wait->due == ZKL_NEVER || !is_waiting(wait))
	{
		wait->due = ZKL_NEVER;
		return false;
	}
	now = zkl_wait_clock();
	acted = now >= wait->look;
	if (acted)
		look_for_dependents(wait, now);
	if (wait->report != ZKL_NEVER)
		acted |= act_on_report(wait, now);
	set_due(wait);
	return acted;
}

/* The wait is over, without an error. */
static void
long_wait_end(ZklLongWait *wait)
{
	int64		waited = zkl_wait_clock() - wait->start;

	zkl_stall_ahead_forget(&wait->ahead);
	if (wait->reported && zkl_slot_peek(wait->slotno) == ZKL_SLOT_GRANTED)
	{
		wait->reported = false;
		ereport(LOG,
				(errmsg("process %d acquired distributed lock \"%s\" after %lld.%03d ms",
						MyProcPid, wait->name, (long long) (waited / 1000),
						(int) (waited % 1000))));
	}
	if (wait->slotno == ZKL_NO_SLOT)
		return;
	last.slotno = wait->slotno;
	last.serial = zkl_slots[wait->slotno].s_serial;
	last.start = wait->start;
	last.reported = wait->reported;
}

/* ---- wait: the wait for the answer to a request, and its deadlines ---- */

/*
 * Takes no locks but, through backend_slot.h, those of slots.  Waits on the
 * process latch only.
 *
 * Must not know what a request is for, nor what an answer means.
 */

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
	if (kind != ZKL_KIND_DUMP && kind != ZKL_KIND_RENEWAL && kind != ZKL_KIND_CLAIM)
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
			(zkl_slots[slotno].s_request.kind == ZKL_KIND_CLAIM ?
			 errmsg("the wait for a ticket holds back VACUUM and CREATE INDEX CONCURRENTLY") :
			 errmsg("the wait for distributed lock \"%s\" holds back VACUUM and CREATE INDEX CONCURRENTLY",
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
	long_wait_begin(&long_wait, slotno, shown);

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
		acted |= long_wait_act(&long_wait);

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

	long_wait_end(&long_wait);
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
	zkl_slots[slotno].s_request.asked_us = at->start;
	zkl_slots[slotno].s_request.about = question->about;
	zkl_slots[slotno].s_request.awaits = question->awaits;
	zkl_slots[slotno].s_request.token = question->token;
	zkl_slots[slotno].s_request.renewed_for = question->renewed_for;
	zkl_slots[slotno].s_request.by_other = question->by_other;
	zkl_under_way_submit(slotno, false);
	PG_TRY();
	{
		zkl_wait_until(zkl_wait_is_answered, slotno, context, target->name, at);
		if (question->kind == ZKL_KIND_CLAIM)
			zkl_promise_check_client();
		zkl_backend_slot_take(slotno, answer);
	}
	PG_FINALLY();
	{
		zkl_under_way_abandon(first);
	}
	PG_END_TRY();
}
