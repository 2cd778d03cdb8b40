/*
 * operation.c
 *	  The frame for the worker's own operations on ZooKeeper, apart from locks,
 *	  and the DSM segments that they fill.
 *
 * Owns the tasks, the operations sent for them, and the pace of retries.  Runs in
 * the worker only; takes no locks but those of PostgreSQL's dsm.c, and the slots'
 * mutexes through worker_slot.h.  It must not know what a task is for, nor what a
 * segment holds.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/control.h"
#include "storage/lwlock.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "worker/operation.h"
#include "worker/supervisor.h"
#include "worker/worker_slot.h"

/* ---- segment: the DSM segments of backends, as the worker uses them ---- */

/*
 * A segment is attached only while it is written or read.  Takes the locks of
 * PostgreSQL's dsm.c, and the slots' mutexes through worker_slot.h.  It must not
 * know what the segments hold.
 *
 * The worker has no resource owner that would clean up after an error.
 * dsm_attach() takes a reference before it maps the segment.  If the mapping
 * fails, this file gives the reference back: otherwise the segment would stay
 * until the server stops, and the worker could never attach it again.
 */

dsm_segment *
zkl_segment_attach(dsm_handle handle)
{
	MemoryContext old = CurrentMemoryContext;
	dsm_segment *volatile segment = NULL;

	PG_TRY();
	{
		segment = dsm_attach(handle);
	}
	PG_CATCH();
	{
		dsm_segment *half;

		/* dsm.c raises some errors while it holds its lock. */
		LWLockReleaseAll();
		half = dsm_find_mapping(handle);
		MemoryContextSwitchTo(old);
		EmitErrorReport();
		FlushErrorState();
		if (half != NULL)
			dsm_detach(half);
	}
	PG_END_TRY();
	return segment;
}

bool
zkl_segment_use(dsm_handle handle,
				void (*fn) (void *address, Size size, void *arg), void *arg)
{
	dsm_segment *segment = zkl_segment_attach(handle);

	if (segment == NULL)
		return false;
	fn(dsm_segment_address(segment), dsm_segment_map_length(segment), arg);
	dsm_detach(segment);
	return true;
}

typedef struct
{
	Size		(*write) (void *address, Size size, void *arg);
	void	   *arg;
	Size		needed;
	Size		size;			/* of the segment */
} SegmentAnswer;

static void
write_answer(void *address, Size size, void *arg)
{
	SegmentAnswer *answer = arg;

	answer->needed = answer->write(address, size, answer->arg);
	answer->size = size;
}

void
zkl_segment_answer(int slotno, dsm_handle handle,
				   Size (*write) (void *address, Size size, void *arg),
				   void *arg)
{
	SegmentAnswer answer = {write, arg, 0, 0};

	if (!zkl_segment_use(handle, write_answer, &answer))
		zkl_worker_slot_fail(slotno, ZKL_ERROR_SEGMENT, 0);
	else if (answer.needed > answer.size)
		zkl_worker_slot_too_large(slotno, answer.needed);
	else
		zkl_worker_slot_grant(slotno, 0, false);
}

void
zkl_segment_unpin(dsm_handle handle)
{
	MemoryContext old = CurrentMemoryContext;

	PG_TRY();
	{
		dsm_unpin_segment(handle);
	}
	PG_CATCH();
	{
		LWLockReleaseAll();
		MemoryContextSwitchTo(old);
		FlushErrorState();
	}
	PG_END_TRY();
}

/* ---- operation ---- */

/*
 * The frame for the worker's own operations on ZooKeeper, apart from locks.
 *
 * Each operation gets a number of its own, which is its tag on the link.
 */

/* Tags of operations have this bit, which the core's do not. */
#define OPERATION_TAG	(UINT64CONST(1) << 55)

/* One that was sent and is not answered yet */
typedef struct
{
	uint64		tag;			/* the key */
	ZklTask    *task;
	uint32		round;			/* of the task, when it was sent */
	uint32		part;
} Operation;

