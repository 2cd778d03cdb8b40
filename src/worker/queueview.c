/*
 * queueview.c
 *	  The worker's side of zk_queue() and zk_servers.
 *
 * Owns the slots of kinds QUEUE and FLEET between their submission and their
 * answer, and the listings for them.  Runs in the worker only; takes no locks.
 * It decides nothing about locks, and never waits for a backend: the backend
 * provides the memory for the answer beforehand.
 *
 * The worker reads one queue at a time and asks for a few znodes at a time, so
 * that a long queue does not delay the locks.
 */
#include "postgres.h"

#include "core/queue.h"
#include "shared/control.h"
#include "shared/entries.h"
#include "shared/settings.h"
#include "utils/memutils.h"
#include "worker/queueview.h"
#include "worker/segment.h"
#include "worker/worker_slot.h"

#define FETCH_WINDOW	32		/* znodes asked for at a time */
#define THE_LISTING		PG_UINT32_MAX	/* parts below are indexes of znodes */
#define RC_MARSHALLINGERROR	(-5)

typedef struct
{
	ZklSeq		seq;
	ZklZnodeEntry entry;
	char	   *name;
	bool		there;			/* it was not gone when its data was read */
} QueueNode;

typedef struct
{
	ZklTask		task;
	dsm_handle	segment;		/* for the answer */
	ZklDialect	dialect;
	bool		all_names;		/* FLEET: not only those of the dialect */
	char		path[ZKL_MAX_NAME + 1]; /* of the lock */

	/* the znodes as read so far, in a memory context of their own */
	MemoryContext context;
	char	   *directory;
	QueueNode  *nodes;
	int			nnodes;
	int			nsent;
	int			nanswered;
} QueueTask;

static bool
submit_queue(ZklTask *task, const ZklSlot *slot, bool restored)
{
	QueueTask  *queue = (QueueTask *) task;

	queue->segment = slot->s_dsm;
	queue->dialect = (ZklDialect) slot->s_request.dialect;
	queue->all_names = slot->s_request.kind == ZKL_KIND_FLEET;
	strlcpy(queue->path, slot->s_request.path, sizeof(queue->path));
	return true;
}

static void
forget_nodes(QueueTask *queue)
{
	if (queue->context != NULL)
		MemoryContextDelete(queue->context);
	queue->context = NULL;
	queue->nodes = NULL;
	queue->nnodes = queue->nsent = queue->nanswered = 0;
}

