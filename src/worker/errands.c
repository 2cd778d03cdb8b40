/*
 * errands.c
 *	  What backends have the worker read of znodes and write to them: errands,
 *	  and epilogues of holds.
 *
 * Owns the slots of kind ERRAND between their submission and their answer, the
 * watches on children that errands set, and the epilogues of released slots until
 * they are written.  The segment belongs to the backend.  Runs in the worker only;
 * takes the slots' mutexes through worker_slot.h.  It decides nothing, and must not
 * know what the data means.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/control.h"
#include "storage/dsm.h"
#include "utils/memutils.h"
#include "worker/errands.h"
#include "worker/worker_slot.h"

/* ---- epilogues ---- */

/*
 * The worker's side of epilogues: writes ahead of a lock's release.
 *
 * Runs in the worker only; takes the slots' mutexes through worker_slot.h.  It must
 * not know what the data means.
 *
 * The worker reads the znode, compares its data, and then writes with the
 * version that it read.  If anything comes in between, or an answer is lost,
 * the epilogue begins again: so it is written at most once, and never over what
 * another client has written.  It begins again on each new connection, but only
 * a few times on the same one, because the lock is kept for so long.
 */

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

/* ---- errands ---- */

/*
 * The worker's side of errands: what backends read of znodes, and write to them.
 *
 * Of the large errands, which read for views, one is under way at a time, whoever
 * asked for it.  So the traffic of locks finds no more than ZKL_ERRAND_READS of
 * their reads ahead of it, and calls in several sessions take turns.
 *
 * ZooKeeper keeps a watch until something changes there.  So when the last
 * AWAIT for a znode ends, the worker takes the watch back; but not before the
 * listing that sets it is answered, because ZooKeeper's client does not know of
 * the watch until then.
 */

typedef struct
{
	ZklErrand  *what;
	char	   *paths;
} Taken;

/* ---- the segment ---- */

static uint32
count_strings(const char *strings, Size size)
{
	uint32		n = 0;
	Size		i;

	for (i = 0; i < size; i++)
		n += strings[i] == '\0';
	return n;
}

/* Do not trust the lengths: a bad one must not crash the worker. */
static void
copy_errand(void *address, Size size, void *arg)
{
	ZklErrand  *errand = address;
	Taken	   *taken = arg;
	ZklErrand  *what = taken->what;
	char	   *paths;

	if (size < offsetof(ZklErrand, answer))
		return;
	memcpy(what, errand, offsetof(ZklErrand, answer));
	if (what->n == 0 ||
		what->n > (zkl_errand_layout_is_read(what) ? ZKL_ERRAND_READS : 1) ||
		what->room > size || what->paths_size == 0 || what->paths_size > size ||
		zkl_errand_layout_size(what->n, what->room, what->paths_size) > size)
		return;
	paths = MemoryContextAlloc(TopMemoryContext, what->paths_size);
	memcpy(paths, zkl_errand_layout_answer_in(errand, what->room, what->n),
		   what->paths_size);
	what->length = Min(what->length, ZKL_MAX_ERRAND_DATA);
	if (paths[what->paths_size - 1] == '\0' &&
		count_strings(paths, what->paths_size) == what->n)
		taken->paths = paths;
	else
		pfree(paths);
}

/*
 * Copies the backend's part of an errand.  Returns its paths, in
 * TopMemoryContext, or NULL if the segment is gone or cannot be attached.
 */
static char *
take_segment(dsm_handle handle, ZklErrand *what)
{
	Taken		taken = {what, NULL};

	(void) zkl_segment_use(handle, copy_errand, &taken);
	return taken.paths;
}

/*
 * Data that is too long is cut.  Of too many names, some may be missing.  What is read
 * here comes from "what", which was checked: a backend can write into the segment.
 */
