/*
 * exchange.c
 *	  Between the slots, the core and the link: what the worker carries.
 *
 * Owns the worker's knowledge of which slots the core knows.  Runs in the
 * worker only.  Takes the slots' mutexes and ctl_lock through shmem.h, one at
 * a time.  It decides nothing about locks.
 */
#include "postgres.h"

#include <unistd.h>

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "postmaster/postmaster.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "breaklock.h"
#include "exchange.h"
#include "link.h"
#include "queueview.h"
#include "shmem.h"
#include "supervisor.h"
#include "zklock.h"

static ZklManager *core = NULL;
static uint32 *known_serial = NULL; /* of each slot that the core knows */
static uint64 *marked = NULL;	/* slots to be looked at, see
								 * zkl_exchange_requests */
static uint64 *marked_since = NULL;
static int64 published_lease = 0;
static uint32 published_generation = 0;

static void send_operation(const ZklAction *action);
static void send_queueview_read(ZklSendKind send, uint64 tag,
								const char *path);

void
zkl_exchange_begin(ZklManager *manager)
{
	core = manager;
	zkl_lease_read(&published_generation, &published_lease);
	known_serial = MemoryContextAllocZero(TopMemoryContext,
										  zkl_control->ctl_nslots *
										  sizeof(uint32));
	marked = MemoryContextAllocZero(TopMemoryContext,
									zkl_control->ctl_nwords * sizeof(uint64));
	marked_since = MemoryContextAllocZero(TopMemoryContext,
										  zkl_control->ctl_nwords *
										  sizeof(uint64));
	zkl_queueview_begin(send_queueview_read);
	zkl_breaklock_begin(send_operation);
}

/* ---- from the slots to the core ---- */

/* The name that others see in zk_queue() */
static const char *
server_name(void)
{
	static char name[64] = "";

	if (name[0] == '\0')
	{
		const char *cluster = GetConfigOption("cluster_name", true, false);
		char		host[48] = "localhost";

		if (cluster != NULL && cluster[0] != '\0')
			strlcpy(name, cluster, sizeof(name));
		else
		{
			gethostname(host, sizeof(host) - 1);
			snprintf(name, sizeof(name), "%s:%d", host, PostPortNumber);
		}
	}
	return name;
}

static size_t
format_node_data(const ZklSlot *slot, char *buf)
{
	ZklNodeData data;

	memset(&data, 0, sizeof(data));
	strlcpy(data.server, server_name(), sizeof(data.server));
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
	demand->sibling = slot->s_sibling;
	demand->expired = slot->s_try && slot->s_expired;
	demand->data = data;
	demand->data_length = format_node_data(slot, data);
}

