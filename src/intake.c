/*
 * intake.c
 *	  From the slots to the core: what backends ask for, and what an earlier
 *	  worker left there.
 *
 * Owns the worker's knowledge of which slots the core knows.  Runs in the
 * worker only.  Takes the slots' mutexes and ctl_free_mutex through shmem.h,
 * one at a time.  It decides nothing about locks.
 */
#include "postgres.h"

#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "bounds.h"
#include "breaklock.h"
#include "closer.h"
#include "intake.h"
#include "queueview.h"
#include "runner.h"
#include "self.h"
#include "shmem.h"
#include "zklock.h"

static ZklManager *core = NULL;
static uint32 *known_serial = NULL; /* of each slot that the core knows */

/* Slots to be looked at, for zkl_intake_requests */
static int *marked = NULL;
static int *marked_since = NULL;
static bool *is_marked = NULL;	/* of each slot, whether it is in "marked" */

void
zkl_intake_begin(ZklManager *manager)
{
	core = manager;
	known_serial = MemoryContextAllocZero(TopMemoryContext,
										  zkl_control->ctl_nslots *
										  sizeof(uint32));
	marked = MemoryContextAllocZero(TopMemoryContext,
									zkl_control->ctl_nslots * sizeof(int));
	marked_since = MemoryContextAllocZero(TopMemoryContext,
										  zkl_control->ctl_nslots *
										  sizeof(int));
	is_marked = MemoryContextAllocZero(TopMemoryContext,
									   zkl_control->ctl_nslots *
									   sizeof(bool));
}

void
zkl_intake_forget(int slotno)
{
	known_serial[slotno] = 0;
}

/* ---- what backends ask for ---- */

