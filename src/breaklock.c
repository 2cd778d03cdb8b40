/*
 * breaklock.c
 *	  The worker's side of zk_break_lock(): removes the head of a lock's queue.
 *
 * Owns the slots of kind BREAK between their submission and their answer, and
 * the one that is being worked on.  Runs in the worker only; takes no locks.
 *
 * Whoever owns the head may believe that it holds the lock.  If it is zklock,
 * its node is marked first: its server loses the lock properly, by its own
 * check of the node, and deletes the node once the holder is through with it.
 * Only after a session timeout, when even a server that hears of nothing has
 * lost its lease, the node is deleted from here.  Other clients look at no
 * mark: their node is deleted at once.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "breaklock.h"
#include "core/queue.h"
#include "shmem.h"
#include "zklock.h"

#define LOOKS_PER_TIMEOUT	20	/* at a marked node */

typedef enum
{
	LISTING,					/* the directory */
	READING,					/* the head */
	MARKING,
	WAITING,					/* for the holder, or the time */
	LOOKING,					/* whether the head is still there */
	DELETING
} Phase;

static ZklBreaklockSend send_operation;
static List *waiting = NIL;		/* slots, in TopMemoryContext */
static int	current = -1;		/* the slot being worked on, or -1 */
static uint32 turn = 0;			/* tells answers to an earlier attempt */
static Phase phase;
static char name[ZKL_MAX_NAME + 1]; /* of the lock */
static char path[ZKL_MAX_PATH + 1]; /* of the directory, then of the head */
static char marked[ZKL_MAX_PATH + 1] = "";	/* the head that was marked ... */
static int64 marked_at;			/* ... and when */
static int64 look_at;

void
zkl_breaklock_begin(ZklBreaklockSend send)
{
	send_operation = send;
}

static int64
timeout_us(void)
{
	return (int64) zkl_session_timeout_ms() * 1000;
}

/* ---- slots ---- */

void
zkl_breaklock_submit(int slotno)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	waiting = lappend_int(waiting, slotno);
	MemoryContextSwitchTo(old);
}

static void
finish(void)
{
	current = -1;
	turn++;
}

void
zkl_breaklock_release(int slotno)
{
	waiting = list_delete_int(waiting, slotno);
	if (current == slotno)
		finish();
	zkl_slot_free(slotno);
}

void
zkl_breaklock_disconnected(void)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	if (current >= 0)
		waiting = lcons_int(current, waiting);
	MemoryContextSwitchTo(old);
	finish();
}

/* "removed" tells whether there was a head to be removed. */
static void
succeed(bool removed)
{
	ZklSlot		slot;

	zkl_slot_copy(current, &slot);
	if (removed)
		ereport(LOG,
				(errmsg("znode \"%s\" of distributed lock \"%s\" is gone, broken by process %d (user \"%s\")",
						path, name, slot.s_pid, slot.s_usename)));
	zkl_slot_grant(current, removed, zkl_control->ctl_status.generation);
	marked[0] = '\0';
	finish();
}

static void
fail(int32 rc)
{
	zkl_slot_fail(current, ZKL_ERROR_ZOOKEEPER, rc);
	finish();
}

/* ---- operations ---- */

static void
send(Phase next, ZklSendKind kind, const ZklMultiOp *multi)
{
	ZklAction	action;

	phase = next;
	memset(&action, 0, sizeof(action));
	action.kind = ZKL_ACTION_SEND;
	action.send = kind;
	action.tag = ZKL_BREAKLOCK_TAG | (turn & 0x3fffff);
	action.path = path;
	action.multi = multi;
	action.nmulti = multi != NULL ? 1 : 0;
	send_operation(&action);
}

