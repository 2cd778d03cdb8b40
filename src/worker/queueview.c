/*
 * queueview.c
 *	  The worker's side of zk_queue().
 *
 * Owns the slots of kind QUEUE between their submission and their answer, and
 * the listing under way.  Runs in the worker only; takes no locks.  It decides
 * nothing about locks, and never waits for a backend: the memory that it
 * answers into is the backend's, made beforehand.
 */
#include "postgres.h"

#include "nodes/pg_list.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "utils/memutils.h"

#include "core/queue.h"
#include "shared/listing.h"
#include "shared/retry.h"
#include "worker/queueview.h"
#include "worker/segment.h"

#define FETCH_WINDOW	32		/* nodes asked for at a time */
#define RC_MARSHALLINGERROR	(-5)

typedef struct
{
	ZklSeq		seq;
	ZklListingEntry entry;
	char	   *name;
	bool		there;			/* its data came */
} QueueNode;

static ZklQueueviewSend send_read;
static MemoryContext context = NULL;	/* of the listing under way */
static List *waiting = NIL;		/* slots, in TopMemoryContext */
static int	current = -1;		/* the slot being answered, or -1 */
static ZklRetry retry;			/* of its listing, on this connection */
static bool listing;			/* it is under way; else it waits for its time */
static uint32 turn = 0;			/* tells answers to an earlier listing */
static char *directory;
static ZklDialect dialect;		/* of the queue that is being read */
static QueueNode *nodes;
static int	nnodes;
static int	nsent;
static int	nanswered;

void
zkl_queueview_begin(ZklQueueviewSend send)
{
	send_read = send;
	context = AllocSetContextCreate(TopMemoryContext, "zklock queue listing",
									ALLOCSET_DEFAULT_SIZES);
}

/* Forgets what was read; answers that are still to come are none any more. */
static void
stop_listing(void)
{
	listing = false;
	turn++;
	nodes = NULL;
	nnodes = nsent = nanswered = 0;
	MemoryContextReset(context);
}

static void
finish(void)
{
	current = -1;
	zkl_retry_reset(&retry);
	stop_listing();
}

void
zkl_queueview_submit(int slotno)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	waiting = lappend_int(waiting, slotno);
	MemoryContextSwitchTo(old);
}

void
zkl_queueview_release(int slotno)
{
	waiting = list_delete_int(waiting, slotno);
	if (current == slotno)
		finish();
	zkl_slot_free(slotno);
}

void
zkl_queueview_disconnected(void)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	if (current >= 0)
		waiting = lcons_int(current, waiting);
	MemoryContextSwitchTo(old);
	finish();
}

static uint64
make_tag(uint32 node)
{
	return ZKL_QUEUEVIEW_TAG | (uint64) (turn & 0x3fffff) << 32 | node;
}

static void
begin(void)
{
	ZklSlot		slot;

	zkl_slot_copy(current, &slot);
	dialect = (ZklDialect) slot.s_dialect;
	directory = MemoryContextStrdup(context,
									psprintf("%s%s", zkl_root, slot.s_path));
	listing = true;
	send_read(ZKL_SEND_LIST, make_tag(PG_UINT32_MAX), directory);
}

void
zkl_queueview_tick(bool ready, int64 now)
{
	if (!ready || listing || (current < 0 && waiting == NIL))
		return;
	if (current < 0)
	{
		current = linitial_int(waiting);
		waiting = list_delete_first(waiting);
	}
	if (now >= retry.due)
		begin();
}

int64
zkl_queueview_timer(void)
{
	return current >= 0 && !listing ? retry.due : -1;
}

/* It would be answered so again: it is not allowed, or too large. */
static bool
is_final(int32 rc)
{
	return zkl_result_is_definite(rc) || rc == RC_MARSHALLINGERROR;
}

/*
 * What ZooKeeper said does not tell what the queue is.  All is read again,
 * after a pause; if that does not help either, the backend is told.
 */
static void
read_again(int32 rc)
{
	stop_listing();
	if (!is_final(rc) && zkl_retry_later(&retry, zkl_boottime_us()))
		return;
	zkl_slot_fail(current, ZKL_ERROR_ZOOKEEPER, rc);
	finish();
}

