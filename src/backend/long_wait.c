/*
 * long_wait.c
 *	  What a session does while it waits for a lock for longer than
 *	  "deadlock_timeout".
 *
 * Owns nothing but the wait that was the last to end.  Run by backends.  Takes no
 * locks but, through backend_slot.h, those of slots.
 *
 * Must not know how the wait ends, nor what a deadlock is.
 *
 * There are two things to do.  It looks again and again which sessions wait for
 * it in PostgreSQL's own locks: dependents.c.  And if "log_lock_waits" is on, it
 * logs once that it waits, and once that it has got the lock, as PostgreSQL does.
 * The worker tells it what is ahead; that may cost a request to ZooKeeper, so the
 * session goes on waiting for the lock meanwhile.
 */
#include "postgres.h"

#include "backend/backend_slot.h"
#include "backend/dependents.h"
#include "backend/long_wait.h"
#include "backend/stall.h"
#include "backend/under_way.h"
#include "backend/wait.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/deadlocks.h"
#include "shared/settings.h"
#include "storage/proc.h"

#define LEAST_PATIENCE_MS	100
#define ANSWER_WAIT_MS		1000

int
zkl_long_wait_patience(void)
{
	return Max(DeadlockTimeout, LEAST_PATIENCE_MS);
}

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
	zkl_predecessor_init(&wait->ahead);
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
		zkl_dependents_look();
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
	const char *ahead = zkl_predecessor_words(&wait->ahead, wait->name, true);
	int64		waited = now - wait->start;

	wait->report = ZKL_NEVER;
	wait->reported = true;
	ereport(LOG,
			(errmsg("process %d still waiting for distributed lock \"%s\" after %lld.%03d ms",
					MyProcPid, wait->name, (long long) (waited / 1000),
					(int) (waited % 1000)),
			 ahead != NULL ? errdetail_log("%s", ahead) : 0));
	zkl_predecessor_forget(&wait->ahead);
}

/* First asks, then reports, when the answer is there or takes too long. */
static bool
act_on_report(ZklLongWait *wait, int64 now)
{
	bool		is_asked = wait->ahead.segment != NULL;

	if (!is_asked && now < wait->report)
		return false;
	if (is_asked && now < wait->report && !zkl_predecessor_is_answered(&wait->ahead))
		return false;
	if (!is_asked && zkl_predecessor_ask(&wait->ahead, wait->slotno, wait->name, true))
		wait->report = zkl_wait_after_ms(now, ANSWER_WAIT_MS);
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

	zkl_predecessor_forget(&wait->ahead);
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
