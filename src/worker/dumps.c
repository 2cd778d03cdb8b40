/*
 * dumps.c
 *	  The worker's side of zk_dump().
 *
 * Owns nothing.  The worker answers at once, whatever ZooKeeper does.  Runs in
 * the worker only.  Takes the slots' mutexes through slot.h, one at a time.  It
 * must not know what the core tells.
 */
#include "postgres.h"

#include "observe/dump.h"
#include "shared/boottime.h"
#include "shared/entries.h"
#include "shared/slot.h"
#include "worker/dumps.h"
#include "worker/segment.h"
#include "worker/worker.h"


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

const ZklTaskOwner zkl_dumps_owner = {
	.size = sizeof(ZklTask),
	.submit = submit_dump,
};