/* What the worker answers itself, without the core */
static void
submit_other(int slotno, const ZklSlot *slot)
{
	if (slot->s_kind == ZKL_KIND_QUEUE)
		zkl_queueview_submit(slotno);
	else
		zkl_breaklock_submit(slotno);
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

static void
release_slot(int slotno, const ZklSlot *slot)
{
	if (known_serial[slotno] != slot->s_serial)
		zkl_slot_free(slotno);	/* cancelled before we ever saw it */
	else if (slot->s_kind == ZKL_KIND_QUEUE)
		zkl_queueview_release(slotno);
	else if (slot->s_kind == ZKL_KIND_BREAK)
		zkl_breaklock_release(slotno);
	else
		zkl_manager_release(core, zkl_boottime_us(), (uint32) slotno);
}

/* These two return whether they are done with the slot. */
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

static bool
take_other(int slotno)
{
	ZklSlot		slot;

	if (take_released(slotno))
		return true;
	zkl_slot_copy(slotno, &slot);
	if (slot.s_state == ZKL_SLOT_WAITING &&
			 known_serial[slotno] != slot.s_serial)
		submit_slot(slotno, &slot);
	else if (slot.s_state == ZKL_SLOT_WAITING && slot.s_expired &&
			 slot.s_kind == ZKL_KIND_LOCK)
		zkl_manager_expire(core, zkl_boottime_us(), (uint32) slotno);
	return true;
}

/* Clears the marks of the slots that fn is done with. */
static void
take_marked(uint64 *words, bool (*fn) (int slotno))
{
	int			word;

	for (word = 0; word < zkl_control->ctl_nwords; word++)
	{
		uint64		bits = words[word];

		while (bits != 0)
		{
			int			bit = pg_rightmost_one_pos64(bits);

			bits &= bits - 1;
			if (fn(word * ZKL_MARKS_PER_WORD + bit))
				words[word] &= ~(UINT64CONST(1) << bit);
		}
	}
}

/*
 * Who tries a lock that was released before may rely on that.  So what was
 * released is taken before what is asked for; and once more, for a release
 * whose mark was set in front of where the first look just was.  What that
 * second look finds besides is left for the next round, with two of its own.
 */
void
zkl_exchange_requests(void)
{
	int			word;

	if (!zkl_shmem_take_marks(marked))
		return;
	(void) zkl_shmem_take_marks(marked_since);

	/* What both saw is taken once, as it is now. */
	for (word = 0; word < zkl_control->ctl_nwords; word++)
		marked_since[word] &= ~marked[word];
	take_marked(marked, take_released);
	take_marked(marked_since, take_released);
	take_marked(marked, take_other);
	zkl_shmem_return_marks(marked_since);
}

/* ---- from the core to the slots and the link ---- */

static void
put_text(ZklWireBuffer *out, const char *text)
{
	zkl_wire_put_string(out, text, strlen(text));
}

static void
put_multi(ZklWireBuffer *out, const ZklAction *action)
{
	static const uint8 kinds[] = {
		[ZKL_MULTI_SET] = ZKL_WIRE_OP_SET,
		[ZKL_MULTI_DELETE] = ZKL_WIRE_OP_DELETE,
		[ZKL_MULTI_CREATE] = ZKL_WIRE_OP_CREATE,
		[ZKL_MULTI_CREATE_EPHEMERAL] = ZKL_WIRE_OP_CREATE_EPHEMERAL,
	};
	size_t		i;

	zkl_wire_put_u32(out, (uint32) action->nmulti);
	for (i = 0; i < action->nmulti; i++)
	{
		const ZklMultiOp *op = &action->multi[i];

		zkl_wire_put_u8(out, kinds[op->kind]);
		put_text(out, op->path);
		zkl_wire_put_string(out, op->data, op->data_length);
		zkl_wire_put_i32(out, op->version);
	}
}

static void
send_operation(const ZklAction *action)
{
	static const ZklWireType types[] = {
		[ZKL_SEND_MULTI] = ZKL_WIRE_MULTI,
		[ZKL_SEND_CREATE_CONTAINER] = ZKL_WIRE_CREATE_CONTAINER,
		[ZKL_SEND_DELETE] = ZKL_WIRE_DELETE,
		[ZKL_SEND_GET] = ZKL_WIRE_GET,
		[ZKL_SEND_LIST] = ZKL_WIRE_LIST,
		[ZKL_SEND_UNWATCH] = ZKL_WIRE_UNWATCH,
	};
	ZklWireBuffer *out = zkl_link_output();
	size_t		frame;

	if (zkl_supervisor_generation() == 0)
		return;					/* the core has been told, or will be */
	frame = zkl_wire_begin(out, types[action->send],
						   zkl_supervisor_generation(),
						   zkl_exchange_tag(action->send, action->tag), 0);
	if (action->send == ZKL_SEND_MULTI)
		put_multi(out, action);
	else
		put_text(out, action->path);
	if (action->send == ZKL_SEND_GET || action->send == ZKL_SEND_LIST)
		zkl_wire_put_u8(out, action->watch);
	zkl_wire_end(out, frame);
	zkl_supervisor_sent(zkl_boottime_us());
}

static void
send_queueview_read(ZklSendKind send, uint64 tag, const char *path)
{
	ZklAction	action;

	memset(&action, 0, sizeof(action));
	action.kind = ZKL_ACTION_SEND;
	action.send = send;
	action.tag = tag;
	action.path = path;
	send_operation(&action);
}

static ZklError
failure_error(ZklFailure failure)
{
	static const ZklError errors[] = {
		[ZKL_FAILURE_DEADLOCK] = ZKL_ERROR_DEADLOCK,
		[ZKL_FAILURE_ZOOKEEPER] = ZKL_ERROR_ZOOKEEPER,
		[ZKL_FAILURE_PARENTS] = ZKL_ERROR_PARENTS,
		[ZKL_FAILURE_SESSION_EXPIRED] = ZKL_ERROR_SESSION_EXPIRED,
		[ZKL_FAILURE_NODE_DELETED] = ZKL_ERROR_NODE_DELETED,
		[ZKL_FAILURE_BROKEN] = ZKL_ERROR_BROKEN,
	};

	return errors[failure];
}

static void
record_chain(uint32 chain, uint32 kept)
{
	ZklStatus  *status = zkl_status_begin();

	status->chain = chain;
	status->chain_kept = kept;
	zkl_status_end();
}

/* One line in the server's log, whatever the holder is told and when */
static void
lose(int slotno, ZklFailure failure)
{
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	if (zkl_slot_lose(slotno, failure_error(failure)))
		ereport(LOG,
				(errmsg("distributed lock \"%s\" of process %d was lost: %s",
						slot.s_path, slot.s_pid,
						failure == ZKL_FAILURE_BROKEN ?
						"an operator breaks it" :
						failure == ZKL_FAILURE_SESSION_EXPIRED ?
						"the ZooKeeper session is gone" :
						"its znode is gone")));
}

static void
carry_out(const ZklAction *action)
{
	int			slotno = (int) action->request;
	uint32		generation = zkl_control->ctl_status.generation;

	switch (action->kind)
	{
		case ZKL_ACTION_SEND:
			send_operation(action);
			break;
		case ZKL_ACTION_CHAIN:
			record_chain(action->chain, action->chain_kept);
			break;
		case ZKL_ACTION_ZNODE:
			zkl_slot_set_znode(slotno, &action->uuid, action->index,
							   action->mode, action->seq, generation);
			break;
		case ZKL_ACTION_GRANT:
			zkl_slot_grant(slotno, action->token, generation);
			break;
		case ZKL_ACTION_DENY:
			zkl_slot_deny(slotno);
			break;
		case ZKL_ACTION_FAIL:
			zkl_slot_fail(slotno, failure_error(action->failure), action->rc);
			break;
		case ZKL_ACTION_LOSE:
			lose(slotno, action->failure);
			break;
		case ZKL_ACTION_FREE:
			known_serial[slotno] = 0;
			zkl_slot_free(slotno);
			break;
		case ZKL_ACTION_RECONNECT:
			zkl_supervisor_reconnect(action->rc);
			break;
	}
}

/*
 * Publishes the lease first: a backend that picks up a grant compares the
 * session's generation with it.
 */
static void
publish_lease(void)
{
	uint32		generation = zkl_control->ctl_status.generation;
	int64		lease = zkl_manager_lease(core) / 1000;
	int64_t		before = published_lease;

	/* Within a generation it only grows, also over a restart of ours. */
	if (lease <= published_lease && generation == published_generation)
		return;
	published_lease = lease;
	published_generation = generation;
	zkl_lease_publish(generation, lease);

	/* Whoever saw the lease passed until now looks again. */
	pg_memory_barrier();
	if (before <= zkl_boottime_ms())
		zkl_slot_wake_holders();
}

/* Before the grants whose tokens are made of it */
static void
publish_zxid(void)
{
	static int64 published_zxid = 0;
	int64		zxid = zkl_manager_zxid(core);

	if (zxid == published_zxid)
		return;
	published_zxid = zxid;
	pg_atomic_write_u64(&zkl_control->ctl_zxid_seen, (uint64) zxid);
}

static void
publish_counters(void)
{
	static ZklCounters last;
	ZklCounters now;
	ZklStatus  *status;

	zkl_manager_counters(core, &now);
	if (memcmp(&now, &last, sizeof(now)) == 0)
		return;
	last = now;
	status = zkl_status_begin();
	status->batches = now.batches;
	status->operations = now.operations;
	status->listings = now.listings;
	zkl_status_end();
}

void
zkl_exchange_actions(void)
{
	const ZklAction *actions;
	size_t		n,
				i;

	publish_zxid();
	publish_lease();

	/* Carrying out can make the core act again: when the connection ends. */
	for (i = 0; actions = zkl_manager_actions(core, &n), i < n; i++)
	{
		ZklAction	action = actions[i];

		carry_out(&action);
	}
	zkl_manager_clear_actions(core);
	publish_counters();
}

/* ---- after a restart of the worker ---- */

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

	/* There is nothing of it in ZooKeeper: the third pass frees it. */
	if (slot->s_state == ZKL_SLOT_RELEASED && !sent)
		return;
	known_serial[slotno] = slot->s_serial;
	if (slot->s_kind != ZKL_KIND_LOCK)
	{
		if (slot->s_state == ZKL_SLOT_WAITING)
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
	 * hold of its owner leans: it is released once they are all there.  One
	 * that an operator broke keeps its znode until its holder is through.
	 */
	restored.broken = slot->s_state == ZKL_SLOT_LOST && sent &&
		slot->s_error == ZKL_ERROR_BROKEN;
	restored.leaving = slot->s_state == ZKL_SLOT_RELEASED && sent &&
		slot->s_token != 0 && slot->s_znode_seq >= 0;
	restored.granted = slot->s_state == ZKL_SLOT_GRANTED || restored.broken ||
		restored.leaving;
	restored.answered = !restored.granted &&
		slot->s_state != ZKL_SLOT_WAITING &&
		slot->s_state != ZKL_SLOT_RELEASED;
	restored.sent = sent;
	restored.uuid = slot->s_znode_uuid;
	restored.znode_mode = (ZklLockMode) slot->s_znode_mode;
	restored.seq = slot->s_znode_seq;
	restored.index = slot->s_znode_index;
	restored.token = slot->s_token;
	describe_demand(slot, &demand, data);
	zkl_manager_restore(core, zkl_boottime_us(), (uint32) slotno, &demand,
						&restored);
}

/*
 * Holds with a znode first: holds without one lean on them, and upgrades wait
 * on top of them.  Then the rest; then what was released goes.
 */
void
zkl_exchange_restore(void)
{
	ZklSlot		slot;
	int			pass,
				i;

	for (pass = 0; pass < 3; pass++)
	{
		for (i = 0; i < zkl_control->ctl_nslots; i++)
		{
			if (zkl_slot_peek(i) <= ZKL_SLOT_CLAIMED)
				continue;
			zkl_slot_copy(i, &slot);
			if (pass == 2 && slot.s_state == ZKL_SLOT_RELEASED)
				release_slot(i, &slot);
			else if (slot.s_state > ZKL_SLOT_CLAIMED &&
					 known_serial[i] != slot.s_serial &&
					 (pass == 1 || (pass == 0 && slot.s_znode_sent &&
									slot.s_token != 0)))
				restore_slot(i, &slot);
		}
	}
	zkl_exchange_actions();
}
