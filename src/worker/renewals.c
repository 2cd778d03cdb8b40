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
#include "shared/slot.h"
#include "utils/timestamp.h"
#include "worker/renewals.h"
#include "worker/worker.h"
#include "worker/worker_slot.h"

static bool
is_meant(const ZklSlot *reserved, const ZklSlotRequest *renewal)
{
	return zkl_slot_is_reserved(reserved) && !zkl_slot_is_lost_kept(reserved) &&
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

static bool
submit_renewal(ZklTask *task, const ZklSlot *slot, bool restored)
{
	const ZklSlotRequest *renewal = &slot->s_request;
	ZklSlot		reserved;

	zkl_slot_copy(renewal->about, &reserved);
	if (is_meant(&reserved, renewal) &&
		renew(renewal->about, renewal->renewed_for == 0 ? 0 :
			  zkl_boottime_ms() + renewal->renewed_for, renewal->by_other))
		(void) zkl_worker_slot_grant(task->slotno, 0, false);
	else
		(void) zkl_worker_slot_deny(task->slotno);
	return false;
}

const ZklTaskOwner zkl_renewals_owner = {
	.size = sizeof(ZklTask),
	.submit = submit_renewal,
};

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
		if (zkl_slot_is_reserved(&slot) && !zkl_slot_is_lost_kept(&slot))
			ereport(LOG,
					(errmsg("the reservation of distributed lock \"%s\" ends with the ZooKeeper session, as the server stops",
							slot.s_request.path),
					 errdetail("Role \"%s\" had reserved it until %s.  ZooKeeper lets others have the lock at the latest when the session has expired.",
							   slot.s_request.usename,
							   timestamptz_to_str(GetCurrentTimestamp() +
												  (slot.s_keep_until - zkl_boottime_ms()) * 1000))));
	}
}