static void (*send_action) (const ZklAction *action);
static ZklTask **task_of_slot = NULL;
static dlist_head tasks = DLIST_STATIC_INIT(tasks); /* as submitted */
static dlist_head leavers = DLIST_STATIC_INIT(leavers); /* over */
static HTAB *operations = NULL;
static uint64 last_tag = OPERATION_TAG;
static uint32 connection = 0;	/* the tasks have seen this one; 0: none */
static bool may_begin = false;	/* as of the last tick */
static int	nlarge_busy = 0;

static void
make_operations(void)
{
	HASHCTL		ctl;

	memset(&ctl, 0, sizeof(ctl));
	ctl.keysize = sizeof(uint64);
	ctl.entrysize = sizeof(Operation);
	ctl.hcxt = TopMemoryContext;
	operations = hash_create("zklock operations", 64, &ctl,
							 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

void
zkl_operation_init(void (*send) (const ZklAction *action))
{
	send_action = send;
	task_of_slot = MemoryContextAllocZero(TopMemoryContext,
										  zkl_control->ctl_nslots *
										  sizeof(ZklTask *));
	make_operations();
}

/* ---- tasks ---- */

static void
set_busy(ZklTask *task, bool busy)
{
	if (task->large)
		nlarge_busy += (int) busy - (int) task->busy;
	task->busy = busy;
}

static void
free_task(ZklTask *task)
{
	if (task->owner->end != NULL)
		task->owner->end(task, connection != 0);
	dlist_delete(&task->node);
	pfree(task);
}

void
zkl_operation_end(ZklTask *task)
{
	Assert(!task->over);
	task->over = true;
	set_busy(task, false);
	if (task->slotno >= 0)
		task_of_slot[task->slotno] = NULL;
	dlist_delete(&task->node);
	dlist_push_tail(&leavers, &task->node);
	if (task->unanswered == 0)
		free_task(task);
}

static ZklTask *
alloc_task(const ZklTaskOwner *owner, int slotno)
{
	ZklTask    *task = MemoryContextAllocZero(TopMemoryContext, owner->size);

	task->owner = owner;
	task->slotno = slotno;
	return task;
}

ZklTask *
zkl_operation_make(const ZklTaskOwner *owner)
{
	ZklTask    *task = alloc_task(owner, -1);

	dlist_push_tail(&tasks, &task->node);
	return task;
}

bool
zkl_operation_submit(const ZklTaskOwner *owner, int slotno, const ZklSlot *slot,
					 bool restored)
{
	ZklTask    *task;

	if (task_of_slot[slotno] != NULL)
		return true;
	task = alloc_task(owner, slotno);
	if (!owner->submit(task, slot, restored))
	{
		pfree(task);
		return false;
	}
	dlist_push_tail(&tasks, &task->node);
	task_of_slot[slotno] = task;
	return true;
}

void
zkl_operation_time_out(int slotno)
{
	ZklTask    *task = task_of_slot[slotno];

	if (task != NULL && task->owner->timed_out != NULL)
		task->owner->timed_out(task);
}

void
zkl_operation_cancel(int slotno)
{
	if (task_of_slot[slotno] != NULL)
		zkl_operation_end(task_of_slot[slotno]);
}

/* ---- operations ---- */

static void
send_tagged(ZklTask *task, uint32 part, ZklAction *action)
{
	Operation  *operation;

	action->kind = ZKL_ACTION_SEND;
	action->tag = ++last_tag;
	if (task != NULL)
	{
		set_busy(task, true);
		task->unanswered++;
		operation = hash_search(operations, &last_tag, HASH_ENTER, NULL);
		operation->task = task;
		operation->round = task->round;
		operation->part = part;
	}
	send_action(action);
}

void
zkl_operation_send(ZklTask *task, uint32 part, ZklSendKind kind,
				   const char *path, bool watch)
{
	ZklAction	action;

	memset(&action, 0, sizeof(action));
	action.send = kind;
	action.path = path;
	action.watch = watch;
	send_tagged(task, part, &action);
}

void
zkl_operation_send_multi(ZklTask *task, uint32 part, const ZklMultiOp *ops,
						 size_t nops)
{
	ZklAction	action;

	memset(&action, 0, sizeof(action));
	action.send = ZKL_SEND_MULTI;
	action.multi = ops;
	action.nmulti = nops;
	send_tagged(task, part, &action);
}

void
zkl_operation_send_parents(const char *path)
{
	char	   *parent = pstrdup(path);
	char	   *slash = parent;

	while ((slash = strchr(slash + 1, '/')) != NULL)
	{
		*slash = '\0';
		zkl_operation_send(NULL, 0, ZKL_SEND_CREATE_CONTAINER, parent, false);
		*slash = '/';
	}
	pfree(parent);
}

/* Of a MULTI: the result of the operation that failed, if that is known */
static int32
result_of(const ZklReply *reply)
{
	size_t		i;

	for (i = 0; reply->rc != ZKL_RC_OK && i < reply->nresults; i++)
	{
		if (reply->results[i].rc != ZKL_RC_OK)
			return reply->results[i].rc;
	}
	return reply->rc;
}

bool
zkl_operation_reply(uint64 tag, const ZklReply *reply,
					const ZklWireStat *stat)
{
	Operation  *found;
	Operation	operation;
	ZklReply	whole = *reply;

	if ((tag & OPERATION_TAG) == 0)
		return false;
	found = hash_search(operations, &tag, HASH_FIND, NULL);
	if (found == NULL)
		return true;			/* sent without a task */
	operation = *found;
	hash_search(operations, &tag, HASH_REMOVE, NULL);
	operation.task->unanswered--;
	whole.rc = result_of(reply);
	if (!operation.task->over && operation.round == operation.task->round)
		operation.task->owner->reply(operation.task, operation.part, &whole,
									 stat);
	else if (operation.task->over && operation.task->unanswered == 0)
		free_task(operation.task);
	return true;
}

/* ---- pauses ---- */

void
zkl_operation_pause(ZklTask *task, int64 until)
{
	set_busy(task, false);
	task->round++;
	task->retry.due = until;
}

bool
zkl_operation_retry(ZklTask *task)
{
	if (!zkl_retry_later(&task->retry, zkl_boottime_us()))
		return false;
	zkl_operation_pause(task, task->retry.due);
	return true;
}

void
zkl_operation_reset(ZklTask *task)
{
	zkl_retry_reset(&task->retry);
}

/* ---- time ---- */

/* The operations that were sent will not be answered. */
static void
lose_connection(void)
{
	dlist_mutable_iter iter;

	connection = 0;
	hash_destroy(operations);
	make_operations();
	dlist_foreach_modify(iter, &tasks)
	{
		ZklTask    *task = dlist_container(ZklTask, node, iter.cur);
		bool		was_busy = task->busy;

		task->unanswered = 0;
		zkl_operation_reset(task);
		zkl_operation_pause(task, 0);
		if (task->owner->lost != NULL)
			task->owner->lost(task, was_busy);
	}
	dlist_foreach_modify(iter, &leavers)
		free_task(dlist_container(ZklTask, node, iter.cur));
}

static bool
has_to_wait(const ZklTask *task)
{
	return task->busy ||
		(task->large && nlarge_busy > 0);
}

void
zkl_operation_tick(bool ready, int64 now)
{
	uint32		present = zkl_supervisor_generation();
	dlist_mutable_iter iter;

	if (connection != 0 && connection != present)
		lose_connection();
	connection = present;
	may_begin = ready && connection != 0;
	if (!may_begin)
		return;
	dlist_foreach_modify(iter, &tasks)
	{
		ZklTask    *task = dlist_container(ZklTask, node, iter.cur);

		if (!has_to_wait(task) && now >= task->retry.due)
			task->owner->begin(task);
	}
}

int64
zkl_operation_timer(void)
{
	int64		due = -1;
	dlist_iter	iter;

	if (!may_begin)
		return -1;
	dlist_foreach(iter, &tasks)
	{
		const ZklTask *task = dlist_container(ZklTask, node, iter.cur);

		if (!has_to_wait(task) && (due < 0 || task->retry.due < due))
			due = task->retry.due;
	}
	return due;
}
