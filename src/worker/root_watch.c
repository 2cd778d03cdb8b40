/*
 * root_watch.c
 *	  Reads the settings of the root, and makes them if there are none.
 *
 * Owns what this server knows of them: ctl_root and ctl_root_state, through
 * shared/fleet.h.  Runs in the worker only.  Takes the slots' mutexes,
 * one at a time.  It must not know what becomes of a request.
 *
 * The settings are read behind the first beat of each connection, with a watch
 * that stays there.  Before anything is sent on a new connection, and as soon as
 * the watch fires, they count as unknown.  Until they are read again, no backend
 * takes the grant of a lock whose dialect depends on them; what is held goes on.
 * So this rule also holds on a connection that only re-attaches the session, where
 * the lease goes on: a change may have come while there was no watch.
 *
 * If there are none, this server makes them: as it has known them before, or
 * else by its own "zklock.dialects".  It never gives up, because without them no
 * lock can be granted.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/fleet.h"
#include "shared/settings.h"
#include "worker/operation.h"
#include "worker/root_watch.h"
#include "worker/supervisor.h"
#include "worker/worker_slot.h"

enum
{
	THE_READ,
	THE_CREATE
};

static ZklTask *present = NULL;
static uint32 connection = 0;	/* the last one that was seen */
static bool stale = true;		/* to be read */

static const char *
settings_path(void)
{
	static char path[ZKL_MAX_ROOT + sizeof(ZKL_ROOT_SETTINGS)];

	if (path[0] == '\0')
		snprintf(path, sizeof(path), "%s%s", zkl_root, ZKL_ROOT_SETTINGS);
	return path;
}

/* ---- what is read ---- */

static void
log_difference(const ZklRoot *root)
{
	if (root->is_changing)
		ereport(LOG,
				(errmsg("the dialects of root \"%s\" are being changed", zkl_root),
				 errdetail("They are \"%s\", and are to become \"%s\".",
						   root->dialects, root->changing)));
	else if (zkl_root_state() == ZKL_ROOT_DIFFERS)
		ereport(WARNING,
				(errmsg("\"zklock.dialects\" differs from the dialects of root \"%s\"",
						zkl_root),
				 errdetail("It is \"%s\" on this server, and \"%s\" for the root.  New requests for locks whose dialect differs are refused.",
						   zkl_root_own_dialects(), root->dialects),
				 errhint("Set \"zklock.dialects\" as the other servers have it, or call zk_set_dialects().")));
	else
		ereport(LOG,
				(errmsg("\"zklock.dialects\" agrees with the dialects of root \"%s\" again",
						zkl_root)));
}

static void
end_reading(void)
{
	ZklTask    *task = present;

	stale = false;
	present = NULL;
	zkl_operation_end(task);
}

/* Every connection reads the same again: that is not worth a line. */
static void
publish(const ZklRoot *root)
{
	ZklRoot		before;
	int32		rc;
	bool		known = zkl_root_copy(&before, &rc);
	bool		same = known && rc == ZKL_RC_OK &&
	zkl_root_state() != ZKL_ROOT_UNREADABLE &&
	memcmp(&before, root, sizeof(before)) == 0;

	zkl_root_publish(root, ZKL_RC_OK);
	if (!same && (known || zkl_root_state() == ZKL_ROOT_DIFFERS))
		log_difference(root);
	zkl_worker_slot_wake_waiters();
	end_reading();
}

/* It is read again: an operator may mend it. */
static void
publish_unreadable(ZklTask *task, int32 rc)
{
	if (zkl_root_state() != ZKL_ROOT_UNREADABLE)
	{
		zkl_root_publish(NULL, rc);
		ereport(WARNING,
				(errmsg("could not read the settings of the root in znode \"%s\"",
						settings_path()),
				 rc == ZKL_RC_OK ?
				 errdetail("Its data is not in the format of this version of zklock.") :
				 errdetail("ZooKeeper answered %d.", rc)));
		zkl_worker_slot_wake_waiters();
	}
	zkl_operation_pause(task, zkl_boottime_us() + ZKL_RETRY_LONGEST_PAUSE);
}

/* ---- the task ---- */

static void
begin_root(ZklTask *task)
{
	zkl_operation_send(task, THE_READ, ZKL_SEND_GET, settings_path(), true);
}

static void
create_settings(ZklTask *task)
{
	StringInfoData data;
	ZklMultiOp	op;
	ZklRoot		root;
	int32		rc;

	if (!zkl_root_copy(&root, &rc))
		strlcpy(root.dialects, zkl_root_own_dialects(), sizeof(root.dialects));
	initStringInfo(&data);
	zkl_root_put(&data, &root);
	memset(&op, 0, sizeof(op));
	op.kind = ZKL_MULTI_CREATE_PERSISTENT;
	op.path = settings_path();
	op.data = data.data;
	op.data_length = (size_t) data.len;
	zkl_operation_send_parents(op.path);
	zkl_operation_send_multi(task, THE_CREATE, &op, 1);
}

static void
try_again(ZklTask *task)
{
	if (!zkl_operation_retry(task))
		zkl_operation_pause(task, zkl_boottime_us() + ZKL_RETRY_LONGEST_PAUSE);
}

static void
take_read(ZklTask *task, const ZklReply *reply)
{
	ZklRoot		root;

	if (reply->rc == ZKL_RC_NONODE)
		create_settings(task);
	else if (reply->rc != ZKL_RC_OK && !zkl_zkapi_is_definite(reply->rc))
		try_again(task);
	else if (reply->rc == ZKL_RC_OK &&
			 zkl_root_read(reply->data, reply->data_length, &root))
		publish(&root);
	else
		publish_unreadable(task, reply->rc);
}

/* Another server may have been faster, or the parents may be gone again. */
static void
take_created(ZklTask *task, int32 rc)
{
	if (rc == ZKL_RC_OK || rc == ZKL_RC_NODEEXISTS)
		begin_root(task);
	else if (rc == ZKL_RC_NONODE || !zkl_zkapi_is_definite(rc))
		try_again(task);
	else
		publish_unreadable(task, rc);
}

static void
take_root_reply(ZklTask *task, uint32 part, const ZklReply *reply,
				const ZklWireStat *stat)
{
	if (part == THE_READ)
		take_read(task, reply);
	else
		take_created(task, reply->rc);
}

static const ZklTaskOwner root_owner = {
	.size = sizeof(ZklTask),
	.begin = begin_root,
	.reply = take_root_reply,
};

void
zkl_root_watch_tick(bool ready)
{
	uint32		now = zkl_supervisor_generation();

	if (now != 0 && now != connection)
	{
		connection = now;
		stale = true;
		zkl_root_forget();
	}
	if (ready && stale && present == NULL)
		present = zkl_operation_make(&root_owner);
}

void
zkl_root_watch_event(const char *path)
{
	if (strcmp(path, settings_path()) != 0)
		return;
	stale = true;
	zkl_root_forget();
	if (present != NULL)
		zkl_operation_pause(present, 0);
}
