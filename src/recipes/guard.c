/*
 * guard.c
 *	  The guard of a semaphore, and the requests for permits under it.
 *
 * Owns which slot is the guard's; the slot itself is under_way.c's, as of any
 * request under way.  Run by backends.  Takes no locks but, through
 * backend_slot.h, those of slots.
 *
 * Must not know what the permits are for, nor what the backend holds.
 */
#include "postgres.h"

#include "backend/backend_slot.h"
#include "backend/under_way.h"
#include "miscadmin.h"
#include "recipes/guard.h"
#include "shared/lease.h"

/* The guard, and its number among the requests under way; -1: none */
static int	guard_at = -1;
static ZklGrant guard;

bool
zkl_guard_begin(const ZklLockRequest *request)
{
	int			slotno;

	CHECK_FOR_INTERRUPTS();
	guard_at = zkl_under_way_count();
	zkl_acquire_submit(request, false, false);
	slotno = zkl_under_way_slot(guard_at);
	zkl_acquire_wait(request, slotno, zkl_wait_is_answered);
	if (zkl_acquire_take(request, slotno, &guard))
		return true;
	zkl_guard_end();
	return false;
}

void
zkl_guard_end(void)
{
	if (guard_at >= 0)
		zkl_under_way_abandon(guard_at);
	guard_at = -1;
}

static bool
is_guarded(void)
{
	ZklError	error;

	return zkl_backend_slot_is_held(guard.slotno, guard.generation, &error) &&
		zkl_lease_is_current(guard.generation);
}

/* Answered, or to be given up */
static bool
is_permit_settled(int slotno)
{
	return zkl_wait_is_answered(slotno) || !is_guarded();
}

static bool
is_permit_lost(int slotno)
{
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	return slot.s_state == ZKL_SLOT_LOST ||
		(slot.s_state == ZKL_SLOT_GRANTED &&
		 !zkl_lease_is_current(slot.s_record.generation));
}

/* What zkl_guard_get_permits is called with, and its result */
typedef struct PermitRun
{
	const ZklLockRequest *request;
	int			n;
	ZklGrant   *grants;
	ZklPermitAnswer answer;
} PermitRun;

/*
 * No grant is taken before all are there: until then a loss sends no signal,
 * for the permits are requested again.
 */
static ZklPermitAnswer
get_permits(const PermitRun *run)
{
	ZklLockRequest request = *run->request;
	ZklSlot		slot;
	int			first = zkl_under_way_count();
	int			i;

	zkl_slot_copy(guard.slotno, &slot);
	request.waited = slot.s_answer.blocked;
	for (i = 0; i < run->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		zkl_acquire_submit(&request, false, i + 1 < run->n);
	}
	for (i = 0; i < run->n; i++)
	{
		int			slotno = zkl_under_way_slot(first + i);

		zkl_acquire_wait(run->request, slotno, is_permit_settled);
		if (zkl_slot_peek(slotno) == ZKL_SLOT_DENIED)
			return ZKL_PERMITS_DENIED;
		if (!is_guarded())
			return ZKL_PERMITS_UNGUARDED;
	}
	for (i = 0; i < run->n; i++)
	{
		int			slotno = zkl_under_way_slot(first + i);

		if (is_permit_lost(slotno))
			return ZKL_PERMITS_UNGUARDED;
		(void) zkl_acquire_take(run->request, slotno, &run->grants[i]);
	}
	return ZKL_PERMITS_GRANTED;
}

static bool
run_permits(void *arg)
{
	PermitRun  *run = arg;

	run->answer = get_permits(run);
	return run->answer == ZKL_PERMITS_GRANTED;
}

ZklPermitAnswer
zkl_guard_get_permits(const ZklLockRequest *request, int n, ZklGrant *grants)
{
	PermitRun	run = {request, n, grants};

	(void) zkl_under_way_run(run_permits, &run);
	return run.answer;
}