static void
put_answer(ZklErrand *errand, const ZklErrand *what, uint32 number,
		   const ZklReply *reply, const ZklWireStat *stat,
		   uint64 fingerprint)
{
	ZklErrandAnswer *answer = zkl_errand_layout_answer_in(errand, what->room, number);
	Size		size = reply->data_length;
	size_t		i;

	answer->rc = reply->rc;
	answer->connection = zkl_control->ctl_status.connects;
	if (stat != NULL)
	{
		answer->stat.czxid = stat->czxid;
		answer->stat.mzxid = stat->mzxid;
		answer->stat.ctime = stat->ctime;
		answer->stat.mtime = stat->mtime;
		answer->stat.session_id = stat->ephemeral_owner;
		answer->stat.version = stat->version;
	}
	answer->fingerprint = fingerprint;
	answer->nchildren = (uint32) reply->nchildren;
	if (size > 0)
		memcpy(answer->bytes, reply->data, Min(size, what->room));
	for (i = 0; i < reply->nchildren; i++)
	{
		Size		length = strlen(reply->children[i]) + 1;

		if (size + length <= what->room)
			memcpy(answer->bytes + size, reply->children[i], length);
		size += length;
	}
	answer->size = size;
}

/* The sum of each name's FNV-1a hash, so that their order does not count */
static uint64
fingerprint_of(const ZklReply *reply)
{
	uint64		sum = reply->nchildren;
	size_t		i;

	for (i = 0; i < reply->nchildren; i++)
	{
		const char *c;
		uint64		hash = UINT64CONST(14695981039346656037);

		for (c = reply->children[i]; *c != '\0'; c++)
			hash = (hash ^ (uint8) *c) * UINT64CONST(1099511628211);
		sum += hash;
	}
	return sum;
}

/* ---- errands ---- */

#define MAX_PARENTS		3		/* they may be reaped while they are empty */
#define MAX_LOSSES		1		/* of the connection, under the same reads */

#define RC_MARSHALLINGERROR	(-5)
#define RC_UNIMPLEMENTED	(-6)

#define SYNC_PART		ZKL_ERRAND_READS	/* ahead of a read; the parts
											 * below are the numbers of paths */

typedef struct
{
	ZklTask		task;
	dsm_handle	handle;
	dsm_segment *segment;		/* from the first answer to the last one */
	char	   *paths;			/* of the znodes, each with its NUL */
	uint32		nanswered;
	int			losses;
	int			parents;		/* how often they were made */
	bool		stale;			/* the sync ahead of it was refused */

	/* AWAIT */
	dlist_node	node;			/* in "awaits" */
	bool		watched;		/* its listing has set a watch, or may have */
	bool		changed;		/* while its listing was under way */
	bool		watching;		/* nothing has changed since its listing */

	ZklErrand	what;			/* the backend's part, without the answer */
} ErrandTask;

static dlist_head awaits = DLIST_STATIC_INIT(awaits);

static bool
is_await(const ErrandTask *errand)
{
	return errand->what.kind == ZKL_ERRAND_AWAIT;
}

/* ---- the answer ---- */

static void
detach(ErrandTask *errand)
{
	if (errand->segment != NULL)
		dsm_detach(errand->segment);
	errand->segment = NULL;
}

/* What has no answer by now is unknown: that is how the backend has begun. */
static void
answer_slot(const ErrandTask *errand)
{
	zkl_worker_slot_grant(errand->task.slotno, 0, false);
}

static void
finish_errand(ErrandTask *errand)
{
	detach(errand);
	answer_slot(errand);
	zkl_operation_end(&errand->task);
}

/* If the segment is gone, the backend no longer waits. */
static void
answer_errand(ErrandTask *errand, uint32 number, const ZklReply *reply,
			  const ZklWireStat *stat, uint64 fingerprint)
{
	if (errand->segment == NULL)
		errand->segment = zkl_segment_attach(errand->handle);
	if (errand->segment != NULL)
		put_answer(dsm_segment_address(errand->segment),
				   &errand->what, number, reply, stat, fingerprint);
	if (++errand->nanswered == errand->what.n)
		finish_errand(errand);
}

/* ---- the task ---- */

static bool
submit_errand(ZklTask *task, const ZklSlot *slot, bool restored)
{
	ErrandTask *errand = (ErrandTask *) task;

	errand->handle = slot->s_dsm;
	errand->paths = take_segment(slot->s_dsm, &errand->what);
	task->large = errand->what.large;
	if (errand->paths == NULL)
	{
		zkl_worker_slot_fail(task->slotno, ZKL_ERROR_SEGMENT, 0);
		return false;
	}

	/* An earlier worker may have sent a write, which can still be applied. */
	if (restored && zkl_errand_layout_is_write(&errand->what))
	{
		answer_slot(errand);
		pfree(errand->paths);
		return false;
	}
	if (is_await(errand))
		dlist_push_tail(&awaits, &errand->node);
	return true;
}

