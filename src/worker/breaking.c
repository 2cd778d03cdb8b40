/*
 * breaking.c
 *	  The steps of one zk_break_lock().
 *
 * Owns a ZklBreak while it is under way, and the operations for it.  Runs in
 * the worker only; takes no locks of its own.  Which znode is meant is
 * breakhead.c's, the list of breaks breaklock.c's.
 *
 * Whoever owns the head may believe that it holds the lock.  If it is zklock,
 * its node is marked first: its server loses the lock properly, by its own
 * check of the node, and deletes the node once the holder is through with it.
 * Only after a session timeout (the longer one of theirs and ours), when even
 * a server that hears of nothing has lost its lease, the node is deleted from
 * here.  Other clients look at no mark: their node is deleted at once.
 *
 * When the head is gone, the directory is listed for what else there is of the
 * same contender, which goes the same way.  A writer of Curator's may still
 * have a reader on its way to ZooKeeper, or try again to create it: so the
 * directory is listed for a session timeout, and only then the break is done.
 *
 * Whatever has to begin again begins after a pause, and not for ever.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "utils/memutils.h"

#include "core/queue.h"
#include "worker/breaking.h"

#define LOOKS_PER_TIMEOUT	20	/* at a marked node, and for late readers */
#define LONGEST_TIMEOUT_MS	3600000 /* of zklock.session_timeout */
#define ATTEMPT_MASK		0x3fffff	/* of a tag's upper half */

void		(*zkl_breaking_send) (ZklAction *action);

static uint32 attempts = 0;

/* ---- the end ---- */

/* "removed" tells whether there was a head to be removed. */
static void
succeed(ZklBreak *b, bool removed)
{
	zkl_slot_grant(b->slotno, removed, zkl_control->ctl_status.generation,
				   false);
	b->over = true;
}

static void
fail(ZklBreak *b, ZklError error, int32 rc)
{
	zkl_slot_fail(b->slotno, error, rc);
	b->over = true;
}

void
zkl_breaking_stop(ZklBreak *b)
{
	if (b->phase == ZKL_BREAK_MARKING || b->phase == ZKL_BREAK_DELETING)
		b->acted = true;
	b->phase = ZKL_BREAK_IDLE;
}

/*
 * The queue is not as it was when it was last looked at (rc is 0), or ZooKeeper
 * gave an answer that tells nothing.
 */
static void
again(ZklBreak *b, int32 rc)
{
	if (rc != ZKL_RC_OK)
		zkl_breaking_stop(b);
	else
		b->phase = ZKL_BREAK_IDLE;
	if (zkl_retry_later(&b->retry, zkl_boottime_us()))
		return;
	if (rc == ZKL_RC_OK)
		fail(b, ZKL_ERROR_RESTLESS, 0);
	else
		fail(b, b->acted ? ZKL_ERROR_HALF_DONE : ZKL_ERROR_ZOOKEEPER, rc);
}

/* ---- the log ---- */

static void
log_mark(const ZklBreak *b)
{
	ZklSlot		slot;

	zkl_slot_copy(b->slotno, &slot);
	ereport(LOG,
			(errmsg("znode \"%s/%s\" of distributed lock \"%s\" is marked to be broken by process %d (user \"%s\")",
					b->directory, b->target.name, b->lock, slot.s_pid,
					slot.s_usename)));
}

static void
log_end(ZklBreak *b)
{
	ZklSlot		slot;

	if (b->told)
		return;
	b->told = true;
	zkl_slot_copy(b->slotno, &slot);
	ereport(LOG,
			(errmsg("znode \"%s/%s\" of distributed lock \"%s\" is gone, broken by process %d (user \"%s\")",
					b->directory, b->head.name, b->lock, slot.s_pid,
					slot.s_usename)));
}

static void
log_left(const ZklBreak *b)
{
	ereport(LOG,
			(errmsg("znode \"%s/%s\" of distributed lock \"%s\" is deleted",
					b->directory, b->target.name, b->lock),
			 errdetail("Its client created it beside znode \"%s\", which was broken.",
					   b->head.name)));
}

/* ---- operations ---- */

static void
send(ZklBreak *b, ZklBreakPhase next, ZklSendKind kind, ZklMultiOp *multi)
{
	bool		is_target = next >= ZKL_BREAK_READING &&
	next != ZKL_BREAK_COMPARING;
	char	   *path = is_target ?
	psprintf("%s/%s", b->directory, b->target.name) : b->directory;
	ZklAction	action;

	b->phase = next;
	attempts = (attempts + 1) & ATTEMPT_MASK;
	b->attempt = attempts;
	memset(&action, 0, sizeof(action));
	action.kind = ZKL_ACTION_SEND;
	action.send = kind;
	action.tag = (uint64) b->attempt << 32 | (uint32) b->slotno;
	action.path = path;
	if (multi != NULL)
		multi->path = path;
	action.multi = multi;
	action.nmulti = multi != NULL ? 1 : 0;
	zkl_breaking_send(&action);
	if (is_target)
		pfree(path);
}

