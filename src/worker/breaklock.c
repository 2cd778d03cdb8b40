/*
 * breaklock.c
 *	  The worker's side of zk_break_lock().
 *
 * Owns the slots of kind BREAK between their submission and their answer, and
 * the steps in between.  Runs in the worker only; takes no locks of its own.
 * breakhead.c decides which znode is meant, breaklog.c words the log.
 *
 * The client that owns the head of the queue may believe that it holds the
 * lock.  If that client is zklock, the worker marks the znode first: the
 * client's server then loses the lock properly, by its own check of the znode,
 * and deletes the znode once the holder has finished with it.  Only after a
 * session timeout (the longer one of theirs and ours), when even a server that
 * is cut off has lost its lease, the worker deletes the znode itself.  Other
 * clients look at no mark: their znode is deleted at once.
 *
 * When the head is gone, the worker lists the directory for other znodes of the
 * same contender, and removes those in the same way.  A writer of Curator's may
 * still have a reader on its way to ZooKeeper, or try again to create one.  So
 * the worker goes on listing for a session timeout before the break is done.
 */
#include "postgres.h"

#include "core/queue.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/settings.h"
#include "shared/status.h"
#include "utils/memutils.h"
#include "worker/breakhead.h"
#include "worker/breaklog.h"
#include "worker/breaklock.h"
#include "worker/worker_slot.h"

#define LOOKS_PER_TIMEOUT	20	/* at a marked znode, and for late readers */
#define LONGEST_TIMEOUT_MS	3600000 /* of zklock.session_timeout */

typedef enum
{
	BREAK_IDLE,					/* begins, or begins again */
	BREAK_SYNCING,				/* so that the next reads are up to date */
	BREAK_OPENING,				/* reads the directory */
	BREAK_LISTING,
	BREAK_READING,				/* the znode that is to go */
	BREAK_COMPARING,			/* reads the directory again: is it another? */
	BREAK_MARKING,
	BREAK_WAITING,				/* for the holder, or the time */
	BREAK_LOOKING,				/* whether the marked znode is still there */
	BREAK_DELETING
} BreakPhase;

typedef struct
{
	ZklTask		task;
	BreakPhase	phase;
	ZklDialect	dialect;
	char	   *lock;			/* its name ... */
	char	   *directory;		/* ... and its directory */
	int64		directory_czxid;	/* 0: not known */
	ZklBreakHead head;			/* the contender that is to go; it may have
								 * gone by our doing, or by others' */
	bool		acted;			/* perhaps by our doing */
	bool		told;			/* its end, in the log */
	ZklBreakHead candidate;		/* the znode of it that is being dealt with */
	int64		marked_at;		/* µs; 0: it is not, as far as is known */
	int32		version;		/* of its data since then */
	int64		timeout;		/* µs that its holder has from then on */
	int64		looked_at;		/* when the last look at the queue began */
	int64		search_until;	/* for what it leaves behind; 0: not yet */
} BreakTask;

/* ---- the task ---- */

/* If an earlier worker may have removed a head, the next head must stay. */
static bool
submit_break(ZklTask *task, const ZklSlot *slot, bool restored)
{
	BreakTask  *b = (BreakTask *) task;

	if (restored && slot->s_record.sent)
	{
		zkl_worker_slot_fail(task->slotno, ZKL_ERROR_HALF_DONE, 0);
		return false;
	}
	b->dialect = (ZklDialect) slot->s_request.dialect;
	b->lock = MemoryContextStrdup(TopMemoryContext, slot->s_request.path);
	b->directory = MemoryContextStrdup(TopMemoryContext,
									   psprintf("%s%s", zkl_root, b->lock));
	return true;
}

static void
end_break(ZklTask *task, bool connected)
{
	BreakTask  *b = (BreakTask *) task;

	zkl_breakhead_free(&b->head);
	zkl_breakhead_free(&b->candidate);
	pfree(b->lock);
	pfree(b->directory);
}

/* A change that was sent may have been made. */
static void
lose_break(ZklTask *task, bool was_busy)
{
	BreakTask  *b = (BreakTask *) task;

	if (b->phase == BREAK_MARKING || b->phase == BREAK_DELETING)
		b->acted = true;
	b->phase = BREAK_IDLE;
}

/* "removed" tells whether there was a head to be removed. */
static void
succeed_break(BreakTask *b, bool removed)
{
	zkl_worker_slot_grant(b->task.slotno, removed, false);
	zkl_operation_end(&b->task);
}

static void
fail_break(BreakTask *b, ZklError error, int32 rc)
{
	zkl_worker_slot_fail(b->task.slotno, error, rc);
	zkl_operation_end(&b->task);
}

/* The queue is not as it was when the worker last looked at it. */
static void
begin_again(BreakTask *b)
{
	b->phase = BREAK_IDLE;
	if (!zkl_operation_retry(&b->task))
		fail_break(b, ZKL_ERROR_RESTLESS, 0);
}

