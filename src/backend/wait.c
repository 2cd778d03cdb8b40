/*
 * wait.c
 *	  The requests of this backend that are under way, and the wait for them.
 *
 * Owns the slots of these requests, from their submission until they are handed
 * over or given up.  Run by backends.
 *
 * Takes no lock of its own; what it reads and writes of a slot it does through
 * slot.h.  Waits on the process latch only.
 *
 * Must not know what is asked for, nor what an answer means.
 *
 * No slot may leak.  So nothing that is done between a claim and the submit can
 * fail, and since a FATAL error goes past PG_CATCH, request.c has an exit
 * callback give up what is under way.
 */
#include "postgres.h"

#include "backend/text.h"
#include "backend/refusal.h"
#include "backend/stall.h"
#include "backend/wait.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "shared/compat.h"
#include "shared/lease.h"
#include "shared/settings.h"
#include "shared/slot.h"

/* The slots of what was submitted, in that order; in TopMemoryContext */
static int *under_way = NULL;
static int	nunder_way = 0;
static int	under_way_room = 0;

/* ---- time ---- */

/* Never the wall clock */
int64
zkl_wait_clock(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return (int64) INSTR_TIME_GET_MICROSEC(now);
}

int64
zkl_wait_after_ms(int64 start, int64 ms)
{
	if (start == ZKL_NEVER || ms >= (ZKL_NEVER - start) / 1000)
		return ZKL_NEVER;
	return start + ms * 1000;
}

/* For WaitLatch: ms until the first deadline, rounded up, or -1 */
static long
next_timeout(const ZklDeadlines *at, int64 now)
{
	int64		first = Min(Min(at->expire, at->answer),
							Min(at->lock_timeout, at->look));

	if (first == ZKL_NEVER)
		return -1;
	return (long) Min((first - now + 999) / 1000, INT_MAX);
}

/* ---- the slots ---- */

void
zkl_wait_abandon(int first)
{
	while (nunder_way > first)
		(void) zkl_slot_release(under_way[--nunder_way]);
}

void
zkl_wait_make_room(void)
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

void
zkl_wait_submit(int slotno, bool more)
{
	Assert(nunder_way < under_way_room);
	under_way[nunder_way++] = slotno;
	zkl_slot_submit(slotno, more);
}

int
zkl_wait_under_way(void)
{
	return nunder_way;
}

int
zkl_wait_slot(int number)
{
	Assert(number < nunder_way);
	return under_way[number];
}

void
zkl_wait_hand_over(int first)
{
	nunder_way = first;
}

void
zkl_wait_take_back(int slotno)
{
	Assert(nunder_way < under_way_room);
	under_way[nunder_way++] = slotno;
}

/* ---- the wait ---- */

/*
 * Once the wait has been one for ZooKeeper for long, its client is told, once
 * for all waits that began with the same call.  Before that, the next look is
 * due when it would have been for long; or a while from now.
 */
static void
look_for_stall(ZklDeadlines *at, int slotno, const char *name, int64 now)
{
	static int64 told = 0;		/* the start of that call */
	int64		patience = (int64) zkl_connect_timeout * 1000;
	int64		stalled = Min(zkl_stall_time(slotno), now - at->start);

	if (told == at->start)
		at->look = ZKL_NEVER;
	else if (stalled < 0)
		at->look = zkl_wait_after_ms(now, Max(zkl_connect_timeout,
											  zkl_lease_look_ms()));
	else if (stalled < patience)
		at->look = now + patience - stalled;
	else
	{
		told = at->start;
		at->look = ZKL_NEVER;
		zkl_stall_notice(name);
	}
}

/* Acts on the deadlines that have passed. */
static void
heed(ZklDeadlines *at, int slotno, const char *name, int64 now)
{
	int			i;

	if (now >= at->lock_timeout)
		zkl_stall_raise_lock_timeout(slotno, name);
	if (now >= at->look)
		look_for_stall(at, slotno, name, now);
	if (now >= at->answer)
		zkl_refusal_raise_unreachable();
	if (now >= at->expire)
	{
		at->expire = ZKL_NEVER;
		at->expired = true;
		for (i = 0; i < nunder_way; i++)
			zkl_slot_time_out(under_way[i]);
	}
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
			return slot.s_kind != ZKL_KIND_LOCK ||
				!zkl_lease_is_current(slot.s_generation) ||
				zkl_lease_is_valid(slot.s_generation);
		default:
			return true;
	}
}

void
zkl_wait_until(bool (*is_over) (int slotno), int slotno,
			   void (*where) (void *name), const char *name, ZklDeadlines *at)
{
	const char *shown = zkl_text_for_client(name);
	ErrorContextCallback context;

	context.callback = where;
	context.arg = unconstify(char *, shown);
	context.previous = error_context_stack;
	error_context_stack = &context;

	while (!is_over(slotno))
	{
		int64		now = zkl_wait_clock();
		long		timeout;

		heed(at, slotno, shown, now);
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