static void
time_out_errand(ZklTask *task)
{
	ErrandTask *errand = (ErrandTask *) task;
	ZklReply	unchanged;

	if (!errand->watching)
		return;
	memset(&unchanged, 0, sizeof(unchanged));
	answer_errand(errand, 0, &unchanged, NULL, errand->what.known);
}

/* If the connection ends under the same large errand again, this may be the reason. */
static void
lose_errand(ZklTask *task, bool was_busy)
{
	ErrandTask *errand = (ErrandTask *) task;

	errand->watched = errand->watching = false;
	if (was_busy &&
		(zkl_errand_layout_is_write(&errand->what) ||
		 (errand->what.large && ++errand->losses > MAX_LOSSES)))
		finish_errand(errand);
}

static bool
is_awaited(const char *path)
{
	dlist_iter	iter;

	dlist_foreach(iter, &awaits)
	{
		const ErrandTask *errand = dlist_container(ErrandTask, node, iter.cur);

		if (!errand->task.over && strcmp(errand->paths, path) == 0)
			return true;
	}
	return false;
}

static void
end_errand(ZklTask *task, bool connected)
{
	ErrandTask *errand = (ErrandTask *) task;

	detach(errand);
	if (is_await(errand))
	{
		dlist_delete(&errand->node);
		if (errand->watched && connected && !is_awaited(errand->paths))
			zkl_operation_send(NULL, 0, ZKL_SEND_UNWATCH_CHILDREN,
							   errand->paths, false);
	}
	pfree(errand->paths);
}

/* ---- operations ---- */

static void
send_write(ErrandTask *errand, ZklMultiKind kind)
{
	ZklMultiOp	op;

	memset(&op, 0, sizeof(op));
	op.kind = kind;
	op.path = errand->paths;
	op.version = errand->what.version;
	op.data = errand->what.data;
	op.data_length = errand->what.length;
	zkl_operation_send_multi(&errand->task, 0, &op, 1);
}

static void
send_delete_last(ErrandTask *errand)
{
	char	   *parent = pstrdup(errand->paths);
	ZklMultiOp	ops[2];

	*strrchr(parent, '/') = '\0';
	memset(ops, 0, sizeof(ops));
	ops[0].kind = ops[1].kind = ZKL_MULTI_DELETE;
	ops[0].path = errand->paths;
	ops[0].version = errand->what.version;
	ops[1].path = parent;
	ops[1].version = -1;
	zkl_operation_send_multi(&errand->task, 0, ops, lengthof(ops));
	pfree(parent);
}

/* A read right behind a sync is as new as the sync. */
static void
send_reads(ErrandTask *errand, ZklSendKind kind)
{
	const char *path = errand->paths;
	uint32		i;

	if (errand->what.sync)
		zkl_operation_send(&errand->task, SYNC_PART, ZKL_SEND_SYNC, path, false);
	for (i = 0; i < errand->what.n; i++)
	{
		zkl_operation_send(&errand->task, i, kind, path, is_await(errand));
		path += strlen(path) + 1;
	}
}

static void
begin_errand(ZklTask *task)
{
	ErrandTask *errand = (ErrandTask *) task;

	errand->stale = errand->changed = errand->watching = false;
	errand->watched = is_await(errand);
	errand->nanswered = 0;
	if (errand->what.only_on != 0 &&
		errand->what.only_on != zkl_control->ctl_status.connects)
	{
		finish_errand(errand);
		return;
	}
	switch (errand->what.kind)
	{
		case ZKL_ERRAND_GET:
			send_reads(errand, ZKL_SEND_GET);
			break;
		case ZKL_ERRAND_RIGHTS:
			send_reads(errand, ZKL_SEND_GET_ACL);
			break;
		case ZKL_ERRAND_SET:
			send_write(errand, ZKL_MULTI_SET);
			break;
		case ZKL_ERRAND_CREATE:
			send_write(errand, ZKL_MULTI_CREATE_PERSISTENT);
			break;
		case ZKL_ERRAND_DELETE:
			send_write(errand, ZKL_MULTI_DELETE);
			break;
		case ZKL_ERRAND_DELETE_LAST:
			send_delete_last(errand);
			break;
		case ZKL_ERRAND_LIST:
		case ZKL_ERRAND_AWAIT:
			send_reads(errand, ZKL_SEND_LIST);
			break;
	}
}