/* ZooKeeper gave an answer that tells nothing. */
static void
repeat_unknown(BreakTask *b, int32 rc)
{
	lose_break(&b->task, true);
	if (!zkl_operation_retry(&b->task))
		fail_break(b, b->acted ? ZKL_ERROR_HALF_DONE : ZKL_ERROR_ZOOKEEPER, rc);
}

/* ---- operations ---- */

static const char *
candidate_path(const BreakTask *b)
{
	return psprintf("%s/%s", b->directory, b->candidate.name);
}

static void
send_for_directory(BreakTask *b, BreakPhase next, ZklSendKind kind)
{
	b->phase = next;
	zkl_operation_send(&b->task, 0, kind, b->directory, false);
}

static void
send_for_candidate(BreakTask *b, BreakPhase next, ZklSendKind kind)
{
	b->phase = next;
	zkl_operation_send(&b->task, 0, kind, candidate_path(b), false);
}

static void
send_change(BreakTask *b, BreakPhase next, ZklMultiOp *op)
{
	b->phase = next;
	op->path = candidate_path(b);
	zkl_operation_send_multi(&b->task, 0, op, 1);
}

static void
look_at_queue(BreakTask *b)
{
	if (b->directory_czxid == 0)
		send_for_directory(b, BREAK_OPENING, ZKL_SEND_GET);
	else
		send_for_directory(b, BREAK_LISTING, ZKL_SEND_LIST);
}

static void
begin_break(ZklTask *task)
{
	BreakTask  *b = (BreakTask *) task;

	if (b->phase == BREAK_IDLE)
	{
		b->looked_at = zkl_boottime_us();
		send_for_directory(b, BREAK_SYNCING, ZKL_SEND_SYNC);
	}
	else
		send_for_candidate(b, BREAK_LOOKING, ZKL_SEND_GET);
}

/*
 * From here on the head may go by our doing.  The slot records that, so that a
 * restarted worker does not take the next head for this one.
 */
static void
choose_candidate(BreakTask *b)
{
	static const ZklRecord sent = {.sent = true};

	if (b->head.name == NULL)
	{
		b->head = b->candidate;
		b->head.name = MemoryContextStrdup(TopMemoryContext, b->candidate.name);
	}
	zkl_worker_slot_record(b->task.slotno, &sent);
}

static void
mark_candidate(BreakTask *b, const ZklReply *reply)
{
	char		data[ZKL_MAX_NODE_DATA + 32];
	ZklMultiOp	set;

	memset(&set, 0, sizeof(set));
	set.kind = ZKL_MULTI_SET;
	set.version = reply->stat.version;
	set.data = data;
	set.data_length = zkl_node_data_break(reply->data, reply->data_length,
										  data, sizeof(data));
	choose_candidate(b);
	b->version = set.version + 1;
	b->marked_at = 0;
	zkl_breaklog_marked(b->task.slotno, b->lock, b->directory, b->candidate.name);
	send_change(b, BREAK_MARKING, &set);
}

/*
 * The mark has just been seen.  The version alone would not tell that it is there: if
 * ZooKeeper has lost it, the next write of the holder's server gets its version.
 */
static void
delete_candidate(BreakTask *b)
{
	ZklMultiOp	delete;

	memset(&delete, 0, sizeof(delete));
	delete.kind = ZKL_MULTI_DELETE;
	delete.version = b->version;
	send_change(b, BREAK_DELETING, &delete);
}

/*
 * The znode is marked.  Its holder has the time of a session timeout, which
 * begins again if another client wrote over the mark.
 */
static void
wait_for_holder(BreakTask *b, int32 version)
{
	int64		now = zkl_boottime_us();
	bool		is_new = b->head.name == NULL || b->version != version ||
	b->marked_at == 0;

	if (!is_new && now >= b->marked_at + b->timeout)
	{
		delete_candidate(b);
		return;
	}
	if (is_new)
	{
		choose_candidate(b);
		b->version = version;
		b->marked_at = now;
	}
	b->acted = true;
	b->phase = BREAK_WAITING;
	zkl_operation_pause(&b->task, Min(now + b->timeout / LOOKS_PER_TIMEOUT,
									  b->marked_at + b->timeout));
}

/* ---- answers ---- */

/*
 * The head does not exist, or no longer.  If its client creates another znode
 * now, the contenders behind the head no longer see it.
 */
static void
search_for_readers(BreakTask *b)
{
	int64		now = zkl_boottime_us();
	int64		timeout = (int64) zkl_status_timeout_ms() * 1000;

	if (!b->told)
		zkl_breaklog_gone(b->task.slotno, b->lock, b->directory, b->head.name);
	b->told = true;
	if (!zkl_breakhead_may_leave(b->dialect, &b->head))
		b->search_until = b->looked_at;
	else if (b->search_until == 0)
		b->search_until = now + timeout;
	if (b->looked_at >= b->search_until)
	{
		succeed_break(b, true);
		return;
	}
	b->phase = BREAK_IDLE;
	zkl_operation_reset(&b->task);
	zkl_operation_pause(&b->task, now + timeout / LOOKS_PER_TIMEOUT);
}

