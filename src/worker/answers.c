/*
 * answers.c
 *	  Questions that the core answers: zk_dump(), and what is ahead of a waiting
 *	  request.
 *
 * Owns the slots of kinds DUMP and AHEAD between their submission and their answer.
 * Runs in the worker only.  Takes the slots' mutexes through worker_slot.h, one at a
 * time.  It decides nothing about locks, and must not know what a dump tells.
 *
 * What is ahead has one or two entries: the nearest request that is in the way, and, if
 * that is another one, the first of the queue.  What the core does not know of them
 * is read from ZooKeeper, if the session wants that, a znode each.
 */
#include "postgres.h"

#include "observe/inspect.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/errand_layout.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "utils/timestamp.h"
#include "worker/answers.h"
#include "worker/from_slots.h"
#include "worker/segment.h"
#include "worker/worker.h"
#include "worker/worker_slot.h"

/* ---- zk_dump() ---- */

static void
put_dump_text(ZklEntries *list, const char *text)
{
	zkl_entries_put_bytes(list, text, (uint32) strlen(text));
}

/*
 * The pid is that of the request's backend; 0: the item is about no request, or no
 * session has the lock that it is about.
 */
static void
put_item(void *context, const ZklDumpItem *item)
{
	ZklEntries *list = context;
	ZklSlot		slot;
	int32		pid = 0;

	if (item->request >= 0)
	{
		zkl_slot_copy((int) item->request, &slot);
		pid = slot.s_state == ZKL_SLOT_CACHED ? 0 : slot.s_request.pid;
	}
	put_dump_text(list, item->path);
	put_dump_text(list, item->item);
	zkl_entries_put(list, &pid, sizeof(int32));
	put_dump_text(list, item->state);
	list->count++;
}

static Size
write_dump(void *address, Size size, void *arg)
{
	ZklEntries	list;

	zkl_entries_begin(&list, address, size);
	zkl_dump_write(zkl_core, zkl_boottime_us(), put_item, &list);
	return zkl_entries_end(&list);
}

static bool
submit_dump(ZklTask *task, const ZklSlot *slot, bool restored)
{
	zkl_segment_answer(task->slotno, slot->s_dsm, write_dump, NULL);
	return false;
}

const ZklTaskOwner zkl_answers_of_dumps = {
	.size = sizeof(ZklTask),
	.submit = submit_dump,
};

/* ---- what is ahead ---- */

#define MOST_QUEUED	2

/* One of those that are ahead */
typedef struct
{
	char		znode[ZKL_MAX_ZNODE_NAME + 1];	/* empty: of this server */
	TimestampTz kept_until;
	uint32		length;
	char		data[ZKL_MAX_NODE_DATA];
} Queued;

typedef struct
{
	ZklTask		task;
	dsm_handle	segment;		/* for the answer */
	char		path[ZKL_MAX_NAME + 1]; /* of the lock */
	int64		place;
	int			n;
	int			unread;			/* how many are being read */
	Queued		queued[MOST_QUEUED];
} AheadTask;

static Size
write_ahead(void *address, Size size, void *arg)
{
	const AheadTask *ahead = arg;
	ZklEntries	list;
	int			i;

	zkl_entries_begin(&list, address, size);
	for (i = 0; i < ahead->n; i++)
	{
		const Queued *queued = &ahead->queued[i];
		ZklAheadEntry entry = {0};

		entry.place = ahead->place;
		entry.kept_until = queued->kept_until;
		entry.name = queued->znode;
		entry.name_length = (uint32) strlen(queued->znode);
		entry.data = queued->data;
		entry.data_length = queued->length;
		zkl_entries_add(&list, &entry);
	}
	return zkl_entries_end(&list);
}

static void
answer(AheadTask *ahead)
{
	zkl_segment_answer(ahead->task.slotno, ahead->segment, write_ahead, ahead);
}