static void
mark(const ZklReply *reply, int32 version)
{
	char		data[ZKL_MAX_NODE_DATA + 32];
	ZklMultiOp	set;

	memset(&set, 0, sizeof(set));
	set.kind = ZKL_MULTI_SET;
	set.path = path;
	set.version = version;
	set.data = data;
	set.data_length = zkl_node_data_break(reply->data, reply->data_length,
										  data, sizeof(data));
	ereport(LOG,
			(errmsg("znode \"%s\" of distributed lock \"%s\" is marked to be broken",
					path, name)));
	send(MARKING, ZKL_SEND_MULTI, &set);
}

/* The head is marked: its holder has the time of a session timeout. */
static void
wait_for_holder(int64 now)
{
	if (strcmp(marked, path) != 0)
	{
		strlcpy(marked, path, sizeof(marked));
		marked_at = now;
	}
	look_at = Min(now + timeout_us() / LOOKS_PER_TIMEOUT,
				  marked_at + timeout_us());
	phase = WAITING;
}

/* ---- answers ---- */

/* The head goes to path. */
static bool
find_head(const ZklReply *reply, bool *is_zklock)
{
	size_t		directory = strlen(path);
	ZklSeq		first = ZKL_SEQ_NONE;
	size_t		i;

	for (i = 0; i < reply->nchildren; i++)
	{
		ZklLockMode mode;
		ZklSeq		seq;
		bool		has_uuid;
		ZklUuid		uuid;

		if (!zkl_znode_parse(reply->children[i], &mode, &seq, &has_uuid,
							 &uuid) || seq >= first)
			continue;
		first = seq;
		*is_zklock = has_uuid && zkl_uuid_is_zklock(&uuid);
		snprintf(path + directory, sizeof(path) - directory, "/%s",
				 reply->children[i]);
	}
	return first != ZKL_SEQ_NONE;
}

static void
listed(const ZklReply *reply)
{
	bool		is_zklock;

	if (reply->rc == ZKL_RC_NONODE || !find_head(reply, &is_zklock))
		succeed(false);
	else if (is_zklock)
		send(READING, ZKL_SEND_GET, NULL);
	else
		send(DELETING, ZKL_SEND_DELETE, NULL);
}

void
zkl_breaklock_reply(uint64 tag, const ZklReply *reply, int32 version)
{
	int64		now = zkl_boottime_us();

	if (current < 0 || tag != (ZKL_BREAKLOCK_TAG | (turn & 0x3fffff)))
		return;
	if (reply->rc == ZKL_RC_NONODE && phase != LISTING)
		succeed(true);			/* its owner was faster */
	else if (reply->rc == ZKL_RC_BADVERSION && phase == MARKING)
		send(READING, ZKL_SEND_GET, NULL);
	else if (reply->rc != ZKL_RC_OK && reply->rc != ZKL_RC_NONODE)
		fail(reply->rc);
	else if (phase == LISTING)
		listed(reply);
	else if (phase == READING &&
			 !zkl_node_data_breaking(reply->data, reply->data_length))
		mark(reply, version);
	else if (phase == DELETING)
		succeed(true);
	else
		wait_for_holder(now);
}

/* ---- time ---- */

void
zkl_breaklock_tick(bool ready, int64 now)
{
	ZklSlot		slot;

	if (!ready)
		return;
	if (current >= 0)
	{
		if (phase != WAITING || now < look_at)
			return;
		if (now >= marked_at + timeout_us())
			send(DELETING, ZKL_SEND_DELETE, NULL);
		else
			send(LOOKING, ZKL_SEND_GET, NULL);
		return;
	}
	if (waiting == NIL)
		return;
	current = linitial_int(waiting);
	waiting = list_delete_first(waiting);
	zkl_slot_copy(current, &slot);
	strlcpy(name, slot.s_path, sizeof(name));
	snprintf(path, sizeof(path), "%s%s", zkl_root, name);
	send(LISTING, ZKL_SEND_LIST, NULL);
}

int64
zkl_breaklock_timer(void)
{
	return current >= 0 && phase == WAITING ? look_at : -1;
}
