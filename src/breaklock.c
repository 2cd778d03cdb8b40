/*
 * breaklock.c
 *	  The worker's side of zk_break_lock(): removes the head of a lock's queue.
 *
 * Owns the slots of kind BREAK between their submission and their answer.  Runs
 * in the worker only; takes no locks of its own.
 *
 * Whoever owns the head may believe that it holds the lock.  If it is zklock,
 * its node is marked first: its server loses the lock properly, by its own
 * check of the node, and deletes the node once the holder is through with it.
 * Only after a session timeout (the longer one of theirs and ours), when even
 * a server that hears of nothing has lost its lease, the node is deleted from
 * here.  Other clients look at no mark: their node is deleted at once.
 */
#include "postgres.h"

#include "nodes/pg_list.h"
#include "utils/memutils.h"

#include "breaklock.h"
#include "core/queue.h"
#include "shmem.h"
#include "zklock.h"

#define LOOKS_PER_TIMEOUT	20	/* at a marked node */
#define LONGEST_TIMEOUT_MS	3600000 /* of zklock.session_timeout */
#define ATTEMPT_MASK		0x3fffff	/* of a tag's upper half */

typedef enum
{
	IDLE,						/* waits for a connection */
	LISTING,					/* the directory */
	READING,					/* the head */
	MARKING,
	WAITING,					/* for the holder, or the time */
	LOOKING,					/* whether the head is still there */
	DELETING
} Phase;

typedef struct
{
	int			slotno;
	uint32		attempt;		/* tells answers to earlier ones, also of an
								 * earlier Break */
	Phase		phase;
	ZklDialect	dialect;
	char		name[ZKL_MAX_NAME + 1]; /* of the lock */
	char		path[ZKL_MAX_PATH + 1]; /* of the directory, then of the head */
	char		chosen[ZKL_MAX_PATH + 1];	/* the head that is to go ... */
	bool		acted;			/* ... perhaps by our doing */
	int64		marked_at;		/* µs; 0: it is not, as far as is known */
	int32		version;		/* of its data since then */
	int64		timeout;		/* µs that its holder has from then on */
	int64		look_at;
} Break;

static ZklBreaklockSend send_operation;
static uint32 attempts = 0;
static List *breaks = NIL;		/* of Break, in TopMemoryContext */

void
zkl_breaklock_begin(ZklBreaklockSend send)
{
	send_operation = send;
}

/* ---- slots ---- */

void
zkl_breaklock_submit(int slotno)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	Break	   *b = palloc0(sizeof(Break));
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	b->slotno = slotno;
	b->dialect = (ZklDialect) slot.s_dialect;
	strlcpy(b->name, slot.s_path, sizeof(b->name));
	breaks = lappend(breaks, b);
	MemoryContextSwitchTo(old);
}

static Break *
find(int slotno)
{
	ListCell   *cell;

	foreach(cell, breaks)
	{
		Break	   *b = lfirst(cell);

		if (b->slotno == slotno)
			return b;
	}
	return NULL;
}

static void
finish(Break *b)
{
	breaks = list_delete_ptr(breaks, b);
	pfree(b);
}

void
zkl_breaklock_release(int slotno)
{
	Break	   *b = find(slotno);

	if (b != NULL)
		finish(b);
	zkl_slot_free(slotno);
}

void
zkl_breaklock_disconnected(void)
{
	ListCell   *cell;

	foreach(cell, breaks)
	{
		Break	   *b = lfirst(cell);

		if (b->phase == MARKING || b->phase == DELETING)
			b->acted = true;
		b->phase = IDLE;
	}
}

/* "removed" tells whether there was a head to be removed. */
static void
succeed(Break *b, bool removed)
{
	ZklSlot		slot;

	zkl_slot_copy(b->slotno, &slot);
	if (removed)
		ereport(LOG,
				(errmsg("znode \"%s\" of distributed lock \"%s\" is gone, broken by process %d (user \"%s\")",
						b->path, b->name, slot.s_pid, slot.s_usename)));
	zkl_slot_grant(b->slotno, removed, zkl_control->ctl_status.generation,
				   false);
	finish(b);
}

/* ---- operations ---- */

static void
send(Break *b, Phase next, ZklSendKind kind, const ZklMultiOp *multi)
{
	ZklAction	action;

	b->phase = next;
	attempts = (attempts + 1) & ATTEMPT_MASK;
	b->attempt = attempts;
	memset(&action, 0, sizeof(action));
	action.kind = ZKL_ACTION_SEND;
	action.send = kind;
	action.tag = ZKL_BREAKLOCK_TAG | (uint64) b->attempt << 32 |
		(uint32) b->slotno;
	action.path = b->path;
	action.multi = multi;
	action.nmulti = multi != NULL ? 1 : 0;
	send_operation(&action);
}

static void
begin(Break *b)
{
	snprintf(b->path, sizeof(b->path), "%s%s", zkl_root, b->name);
	send(b, LISTING, ZKL_SEND_LIST, NULL);
}

/*
 * From here on the head may go by our doing.  A worker after this one must not
 * take the next head for it: the slot tells that this was begun.
 */
static void
choose(Break *b)
{
	static const ZklUuid none = {{0}};

	strlcpy(b->chosen, b->path, sizeof(b->chosen));
	zkl_slot_set_znode(b->slotno, &none, 0, ZKL_EXCLUSIVE, -1, false,
					   zkl_control->ctl_status.generation);
}

