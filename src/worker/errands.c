/*
 * errands.c
 *	  The worker's side of errands: what backends do to znodes that are no
 *	  contenders.
 *
 * Owns the slots of kind ERRAND between their submission and their answer, and
 * the operations under way for them.  Runs in the worker only; takes no locks.
 * It decides nothing, and does not know what the errands are for.
 */
#include "postgres.h"

#include "nodes/pg_list.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/slot.h"
#include "storage/dsm.h"
#include "utils/memutils.h"

#include "shared/errand.h"
#include "shared/retry.h"
#include "worker/byslot.h"
#include "worker/childwatch.h"
#include "worker/errand_segment.h"
#include "worker/errands.h"

#define ATTEMPT_MASK	0xfffff /* of a tag's upper half */
#define SYNC_TAG		(UINT64CONST(1) << 52)	/* the sync ahead of a read */
#define MAX_PARENTS		3		/* they may be reaped while they are empty */

#define RC_MARSHALLINGERROR	(-5)
#define RC_UNIMPLEMENTED	(-6)

typedef enum
{
	IDLE,						/* waits for a connection, or for its time */
	SENT,
	WATCHING					/* AWAIT: nothing has changed yet */
} Phase;

typedef struct
{
	int			slotno;
	dsm_handle	handle;
	uint32		attempt;		/* tells answers to earlier ones */
	Phase		phase;
	bool		changed;		/* while its listing was under way */
	bool		stale;			/* the sync ahead of it was refused */
	bool		watched;		/* AWAIT: its listing has set a watch */
	int			parents;		/* how often they were made */
	ZklRetry	retry;			/* of a read, on this connection */
	char	   *path;			/* of the znode; NULL: what is to be done is
								 * not known */
	ZklErrand	what;			/* the backend's part, without the answer */
} Task;

static ZklErrandsSend send_operation;
static uint32 attempts = 0;
static ZklBySlot by_slot;
static List *tasks = NIL;		/* of Task, in TopMemoryContext */

static void
unwatch(const char *path)
{
	ZklAction	action;

	memset(&action, 0, sizeof(action));
	action.kind = ZKL_ACTION_SEND;
	action.send = ZKL_SEND_UNWATCH_CHILDREN;
	action.tag = ZKL_ERRANDS_TAG;	/* attempt 0: no task waits for it */
	action.path = path;
	send_operation(&action);
}

static bool
is_awaited(const char *path)
{
	ListCell   *cell;

	foreach(cell, tasks)
	{
		const Task *task = lfirst(cell);

		if (task->what.kind == ZKL_ERRAND_AWAIT && task->path != NULL &&
			strcmp(task->path, path) == 0)
			return true;
	}
	return false;
}

void
zkl_errands_begin(ZklErrandsSend send)
{
	send_operation = send;
	by_slot = zkl_byslot_make();
	zkl_childwatch_begin(is_awaited, unwatch);
}

static void
finish(Task *task)
{
	tasks = list_delete_ptr(tasks, task);
	by_slot[task->slotno] = NULL;
	if (task->watched)
		zkl_childwatch_end(task->path);
	else if (task->phase == SENT && task->what.kind == ZKL_ERRAND_AWAIT)
		zkl_childwatch_give_up(task->attempt, task->path);
	if (task->path != NULL)
		pfree(task->path);
	pfree(task);
}

/* ---- the answer ---- */

static void
answer(Task *task, const ZklReply *reply, const ZklWireStat *stat,
	   uint64 fingerprint)
{
	zkl_errand_segment_put(task->handle, reply, stat, fingerprint);
	zkl_slot_grant(task->slotno, 0, zkl_control->ctl_status.generation, false);
	finish(task);
}

static void
answer_rc(Task *task, int32 rc)
{
	ZklReply	reply;

	memset(&reply, 0, sizeof(reply));
	reply.rc = rc;
	answer(task, &reply, NULL, task->what.known);
}

/* ---- slots ---- */

void
zkl_errands_submit(int slotno)
{
	Task	   *task = MemoryContextAllocZero(TopMemoryContext, sizeof(Task));
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	task->slotno = slotno;
	task->handle = slot.s_dsm;
	tasks = lappend(tasks, task);
	by_slot[task->slotno] = task;
	MemoryContextSwitchTo(old);
	task->path = zkl_errand_segment_take(task->handle, &task->what);

	/* Then its backend is gone, or learns that nothing is known. */
	if (task->path == NULL)
		answer_rc(task, ZKL_RC_UNKNOWN);
}

/* An operation will not be answered: a read is sent again. */
static void
lose(Task *task)
{
	if (zkl_errand_is_write(&task->what))
		answer_rc(task, ZKL_RC_UNKNOWN);
	else
		task->phase = IDLE;
}

void
zkl_errands_restore(int slotno)
{
	Task	   *task;

	zkl_errands_submit(slotno);
	task = zkl_byslot_get(by_slot, slotno);
	if (task != NULL)
		lose(task);
}