static size_t
format_node_data(const ZklSlot *slot, char *buf)
{
	ZklNodeData data;

	if (!zkl_dialect_marks((ZklDialect) slot->s_dialect))
		return strlcpy(buf, slot->s_leader_id, ZKL_MAX_NODE_DATA);
	memset(&data, 0, sizeof(data));
	strlcpy(data.server, zkl_self_name(), sizeof(data.server));
	strlcpy(data.database, slot->s_database, sizeof(data.database));
	strlcpy(data.usename, slot->s_usename, sizeof(data.usename));
	strlcpy(data.application_name, slot->s_application,
			sizeof(data.application_name));
	strlcpy(data.lifetime, slot->s_lifetime == ZKL_LIFETIME_SESSION ?
			"session" : "transaction", sizeof(data.lifetime));
	data.pid = slot->s_pid;
	data.since = (slot->s_requested_at +
				  (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY) /
		1000;
	return zkl_node_data_format(&data, buf, ZKL_MAX_NODE_DATA);
}

static void
describe_demand(const ZklSlot *slot, ZklDemand *demand, char *data)
{
	demand->name = slot->s_path;
	demand->owner = slot->s_owner;
	demand->mode = (ZklLockMode) slot->s_mode;
	demand->dialect = (ZklDialect) slot->s_dialect;
	demand->sibling = slot->s_sibling;
	demand->max = slot->s_max;
	demand->expired = slot->s_try && slot->s_expired;
	demand->together = slot->s_together && !slot->s_blocked;
	demand->data = data;
	demand->data_length = format_node_data(slot, data);
}

/* What the worker answers itself, without the core */
static void
submit_other(int slotno, const ZklSlot *slot)
{
	if (slot->s_kind == ZKL_KIND_QUEUE)
		zkl_queueview_submit(slotno);
	else if (slot->s_kind == ZKL_KIND_BREAK)
		zkl_breaklock_submit(slotno);
	else
		zkl_runner_submit(slotno);
}

static void
submit_slot(int slotno, const ZklSlot *slot)
{
	ZklDemand	demand;
	char		data[ZKL_MAX_NODE_DATA];

	known_serial[slotno] = slot->s_serial;
	if (slot->s_kind != ZKL_KIND_LOCK)
	{
		submit_other(slotno, slot);
		return;
	}
	describe_demand(slot, &demand, data);
	zkl_manager_submit(core, zkl_boottime_us(), (uint32) slotno, &demand);
}

/* A lock that has an epilogue comes back here when that is written. */
static void
release_slot(int slotno, const ZklSlot *slot)
{
	if (slot->s_kind == ZKL_KIND_LOCK && zkl_closer_take(slotno))
	{
		if (known_serial[slotno] == slot->s_serial)
			zkl_manager_leave(core, zkl_boottime_us(), (uint32) slotno);
		return;
	}
	if (known_serial[slotno] != slot->s_serial)
		zkl_slot_free(slotno);	/* cancelled before we ever saw it */
	else if (slot->s_kind == ZKL_KIND_QUEUE)
		zkl_queueview_release(slotno);
	else if (slot->s_kind == ZKL_KIND_BREAK)
		zkl_breaklock_release(slotno);
	else if (slot->s_kind == ZKL_KIND_ERRAND)
		zkl_runner_release(slotno);
	else
		zkl_bounds_release(slotno, slot);
}

void
zkl_intake_release(int slotno)
{
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	release_slot(slotno, &slot);
}

/* Returns whether it was one. */
static bool
take_released(int slotno)
{
	ZklSlot		slot;

	if (zkl_slot_peek(slotno) != ZKL_SLOT_RELEASED)
		return false;
	zkl_slot_copy(slotno, &slot);
	release_slot(slotno, &slot);
	return true;
}

static void
take_any(int slotno)
{
	ZklSlot		slot;

	if (take_released(slotno))
		return;
	zkl_slot_copy(slotno, &slot);
	if (slot.s_state == ZKL_SLOT_WAITING &&
		known_serial[slotno] != slot.s_serial)
		submit_slot(slotno, &slot);
	else if (slot.s_state == ZKL_SLOT_WAITING && slot.s_expired &&
			 slot.s_kind == ZKL_KIND_LOCK)
		zkl_manager_expire(core, zkl_boottime_us(), (uint32) slotno);
	else if (slot.s_state == ZKL_SLOT_WAITING && slot.s_expired &&
			 slot.s_kind == ZKL_KIND_ERRAND)
		zkl_runner_expire(slotno);
	else if (slot.s_state == ZKL_SLOT_GRANTED ||
			 slot.s_state == ZKL_SLOT_LOST)
		zkl_bounds_look(slotno);
}

/* Takes those that were released out of the list; returns what is left. */
static int
take_all_released(int *slots, int n)
{
	int			left = 0,
				i;

	for (i = 0; i < n; i++)
	{
		if (!take_released(slots[i]))
			slots[left++] = slots[i];
	}
	return left;
}

/* Takes out of "marked_since" what is in "marked"; returns what is left. */
static int
only_since(int n, int nsince)
{
	int			left = 0,
				i;

	for (i = 0; i < n; i++)
		is_marked[marked[i]] = true;
	for (i = 0; i < nsince; i++)
	{
		if (!is_marked[marked_since[i]])
			marked_since[left++] = marked_since[i];
	}
	for (i = 0; i < n; i++)
		is_marked[marked[i]] = false;
	return left;
}

/*
 * Who tries a lock that was released before may rely on that.  So what was
 * released is taken before what is asked for; and once more, for a release
 * whose mark was set in front of where the first look just was.  What that
 * second look finds besides is left for the next round, with two of its own.
 */
void
zkl_intake_requests(void)
{
	int			n = zkl_shmem_take_marks(marked);
	int			nsince,
				i;

	if (n == 0)
		return;
	nsince = zkl_shmem_take_marks(marked_since);

	/* What both saw is taken once, as it is now. */
	nsince = only_since(n, nsince);
	n = take_all_released(marked, n);
	nsince = take_all_released(marked_since, nsince);
	for (i = 0; i < n; i++)
		take_any(marked[i]);
	zkl_shmem_return_marks(marked_since, nsince);
}

/* ---- after a restart of the worker ---- */

/* Lost to an operator, but its holder has not yet let go. */
static bool
is_broken(const ZklSlot *slot)
{
	return slot->s_state == ZKL_SLOT_LOST && slot->s_token != 0 &&
		slot->s_error == ZKL_ERROR_BROKEN;
}

/* Held for too long; its holder may be past its commit check. */
static bool
is_overdue(const ZklSlot *slot)
{
	return slot->s_state == ZKL_SLOT_LOST && slot->s_token != 0 &&
		slot->s_error == ZKL_ERROR_OVERDUE && !slot->s_retired;
}

/* Released, but to be kept for a while. */
static bool
is_kept(const ZklSlot *slot)
{
	return slot->s_state == ZKL_SLOT_RELEASED && slot->s_keep_until != 0;
}

/* A request that an earlier worker knew: the core takes it up again. */
static void
restore_slot(int slotno, const ZklSlot *slot)
{
	uint32		generation = zkl_control->ctl_status.generation;
	bool		current = zkl_control->ctl_status.session_id != 0 &&
	slot->s_generation == generation;
	bool		sent = slot->s_znode_sent && current;
	ZklDemand	demand;
	ZklRestored restored;
	char		data[ZKL_MAX_NODE_DATA];

	/* There is nothing of it in ZooKeeper: it is freed. */
	if (slot->s_state == ZKL_SLOT_RELEASED && !sent &&
		!(is_kept(slot) && current))
		return;
	known_serial[slotno] = slot->s_serial;
	if (slot->s_kind != ZKL_KIND_LOCK)
	{
		if (slot->s_state == ZKL_SLOT_WAITING &&
			slot->s_kind == ZKL_KIND_BREAK && slot->s_znode_sent)
			zkl_slot_fail(slotno, ZKL_ERROR_HALF_DONE, 0);
		else if (slot->s_state == ZKL_SLOT_WAITING &&
				 slot->s_kind == ZKL_KIND_ERRAND)
			zkl_runner_restore(slotno);
		else if (slot->s_state == ZKL_SLOT_WAITING)
			submit_other(slotno, slot);
		return;
	}
	if (slot->s_state == ZKL_SLOT_GRANTED && !current)
	{
		zkl_slot_lose(slotno, ZKL_ERROR_SESSION_EXPIRED);
		return;					/* its release ends it */
	}
	memset(&restored, 0, sizeof(restored));

	/*
	 * A hold that was released meanwhile may have a znode on which another
	 * hold of its owner leans: it is released, or kept, once they are all
	 * there.  One that was lost while it had its znode keeps that until its
	 * holder is through.
	 */
	restored.broken = is_broken(slot) && current;
	restored.granted = slot->s_state == ZKL_SLOT_GRANTED || restored.broken ||
		((is_overdue(slot) || is_kept(slot)) && current) ||
		(slot->s_state == ZKL_SLOT_RELEASED && sent && slot->s_token != 0 &&
		 slot->s_znode_seq >= 0);
	restored.answered = !restored.granted &&
		slot->s_state != ZKL_SLOT_WAITING;
	restored.sent = sent;
	restored.uuid = slot->s_znode_uuid;
	restored.znode_mode = (ZklLockMode) slot->s_znode_mode;
	restored.seq = slot->s_znode_seq;
	restored.index = slot->s_znode_index;
	restored.token = slot->s_token;
	restored.asked_zxid = slot->s_asked_zxid;
	describe_demand(slot, &demand, data);
	zkl_manager_restore(core, zkl_boottime_us(), (uint32) slotno, &demand,
						&restored);
}

static bool
has_znode(const ZklSlot *slot)
{
	return slot->s_znode_sent && slot->s_token != 0 && !slot->s_retired;
}

static bool
is_held(const ZklSlot *slot)
{
	return slot->s_state == ZKL_SLOT_GRANTED || is_broken(slot) ||
		is_overdue(slot) || is_kept(slot);
}

static bool
is_released(const ZklSlot *slot)
{
	return slot->s_state == ZKL_SLOT_RELEASED;
}

static bool
is_in_use(const ZklSlot *slot)
{
	return slot->s_state > ZKL_SLOT_CLAIMED;
}

/*
 * Holds with a znode first; holds without one lean on them.  Then what was
 * released or is overdue goes, its znode perhaps to another hold; and then
 * those who wait, on top of what their owner still holds.
 */
void
zkl_intake_restore(void)
{
	static bool (*const passes[]) (const ZklSlot *slot) = {
		has_znode, is_held, is_released, is_in_use
	};
	ZklSlot		slot;
	int			pass,
				i;

	for (pass = 0; pass < (int) lengthof(passes); pass++)
	{
		for (i = 0; i < zkl_control->ctl_nslots; i++)
		{
			if (zkl_slot_peek(i) <= ZKL_SLOT_CLAIMED)
				continue;
			zkl_slot_copy(i, &slot);
			if (!is_in_use(&slot) || !passes[pass] (&slot))
				continue;
			if (known_serial[i] != slot.s_serial)
				restore_slot(i, &slot);
			if (passes[pass] == is_released)
				release_slot(i, &slot);
		}
		if (passes[pass] == is_released)
			zkl_bounds_look_at_all();
	}
}
