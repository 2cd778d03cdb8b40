/*
 * diagnosis.c
 *	  Says in words what is wrong with ZooKeeper, with a connection to it, or with
 *	  the lease.
 *
 * Owns the memory of its own warnings; of ZklStatus lapsed_at and lapses, so that a
 * restarted worker does not log the same outage again.  Runs in the worker only; takes
 * no locks.  It must not know how the worker finds out what is wrong.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "core/manager.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/program.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "worker/diagnosis.h"
#include "worker/worker.h"

#define MAX_TOLD			64	/* as many as there can be hosts */

/* ---- ZooKeeper, and connections to it ---- */

const char *
zkl_diagnosis_of(int32 rc, const char *host)
{
	switch (rc)
	{
		case ZKL_RC_LAPSED:
			return "the lease has passed while the worker was held up";
		case ZKL_RC_WENT_BACK:
			return "transaction ids of ZooKeeper have gone back: the ensemble was wiped, restored from a backup, or is another one; see zk_accept_lower_tokens()";
		case ZKL_RC_ABSURD:
			return psprintf("ZooKeeper server \"%s\" answered with a transaction id that cannot be right",
							host);
		case ZKL_RC_NOAUTH:
			return psprintf("not allowed to create this server's node below \"%s\": check \"zklock.auth_file\"",
							zkl_root);
		case ZKL_RC_NONODE:
			return "the chroot that \"zklock.connect_string\" ends in does not exist";
		default:
			return psprintf("no usable answer from ZooKeeper server \"%s\" (code %d)",
							host, rc);
	}
}

static const char *
step_behind(ZklWireStep last)
{
	switch (last)
	{
		case ZKL_WIRE_STEP_NONE:
			return "zklock_session had started";
		case ZKL_WIRE_STEP_STARTED:
			return "the name was resolved";
		case ZKL_WIRE_STEP_RESOLVED:
			return "the connection was accepted";
		default:
			return "the server answered";
	}
}

const char *
zkl_diagnosis_of_late(ZklWireStep last, const char *host)
{
	return psprintf("could not connect to ZooKeeper server \"%s\": the time was over before %s",
					host, step_behind(last));
}

const char *
zkl_diagnosis_of_crash(ZklWireStep last)
{
	return psprintf("the session process ended unexpectedly, before %s",
					step_behind(last));
}

const char *
zkl_diagnosis_of_gone(ZklWireGone reason, ZklWireReader *body)
{
	uint32_t	length;
	const char *text = zkl_wire_get_string(body, &length);

	return psprintf("%.*s%s", (int) length, text,
					reason == ZKL_WIRE_GONE_AUTH_FAILED ?
					": check \"zklock.auth_file\"" : "");
}

void
zkl_diagnosis_warn_of_lost_writes(void)
{
	ereport(WARNING,
			(errmsg("ZooKeeper has lost writes that it had acknowledged"),
			 errdetail("This server's node below \"%s/.servers\" is gone, or older than it was.  Locks that were released may not be free yet: the server looks through all directories for their znodes, and deletes them.",
					   zkl_root),
			 errhint("If nobody has deleted that node, check whether all ZooKeeper servers run version 3.9.4 or later, and whether one of them has lost its disk.")));
}

void
zkl_diagnosis_warn_of_other_holder(const char *path, int length, const char *other)
{
	ereport(WARNING,
			(errmsg("distributed lock \"%.*s\" of server \"%s\" may have another holder on %s%s%s",
					length, path, zkl_settings_server_name(),
					other[0] != '\0' ? "server \"" : "another client", other,
					other[0] != '\0' ? "\"" : ""),
			 errdetail("ZooKeeper shows its request ahead of the one that was granted here.  So ZooKeeper has lost writes that it had acknowledged: the end of a session, or a release."),
			 errhint("The lock belongs to this server, whose fencing token is higher.  Check the later changes of the other holder, and whether all ZooKeeper servers run version 3.9.4 or later.")));
}

void
zkl_diagnosis_check_timeout(uint32 timeout_ms, uint32 generation)
{
	static uint32 warned = 0;	/* the generation that was warned about */

	if (warned == generation ||
		timeout_ms >= (uint64) zkl_tick_time * ZKL_LEAST_TICKS)
		return;
	warned = generation;
	ereport(WARNING,
			(errmsg("the ZooKeeper session timeout of %u ms is less than %d ticks",
					timeout_ms, ZKL_LEAST_TICKS),
			 errdetail("\"zklock.tick_time\" is %d ms.  The lease then leaves little room for pauses of the ZooKeeper servers, and none for observers behind a follower.",
					   zkl_tick_time),
			 errhint("Increase \"zklock.session_timeout\" on all servers, or set \"zklock.tick_time\" to the tickTime in the ensemble's zoo.cfg.")));
}

/* Whether this was not told before, by this worker */
static bool
is_news(const char *text)
{
	static uint32 told[MAX_TOLD];
	static int	ntold = 0;
	uint32		hash = hash_bytes((const unsigned char *) text,
								  (int) strlen(text));
	int			i;

	for (i = 0; i < ntold; i++)
	{
		if (told[i] == hash)
			return false;
	}
	if (ntold == MAX_TOLD)
		return false;
	told[ntold++] = hash;
	return true;
}

void
zkl_diagnosis_check_version(const char *version, const char *host)
{
	if (!zkl_release_loses_writes(version) || !is_news(psprintf("%s %s", host, version)))
		return;
	ereport(LOG,
			(errmsg("ZooKeeper server \"%s\" has version %s", host, version),
			 errdetail(ZKL_RELEASE_FAULT),
			 errhint(ZKL_RELEASE_ADVICE)));
}

/* ---- the lease ends under held locks ---- */

static int
count_held_locks(void)
{
	int			n = 0;
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
		n += zkl_slot_is_relied_on(i);
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
zkl_diagnosis_tick(void)
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
zkl_diagnosis_timer(void)
{
	uint32		generation;
	int64		deadline;

	zkl_lease_read(&generation, &deadline);
	if (zkl_manager_live(zkl_core) == 0 || deadline <= zkl_boottime_ms())
		return -1;
	return deadline * 1000;
}