static void
begin_queue(ZklTask *task)
{
	QueueTask  *queue = (QueueTask *) task;
	MemoryContext old;

	forget_nodes(queue);
	queue->context = AllocSetContextCreate(TopMemoryContext,
										   "zklock queue listing",
										   ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(queue->context);
	queue->directory = psprintf("%s%s", zkl_root, queue->path);
	MemoryContextSwitchTo(old);
	zkl_operation_send(task, THE_LISTING, ZKL_SEND_LIST, queue->directory,
					   false);
}

static void
lose_queue(ZklTask *task, bool was_busy)
{
	forget_nodes((QueueTask *) task);
}

static void
end_queue(ZklTask *task, bool connected)
{
	forget_nodes((QueueTask *) task);
}

/* Reading again would give the same answer: not allowed, or too large. */
static bool
is_final(int32 rc)
{
	return zkl_result_is_definite(rc) || rc == RC_MARSHALLINGERROR;
}

/* The answer does not tell what the queue is. */
static void
read_again(QueueTask *queue, int32 rc)
{
	forget_nodes(queue);
	if (!is_final(rc) && zkl_operation_retry(&queue->task))
		return;
	zkl_worker_slot_fail(queue->task.slotno, ZKL_ERROR_ZOOKEEPER, rc);
	zkl_operation_end(&queue->task);
}

static Size
write_listing(void *address, Size size, void *arg)
{
	const QueueTask *queue = arg;
	ZklEntries	list;
	int			i;

	zkl_entries_begin(&list, address, size);
	for (i = 0; i < queue->nnodes; i++)
	{
		if (queue->nodes[i].there)
			zkl_entries_add(&list, &queue->nodes[i].entry);
	}
	return zkl_entries_end(&list);
}

/* Writes the answer into the backend's segment and wakes the backend. */
static void
answer_queue(QueueTask *queue)
{
	zkl_segment_answer(queue->task.slotno, queue->segment, write_listing,
					   queue);
	zkl_operation_end(&queue->task);
}

static void
fetch_more(QueueTask *queue)
{
	while (queue->nsent < queue->nnodes &&
		   queue->nsent - queue->nanswered < FETCH_WINDOW)
	{
		char	   *path = psprintf("%s/%s", queue->directory,
									queue->nodes[queue->nsent].name);

		zkl_operation_send(&queue->task, (uint32) queue->nsent, ZKL_SEND_GET,
						   path, false);
		queue->nsent++;
		pfree(path);
	}
	if (queue->nanswered == queue->nnodes)
		answer_queue(queue);
}

static int
compare_nodes(const void *a, const void *b)
{
	const QueueNode *x = a,
			   *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return (int) x->entry.mode - (int) y->entry.mode;
}

static void
take_names(QueueTask *queue, const ZklReply *reply)
{
	size_t		i;

	queue->nodes = MemoryContextAllocHuge(queue->context,
										  (reply->nchildren + 1) *
										  sizeof(QueueNode));
	for (i = 0; i < reply->nchildren; i++)
	{
		QueueNode  *node = &queue->nodes[queue->nnodes];
		bool		has_uuid;
		ZklUuid		uuid;

		memset(node, 0, sizeof(*node));
		if (!queue->all_names &&
			!zkl_znode_parse(queue->dialect, reply->children[i],
							 &node->entry.mode, &node->seq, &has_uuid, &uuid))
			continue;
		node->name = MemoryContextStrdup(queue->context, reply->children[i]);
		node->entry.name = node->name;
		node->entry.name_length = (uint32) strlen(node->name);
		node->entry.seq = node->seq;
		queue->nnodes++;
	}
	qsort(queue->nodes, (size_t) queue->nnodes, sizeof(QueueNode),
		  compare_nodes);
}

/* A znode whose data cannot be read stands in the queue all the same. */
static void
take_data(QueueTask *queue, QueueNode *node, const ZklReply *reply,
		  int64 ctime)
{
	Size		length = Min(reply->data_length, ZKL_MAX_NODE_DATA);
	char	   *data;

	queue->nanswered++;
	node->there = reply->rc != ZKL_RC_NONODE;
	node->entry.data = "";
	if (reply->rc != ZKL_RC_OK)
		return;
	data = MemoryContextAlloc(queue->context, length + 1);
	memcpy(data, reply->data, length);
	node->entry.data = data;
	node->entry.data_length = (uint32) length;
	node->entry.session_id = reply->stat.ephemeral_owner;
	node->entry.ctime_ms = ctime;
}

static void
take_queue_reply(ZklTask *task, uint32 part, const ZklReply *reply,
				 const ZklWireStat *stat)
{
	QueueTask  *queue = (QueueTask *) task;

	if (reply->rc != ZKL_RC_OK && reply->rc != ZKL_RC_NONODE &&
		(part == THE_LISTING || !is_final(reply->rc)))
	{
		read_again(queue, reply->rc);
		return;
	}
	if (part == THE_LISTING)
		take_names(queue, reply);
	else
		take_data(queue, &queue->nodes[part], reply, stat->ctime);
	fetch_more(queue);
}

ZklTaskOwner zkl_queueview_owner = {
	.size = sizeof(QueueTask),
	.one_at_a_time = true,
	.submit = submit_queue,
	.begin = begin_queue,
	.reply = take_queue_reply,
	.lost = lose_queue,
	.end = end_queue,
};
