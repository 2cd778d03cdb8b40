/*
 * epilogues.c
 *	  The worker's side of epilogues: writes ahead of a lock's release.
 *
 * Owns the released slots whose epilogue is not yet written, and the operations
 * under way for them.  Runs in the worker only; takes the slots' mutexes
 * through slot.h.  It does not know what the data means.
 *
 * An epilogue is read and compared, then written with the version that was
 * read.  Whatever comes in between, or an answer that is lost, makes it begin
 * again: so it is written at most once, and never over what somebody else has
 * written.  It begins again on each new connection; on one that stands only a
 * few times, with pauses, because the lock is kept for so long.
 */
#include "postgres.h"

#include "nodes/pg_list.h"
#include "shared/boottime.h"
#include "shared/slot.h"
#include "storage/dsm.h"
#include "utils/memutils.h"

#include "shared/epilogue.h"
#include "shared/retry.h"
#include "worker/byslot.h"
#include "worker/epilogues.h"
#include "worker/segment.h"

#define ATTEMPT_MASK	0x1fffff	/* of a tag's upper half */

typedef enum
{
	IDLE,						/* waits for a connection, or for its time */
	READING,
	WRITING
} Phase;

typedef struct
{
	int			slotno;
	dsm_handle	handle;
	uint32		attempt;		/* tells answers to earlier ones */
	Phase		phase;
	ZklRetry	retry;			/* on this connection */
	ZklEpilogue what;
} Task;

static ZklErrandsSend send_operation;
static void (*release) (int slotno);
static uint32 attempts = 0;
static ZklBySlot by_slot;
static List *tasks = NIL;		/* of Task, in TopMemoryContext */

void
zkl_epilogues_begin(ZklErrandsSend send, void (*done) (int slotno))
{
	send_operation = send;
	by_slot = zkl_byslot_make();
	release = done;
}

/* ---- the segment ---- */

static void
read_segment(void *address, Size size, void *arg)
{
	Task	   *task = arg;

	task->what = *(ZklEpilogue *) address;
	task->what.path[ZKL_MAX_PATH] = '\0';
	task->what.from_length = Min(task->what.from_length, ZKL_MAX_NODE_DATA);
	task->what.to_length = Min(task->what.to_length, ZKL_MAX_NODE_DATA);
}

static void
give_segment_back(int slotno, dsm_handle handle)
{
	zkl_segment_unpin(handle);
	zkl_slot_forget_epilogue(slotno);
}

/* ---- slots ---- */

bool
zkl_epilogues_take(int slotno)
{
	ZklSlot		slot;
	Task	   *task;
	MemoryContext old;

	if (zkl_byslot_get(by_slot, slotno) != NULL)
		return true;
	zkl_slot_copy(slotno, &slot);
	if (slot.s_dsm == DSM_HANDLE_INVALID)
		return false;
	task = MemoryContextAllocZero(TopMemoryContext, sizeof(Task));
	task->slotno = slotno;
	task->handle = slot.s_dsm;

	/* If it cannot be read, what the backend wrote itself has to do. */
	if (!slot.s_epilogue ||
		!zkl_segment_use(task->handle, read_segment, task))
	{
		pfree(task);
		give_segment_back(slotno, slot.s_dsm);
		return false;
	}
	old = MemoryContextSwitchTo(TopMemoryContext);
	tasks = lappend(tasks, task);
	by_slot[task->slotno] = task;
	MemoryContextSwitchTo(old);
	return true;
}

static void
finish(Task *task)
{
	int			slotno = task->slotno;

	tasks = list_delete_ptr(tasks, task);
	by_slot[task->slotno] = NULL;
	give_segment_back(slotno, task->handle);
	pfree(task);
	release(slotno);
}

/* ---- operations ---- */

static void
send(Task *task, Phase phase, const ZklMultiOp *multi)
{
	ZklAction	action;

	task->phase = phase;
	attempts = (attempts + 1) & ATTEMPT_MASK;
	task->attempt = attempts;
	memset(&action, 0, sizeof(action));
	action.kind = ZKL_ACTION_SEND;
	action.send = multi != NULL ? ZKL_SEND_MULTI : ZKL_SEND_GET;
	action.tag = ZKL_EPILOGUES_TAG | (uint64) task->attempt << 32 |
		(uint32) task->slotno;
	action.path = task->what.path;
	action.multi = multi;
	action.nmulti = multi != NULL ? 1 : 0;
	send_operation(&action);
}

static bool
is_data(const ZklReply *reply, const char *data, uint32 length)
{
	return reply->data_length == length &&
		(length == 0 || memcmp(reply->data, data, length) == 0);
}

static void
take_data(Task *task, const ZklReply *reply, int32 version)
{
	const ZklEpilogue *what = &task->what;
	ZklMultiOp	op;

	if (!is_data(reply, what->from, what->from_length) &&
		!is_data(reply, what->to, what->to_length))
	{
		ereport(LOG,
				(errmsg("did not write to znode \"%s\" at the end of a distributed lock",
						what->path),
				 errdetail("Somebody else has written to it.")));
		finish(task);
		return;
	}
	memset(&op, 0, sizeof(op));
	op.kind = ZKL_MULTI_SET;
	op.path = what->path;
	op.version = version;
	op.data = what->to;
	op.data_length = what->to_length;
	send(task, WRITING, &op);
}

static void
give_up(Task *task, int32 rc)
{
	ereport(LOG,
			(errmsg("could not write to znode \"%s\" at the end of a distributed lock",
					task->what.path),
			 errdetail("ZooKeeper answered %d.", rc)));
	finish(task);
}

void
zkl_epilogues_reply(uint64 tag, const ZklReply *reply, int32 version)
{
	Task	   *task = zkl_byslot_get(by_slot, (int) (uint32) tag);
	int32		rc = zkl_errands_rc(reply);

	if (task == NULL || (task->phase != READING && task->phase != WRITING) ||
		(tag >> 32 & ATTEMPT_MASK) != task->attempt)
		return;
	if (rc == ZKL_RC_OK && task->phase == READING)
		take_data(task, reply, version);
	else if (rc == ZKL_RC_OK)
		finish(task);
	else if ((rc == ZKL_RC_BADVERSION || !zkl_result_is_definite(rc)) &&
			 zkl_retry_later(&task->retry, zkl_boottime_us()))
		task->phase = IDLE;
	else
		give_up(task, rc);
}

/* ---- connections ---- */

void
zkl_epilogues_disconnected(void)
{
	ListCell   *cell;

	foreach(cell, tasks)
	{
		Task	   *task = lfirst(cell);

		task->phase = IDLE;
		zkl_retry_reset(&task->retry);
	}
}

void
zkl_epilogues_tick(bool ready, int64 now)
{
	ListCell   *cell;

	if (!ready)
		return;
	foreach(cell, tasks)
	{
		Task	   *task = lfirst(cell);

		if (task->phase == IDLE && now >= task->retry.due)
			send(task, READING, NULL);
	}
}

int64
zkl_epilogues_timer(void)
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
