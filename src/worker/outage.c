/*
 * outage.c
 *	  What the server's log says when the lease ends under held locks.
 *
 * Owns lapsed_at and lapses in ZklStatus, so that a restarted worker does not log
 * the same outage again.  Runs in the worker only.  Takes no locks.  It must not
 * know why ZooKeeper does not answer.
 *
 * The lease of an idle server always ends: that is no outage.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/lease.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "worker/outage.h"
#include "worker/worker.h"


static int
count_held_locks(void)
{
	int			n = 0;
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
		n += zkl_slot_peek(i) == ZKL_SLOT_GRANTED;
	return n;
}

static void
note_lapse(int64 at)
{
	ZklStatus  *status = zkl_status_begin();

	status->lapsed_at = at;
	status->lapses += at != 0;
	zkl_status_end();
}

static void
log_lapse(int64 deadline)
{
	int			held = count_held_locks();

	if (held == 0)
		return;
	note_lapse(deadline);
	ereport(WARNING,
			(errmsg("the lease of this server's distributed locks has ended"),
			 errdetail_plural("%d lock is held, and ZooKeeper has not confirmed it in time.",
							  "%d locks are held, and ZooKeeper has not confirmed them in time.",
							  held, held),
			 errhint("Until ZooKeeper answers, no lock is granted, and commits that rely on held locks wait for up to \"zklock.commit_wait\".  Check the view zk_status.")));
}

void
zkl_outage_tick(void)
{
	int64		lapsed_at = zkl_control->ctl_status.lapsed_at;
	int64		now = zkl_boottime_ms();
	uint32		generation;
	int64		deadline;

	zkl_lease_read(&generation, &deadline);
	if (deadline <= now)
	{
		if (lapsed_at == 0 && deadline != 0 && zkl_manager_live(zkl_core) > 0)
			log_lapse(deadline);
	}
	else if (lapsed_at != 0)
	{
		note_lapse(0);
		ereport(LOG,
				(errmsg("this server has a lease for distributed locks again"),
				 errdetail("The previous lease ended %.3f s ago.",
						   (double) (now - lapsed_at) / 1000)));
	}
}

int64_t
zkl_outage_timer(void)
{
	uint32		generation;
	int64		deadline;

	zkl_lease_read(&generation, &deadline);
	if (zkl_manager_live(zkl_core) == 0 || deadline <= zkl_boottime_ms())
		return -1;
	return deadline * 1000;
}