static void
take_queue(BreakTask *b, const ZklReply *reply)
{
	ZklBreakHead before = b->candidate;
	bool		found;

	memset(&b->candidate, 0, sizeof(b->candidate));
	if (b->acted)
		found = zkl_breakhead_find(b->dialect, reply, &b->head, &b->candidate);
	else
	{
		/* If its owner was faster than we, there may be another one. */
		zkl_breakhead_free(&b->head);
		found = zkl_breakhead_first(b->dialect, reply, &b->candidate);
	}
	if (!found || before.name == NULL ||
		strcmp(before.name, b->candidate.name) != 0)
		b->marked_at = 0;
	zkl_breakhead_free(&before);
	if (found)
		send_for_candidate(b, BREAK_READING, ZKL_SEND_GET);
	else if (b->acted)
		search_for_readers(b);
	else
		succeed_break(b, false);
}

/* The znode of a client other than zklock goes if it belongs to the head. */
static void
judge_foreign_candidate(BreakTask *b, bool same_directory)
{
	if (b->head.name == NULL ||
		zkl_breakhead_is_left(&b->head, &b->candidate, same_directory))
	{
		choose_candidate(b);
		send_for_candidate(b, BREAK_DELETING, ZKL_SEND_DELETE);
	}
	else if (b->phase == BREAK_READING)
		send_for_directory(b, BREAK_COMPARING, ZKL_SEND_GET);
	else
		search_for_readers(b);	/* another contender's, in another directory */
}

static void
take_candidate(BreakTask *b, const ZklReply *reply)
{
	ZklNodeData data;

	b->candidate.session = reply->rc == ZKL_RC_OK ?
		reply->stat.ephemeral_owner : 0;
	if (!b->candidate.is_zklock)
	{
		judge_foreign_candidate(b, false);
		return;
	}
	if (b->marked_at != 0 && b->version != reply->stat.version &&
		!zkl_operation_retry(&b->task))
	{
		fail_break(b, ZKL_ERROR_RESTLESS, 0);
		return;
	}
	(void) zkl_node_data_parse(reply->data, reply->data_length, &data);
	b->timeout = (int64) Max(zkl_status_timeout_ms(),
							 Min(data.timeout_ms, LONGEST_TIMEOUT_MS)) * 1000;
	if (zkl_node_data_breaking(reply->data, reply->data_length))
		wait_for_holder(b, reply->stat.version);
	else
		mark_candidate(b, reply);
}

static void
take_delete(BreakTask *b)
{
	b->acted = true;
	if (strcmp(b->head.name, b->candidate.name) != 0)
		zkl_breaklog_left(b->lock, b->directory, b->candidate.name, b->head.name);
	begin_again(b);
}

static void
take_success(BreakTask *b, const ZklReply *reply)
{
	switch (b->phase)
	{
		case BREAK_SYNCING:
			look_at_queue(b);
			break;
		case BREAK_OPENING:
			b->directory_czxid = reply->stat.czxid;
			look_at_queue(b);
			break;
		case BREAK_LISTING:
			take_queue(b, reply);
			break;
		case BREAK_READING:
		case BREAK_LOOKING:
			take_candidate(b, reply);
			break;
		case BREAK_COMPARING:
			judge_foreign_candidate(b, reply->stat.czxid == b->directory_czxid);
			break;
		case BREAK_MARKING:
			wait_for_holder(b, b->version);
			break;
		case BREAK_DELETING:
			take_delete(b);
			break;
		case BREAK_IDLE:
		case BREAK_WAITING:
			break;
	}
}

/* There is no such znode. */
static void
take_absence(BreakTask *b)
{
	ZklReply	empty;

	memset(&empty, 0, sizeof(empty));
	if (b->phase == BREAK_OPENING && !b->acted)
		succeed_break(b, false);
	else if (b->phase == BREAK_OPENING || b->phase == BREAK_LISTING)
		take_queue(b, &empty);
	else if (b->phase == BREAK_COMPARING)
		search_for_readers(b);
	else
		begin_again(b);			/* it is gone: look at the queue again */
}

static void
take_break_reply(ZklTask *task, uint32 part, const ZklReply *reply,
				 const ZklWireStat *stat)
{
	BreakTask  *b = (BreakTask *) task;
	int32		rc = reply->rc;

	if (rc == ZKL_RC_OK)
		take_success(b, reply);
	else if (rc == ZKL_RC_NONODE)
		take_absence(b);
	else if (rc == ZKL_RC_BADVERSION)
		begin_again(b);
	else if (!zkl_result_is_definite(rc))
		repeat_unknown(b, rc);
	else if (b->phase == BREAK_READING && !b->candidate.is_zklock)
		take_candidate(b, reply);	/* a znode that we cannot read can be
									 * deleted */
	else
		fail_break(b, ZKL_ERROR_ZOOKEEPER, rc);
}

ZklTaskOwner zkl_breaklock_owner = {
	.size = sizeof(BreakTask),
	.submit = submit_break,
	.begin = begin_break,
	.reply = take_break_reply,
	.lost = lose_break,
	.end = end_break,
};
