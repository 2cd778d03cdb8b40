/*
 * ownqueue.c
 *	  Who has a lock and who waits: what its znodes say, and what this server knows
 *	  better of its own.
 *
 * Owns nothing that lasts.  Run by backends that show a queue.  Takes no locks
 * but, through slot.h, those of what it copies, one at a time.
 *
 * Must not know why a queue is shown.
 *
 * A lock passes from one request to the next of the same server at once, and
 * the znode of the first request is deleted some time later.  So a queue that
 * was read from ZooKeeper can show a holder that has already left, and the
 * new holder behind it as waiting.  The slots tell what became of both.  The
 * listing is older than the slots: if a znode belongs to this server's session
 * and no slot names it, it is gone.
 */
#include "postgres.h"

#include "functions/ownqueue.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "utils/acl.h"
#include "utils/timestamp.h"

typedef enum
{
	HELD,
	WAITS,
	GONE,
	KEPT,						/* by at_least */
	CACHED,
	STAYS						/* for a while, as ZooKeeper has it */
} Standing;

typedef struct
{
	ZklUuid		uuid;
	Standing	standing;
	ZklJudged	told;			/* what the slot tells of it */
} Own;

typedef struct
{
	const ZklTarget *lock;
	int64		session_id;
	uint32		generation;
	Own		   *znodes;
	int			nznodes;
	bool		again;			/* the slots were read a second time */
} OwnQueue;

static Standing
standing_of(const ZklSlot *slot)
{
	switch ((ZklSlotState) slot->s_state)
	{
		case ZKL_SLOT_GRANTED:
			return HELD;
		case ZKL_SLOT_CACHED:
			return CACHED;
		case ZKL_SLOT_RELEASED:
			return slot->s_keep_until > zkl_boottime_ms() ? KEPT :
				slot->s_epilogue ? STAYS : GONE;
		case ZKL_SLOT_DENIED:
		case ZKL_SLOT_FAILED:
			return GONE;
		default:
			return WAITS;
	}
}

static bool
is_of(const OwnQueue *own, const ZklSlot *slot)
{
	return slot->s_state > ZKL_SLOT_CLAIMED &&
		slot->s_request.kind == ZKL_KIND_LOCK &&
		slot->s_request.dialect == own->lock->dialect &&
		strcmp(slot->s_request.path, own->lock->path) == 0;
}

static int
compare_owners(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return x < y ? -1 : x > y;
}

static int
compare_znodes(const void *a, const void *b)
{
	return memcmp(&((const Own *) a)->uuid, &((const Own *) b)->uuid,
				  sizeof(ZklUuid));
}

/* Another hold of the same owner keeps using the znode of a released hold. */
static void
pass_on(OwnQueue *own, uint64 *holders, int nholders)
{
	int			i;

	qsort(holders, nholders, sizeof(uint64), compare_owners);
	for (i = 0; i < own->nznodes; i++)
	{
		Own		   *znode = &own->znodes[i];

		if (znode->standing == GONE &&
			bsearch(&znode->told.owner, holders, nholders, sizeof(uint64),
					compare_owners) != NULL)
			znode->standing = HELD;
	}
}

