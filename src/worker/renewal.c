/*
 * renewal.c
 *	  Whether the ZooKeeper session is to be replaced by one with another
 *	  timeout.
 *
 * Owns the comparison of "zklock.session_timeout" with the timeout that was
 * requested for the present session.  Runs in the worker only; reads the slots'
 * states.  It must not know how a session is closed, or how the next one begins.
 *
 * The negotiated timeout is not compared: ZooKeeper may have other bounds, and
 * would negotiate the same timeout again.  The worker replaces a session only
 * while the server is idle, so a busy server keeps its session until a restart.
 */
#include "postgres.h"

#include "shared/control.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "worker/renewal.h"
#include "worker/worker.h"

static int	instead_of = 0;		/* the requested timeout, in ms, if it is no
								 * longer wanted; else 0 */

void
zkl_renewal_reload(void)
{
	static int	announced = 0;
	const ZklStatus *status = &zkl_control->ctl_status;

	instead_of = 0;
	if (status->session_id == 0 ||
		status->timeout_asked_ms == (uint32) zkl_session_timeout)
	{
		announced = 0;
		return;
	}
	instead_of = (int) status->timeout_asked_ms;
	if (announced != zkl_session_timeout)
		ereport(LOG,
				(errmsg("parameter \"zklock.session_timeout\" was changed from %d ms to %d ms",
						instead_of, zkl_session_timeout),
				 errdetail("The new value applies to the next ZooKeeper session.  That session begins as soon as no session of this server holds or awaits a distributed lock, or when the server restarts.")));
	announced = zkl_session_timeout;
}

static bool
has_free_slots_only(void)
{
	int			i;

	for (i = 0; i < zkl_control->ctl_nslots; i++)
	{
		if (zkl_slot_peek(i) != ZKL_SLOT_FREE)
			return false;
	}
	return true;
}

/* Errands, epilogues and kept locks have slots, too. */
bool
zkl_renewal_due(void)
{
	return instead_of != 0 &&
		zkl_control->ctl_status.timeout_asked_ms == (uint32) instead_of &&
		zkl_manager_at_rest(zkl_core) && has_free_slots_only();
}

void
zkl_renewal_begun(void)
{
	ereport(LOG,
			(errmsg("closing the ZooKeeper session to begin one with a timeout of %d ms",
					zkl_session_timeout)));
}
