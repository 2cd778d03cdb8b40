/*
 * long_wait.c
 *	  What a session does while it waits for a lock for longer than
 *	  "deadlock_timeout".
 *
 * Owns s_dependents of all slots, and the wait that was the last to end.  Run by
 * backends that wait: never by the worker, which must not wait for a lock that a
 * stopped process holds.  Takes, through pg_blocking_pids(), PostgreSQL's locks on its
 * own lock table, and slots' mutexes, one at a time.
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
#include "postgres.h"

#include "backend/backend_slot.h"
#include "backend/long_wait.h"
#include "backend/stall.h"
#include "backend/wait.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/deadlocks.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "storage/proc.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

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

void
zkl_long_wait_begin(ZklLongWait *wait, int slotno, const char *name)
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

bool
zkl_long_wait_act(ZklLongWait *wait)
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

void
zkl_long_wait_end(ZklLongWait *wait)
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
