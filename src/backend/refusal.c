/*
 * refusal.c
 *	  The errors by which a request fails, in PostgreSQL's words.
 *
 * Owns the words for ZooKeeper's error numbers.  Run by backends.  Takes no locks
 * but, through status.h, the one of the worker's status.
 *
 * Must not know anything of ZooKeeper but these numbers, which are part of its
 * protocol.
 */
#include "postgres.h"

#include "access/xact.h"
#include "backend/refusal.h"
#include "backend/text.h"
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "shared/deadlocks.h"
#include "shared/fleet.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "utils/acl.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"
#include "znode/zkapi.h"

typedef struct ZkAnswer
{
	int32		rc;
	int			sqlstate;
	const char *name;
	const char *detail;
	const char *hint;
} ZkAnswer;

static const ZkAnswer answers[] = {
	{-4, ERRCODE_CONNECTION_FAILURE, "CONNECTIONLOSS",
	"The connection broke.", NULL},
	{-5, ERRCODE_SYSTEM_ERROR, "MARSHALLINGERROR",
	"The request or its answer could not be encoded.", NULL},
	{-6, ERRCODE_FEATURE_NOT_SUPPORTED, "UNIMPLEMENTED",
		"The server does not know container nodes.",
	"Use ZooKeeper 3.5 or later."},
	{-7, ERRCODE_CONNECTION_FAILURE, "OPERATIONTIMEOUT",
	"The server did not answer in time.", NULL},
	{-8, ERRCODE_SYSTEM_ERROR, "BADARGUMENTS",
	"The server does not accept the path.", NULL},
	{-101, ERRCODE_SYSTEM_ERROR, "NONODE",
	"A directory above the lock does not exist.", NULL},
	{-102, ERRCODE_INSUFFICIENT_PRIVILEGE, "NOAUTH",
		"An access control list denies this server access.",
	"Use the same \"zklock.auth_file\" on all servers.  The check \"access control\" of zk_healthcheck() names those that differ."},
	{-103, ERRCODE_OBJECT_IN_USE, "BADVERSION",
	"Another client keeps writing to the same znode.", NULL},
	{-108, ERRCODE_WRONG_OBJECT_TYPE, "NOCHILDRENFOREPHEMERALS",
		"A node above the lock is ephemeral and cannot have children.",
	"Choose another name, or remove that node from ZooKeeper."},
	{-110, ERRCODE_SYSTEM_ERROR, "NODEEXISTS",
	"The node exists already.", NULL},
	{-111, ERRCODE_SYSTEM_ERROR, "NOTEMPTY",
	"The node has children.", NULL},
	{-112, ERRCODE_CONNECTION_FAILURE, "SESSIONEXPIRED",
	"The session has expired.", NULL},
	{-114, ERRCODE_INSUFFICIENT_PRIVILEGE, "INVALIDACL",
		"The server does not accept the access control list.",
	"Check \"zklock.auth_file\"."},
	{-115, ERRCODE_INSUFFICIENT_PRIVILEGE, "AUTHFAILED",
		"The server does not accept the credentials.",
	"Check \"zklock.auth_file\"."},
	{-118, ERRCODE_CONNECTION_FAILURE, "SESSIONMOVED",
	"The session has moved to another server.", NULL},
	{-119, ERRCODE_CONNECTION_FAILURE, "NOTREADONLY",
	"The server is cut off from its ensemble and only allows reads.", NULL},
	{-125, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, "QUOTAEXCEEDED",
		"A quota of ZooKeeper is used up.",
	"Raise the quota of a node above the lock."},
	{-127, ERRCODE_TOO_MANY_CONNECTIONS, "THROTTLEDOP",
	"The server is overloaded.", NULL},
};

static const ZkAnswer unknown_answer = {
	0, ERRCODE_SYSTEM_ERROR, "an error",
	"See the server log and the view zk_status.", NULL
};

static const ZkAnswer *
find_answer(int32 rc)
{
	int			i;

	for (i = 0; i < lengthof(answers); i++)
	{
		if (answers[i].rc == rc)
			return &answers[i];
	}
	return &unknown_answer;
}

char *
zkl_refusal_answer_text(int32 zkrc)
{
	const ZkAnswer *answer = find_answer(zkrc);

	return psprintf("ZooKeeper answered %s (%d).  %s",
					answer->name, zkrc, answer->detail);
}

/* "where": more for the detail */
static void
raise_answer(const char *message, const char *name, int32 zkrc, const char *where)
{
	const ZkAnswer *answer = find_answer(zkrc);

	ereport(ERROR,
			(errcode(answer->sqlstate),
			 errmsg(message, name),
			 errdetail("%s%s", zkl_refusal_answer_text(zkrc), where),
			 answer->hint ? errhint("%s", answer->hint) : 0));
}

void
zkl_refusal_raise_zookeeper(const char *message, const char *name, int32 zkrc)
{
	raise_answer(message, name, zkrc, "");
}

/* A lock's directory has its name. */
static void
raise_answer_about_lock(const char *message, const char *name, int32 zkrc)
{
	raise_answer(message, name, zkrc, zkrc != ZKL_RC_NOAUTH ? "" :
				 psprintf("  It is about znode \"%s%s\", or one above or below it.",
						  zkl_root, name));
}

