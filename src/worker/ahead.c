/*
 * ahead.c
 *	  The worker's side of the question what is ahead of a waiting request.
 *
 * Owns the slots of kind AHEAD between their submission and their answer.  Runs
 * in the worker only.  Takes the slots' mutexes through slot.h, one at a time.
 * It decides nothing about locks: the core tells what it knows of the queue.
 *
 * Only if the nearest request is another server's does the worker ask ZooKeeper,
 * for that one znode.
 */
#include "postgres.h"

#include "shared/control.h"
#include "shared/listing.h"
#include "shared/settings.h"
#include "worker/ahead.h"
#include "worker/from_slots.h"
#include "worker/segment.h"
#include "worker/slot.h"

typedef struct
{
	ZklTask		task;
	dsm_handle	segment;		/* for the answer */
	uint32		about;
	char		path[ZKL_MAX_NAME + 1]; /* of the lock */
	int64		place;
	char		znode[ZKL_MAX_ZNODE_NAME + 1];
} AheadTask;

static const ZklManager *core = NULL;

void
zkl_ahead_begin(const ZklManager *manager)
{
	core = manager;
}

/* An answer: the only entry of a list */
static Size
write_ahead(void *address, Size size, void *arg)
{
	ZklListing	list;

	zkl_listing_begin(&list, address, size);
	zkl_listing_add(&list, arg);
	return zkl_listing_end(&list);
}

static void
answer(int slotno, dsm_handle segment, int64 place, const char *znode,
	   const char *data, Size length)
{
	ZklListingEntry entry = {0};

	entry.seq = place;
	entry.name = znode;
	entry.name_length = (uint32) strlen(znode);
	entry.data = data;
	entry.data_length = (uint32) length;
	zkl_segment_answer(slotno, segment, write_ahead, &entry);
}

static void
answer_own(int slotno, dsm_handle segment, const ZklNearest *nearest)
{
	ZklSlot		slot;
	char		data[ZKL_MAX_NODE_DATA];

	zkl_slot_copy((int) nearest->request, &slot);
	answer(slotno, segment, nearest->place, "", data,
		   zkl_from_slots_node_data(&slot, data));
}

/* Answers at once if nothing has to be read. */
static bool
submit_ahead(ZklTask *task, const ZklSlot *slot, bool restored)
{
	AheadTask  *ahead = (AheadTask *) task;
	ZklNearest	nearest;

	ahead->segment = slot->s_dsm;
	ahead->about = (uint32) slot->s_request.about;
	if (!zkl_manager_nearest(core, ahead->about, &nearest))
		(void) zkl_slot_deny(task->slotno);
	else if (nearest.request >= 0)
		answer_own(task->slotno, slot->s_dsm, &nearest);
	else if (strlcpy(ahead->znode, nearest.znode, sizeof(ahead->znode)) >=
			 sizeof(ahead->znode))
		(void) zkl_slot_deny(task->slotno);
	else
	{
		ahead->place = nearest.place;
		strlcpy(ahead->path, slot->s_request.path, sizeof(ahead->path));
		return true;
	}
	return false;
}

static void
begin_ahead(ZklTask *task)
{
	AheadTask  *ahead = (AheadTask *) task;
	char	   *path = psprintf("%s%s/%s", zkl_root, ahead->path, ahead->znode);

	zkl_operation_send(task, 0, ZKL_SEND_GET, path, false);
	pfree(path);
}

/* The session does not wait long for it: nothing is read twice. */
static void
take_ahead_reply(ZklTask *task, uint32 part, const ZklReply *reply,
				 const ZklWireStat *stat)
{
	AheadTask  *ahead = (AheadTask *) task;

	if (reply->rc == ZKL_RC_OK)
		answer(task->slotno, ahead->segment, ahead->place, ahead->znode,
			   reply->data, Min(reply->data_length, ZKL_MAX_NODE_DATA));
	else
		(void) zkl_slot_deny(task->slotno);
	zkl_operation_end(task);
}

ZklTaskOwner zkl_ahead_owner = {
	.size = sizeof(AheadTask),
	.submit = submit_ahead,
	.begin = begin_ahead,
	.reply = take_ahead_reply,
};