static int64
ms_since_1970(TimestampTz time)
{
	return (time + (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY) /
		1000;
}

static void
note_told(const ZklSlot *slot, ZklJudged *told)
{
	bool		held = slot->s_state == ZKL_SLOT_GRANTED;
	int64		until;

	memset(told, 0, sizeof(*told));
	told->owner = slot->s_record.disowned ? 0 : slot->s_owner;
	told->is_own = slot->s_state != ZKL_SLOT_CACHED &&
		has_privs_of_role(GetUserId(), slot->s_request.roleid);
	told->granted_ms = held ? ms_since_1970(slot->s_answer.granted_at) : 0;
	until = held ? slot->s_until : zkl_slot_is_reserved(slot) ? slot->s_keep_until : 0;
	told->until_ms = until == 0 ? 0 :
		ms_since_1970(GetCurrentTimestamp()) + until - zkl_boottime_ms();
}

static void
read_slots(OwnQueue *own)
{
	uint64	   *holders = palloc(zkl_control->ctl_nslots * sizeof(uint64));
	int			nholders = 0;
	ZklSlot		slot;
	int			slotno;

	own->nznodes = 0;
	for (slotno = 0; slotno < zkl_control->ctl_nslots; slotno++)
	{
		CHECK_FOR_INTERRUPTS();
		if (zkl_slot_peek(slotno) <= ZKL_SLOT_CLAIMED)
			continue;
		zkl_slot_copy(slotno, &slot);
		if (!is_of(own, &slot))
			continue;
		if (slot.s_record.sent && slot.s_record.generation == own->generation)
		{
			Own		   *znode = &own->znodes[own->nznodes++];

			znode->uuid = slot.s_record.uuid;
			znode->standing = standing_of(&slot);
			note_told(&slot, &znode->told);
		}
		else if (slot.s_state == ZKL_SLOT_GRANTED)
			holders[nholders++] = slot.s_owner;
	}
	pass_on(own, holders, nholders);
	qsort(own->znodes, own->nznodes, sizeof(Own), compare_znodes);
	pfree(holders);
}

/* ---- the queue ---- */

/* Whether an entry is a znode of this server's session */
static bool
is_ours(const OwnQueue *own, const ZklQueueEntry *entry)
{
	return entry->session_id != 0 && entry->session_id == own->session_id &&
		entry->has_uuid;
}

/* What is known of it; NULL: nothing */
static const Own *
find(const OwnQueue *own, const ZklQueueEntry *entry)
{
	Own			wanted;

	wanted.uuid = entry->uuid;
	return bsearch(&wanted, own->znodes, own->nznodes, sizeof(Own),
				   compare_znodes);
}

/* Corrects what the znodes say.  False: it has left the queue. */
static bool
correct(OwnQueue *own, ZklJudged *c)
{
	const ZklJudged said = *c;
	const Own  *znode;

	if (!is_ours(own, said.entry))
		return true;
	znode = find(own, said.entry);
	if (znode == NULL && !own->again)
	{
		/* It may have passed from one slot to another while they were read. */
		own->again = true;
		read_slots(own);
		znode = find(own, said.entry);
	}
	if (znode == NULL || znode->standing == GONE)
		return false;
	*c = znode->told;
	c->entry = said.entry;
	c->cached = znode->standing == CACHED;
	c->kept = znode->standing == KEPT || c->cached;
	c->granted = znode->standing == KEPT || znode->standing == STAYS ?
		said.granted : znode->standing == HELD;
	return true;
}

ZklJudged *
zkl_ownqueue_judge(const ZklTarget *lock, const ZklLockQueue *queue, int most, int *n)
{
	ZklJudged  *all = MemoryContextAllocHuge(CurrentMemoryContext,
											 (queue->n + 1) * sizeof(ZklJudged));
	OwnQueue	own = {lock};
	ZklStatus	status;
	bool		exclusive_ahead = false;
	int			i;

	zkl_status_copy(&status);
	own.session_id = status.session_id;
	own.generation = status.generation;
	own.znodes = palloc(zkl_control->ctl_nslots * sizeof(Own));
	read_slots(&own);
	*n = 0;
	for (i = 0; i < queue->n; i++)
	{
		const ZklQueueEntry *entry = &queue->entries[i];
		ZklJudged	c = {entry};

		c.granted = most != ZKL_BY_MODES ? i < most :
			i == 0 || (entry->mode == ZKL_SHARED && !exclusive_ahead);
		c.cached = zkl_node_data_is_cached(entry->data, entry->length);
		exclusive_ahead |= entry->mode == ZKL_EXCLUSIVE;
		if (correct(&own, &c))
			all[(*n)++] = c;
	}
	pfree(own.znodes);
	return all;
}