static void
take_queued_data(Queued *queued, const char *data, size_t length)
{
	queued->length = (uint32) Min(length, sizeof(queued->data));
	memcpy(queued->data, data, queued->length);
}

/* What the core knows.  False: its name is too long for one of a contender. */
static bool
note(AheadTask *ahead, const ZklQueued *known)
{
	Queued	   *queued = &ahead->queued[ahead->n];
	ZklSlot		slot;

	if (known->request >= 0)
	{
		zkl_slot_copy((int) known->request, &slot);
		queued->length = (uint32) zkl_from_slots_node_data(&slot, queued->data);
		if (slot.s_state == ZKL_SLOT_RELEASED &&
			slot.s_request.lifetime != ZKL_LIFETIME_RESERVATION &&
			slot.s_promised_until > zkl_boottime_ms() &&
			slot.s_keep_until <= slot.s_promised_until)
			queued->kept_until = GetCurrentTimestamp() +
				(slot.s_promised_until - zkl_boottime_ms()) * 1000;
	}
	else if (strlcpy(queued->znode, known->znode, sizeof(queued->znode)) >=
			 sizeof(queued->znode))
		return false;
	else if (known->data != NULL)
		take_queued_data(queued, known->data, known->data_length);
	ahead->n++;
	return true;
}

static bool
is_same(const ZklQueued *a, const ZklQueued *b)
{
	return a->request == b->request &&
		(a->request >= 0 || strcmp(a->znode, b->znode) == 0);
}

static bool
is_unread(const Queued *queued)
{
	return queued->znode[0] != '\0' && queued->length == 0;
}

static bool
is_any_unread(const AheadTask *ahead)
{
	return is_unread(&ahead->queued[0]) ||
		(ahead->n > 1 && is_unread(&ahead->queued[1]));
}

/* Answers at once if nothing has to be read. */
static bool
submit_ahead(ZklTask *task, const ZklSlot *slot, bool restored)
{
	AheadTask  *ahead = (AheadTask *) task;
	ZklNearest	nearest;

	ahead->segment = slot->s_dsm;
	if (!zkl_manager_nearest(zkl_core, (uint32) slot->s_request.about, &nearest) ||
		!note(ahead, &nearest.nearest))
	{
		(void) zkl_worker_slot_deny(task->slotno);
		return false;
	}
	ahead->place = nearest.place;
	if (!is_same(&nearest.nearest, &nearest.first))
		(void) note(ahead, &nearest.first);
	if (slot->s_request.reads && is_any_unread(ahead))
	{
		strlcpy(ahead->path, slot->s_request.path, sizeof(ahead->path));
		return true;
	}
	answer(ahead);
	return false;
}

static void
begin_ahead(ZklTask *task)
{
	AheadTask  *ahead = (AheadTask *) task;
	int			i;

	ahead->unread = 0;
	for (i = 0; i < ahead->n; i++)
	{
		char	   *path;

		if (!is_unread(&ahead->queued[i]))
			continue;
		path = psprintf("%s%s/%s", zkl_root, ahead->path, ahead->queued[i].znode);
		ahead->unread++;
		zkl_operation_send(task, (uint32) i, ZKL_SEND_GET, path, false);
		pfree(path);
	}
}

/*
 * The session does not wait long for it: nothing is read twice.  A znode that is gone
 * stays without data.
 */
static void
take_ahead_reply(ZklTask *task, uint32 part, const ZklReply *reply,
				 const ZklWireStat *stat)
{
	AheadTask  *ahead = (AheadTask *) task;

	if (reply->rc == ZKL_RC_OK)
		take_queued_data(&ahead->queued[part], reply->data, reply->data_length);
	if (--ahead->unread > 0)
		return;
	answer(ahead);
	zkl_operation_end(task);
}

const ZklTaskOwner zkl_answers_of_ahead = {
	.size = sizeof(AheadTask),
	.submit = submit_ahead,
	.begin = begin_ahead,
	.reply = take_ahead_reply,
};
