/*
 * epilogues.c
 *	  The worker's side of epilogues: writes ahead of a lock's release.
 *
 * Owns the epilogues of released slots until they are written.  Runs in the
 * worker only; takes the slots' mutexes through worker_slot.h.  It must not know
 * what the data means.
 *
 * The worker reads the znode, compares its data, and then writes with the
 * version that it read.  If anything comes in between, or an answer is lost,
 * the epilogue begins again: so it is written at most once, and never over what
 * another client has written.  It begins again on each new connection, but only
 * a few times on the same one, because the lock is kept for so long.
 */
#include "postgres.h"

#include "shared/control.h"
#include "shared/errand_layout.h"
#include "storage/dsm.h"
#include "worker/epilogues.h"
#include "worker/segment.h"
#include "worker/worker_slot.h"

enum
{
	THE_READ,
	THE_WRITE
};

typedef struct
{
	ZklTask		task;
	dsm_handle	segment;
	ZklEpilogue what;
} EpilogueTask;

static void
copy_epilogue(void *address, Size size, void *arg)
{
	ZklEpilogue *what = arg;

	*what = *(ZklEpilogue *) address;
	what->path[ZKL_MAX_PATH] = '\0';
	what->from_length = Min(what->from_length, ZKL_MAX_NODE_DATA);
	what->to_length = Min(what->to_length, ZKL_MAX_NODE_DATA);
}

static void
return_segment(int slotno, dsm_handle segment)
{
	zkl_segment_unpin(segment);
	zkl_worker_slot_forget_epilogue(slotno);
}

static bool
submit_epilogue(ZklTask *task, const ZklSlot *slot, bool restored)
{
	EpilogueTask *epilogue = (EpilogueTask *) task;

	epilogue->segment = slot->s_dsm;

	/*
	 * If the segment cannot be read, the znode stays as the backend wrote it.
	 */
	if (slot->s_epilogue &&
		zkl_segment_use(slot->s_dsm, copy_epilogue, &epilogue->what))
		return true;
	return_segment(task->slotno, slot->s_dsm);
	return false;
}

/* From here on the slot is like any other that was released. */
static void
finish_epilogue(EpilogueTask *epilogue)
{
	int			slotno = epilogue->task.slotno;

	return_segment(slotno, epilogue->segment);
	zkl_operation_end(&epilogue->task);
	zkl_dirty_set(slotno, ZKL_WAKE_NOW);
}

static void
read_znode(ZklTask *task)
{
	zkl_operation_send(task, THE_READ, ZKL_SEND_GET,
					   ((EpilogueTask *) task)->what.path, false);
}

static bool
is_data(const ZklReply *reply, const char *data, uint32 length)
{
	return reply->data_length == length &&
		(length == 0 || memcmp(reply->data, data, length) == 0);
}

static void
write_znode(EpilogueTask *epilogue, const ZklReply *reply)
{
	const ZklEpilogue *what = &epilogue->what;
	ZklMultiOp	op;

	if (!is_data(reply, what->from, what->from_length) &&
		!is_data(reply, what->to, what->to_length))
	{
		ereport(LOG,
				(errmsg("did not write to znode \"%s\" at the end of a distributed lock",
						what->path),
				 errdetail("Another client has written to it.")));
		finish_epilogue(epilogue);
		return;
	}
	memset(&op, 0, sizeof(op));
	op.kind = ZKL_MULTI_SET;
	op.path = what->path;
	op.version = reply->stat.version;
	op.data = what->to;
	op.data_length = what->to_length;
	zkl_operation_send_multi(&epilogue->task, THE_WRITE, &op, 1);
}

static void
give_up_epilogue(EpilogueTask *epilogue, int32 rc)
{
	ereport(LOG,
			(errmsg("could not write to znode \"%s\" at the end of a distributed lock",
					epilogue->what.path),
			 errdetail("ZooKeeper answered %d.", rc)));
	finish_epilogue(epilogue);
}

static void
take_epilogue_reply(ZklTask *task, uint32 part, const ZklReply *reply,
					const ZklWireStat *stat)
{
	EpilogueTask *epilogue = (EpilogueTask *) task;
	int32		rc = reply->rc;

	if (rc == ZKL_RC_OK && part == THE_READ)
		write_znode(epilogue, reply);
	else if (rc == ZKL_RC_OK)
		finish_epilogue(epilogue);
	else if ((rc != ZKL_RC_BADVERSION && zkl_zkapi_is_definite(rc)) ||
			 !zkl_operation_retry(task))
		give_up_epilogue(epilogue, rc);
}

const ZklTaskOwner zkl_epilogues_owner = {
	.size = sizeof(EpilogueTask),
	.submit = submit_epilogue,
	.begin = read_znode,
	.reply = take_epilogue_reply,
};