void
zkl_refusal_raise_failed(const char *name, ZklError error, int32 zkrc)
{
	name = zkl_text_for_client(name);

	switch (error)
	{
		case ZKL_ERROR_UPGRADE:
			ereport(ERROR,
					(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
					 errmsg("deadlock detected"),
					 errdetail("This session holds distributed lock \"%s\" in shared mode and another session waits for it in exclusive mode, so each would wait for the other.",
							   name),
					 errhint("Acquire the lock in exclusive mode from the start, or release the shared lock first.")));
			break;
		case ZKL_ERROR_PARENTS:
			raise_answer_about_lock("could not create the directory of distributed lock \"%s\"",
									name, zkrc);
			break;
		case ZKL_ERROR_ZOOKEEPER:
			raise_answer_about_lock("could not access distributed lock \"%s\"",
									name, zkrc);
			break;
		case ZKL_ERROR_SESSION_EXPIRED:
		case ZKL_ERROR_WORKER_ENDED:
		case ZKL_ERROR_NODE_DELETED:
		case ZKL_ERROR_BROKEN:
		case ZKL_ERROR_UNREADABLE:
		case ZKL_ERROR_OVERTAKEN:
		case ZKL_ERROR_OVERDUE:
		case ZKL_ERROR_RESIGNED:
			zkl_refusal_raise_lost(name, NULL, error);
			break;
		case ZKL_ERROR_SEGMENT:
			ereport(ERROR,
					(errcode(ERRCODE_SYSTEM_ERROR),
					 errmsg("could not receive an answer from the zklock worker"),
					 errdetail("The worker could not map a shared memory segment."),
					 errhint("See the server log.")));
			break;
		case ZKL_ERROR_NONE:
		case ZKL_ERROR_DEADLOCK:
		case ZKL_ERROR_NO_NUMBER:
		case ZKL_ERROR_TOO_LARGE:
		case ZKL_ERROR_CANCELLED:
		case ZKL_ERROR_LAPSED:
			break;
	}
	elog(ERROR, "request for distributed lock \"%s\" failed with code %d",
		 name, (int) error);
}

/* What the worker told of the deadlock, a line for each process */
static const char *
deadlock_detail(int slotno, uint32 serial)
{
	char		text[ZKL_MAX_DEADLOCK_TEXT];
	StringInfoData detail;
	char	   *line,
			   *rest = text;

	if (!zkl_deadlocks_hear(slotno, serial, text))
		return "The server log tells which processes and locks are involved.";
	initStringInfo(&detail);
	while ((line = strsep(&rest, "\n")) != NULL)
		appendStringInfo(&detail, "%s%s", detail.len > 0 ? "\n" : "",
						 zkl_text_to_display(line, (int) strlen(line)));
	return zkl_text_for_client(detail.data);
}

void
zkl_refusal_raise_deadlock(int slotno, uint32 serial)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
			 errmsg("deadlock detected"),
			 errdetail_internal("%s", deadlock_detail(slotno, serial)),
			 errhint("See server log for the names of all locks.")));
}

void
zkl_refusal_raise_no_number(const char *name, const char *path, const char *lasting)
{
	const char *znode = lasting == NULL ? NULL :
	psprintf("%s%s/%s", zkl_root, path, lasting);

	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("distributed lock \"%s\" has no numbers left",
					zkl_text_for_client(name)),
			 znode == NULL ?
			 errdetail("ZooKeeper numbers the znodes of a lock.  The numbers begin anew once the lock's directory is deleted, when nobody holds the lock or waits for it.") :
			 errdetail("ZooKeeper numbers the znodes of a lock.  The numbers begin anew once the lock's directory is deleted, but znode \"%s\" is in the way.",
					   zkl_text_for_client(zkl_text_to_display(znode, (int) strlen(znode)))),
			 znode == NULL ?
			 errhint("Retry the request.") :
			 errhint("Delete that znode, or if it is the directory of another lock, release that lock.  Then retry the request.")));
}

int
zkl_refusal_report_lost(const char *name, const char *release, ZklError error)
{
	(void) errcode(ERRCODE_T_R_SERIALIZATION_FAILURE);
	(void) errmsg("distributed lock \"%s\" was lost",
				  zkl_text_for_client(name));
	(void) errdetail("%s", zkl_slot_lost_detail(error));
	return release != NULL ?
		errhint("Another client may hold it now.  Acknowledge the loss with %s(), then acquire the lock again.",
				release) :
		errhint("Another client may hold it now.  Retry the transaction.");
}

void
zkl_refusal_raise_lost(const char *name, const char *release, ZklError error)
{
	ereport(ERROR, (zkl_refusal_report_lost(name, release, error)));
}

void
zkl_refusal_raise_lapsed(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not renew the lease of distributed lock \"%s\"",
					zkl_text_for_client(name)),
			 errdetail("ZooKeeper did not confirm within \"zklock.commit_wait\" that this server still holds the lock."),
			 errhint("Another client may hold it now.  Retry the transaction once the view zk_status shows the state \"connected\".")));
}