void
zkl_errands_expire(int slotno)
{
	Task	   *task = zkl_byslot_get(by_slot, slotno);

	if (task != NULL && task->phase == WATCHING)
		answer_rc(task, ZKL_RC_OK);
}

void
zkl_errands_release(int slotno)
{
	Task	   *task = zkl_byslot_get(by_slot, slotno);

	if (task != NULL)
		finish(task);
	zkl_slot_free(slotno);
}

/* ---- operations ---- */

static uint64
make_tag(const Task *task)
{
	return ZKL_ERRANDS_TAG | (uint64) task->attempt << 32 |
		(uint32) task->slotno;
}

static void
send(Task *task, ZklSendKind kind, const ZklMultiOp *multi, size_t nmulti)
{
	ZklAction	action;

	task->phase = SENT;
	task->changed = false;
	memset(&action, 0, sizeof(action));
	action.kind = ZKL_ACTION_SEND;
	action.send = kind;
	action.tag = make_tag(task);
	action.path = task->path;
	action.watch = task->what.kind == ZKL_ERRAND_AWAIT;
	action.multi = multi;
	action.nmulti = nmulti;
	send_operation(&action);
}

static void
send_write(Task *task, ZklMultiKind kind)
{
	ZklMultiOp	op;

	memset(&op, 0, sizeof(op));
	op.kind = kind;
	op.path = task->path;
	op.version = task->what.version;
	op.data = task->what.data;
	op.data_length = task->what.length;
	send(task, ZKL_SEND_MULTI, &op, 1);
}

static void
send_delete_last(Task *task)
{
	char	   *parent = pstrdup(task->path);
	ZklMultiOp	ops[2];

	*strrchr(parent, '/') = '\0';
	memset(ops, 0, sizeof(ops));
	ops[0].kind = ops[1].kind = ZKL_MULTI_DELETE;
	ops[0].path = task->path;
	ops[0].version = task->what.version;
	ops[1].path = parent;
	ops[1].version = -1;
	send(task, ZKL_SEND_MULTI, ops, lengthof(ops));
	pfree(parent);
}

/* What is read right behind it is as new as this, unless it is refused. */
static void
send_sync(const Task *task)
{
	ZklAction	action;

	memset(&action, 0, sizeof(action));
	action.kind = ZKL_ACTION_SEND;
	action.send = ZKL_SEND_SYNC;
	action.tag = make_tag(task) | SYNC_TAG;
	action.path = task->path;
	send_operation(&action);
}

static void
begin(Task *task)
{
	attempts = attempts % ATTEMPT_MASK + 1; /* never 0: see make_parents */
	task->attempt = attempts;
	task->stale = false;
	if (task->what.sync)
		send_sync(task);
	switch (task->what.kind)
	{
		case ZKL_ERRAND_GET:
			send(task, ZKL_SEND_GET, NULL, 0);
			break;
		case ZKL_ERRAND_SET:
			send_write(task, ZKL_MULTI_SET);
			break;
		case ZKL_ERRAND_CREATE:
			send_write(task, ZKL_MULTI_CREATE_PERSISTENT);
			break;
		case ZKL_ERRAND_CREATE_CONTAINER:
			send(task, ZKL_SEND_CREATE_CONTAINER, NULL, 0);
			break;
		case ZKL_ERRAND_DELETE:
			send_write(task, ZKL_MULTI_DELETE);
			break;
		case ZKL_ERRAND_DELETE_LAST:
			send_delete_last(task);
			break;
		case ZKL_ERRAND_LIST:
		case ZKL_ERRAND_AWAIT:
			send(task, ZKL_SEND_LIST, NULL, 0);
			break;
	}
}

/*
 * All parents, top down, each right behind the other; whether they are there
 * shows in the next attempt.
 */
static void
make_parents(Task *task)
{
	char	   *path = pstrdup(task->path);
	char	   *slash = path;
	ZklAction	action;

	memset(&action, 0, sizeof(action));
	action.kind = ZKL_ACTION_SEND;
	action.send = ZKL_SEND_CREATE_CONTAINER;
	action.tag = ZKL_ERRANDS_TAG;	/* attempt 0: nobody waits for these */
	action.path = path;
	while ((slash = strchr(slash + 1, '/')) != NULL)
	{
		*slash = '\0';
		send_operation(&action);
		*slash = '/';
	}
	pfree(path);
	task->parents++;
	begin(task);
}

/*
 * A read is sent again on the same connection, after a pause; if that does not
 * help either, the answer counts, whatever it is.
 */
static void
again(Task *task, const ZklReply *reply)
{
	if (zkl_retry_later(&task->retry, zkl_boottime_us()))
		task->phase = IDLE;
	else
		answer(task, reply, NULL, task->what.known);
}