/* What an answer takes, and what the backend's segment has */
typedef struct
{
	Size		needed;
	Size		size;
} Fit;

static void
write_answer(void *address, Size size, void *arg)
{
	Fit		   *fit = arg;
	ZklListing	list;
	int			i;

	zkl_listing_begin(&list, address, size);
	for (i = 0; i < nnodes; i++)
	{
		if (nodes[i].there)
			zkl_listing_add(&list, &nodes[i].entry);
	}
	fit->needed = zkl_listing_end(&list);
	fit->size = size;
}

/* Writes the answer into the backend's segment and tells it. */
static void
answer(void)
{
	int			slotno = current;
	ZklSlot		slot;
	Fit			fit;

	zkl_slot_copy(slotno, &slot);
	if (!zkl_segment_use(slot.s_dsm, write_answer, &fit))
		zkl_slot_fail(slotno, ZKL_ERROR_SEGMENT, 0);
	else if (fit.needed > fit.size)
		zkl_slot_too_large(slotno, fit.needed);
	else
		zkl_slot_grant(slotno, 0, zkl_control->ctl_status.generation, false);
	finish();
}

static void
fetch_more(void)
{
	while (nsent < nnodes && nsent - nanswered < FETCH_WINDOW)
	{
		send_read(ZKL_SEND_GET, make_tag((uint32) nsent),
				  psprintf("%s/%s", directory, nodes[nsent].name));
		nsent++;
	}
	if (nanswered == nnodes)
		answer();
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
listed(const ZklReply *reply)
{
	size_t		i;

	nodes = MemoryContextAllocHuge(context,
								   (reply->nchildren + 1) * sizeof(QueueNode));
	for (i = 0; i < reply->nchildren; i++)
	{
		QueueNode  *node = &nodes[nnodes];
		bool		has_uuid;
		ZklUuid		uuid;

		memset(node, 0, sizeof(*node));
		if (!zkl_znode_parse(dialect, reply->children[i], &node->entry.mode,
							 &node->seq, &has_uuid, &uuid))
			continue;
		node->name = MemoryContextStrdup(context, reply->children[i]);
		node->entry.name = node->name;
		node->entry.name_length = (uint32) strlen(node->name);
		node->entry.seq = node->seq;
		nnodes++;
	}
	qsort(nodes, (size_t) nnodes, sizeof(QueueNode), compare_nodes);
	fetch_more();
}

static void
fetched(uint32 i, const ZklReply *reply, int64 ctime)
{
	QueueNode  *node = &nodes[i];

	nanswered++;
	if (reply->rc != ZKL_RC_OK && reply->rc != ZKL_RC_NONODE &&
		!is_final(reply->rc))
	{
		read_again(reply->rc);
		return;
	}

	/* What cannot be read stands in the queue all the same. */
	node->there = reply->rc != ZKL_RC_NONODE;
	node->entry.data = "";
	if (reply->rc == ZKL_RC_OK)
	{
		Size		length = Min(reply->data_length, ZKL_MAX_NODE_DATA);
		char	   *data = MemoryContextAlloc(context, length + 1);

		memcpy(data, reply->data, length);
		node->entry.data = data;
		node->entry.data_length = (uint32) length;
		node->entry.session_id = reply->stat.ephemeral_owner;
		node->entry.ctime_ms = ctime;
	}
	fetch_more();
}

void
zkl_queueview_reply(uint64 tag, const ZklReply *reply, int64 ctime)
{
	uint32		i = (uint32) tag;
	MemoryContext old;

	if (current < 0 || (tag | i) != (make_tag(0) | i))
		return;
	old = MemoryContextSwitchTo(context);
	if (i == PG_UINT32_MAX)
	{
		if (reply->rc == ZKL_RC_OK || reply->rc == ZKL_RC_NONODE)
			listed(reply);
		else
			read_again(reply->rc);
	}
	else if (i < (uint32) nnodes)
		fetched(i, reply, ctime);
	MemoryContextSwitchTo(old);
}