void
zkl_refusal_raise_lease_ended(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("lease of distributed lock \"%s\" has ended",
					zkl_text_for_client(name)),
			 errdetail("%s", zkl_slot_lost_detail(ZKL_ERROR_LAPSED)),
			 errhint("Another client may hold it now.  Ask again once the view zk_status shows the state \"connected\".")));
}

const char *
zkl_refusal_worker_state_name(const ZklStatus *status)
{
	static const char *const names[] = {
		[ZKL_STATE_STOPPED] = "stopped",
		[ZKL_STATE_CONNECTING] = "connecting",
		[ZKL_STATE_CONNECTED] = "connected",
		[ZKL_STATE_DISCONNECTED] = "disconnected",
		[ZKL_STATE_EXPIRED] = "expired",
		[ZKL_STATE_AUTH_FAILED] = "auth_failed"
	};

	if (zkl_gate_read() == ZKL_GATE_DISABLED &&
		status->state != ZKL_STATE_STOPPED)
		return status->session_id != 0 || status->session_pid != 0 ?
			"closing" : "disabled";
	Assert(status->state < lengthof(names));
	return names[status->state];
}

bool
zkl_refusal_may_see_hosts(void)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS);
}

const char *
zkl_refusal_worker_trouble(void)
{
	ZklStatus	status;
	const char *error = "";

	zkl_status_copy(&status);
	if (status.last_error[0] != '\0' && zkl_refusal_may_see_hosts() &&
		status.state != ZKL_STATE_CONNECTED)
		error = psprintf("  Its last error: %s.",
						 zkl_text_to_display(status.last_error,
											 strnlen(status.last_error,
													 sizeof(status.last_error))));
	return psprintf("The zklock worker is in state \"%s\".%s",
					zkl_refusal_worker_state_name(&status),
					zkl_text_for_client(error));
}

const char *
zkl_refusal_where_to_look(void)
{
	ZklStatus	status;

	zkl_status_copy(&status);
	if (status.state == ZKL_STATE_AUTH_FAILED ||
		(status.state != ZKL_STATE_CONNECTED && status.last_rc == ZKL_RC_NOAUTH))
		return "Check \"zklock.auth_file\" and the view zk_status.";
	if (status.settings_fault[0] != '\0')
		return "Check the setting that zk_healthcheck() names, and the view zk_status.";
	return "Check \"zklock.connect_string\" and the view zk_status.";
}

void
zkl_refusal_check_server(void)
{
	if (!zkl_status_is_refused())
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("ClickHouse Keeper cannot be used in place of ZooKeeper"),
			 errdetail("Its sessions end by the wall clock.  If that is set, a lock can have two holders.  %s",
					   zkl_refusal_worker_trouble()),
			 errhint("Set \"zklock.connect_string\" to servers of Apache ZooKeeper 3.9.4 or later.")));
}

void
zkl_refusal_raise_unreachable(void)
{
	zkl_refusal_check_server();
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("could not reach ZooKeeper"),
			 errdetail("ZooKeeper did not answer within \"zklock.answer_timeout\".  %s",
					   zkl_refusal_worker_trouble()),
			 errhint("%s", zkl_refusal_where_to_look())));
}

void
zkl_refusal_raise_away(TimestampTz since)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("could not reach ZooKeeper"),
			 errdetail("This server has had no connection since %s.  %s",
					   timestamptz_to_str(since), zkl_refusal_worker_trouble()),
			 errhint("%s", zkl_refusal_where_to_look())));
}

const char *
zkl_refusal_server(const char *server)
{
	if (server[0] == '\0')
		return "another server";
	return psprintf("server \"%s\"",
					zkl_text_for_client(zkl_text_to_display(server, (int) strlen(server))));
}

void
zkl_refusal_raise_cached(const char *name, const char *server)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("%s may have distributed lock \"%s\" cached, and does not answer",
					zkl_refusal_server(server), name),
			 errdetail("So it is not known whether a session holds the lock."),
			 errhint("If that server is down, the lock is free once its ZooKeeper session has ended: retry then, or increase \"zklock.answer_timeout\".  If only its worker is stopped, see zk_break_lock().")));
}

const char *
zkl_refusal_worker_silence(void)
{
	ZklStatus	status;

	zkl_status_copy(&status);
	if (status.worker_pid == 0)
		return "The worker does not run.";
	return psprintf("The worker (process %d) does not answer.",
					status.worker_pid);
}

void
zkl_refusal_raise_worker_silent(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("could not reach the zklock worker"),
			 errdetail("%s", zkl_refusal_worker_silence()),
			 errhint("See the server log, and the state of the process \"zklock worker\".")));
}

void
zkl_refusal_raise_timed_out(const char *what, int64 timeout_ms)
{
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("could not acquire %s within %lld ms",
					zkl_text_for_client(what), (long long) timeout_ms),
			 errdetail("Other clients are ahead of this session in the queue.")));
}

/* ---- errors that a caller treats ---- */

ErrorData *
zkl_refusal_catch(void (*step) (void *arg), void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		step(arg);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return error;
}