/* The children changed and changed back while they were listed. */
static void
list_again(Task *task)
{
	int64		now = zkl_boottime_us();

	if (!zkl_retry_later(&task->retry, now))
		task->retry.due = now + ZKL_RETRY_LONGEST_PAUSE;
	task->phase = IDLE;
}

static void
listed(Task *task, const ZklReply *reply)
{
	uint64		fingerprint = zkl_errand_segment_fingerprint(reply);
	ZklSlot		slot;

	zkl_slot_copy(task->slotno, &slot);
	task->watched = task->what.kind == ZKL_ERRAND_AWAIT &&
		reply->rc == ZKL_RC_OK && !task->changed;
	if (task->what.kind == ZKL_ERRAND_LIST || reply->rc != ZKL_RC_OK ||
		fingerprint != task->what.known || slot.s_timed_out)
		answer(task, reply, NULL, fingerprint);
	else if (task->changed)
		list_again(task);
	else
	{
		zkl_retry_reset(&task->retry);
		task->phase = WATCHING;
	}
}

/*
 * What is not said by ZooKeeper, or about the session only, is no answer; often
 * the connection comes to its end soon.  But it stays so for reads that are too
 * large, or that a server does not know.
 */
static bool
is_lost(const Task *task, int32 rc)
{
	return rc != ZKL_RC_OK && !zkl_result_is_definite(rc) &&
		(zkl_errand_is_write(&task->what) || (rc != RC_MARSHALLINGERROR &&
											  rc != RC_UNIMPLEMENTED));
}

int32
zkl_errands_rc(const ZklReply *reply)
{
	size_t		i;

	for (i = 0; reply->rc != ZKL_RC_OK && i < reply->nresults; i++)
	{
		if (reply->results[i].rc != ZKL_RC_OK)
			return reply->results[i].rc;
	}
	return reply->rc;
}

void
zkl_errands_reply(uint64 tag, const ZklReply *reply, const ZklWireStat *stat)
{
	Task	   *task = zkl_byslot_get(by_slot, (int) (uint32) tag);
	ZklReply	whole = *reply;

	if (task == NULL || task->phase != SENT ||
		(tag >> 32 & ATTEMPT_MASK) != task->attempt)
	{
		if (!(tag & SYNC_TAG))
			zkl_childwatch_answered((uint32) (tag >> 32 & ATTEMPT_MASK));
		return;
	}
	if (tag & SYNC_TAG)
	{
		task->stale = reply->rc != ZKL_RC_OK;
		return;
	}
	task->phase = IDLE;
	whole.rc = zkl_errands_rc(reply);
	if (task->stale && whole.rc == ZKL_RC_OK)
		whole.rc = ZKL_RC_UNKNOWN;
	if (is_lost(task, whole.rc))
	{
		if (zkl_errand_is_write(&task->what))
			answer_rc(task, ZKL_RC_UNKNOWN);
		else
			again(task, &whole);
		return;
	}
	if (task->what.kind == ZKL_ERRAND_CREATE_CONTAINER &&
		whole.rc == ZKL_RC_NODEEXISTS)
		whole.rc = ZKL_RC_OK;
	if (whole.rc == ZKL_RC_NONODE && task->parents < MAX_PARENTS &&
		(task->what.kind == ZKL_ERRAND_CREATE ||
		 task->what.kind == ZKL_ERRAND_CREATE_CONTAINER))
		make_parents(task);
	else if (task->what.kind == ZKL_ERRAND_LIST ||
			 task->what.kind == ZKL_ERRAND_AWAIT)
		listed(task, &whole);
	else
		answer(task, &whole, stat, 0);
}

void
zkl_errands_event(const char *path)
{
	ListCell   *cell;

	foreach(cell, tasks)
	{
		Task	   *task = lfirst(cell);

		if (strcmp(task->path, path) != 0)
			continue;
		task->changed = true;
		task->watched = false;
		if (task->phase == WATCHING)
			task->phase = IDLE;
	}
}

/* ---- connections ---- */

void
zkl_errands_disconnected(void)
{
	List	   *all = list_copy(tasks);
	ListCell   *cell;

	foreach(cell, all)
	{
		Task	   *task = lfirst(cell);

		zkl_retry_reset(&task->retry);
		task->watched = false;
		if (task->phase == SENT)
			lose(task);
		else
			task->phase = IDLE;
	}
	list_free(all);
	zkl_childwatch_disconnected();
}

void
zkl_errands_tick(bool ready, int64 now)
{
	ListCell   *cell;

	if (!ready)
		return;
	foreach(cell, tasks)
	{
		Task	   *task = lfirst(cell);

		if (task->phase == IDLE && now >= task->retry.due)
			begin(task);
	}
}

int64
zkl_errands_timer(void)
{
	int64		due = -1;
	ListCell   *cell;

	foreach(cell, tasks)
	{
		const Task *task = lfirst(cell);

		if (task->phase == IDLE)
			due = zkl_retry_earlier(due, task->retry.due);
	}
	return due;
}
