/*
 * renewals.c
 *	  Reservations that are renewed or cancelled.
 *
 * Owns the slots of kind RENEWAL between their submission and their answer.  Runs in
 * the worker only.  Takes the slots' mutexes through worker_slot.h, one at a time.
 *
 * A reservation is a hold that is kept after its release.  Only the core knows whether
 * it still keeps it, and ends it by its own timer.  So a renewal goes through the
 * worker: it counts only if the core keeps the hold behind it.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "utils/timestamp.h"
#include "worker/renewals.h"
#include "worker/worker.h"
#include "worker/worker_slot.h"

static bool
is_meant(const ZklSlot *reserved, const ZklSlotRequest *renewal)
{
	return zkl_slot_is_reserved(reserved) &&
		reserved->s_answer.token == renewal->token &&
		reserved->s_request.dialect == renewal->dialect &&
		strcmp(reserved->s_request.path, renewal->path) == 0;
}

/*
 * until: in ms of boottime.h; 0: the reservation ends.  What its role was told is kept,
 * unless it is that role who ends it.
 */
static bool
renew(int slotno, int64 until, bool by_other)
{
	bool		ends = until == 0;
	bool		kept;

	until = zkl_worker_slot_renew(slotno, until, by_other);
	zkl_worker_tell(ZKL_EVENT(RELEASE,.request = (uint32) slotno,
							  .end.keep_until = until * 1000));
	kept = zkl_manager_keeps(zkl_core, (uint32) slotno);
	zkl_worker_slot_keep(slotno, kept ? until : 0);
	return kept || ends;
}

/*
 * A renewal that counts is answered behind the next beat: then whoever asks for the lease
 * right afterwards is told as much as there can be.  All renewals wait for the same one.
 */
typedef struct
{
	ZklTask		task;
	dlist_node	node;			/* in "waiting" */
	int64		lease;			/* ms, as it was when the renewal came */
	int64		until;			/* us: it waits no longer than that */
} Renewal;

static dlist_head waiting = DLIST_STATIC_INIT(waiting);

static int64
lease_now(void)
{
	uint32		generation;
	int64		deadline_ms;

	zkl_lease_read(&generation, &deadline_ms);
	return deadline_ms;
}

/* Whether a beat has been acknowledged just now */
static bool
has_just_been_proved(int64 lease, int64 now)
{
	return lease - now / 1000 >= (int64) zkl_status_timeout_ms() * 60 / 100;
}

static bool
submit_renewal(ZklTask *task, const ZklSlot *slot, bool restored)
{
	Renewal    *renewal = (Renewal *) task;
	const ZklSlotRequest *wanted = &slot->s_request;
	ZklSlot		reserved;
	int64		now = zkl_boottime_us();

	zkl_slot_copy(wanted->about, &reserved);
	if (!is_meant(&reserved, wanted) ||
		!renew(wanted->about, wanted->renewed_for == 0 ? 0 :
			   now / 1000 + wanted->renewed_for, wanted->by_other))
	{
		(void) zkl_worker_slot_deny(task->slotno);
		return false;
	}
	zkl_worker_tell(ZKL_EVENT(PROVE));
	renewal->lease = lease_now();
	if (wanted->renewed_for == 0 || has_just_been_proved(renewal->lease, now))
	{
		(void) zkl_worker_slot_grant(task->slotno, 0, false);
		return false;
	}
	renewal->until = now + (int64) Min(zkl_status_timeout_ms() / 10, ZKL_LONGEST_PROOF_MS) * 1000;
	dlist_push_tail(&waiting, &renewal->node);
	return true;
}

/* The frame has nothing to do for it. */
static void
begin_renewal(ZklTask *task)
{
	zkl_operation_pause(task, PG_INT64_MAX);
}

static void
end_renewal(ZklTask *task, bool connected)
{
	dlist_delete(&((Renewal *) task)->node);
}

const ZklTaskOwner zkl_renewals_owner = {
	.size = sizeof(Renewal),
	.submit = submit_renewal,
	.begin = begin_renewal,
	.end = end_renewal,
};

void
zkl_renewals_tick(void)
{
	int64		now = zkl_boottime_us();
	int64		lease = lease_now();
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &waiting)
	{
		Renewal    *renewal = dlist_container(Renewal, node, iter.cur);

		if (lease <= renewal->lease && now < renewal->until)
			continue;
		(void) zkl_worker_slot_grant(renewal->task.slotno, 0, false);
		zkl_operation_end(&renewal->task);
	}
}

int64
zkl_renewals_timer(void)
{
	int64		due = -1;
	dlist_iter	iter;

	dlist_foreach(iter, &waiting)
	{
		const Renewal *renewal = dlist_container(Renewal, node, iter.cur);

		if (due < 0 || renewal->until < due)
			due = renewal->until;
	}
	return due;
}

void
zkl_renewals_log_end(void)
{
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		ZklSlot		slot;

		if (zkl_slot_peek(i) != ZKL_SLOT_RELEASED)
			continue;
		zkl_slot_copy(i, &slot);
		if (zkl_slot_is_reserved(&slot))
			ereport(LOG,
					(errmsg("the reservation of distributed lock \"%s\" ends with the ZooKeeper session, as the server stops",
							slot.s_request.path),
					 errdetail("Role \"%s\" had reserved it until %s.  ZooKeeper lets others have the lock at the latest when the session has expired.",
							   slot.s_request.usename,
							   timestamptz_to_str(GetCurrentTimestamp() +
												  (slot.s_keep_until - zkl_boottime_ms()) * 1000))));
	}
}