void
zkl_breaking_begin(ZklBreak *b)
{
	b->looked_at = zkl_boottime_us();
	send(b, ZKL_BREAK_SYNCING, ZKL_SEND_SYNC, NULL);
}

static void
look(ZklBreak *b)
{
	if (b->directory_czxid == 0)
		send(b, ZKL_BREAK_OPENING, ZKL_SEND_GET, NULL);
	else
		send(b, ZKL_BREAK_LISTING, ZKL_SEND_LIST, NULL);
}

/*
 * From here on the head may go by our doing.  A worker after this one must not
 * take the next head for it: the slot tells that this was begun.
 */
static void
choose(ZklBreak *b)
{
	static const ZklUuid none = {{0}};

	if (b->head.name == NULL)
	{
		b->head = b->target;
		b->head.name = MemoryContextStrdup(TopMemoryContext, b->target.name);
	}
	zkl_slot_set_znode(b->slotno, &none, 0, ZKL_EXCLUSIVE, -1, false,
					   zkl_control->ctl_status.generation);
}

static void
mark(ZklBreak *b, const ZklReply *reply, int32 version)
{
	char		data[ZKL_MAX_NODE_DATA + 32];
	ZklMultiOp	set;

	memset(&set, 0, sizeof(set));
	set.kind = ZKL_MULTI_SET;
	set.version = version;
	set.data = data;
	set.data_length = zkl_node_data_break(reply->data, reply->data_length,
										  data, sizeof(data));
	choose(b);
	b->version = version + 1;
	b->marked_at = 0;
	log_mark(b);
	send(b, ZKL_BREAK_MARKING, ZKL_SEND_MULTI, &set);
}

/*
 * The znode is marked: its holder has the time of a session timeout, anew if
 * somebody wrote over the mark.
 */
static void
wait_for_holder(ZklBreak *b, int32 version, int64 now)
{
	if (b->head.name == NULL || b->version != version || b->marked_at == 0)
	{
		choose(b);
		b->version = version;
		b->marked_at = now;
	}
	b->acted = true;
	b->retry.due = Min(now + b->timeout / LOOKS_PER_TIMEOUT,
					   b->marked_at + b->timeout);
	b->phase = ZKL_BREAK_WAITING;
}

/* Only as it was marked: a mark that was lost has told nobody. */
static void
delete_marked(ZklBreak *b)
{
	ZklMultiOp	delete;

	memset(&delete, 0, sizeof(delete));
	delete.kind = ZKL_MULTI_DELETE;
	delete.version = b->version;
	send(b, ZKL_BREAK_DELETING, ZKL_SEND_MULTI, &delete);
}

static void
delete_foreign(ZklBreak *b)
{
	choose(b);
	send(b, ZKL_BREAK_DELETING, ZKL_SEND_DELETE, NULL);
}

void
zkl_breaking_look(ZklBreak *b, int64 now)
{
	if (now >= b->marked_at + b->timeout)
		delete_marked(b);
	else
		send(b, ZKL_BREAK_LOOKING, ZKL_SEND_GET, NULL);
}

/* ---- answers ---- */

/*
 * The head is not there, or not any more.  What its client creates from now on
 * comes too late to be seen by those who wait behind it.
 */
static void
search(ZklBreak *b)
{
	int64		now = zkl_boottime_us();
	int64		timeout = (int64) zkl_status_timeout_ms() * 1000;

	log_end(b);
	if (!zkl_breakhead_may_leave(b->dialect, &b->head))
		b->search_until = b->looked_at;
	else if (b->search_until == 0)
		b->search_until = now + timeout;
	if (b->looked_at >= b->search_until)
	{
		succeed(b, true);
		return;
	}
	zkl_retry_reset(&b->retry);
	b->retry.due = now + timeout / LOOKS_PER_TIMEOUT;
	b->phase = ZKL_BREAK_IDLE;
}

