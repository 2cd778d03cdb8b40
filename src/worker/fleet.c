/*
 * fleet.c
 *	  This server's znode in the directory of the fleet, by which others know of
 *	  it.
 *
 * Owns what was written there last.  Runs in the worker only; takes no locks.  It
 * must not know locks.
 *
 * The znode is written once the first beat of a new session is acknowledged, and
 * again when something in it has changed.  Nothing is sent or awaited for its
 * sake otherwise: whether the server is still in recovery is looked at when the
 * worker is awake anyway.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "postmaster/postmaster.h"
#include "shared/control.h"
#include "shared/fleet.h"
#include "shared/server_name.h"
#include "shared/settings.h"
#include "shared/status.h"
#include "utils/timestamp.h"
#include "wire/version.h"
#include "worker/fleet.h"
#include "worker/operation.h"
#include "worker/supervisor.h"

#define MAX_PARENTS		3		/* they may be reaped while they are empty */

enum
{
	THE_WRITE
};

/* What decides whether the znode has to be written again */
typedef struct
{
	uint32		generation;		/* of the session; 0: never written */
	uint32		timeout_ms;
	bool		in_recovery;
} Facts;

typedef struct
{
	ZklTask		task;
	Facts		facts;			/* as they are being written */
	bool		exists;			/* so it is to be set, not created */
	int			parents;		/* how often they were made */
} FleetTask;

static FleetTask *present = NULL;
static Facts written = {0};
static uint32 gave_up_on = 0;	/* this connection */

static Facts
find_facts(void)
{
	const ZklStatus *status = &zkl_control->ctl_status;
	Facts		facts = {0};

	facts.generation = status->generation;
	facts.timeout_ms = status->timeout_ms;
	facts.in_recovery = RecoveryInProgress();
	return facts;
}

static bool
same_facts(const Facts *a, const Facts *b)
{
	return a->generation == b->generation &&
		a->timeout_ms == b->timeout_ms && a->in_recovery == b->in_recovery;
}

static void
finish(void)
{
	ZklTask    *task = &present->task;

	present = NULL;
	zkl_operation_end(task);
}

/* ---- writing ---- */

static char *
own_path(void)
{
	char		name[ZKL_MAX_FLEET_ZNODE + 1];

	zkl_fleet_name(GetSystemIdentifier(), zkl_control->ctl_status.session_id,
				   name);
	return psprintf("%s%s/%s", zkl_root, ZKL_FLEET_DIRECTORY, name);
}

static void
describe(const Facts *facts, StringInfo data)
{
	const ZklStatus *status = &zkl_control->ctl_status;
	ZklFleetEntry entry = {0};

	strlcpy(entry.server, zkl_server_name(), sizeof(entry.server));
	strlcpy(entry.host, zkl_server_name_host(), sizeof(entry.host));
	entry.port = PostPortNumber;
	entry.in_recovery = facts->in_recovery;
	strlcpy(entry.postgresql, PG_VERSION, sizeof(entry.postgresql));
	strlcpy(entry.zklock, ZKL_VERSION, sizeof(entry.zklock));
	entry.protocol = ZKL_ZNODE_PROTOCOL;
	entry.asked_ms = (int32) status->timeout_asked_ms;
	entry.timeout_ms = (int32) facts->timeout_ms;
	entry.since_ms = (status->session_since +
					  (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY) /
		1000;
	entry.started_us = PgStartTime;
	zkl_fleet_put(data, &entry);
}

static void
write_entry(FleetTask *fleet)
{
	StringInfoData data;
	ZklMultiOp	op;

	initStringInfo(&data);
	describe(&fleet->facts, &data);
	memset(&op, 0, sizeof(op));
	op.kind = fleet->exists ? ZKL_MULTI_SET : ZKL_MULTI_CREATE_PRIVATE;
	op.path = own_path();
	op.version = -1;
	op.data = data.data;
	op.data_length = (size_t) data.len;
	zkl_operation_send_multi(&fleet->task, THE_WRITE, &op, 1);
}

/* Locks work without it, so the next attempt is made on another connection. */
static void
give_up(FleetTask *fleet, int32 rc)
{
	ereport(LOG,
			(errmsg("could not write the znode \"%s\" that tells others about this server",
					own_path()),
			 errdetail("ZooKeeper answered %d.", rc)));
	gave_up_on = zkl_supervisor_generation();
	finish();
}

static void
take_written(FleetTask *fleet, int32 rc)
{
	if (rc == ZKL_RC_OK)
	{
		written = fleet->facts;
		finish();
	}
	else if ((rc == ZKL_RC_NODEEXISTS && !fleet->exists) ||
			 (rc == ZKL_RC_NONODE && fleet->exists))
	{
		fleet->exists = !fleet->exists;
		write_entry(fleet);
	}
	else if (rc == ZKL_RC_NONODE && fleet->parents++ < MAX_PARENTS)
	{
		zkl_operation_send_parents(own_path());
		write_entry(fleet);
	}
	else if (zkl_result_is_definite(rc) || !zkl_operation_retry(&fleet->task))
		give_up(fleet, rc);
}

/* ---- the task ---- */

static void
begin_fleet(ZklTask *task)
{
	FleetTask  *fleet = (FleetTask *) task;

	fleet->facts = find_facts();
	fleet->exists = written.generation == fleet->facts.generation;
	fleet->parents = 0;
	write_entry(fleet);
}

static void
take_fleet_reply(ZklTask *task, uint32 part, const ZklReply *reply,
				 const ZklWireStat *stat)
{
	take_written((FleetTask *) task, reply->rc);
}

static ZklTaskOwner fleet_owner = {
	.size = sizeof(FleetTask),
	.begin = begin_fleet,
	.reply = take_fleet_reply,
};

void
zkl_fleet_tick(bool ready)
{
	Facts		facts;

	if (!ready || present != NULL || gave_up_on == zkl_supervisor_generation())
		return;
	facts = find_facts();
	if (!same_facts(&facts, &written))
		present = (FleetTask *) zkl_operation_make(&fleet_owner);
}