static void
mark(Break *b, const ZklReply *reply, int32 version)
{
	char		data[ZKL_MAX_NODE_DATA + 32];
	ZklMultiOp	set;
	ZklSlot		slot;

	memset(&set, 0, sizeof(set));
	set.kind = ZKL_MULTI_SET;
	set.path = b->path;
	set.version = version;
	set.data = data;
	set.data_length = zkl_node_data_break(reply->data, reply->data_length,
										  data, sizeof(data));
	choose(b);
	b->version = version + 1;
	b->marked_at = 0;
	zkl_slot_copy(b->slotno, &slot);
	ereport(LOG,
			(errmsg("znode \"%s\" of distributed lock \"%s\" is marked to be broken by process %d (user \"%s\")",
					b->path, b->name, slot.s_pid, slot.s_usename)));
	send(b, MARKING, ZKL_SEND_MULTI, &set);
}

/*
 * The head is marked: its holder has the time of a session timeout, anew if
 * somebody wrote over the mark.
 */
static void
wait_for_holder(Break *b, int32 version, int64 now)
{
	if (strcmp(b->chosen, b->path) != 0 || b->version != version ||
		b->marked_at == 0)
	{
		choose(b);
		b->version = version;
		b->marked_at = now;
	}
	b->acted = true;
	b->look_at = Min(now + b->timeout / LOOKS_PER_TIMEOUT,
					 b->marked_at + b->timeout);
	b->phase = WAITING;
}

/* ---- answers ---- */

/* The head goes to path. */
static bool
find_head(Break *b, const ZklReply *reply, bool *is_zklock)
{
	size_t		directory = strlen(b->path);
	ZklSeq		first = ZKL_SEQ_NONE;
	size_t		i;

	for (i = 0; i < reply->nchildren; i++)
	{
		ZklLockMode mode;
		ZklSeq		seq;
		bool		has_uuid;
		ZklUuid		uuid;

		if (!zkl_znode_parse(b->dialect, reply->children[i], &mode, &seq,
							 &has_uuid, &uuid) || seq >= first)
			continue;
		first = seq;
		*is_zklock = has_uuid && zkl_uuid_is_zklock(&uuid);
		snprintf(b->path + directory, sizeof(b->path) - directory, "/%s",
				 reply->children[i]);
	}
	return first != ZKL_SEQ_NONE;
}

static void
listed(Break *b, const ZklReply *reply)
{
	bool		is_zklock;

	if (reply->rc == ZKL_RC_NONODE || !find_head(b, reply, &is_zklock))
		succeed(b, b->acted);
	else if (b->acted && strcmp(b->chosen, b->path) != 0)
		succeed(b, true);		/* went while we were not connected */
	else if (is_zklock)
		send(b, READING, ZKL_SEND_GET, NULL);
	else
	{
		choose(b);
		send(b, DELETING, ZKL_SEND_DELETE, NULL);
	}
}

static void
read_head(Break *b, const ZklReply *reply, int32 version)
{
	ZklNodeData data;

	(void) zkl_node_data_parse(reply->data, reply->data_length, &data);
	b->timeout = (int64) Max(zkl_session_timeout_ms(),
							 Min(data.timeout_ms, LONGEST_TIMEOUT_MS)) * 1000;
	if (zkl_node_data_breaking(reply->data, reply->data_length))
		wait_for_holder(b, version, zkl_boottime_us());
	else
		mark(b, reply, version);
}

void
zkl_breaklock_reply(uint64 tag, const ZklReply *reply, int32 version)
{
	Break	   *b = find((int) (uint32) tag);

	if (b == NULL || b->phase == IDLE ||
		(tag >> 32 & ATTEMPT_MASK) != b->attempt)
		return;
	if (reply->rc == ZKL_RC_NONODE && b->phase != LISTING)
	{
		/* If its owner was faster than we, there may be another head. */
		if (b->acted)
			succeed(b, true);
		else
			begin(b);
	}
	else if (reply->rc == ZKL_RC_BADVERSION &&
			 (b->phase == MARKING || b->phase == DELETING))
		send(b, READING, ZKL_SEND_GET, NULL);
	else if (reply->rc != ZKL_RC_OK && reply->rc != ZKL_RC_NONODE)
	{
		zkl_slot_fail(b->slotno, ZKL_ERROR_ZOOKEEPER, reply->rc);
		finish(b);
	}
	else if (b->phase == LISTING)
		listed(b, reply);
	else if (b->phase == READING)
		read_head(b, reply, version);
	else if (b->phase == DELETING)
		succeed(b, true);
	else
		wait_for_holder(b, b->version, zkl_boottime_us());
}

/* ---- time ---- */

/* Only as it was marked: a mark that was lost has told nobody. */
static void
delete_marked(Break *b)
{
	ZklMultiOp	delete;

	memset(&delete, 0, sizeof(delete));
	delete.kind = ZKL_MULTI_DELETE;
	delete.path = b->path;
	delete.version = b->version;
	send(b, DELETING, ZKL_SEND_MULTI, &delete);
}

void
zkl_breaklock_tick(bool ready, int64 now)
{
	ListCell   *cell;

	if (!ready)
		return;
	foreach(cell, breaks)
	{
		Break	   *b = lfirst(cell);

		if (b->phase == IDLE)
			begin(b);
		else if (b->phase != WAITING || now < b->look_at)
			continue;
		else if (now >= b->marked_at + b->timeout)
			delete_marked(b);
		else
			send(b, LOOKING, ZKL_SEND_GET, NULL);
	}
}

int64
zkl_breaklock_timer(void)
{
	int64		due = -1;
	ListCell   *cell;

	foreach(cell, breaks)
	{
		const Break *b = lfirst(cell);

		if (b->phase == WAITING && (due < 0 || b->look_at < due))
			due = b->look_at;
	}
	return due;
}