static void
listed(ZklBreak *b, const ZklReply *reply)
{
	ZklBreakHead before = b->target;
	bool		found;

	memset(&b->target, 0, sizeof(b->target));
	if (b->acted)
		found = zkl_breakhead_find(b->dialect, reply, &b->head, &b->target);
	else
	{
		/* If its owner was faster than we, there may be another one. */
		zkl_breakhead_free(&b->head);
		found = zkl_breakhead_first(b->dialect, reply, &b->target);
	}
	if (!found || before.name == NULL ||
		strcmp(before.name, b->target.name) != 0)
		b->marked_at = 0;
	zkl_breakhead_free(&before);
	if (found)
		send(b, ZKL_BREAK_READING, ZKL_SEND_GET, NULL);
	else if (b->acted)
		search(b);
	else
		succeed(b, false);
}

/* Whether the znode is as good as the head is known by now */
static void
judge_foreign(ZklBreak *b, bool same_directory)
{
	if (b->head.name == NULL ||
		zkl_breakhead_is_left(&b->head, &b->target, same_directory))
		delete_foreign(b);
	else if (b->phase == ZKL_BREAK_READING)
		send(b, ZKL_BREAK_COMPARING, ZKL_SEND_GET, NULL);
	else
		search(b);				/* somebody else's, in another directory */
}

static void
read_target(ZklBreak *b, const ZklReply *reply, int32 version)
{
	ZklNodeData data;

	b->target.session = reply->rc == ZKL_RC_OK ?
		reply->stat.ephemeral_owner : 0;
	if (!b->target.is_zklock)
	{
		judge_foreign(b, false);
		return;
	}
	if (b->marked_at != 0 && b->version != version &&
		!zkl_retry_later(&b->retry, zkl_boottime_us()))
	{
		fail(b, ZKL_ERROR_RESTLESS, 0);
		return;
	}
	(void) zkl_node_data_parse(reply->data, reply->data_length, &data);
	b->timeout = (int64) Max(zkl_status_timeout_ms(),
							 Min(data.timeout_ms, LONGEST_TIMEOUT_MS)) * 1000;
	if (zkl_node_data_breaking(reply->data, reply->data_length))
		wait_for_holder(b, version, zkl_boottime_us());
	else
		mark(b, reply, version);
}

static void
deleted(ZklBreak *b)
{
	b->acted = true;
	if (strcmp(b->head.name, b->target.name) != 0)
		log_left(b);
	again(b, ZKL_RC_OK);
}

static void
done(ZklBreak *b, const ZklReply *reply, int32 version)
{
	switch (b->phase)
	{
		case ZKL_BREAK_SYNCING:
			look(b);
			break;
		case ZKL_BREAK_OPENING:
			b->directory_czxid = reply->stat.czxid;
			look(b);
			break;
		case ZKL_BREAK_LISTING:
			listed(b, reply);
			break;
		case ZKL_BREAK_READING:
		case ZKL_BREAK_LOOKING:
			read_target(b, reply, version);
			break;
		case ZKL_BREAK_COMPARING:
			judge_foreign(b, reply->stat.czxid == b->directory_czxid);
			break;
		case ZKL_BREAK_MARKING:
			wait_for_holder(b, b->version, zkl_boottime_us());
			break;
		case ZKL_BREAK_DELETING:
			deleted(b);
			break;
		case ZKL_BREAK_IDLE:
		case ZKL_BREAK_WAITING:
			break;
	}
}

/* There is no such znode. */
static void
missing(ZklBreak *b)
{
	ZklReply	empty;

	memset(&empty, 0, sizeof(empty));
	if (b->phase == ZKL_BREAK_OPENING && !b->acted)
		succeed(b, false);
	else if (b->phase == ZKL_BREAK_OPENING || b->phase == ZKL_BREAK_LISTING)
		listed(b, &empty);
	else if (b->phase == ZKL_BREAK_COMPARING)
		search(b);
	else
		again(b, ZKL_RC_OK);	/* gone: what is there now? */
}

uint32
zkl_breaking_attempt(uint64 tag)
{
	return (uint32) (tag >> 32) & ATTEMPT_MASK;
}

void
zkl_breaking_reply(ZklBreak *b, const ZklReply *reply, int32 version)
{
	int32		rc = reply->rc;

	if (rc == ZKL_RC_OK)
		done(b, reply, version);
	else if (rc == ZKL_RC_NONODE)
		missing(b);
	else if (rc == ZKL_RC_BADVERSION)
		again(b, ZKL_RC_OK);
	else if (!zkl_result_is_definite(rc))
		again(b, rc);
	else if (b->phase == ZKL_BREAK_READING && !b->target.is_zklock)
		read_target(b, reply, -1);	/* whoever may not read may yet delete */
	else
		fail(b, ZKL_ERROR_ZOOKEEPER, rc);
}
