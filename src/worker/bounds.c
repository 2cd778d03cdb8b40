/*
 * bounds.c
 *	  Holds that end after some time, and locks that are kept for some time
 *	  after their release.
 *
 * Owns the worker's knowledge of when each hold ends.  Runs in the worker only.
 * Takes the slots' mutexes through worker_slot.h, one at a time.  It must not
 * know what happens to the lock afterwards: the core decides that.
 *
 * The end of a hold is in its slot, where the backend checks it: no transaction
 * passes its commit check after that, whether or not the worker runs.  The
 * worker's part is to let others have the lock.  It makes the slot LOST first,
 * and then has the znode deleted.  If the holder is past its commit check, the
 * worker waits until that transaction has ended, or the slot is released.  So
 * no two holders can commit, whatever their clocks say.
 *
 * From the release on, the core decides how long a lock is kept.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/control.h"
#include "utils/memutils.h"
#include "worker/worker_slot.h"

#include "worker/bounds.h"
#include "worker/report.h"
#include "worker/worker.h"

static int64 *ends = NULL;		/* of the holds, by slot, in ms; 0: never */
static int64 first_end = 0;		/* no later than all of them; 0: none */

void
zkl_bounds_begin(void)
{
	ends = MemoryContextAllocZero(TopMemoryContext,
								  zkl_control->ctl_nslots * sizeof(int64));
}

static void
note_end(int slotno, int64 end)
{
	ends[slotno] = end;
	if (end != 0 && (first_end == 0 || end < first_end))
		first_end = end;
}

static void
log_loss(int slotno)
{
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	zkl_report_lost(&slot, zkl_slot_why_over(&slot));
}

static int
late_warning(ZklLate late, const ZklSlot *slot)
{
	int			pid = slot->s_request.pid;
	int			length = zkl_slot_shown_length(slot);

	switch (late)
	{
		case ZKL_LATE_PREPARED_LOST:
			return errmsg("process %d prepared a transaction although distributed lock \"%.*s\" was lost",
						  pid, length, slot->s_request.path);
		case ZKL_LATE_PREPARED_LAPSED:
			return errmsg("process %d prepared a transaction although the lease of distributed lock \"%.*s\" had ended",
						  pid, length, slot->s_request.path);
		case ZKL_LATE_LAPSED:
			return errmsg("process %d committed although the lease of distributed lock \"%.*s\" had ended",
						  pid, length, slot->s_request.path);
		default:
			return errmsg("process %d committed although distributed lock \"%.*s\" was lost",
						  pid, length, slot->s_request.path);
	}
}

void
zkl_bounds_log_late(int slotno, const ZklSlot *slot)
{
	if (slot->s_late == ZKL_LATE_NOT)
		return;
	ereport(LOG,
			(late_warning(zkl_worker_slot_take_late(slotno), slot),
			 errdetail("The transaction passed its commit check, but did not finish committing in time."),
			 errhint("Another session may have held the lock before the changes were visible.")));
}

/* Whether the znode may go */
static bool
end_hold(int slotno)
{
	bool		just_now;
	bool		over = zkl_worker_slot_overdue(slotno, &just_now);

	if (just_now)
		log_loss(slotno);
	note_end(slotno, zkl_worker_slot_until(slotno));
	return over;
}

void
zkl_bounds_look(int slotno)
{
	if (zkl_slot_peek(slotno) == ZKL_SLOT_RELEASED)
		zkl_dirty_set(slotno, ZKL_WAKE_NOW);
	if (end_hold(slotno))
		zkl_worker_tell(ZKL_EVENT(OVERDUE,.request = (uint32) slotno));
}

void
zkl_bounds_granted(int slotno)
{
	note_end(slotno, zkl_worker_slot_until(slotno));
}

void
zkl_bounds_tick(void)
{
	int64		now = zkl_boottime_ms();
	int			i;

	if (first_end == 0 || now < first_end)
		return;
	first_end = 0;
	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		if (ends[i] != 0 && ends[i] <= now)
			zkl_bounds_look(i);
		else
			note_end(i, ends[i]);
	}
}

int64
zkl_bounds_timer(void)
{
	return first_end == 0 ? -1 : first_end * 1000;
}