/* The next attempt shows whether the parents exist. */
static void
make_parents(ErrandTask *errand)
{
	zkl_operation_send_parents(errand->paths);
	errand->parents++;
	begin_errand(&errand->task);
}

/* The children changed and changed back while they were listed. */
static void
list_again(ErrandTask *errand)
{
	if (!zkl_operation_retry(&errand->task))
		zkl_operation_pause(&errand->task,
							zkl_boottime_us() + ZKL_RETRY_LONGEST_PAUSE);
}

static void
take_children(ErrandTask *errand, const ZklReply *reply)
{
	uint64		fingerprint = fingerprint_of(reply);
	ZklSlot		slot;

	zkl_slot_copy(errand->task.slotno, &slot);
	errand->watched = reply->rc == ZKL_RC_OK && !errand->changed;
	if (reply->rc != ZKL_RC_OK || fingerprint != errand->what.known ||
		slot.s_holder.timed_out)
		answer_errand(errand, 0, reply, NULL, fingerprint);
	else if (errand->changed)
		list_again(errand);
	else
	{
		zkl_operation_reset(&errand->task);
		errand->watching = true;
	}
}

/*
 * Whether nothing is known: ZooKeeper did not answer, or only about the
 * session, and often the connection ends soon.  A read that is too large, or
 * that a server does not know, will not get another answer later.
 */
static bool
is_unknown(const ErrandTask *errand, int32 rc)
{
	return rc != ZKL_RC_OK && !zkl_zkapi_is_definite(rc) &&
		(zkl_errand_layout_is_write(&errand->what) ||
		 (rc != RC_MARSHALLINGERROR && rc != RC_UNIMPLEMENTED));
}

/*
 * A write is not sent again by us.  Reads are, all of the errand, after a pause; if
 * that does not help, the answer counts, whatever it is.
 */
static void
take_unknown(ErrandTask *errand, uint32 number, const ZklReply *reply)
{
	errand->watched = false;
	if (zkl_errand_layout_is_write(&errand->what))
		finish_errand(errand);
	else if (!zkl_operation_retry(&errand->task))
		answer_errand(errand, number, reply, NULL, 0);
}

static void
take_errand_reply(ZklTask *task, uint32 part, const ZklReply *reply,
				  const ZklWireStat *stat)
{
	ErrandTask *errand = (ErrandTask *) task;
	ZklReply	answer = *reply;

	if (part == SYNC_PART)
	{
		errand->stale = reply->rc != ZKL_RC_OK;
		return;
	}
	if (errand->stale && (answer.rc == ZKL_RC_OK || answer.rc == ZKL_RC_NONODE))
		answer.rc = ZKL_RC_UNKNOWN;
	if (is_unknown(errand, answer.rc))
		take_unknown(errand, part, &answer);
	else if (answer.rc == ZKL_RC_NONODE &&
			 errand->what.kind == ZKL_ERRAND_CREATE &&
			 errand->parents < MAX_PARENTS)
		make_parents(errand);
	else if (is_await(errand))
		take_children(errand, &answer);
	else
		answer_errand(errand, part, &answer, stat, 0);
}

void
zkl_errands_event(const char *path)
{
	dlist_iter	iter;

	dlist_foreach(iter, &awaits)
	{
		ErrandTask *errand = dlist_container(ErrandTask, node, iter.cur);

		if (errand->task.over || strcmp(errand->paths, path) != 0)
			continue;
		errand->changed = true;
		if (!errand->watching)
			continue;			/* its listing may yet set a watch */
		errand->watched = errand->watching = false;
		zkl_operation_pause(&errand->task, 0);
	}
}

const ZklTaskOwner zkl_errands_owner = {
	.size = sizeof(ErrandTask),
	.submit = submit_errand,
	.begin = begin_errand,
	.reply = take_errand_reply,
	.lost = lose_errand,
	.timed_out = time_out_errand,
	.end = end_errand,
};
