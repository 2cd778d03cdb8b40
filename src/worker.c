/*
 * worker.c
 *	  The background worker: carries requests from the slots to the core, and
 *	  what the core decides to ZooKeeper and back to the slots.
 *
 * Owns the core's manager and the loop.  Runs as one process per server, with
 * shared memory but no database.  Takes the slots' mutexes and ctl_lock
 * through shmem.h, one at a time.  It decides nothing about locks (core/ does)
 * and does not speak to ZooKeeper (zklock_session does).
 *
 * The worker never exits with 0, which the postmaster takes for "never start
 * again".  With 1 it is restarted after a second, finds its session and all
 * requests in shared memory, and goes on where it was.
 */
#include "postgres.h"

#include <signal.h>
#include <unistd.h>

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "postmaster/postmaster.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "compat.h"
#include "link.h"
#include "queueview.h"
#include "shmem.h"
#include "supervisor.h"
#include "zklock.h"

#define BATCHES_IN_FLIGHT	2
#define BATCH_OPERATIONS	256
#define BATCH_BYTES			(256 * 1024)
#define LONGEST_SLEEP_MS	(3600 * 1000L)

/* On the link, the kind of an operation goes along in its tag. */
#define TAG_BITS			56
#define TAG_MASK			((UINT64CONST(1) << TAG_BITS) - 1)

/* PostgreSQL's postmaster.pid, line 8 (utils/pidfile.h) */
#define PM_STATUS_LINE		8

PGDLLEXPORT void zkl_worker_main(Datum arg);

static ZklManager *core = NULL;
static MemoryContext core_context = NULL;
static uint32 *known_serial = NULL; /* of each slot that the core knows */
static int64 published_lease = 0;
static uint32 published_generation = 0;
static int64 stop_until = 0;	/* stopping: serve at most until then */

static int64
boottime_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
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

static void
submit_slot(int slotno, const ZklSlot *slot)
{
	ZklDemand	demand;
	char		data[ZKL_MAX_NODE_DATA];

	known_serial[slotno] = slot->s_serial;
	if (slot->s_kind == ZKL_KIND_QUEUE)
	{
		zkl_queueview_submit(slotno);
		return;
	}
	describe_demand(slot, &demand, data);
	zkl_manager_submit(core, boottime_us(), (uint32) slotno, &demand);
}

static void
release_slot(int slotno, const ZklSlot *slot)
{
	if (known_serial[slotno] != slot->s_serial)
		zkl_slot_free(slotno);	/* cancelled before we ever saw it */
	else if (slot->s_kind == ZKL_KIND_QUEUE)
		zkl_queueview_release(slotno);
	else
		zkl_manager_release(core, boottime_us(), (uint32) slotno);
}

static void
take_slot(int slotno, void *arg)
{
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	if (slot.s_state == ZKL_SLOT_RELEASED)
		release_slot(slotno, &slot);
	else if (slot.s_state == ZKL_SLOT_WAITING &&
			 known_serial[slotno] != slot.s_serial)
		submit_slot(slotno, &slot);
	else if (slot.s_state == ZKL_SLOT_WAITING && slot.s_expired &&
			 slot.s_kind == ZKL_KIND_LOCK)
		zkl_manager_expire(core, boottime_us(), (uint32) slotno);
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
						   action->tag | (uint64) action->send << TAG_BITS, 0);
	if (action->send == ZKL_SEND_MULTI)
		put_multi(out, action);
	else
		put_text(out, action->path);
	if (action->send == ZKL_SEND_GET || action->send == ZKL_SEND_LIST)
		zkl_wire_put_u8(out, action->watch);
	zkl_wire_end(out, frame);
	zkl_supervisor_sent(boottime_us());
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
	};

	return errors[failure];
}

static void
record_chain(uint32 chain)
{
	zkl_status_begin()->chain = chain;
	zkl_status_end();
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
			record_chain(action->chain);
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
			zkl_slot_lose(slotno, failure_error(action->failure));
			break;
		case ZKL_ACTION_FREE:
			known_serial[slotno] = 0;
			zkl_slot_free(slotno);
			break;
		case ZKL_ACTION_RECONNECT:
			zkl_queueview_disconnected();
			zkl_supervisor_reconnect(action->rc, boottime_us());
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

	if (lease == published_lease && generation == published_generation)
		return;
	published_lease = lease;
	published_generation = generation;
	zkl_lease_publish(generation, lease);
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

static void
carry_out_all(void)
{
	const ZklAction *actions;
	size_t		n,
				i;

	publish_lease();

	/* Carrying out can make the core act again: when the connection ends. */
	for (i = 0; actions = zkl_manager_actions(core, &n), i < n; i++)
	{
		ZklAction	action = actions[i];

		carry_out(&action);
	}
	zkl_manager_clear_actions(core);
}

/* ---- from the link to the core ---- */

static void
read_stat(ZklWireReader *body, ZklReply *reply, int64 *ctime)
{
	ZklWireStat stat;

	zkl_wire_get_stat(body, &stat);
	reply->stat.czxid = stat.czxid;
	reply->stat.mzxid = stat.mzxid;
	reply->stat.ephemeral_owner = stat.ephemeral_owner;
	*ctime = stat.ctime;
}

static char *
read_text(ZklWireReader *body)
{
	uint32_t	length;
	const char *text = zkl_wire_get_string(body, &length);

	return length > 0 ? pnstrdup(text, length) : NULL;
}

static void
read_multi(ZklWireReader *body, ZklReply *reply)
{
	uint32_t	n = zkl_wire_get_u32(body);
	ZklMultiResult *results;
	int64		ctime;
	uint32_t	i;

	n = Min(n, BATCH_OPERATIONS);
	results = palloc0((n + 1) * sizeof(ZklMultiResult));
	for (i = 0; i < n; i++)
	{
		results[i].rc = zkl_wire_get_i32(body);
		results[i].path = read_text(body);
		if (zkl_wire_get_u8(body) != 0)
		{
			ZklReply	other;

			read_stat(body, i == 0 ? reply : &other, &ctime);
		}
	}
	reply->results = results;
	reply->nresults = body->bad ? 0 : n;
}

static void
read_children(ZklWireReader *body, ZklReply *reply)
{
	uint32_t	n = zkl_wire_get_u32(body);
	char	  **children = palloc((Min(n, body->left / 4) + 1) *
								  sizeof(char *));

	for (reply->nchildren = 0; reply->nchildren < n && !body->bad;)
	{
		char	   *child = read_text(body);

		if (child != NULL)
			children[reply->nchildren++] = child;
	}
	reply->children = (const char *const *) children;
}

static void
take_reply(const ZklWireHeader *header, ZklWireReader *body, int64 now)
{
	uint64		tag = header->tag & TAG_MASK;
	ZklReply	reply;
	int64		ctime = 0;
	uint32_t	length;

	memset(&reply, 0, sizeof(reply));
	reply.rc = header->rc == ZKL_RC_UNSENT ? ZKL_RC_UNKNOWN : header->rc;
	switch ((ZklSendKind) (header->tag >> TAG_BITS))
	{
		case ZKL_SEND_MULTI:
			read_multi(body, &reply);
			break;
		case ZKL_SEND_GET:
			if (reply.rc != ZKL_RC_OK)
				break;
			reply.data = zkl_wire_get_string(body, &length);
			reply.data_length = length;
			read_stat(body, &reply, &ctime);
			break;
		case ZKL_SEND_LIST:
			if (reply.rc == ZKL_RC_OK)
				read_children(body, &reply);
			break;
		default:
			break;
	}
	if (tag & ZKL_QUEUEVIEW_TAG)
		zkl_queueview_reply(tag, &reply, ctime);
	else
		zkl_manager_reply(core, now, tag, &reply);
	zkl_supervisor_answered(now);
}

static void
take_event(ZklWireReader *body, int64 now)
{
	uint8_t		kind = zkl_wire_get_u8(body);
	char	   *path = read_text(body);

	if (path == NULL)
		return;
	zkl_manager_event(core, now, kind == ZKL_WIRE_EVENT_DELETED ?
					  ZKL_EVENT_DELETED : kind == ZKL_WIRE_EVENT_CHILDREN ?
					  ZKL_EVENT_CHILDREN : ZKL_EVENT_CHANGED, path);
}

static void
take_frame(const ZklWireHeader *header, ZklWireReader *body, int64 now)
{
	switch (header->type)
	{
		case ZKL_WIRE_REPLY:
			take_reply(header, body, now);
			break;
		case ZKL_WIRE_EVENT:
			take_event(body, now);
			break;
		case ZKL_WIRE_GONE:
			zkl_queueview_disconnected();
			/* FALLTHROUGH */
		default:

			/* What was decided so far was decided in the old session. */
			carry_out_all();
			zkl_supervisor_frame(header, body, now);
			carry_out_all();
			break;
	}
}

/* ---- the phases of the loop ---- */

static void
take_requests(void)
{
	zkl_shmem_take_marked(take_slot, NULL);
}

static void
take_frames(void)
{
	ZklWireHeader header;
	ZklWireReader body;
	int			got = 0;
	bool		sound = !zkl_link_up() || zkl_link_read();
	int64		now = boottime_us();

	while (zkl_link_up() && (got = zkl_link_next(&header, &body)) > 0)
		take_frame(&header, &body, now);
	if (zkl_link_up() && (!sound || got < 0))
	{
		zkl_queueview_disconnected();
		zkl_supervisor_link_broken(now);
	}
}

static void
send_what_is_at_hand(void)
{
	int64		now = boottime_us();

	if (zkl_supervisor_tick(now))
		zkl_queueview_disconnected();
	zkl_manager_flush(core, now);
	carry_out_all();
	zkl_queueview_tick(zkl_manager_ready(core));
	publish_counters();
	if (zkl_link_up() && !zkl_link_flush())
	{
		zkl_queueview_disconnected();
		zkl_supervisor_link_broken(now);
	}
}

static long
sleep_ms(void)
{
	int64		now = boottime_us();
	int64		due = zkl_supervisor_timer();
	int64		core_due = zkl_manager_timer(core);

	if (core_due >= 0 && core_due < due)
		due = core_due;
	if (stop_until != 0 && stop_until < due)
		due = stop_until;
	if (due <= now)
		return 0;
	return (long) Min((due - now + 999) / 1000, LONGEST_SLEEP_MS);
}

/* ---- the end ---- */

/*
 * Whether the whole server is going down, as opposed to a signal to just us.
 * The postmaster says so in its lock file before it signals anybody.
 */
static bool
server_is_stopping(void)
{
	char		path[MAXPGPATH];
	char		line[MAXPGPATH + 64] = "";
	FILE	   *file;
	int			i;

	snprintf(path, sizeof(path), "%s/postmaster.pid", DataDir);
	file = AllocateFile(path, "r");
	if (file == NULL)
		return true;
	for (i = 0; i < PM_STATUS_LINE; i++)
	{
		if (fgets(line, sizeof(line), file) == NULL)
			line[0] = '\0';
	}
	FreeFile(file);
	return strncmp(line, "stopping", strlen("stopping")) == 0;
}

static bool
somebody_holds(void)
{
	int			i;

	for (i = 0; i < zkl_control->ctl_nslots; i++)
	{
		ZklSlotState state = zkl_slot_peek(i);

		if (state == ZKL_SLOT_GRANTED || state == ZKL_SLOT_WAITING)
			return true;
	}
	return false;
}

/*
 * Stopping, serve until the last holder is gone: its transaction may be about
 * to commit.  If one stays past the bound, the session is not closed but left
 * to expire, which takes as long as the holder may rely on it.
 */
static void
check_stop(void)
{
	if (!ShutdownRequestPending)
		return;
	if (stop_until == 0)
	{
		if (!server_is_stopping())
			proc_exit(1);
		stop_until = boottime_us() + (int64) zkl_session_timeout * 1000;
	}
	if (!somebody_holds())
	{
		zkl_supervisor_close_session();
		proc_exit(1);
	}
	if (boottime_us() >= stop_until)
	{
		zkl_lease_publish(zkl_control->ctl_status.generation, 0);
		proc_exit(1);
	}
}

/* However we end, the session process goes first. */
static void
end_worker(int code, Datum arg)
{
	ZklStatus  *status;

	zkl_link_kill();
	status = zkl_status_begin();
	status->worker_pid = 0;
	status->worker_procno = ZKL_PROCNO_NONE;
	status->session_pid = 0;
	status->state = ZKL_STATE_STOPPED;
	status->server[0] = '\0';
	zkl_status_end();
}

/* ---- the beginning ---- */

static void *
core_alloc(void *context, size_t size)
{
	return MemoryContextAllocHuge((MemoryContext) context, size);
}

static void
core_release(void *context, void *pointer)
{
	pfree(pointer);
}

static void
make_core(void)
{
	ZklConfig	config;

	core_context = AllocSetContextCreate(TopMemoryContext, "zklock core",
										 ALLOCSET_DEFAULT_SIZES);
	memset(&config, 0, sizeof(config));
	config.root = zkl_root;
	config.max_requests = (uint32) zkl_control->ctl_nslots;
	config.max_directories = Max(4096, config.max_requests);
	config.batches_in_flight = BATCHES_IN_FLIGHT;
	config.batch_operations = BATCH_OPERATIONS;
	config.batch_bytes = BATCH_BYTES;
	config.memory.alloc = core_alloc;
	config.memory.release = core_release;
	config.memory.context = core_context;
	if (!pg_strong_random(&config.uuid_base, sizeof(config.uuid_base)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	core = zkl_manager_create(&config);
	known_serial = MemoryContextAllocZero(TopMemoryContext,
										  zkl_control->ctl_nslots *
										  sizeof(uint32));
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

	known_serial[slotno] = slot->s_serial;
	if (slot->s_kind == ZKL_KIND_QUEUE)
	{
		if (slot->s_state == ZKL_SLOT_WAITING)
			zkl_queueview_submit(slotno);
		return;
	}
	if (slot->s_state == ZKL_SLOT_GRANTED && !current)
	{
		zkl_slot_lose(slotno, ZKL_ERROR_SESSION_EXPIRED);
		return;					/* its release ends it */
	}
	memset(&restored, 0, sizeof(restored));
	restored.granted = slot->s_state == ZKL_SLOT_GRANTED;
	restored.released = slot->s_state == ZKL_SLOT_RELEASED;
	restored.answered = !restored.granted && !restored.released &&
		slot->s_state != ZKL_SLOT_WAITING;
	restored.sent = sent;
	restored.uuid = slot->s_znode_uuid;
	restored.znode_mode = (ZklLockMode) slot->s_znode_mode;
	restored.seq = slot->s_znode_seq;
	restored.index = slot->s_znode_index;
	restored.token = slot->s_token;
	describe_demand(slot, &demand, data);
	zkl_manager_restore(core, boottime_us(), (uint32) slotno, &demand,
						&restored);
}

/* Holds with a znode first: those without lean on them. */
static void
restore_slots(void)
{
	ZklSlot		slot;
	int			pass,
				i;

	for (pass = 0; pass < 2; pass++)
	{
		for (i = 0; i < zkl_control->ctl_nslots; i++)
		{
			if (zkl_slot_peek(i) <= ZKL_SLOT_CLAIMED)
				continue;
			zkl_slot_copy(i, &slot);
			if (slot.s_state > ZKL_SLOT_CLAIMED &&
				known_serial[i] != slot.s_serial &&
				(pass == 1 || slot.s_znode_sent))
				restore_slot(i, &slot);
		}
	}
}

static void
attach_session(void)
{
	const ZklStatus *status = &zkl_control->ctl_status;
	ZklSession	session;

	session.id = status->session_id;
	session.generation = status->generation;
	session.timeout_ms = status->timeout_ms;
	if (session.id != 0)
		zkl_manager_attach(core, &session, status->chain);
	restore_slots();
}

static void
set_up(void)
{
	ZklStatus  *status;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();

	before_shmem_exit(end_worker, (Datum) 0);
	status = zkl_status_begin();
	status->worker_pid = MyProcPid;
	status->worker_procno = zkl_my_procno();
	zkl_status_end();

	make_core();
	zkl_queueview_begin(send_queueview_read);
	zkl_supervisor_begin(core);
	attach_session();
}

void
zkl_worker_main(Datum arg)
{
	MemoryContext loop_context;

	set_up();
	loop_context = AllocSetContextCreate(TopMemoryContext, "zklock loop",
										 ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(loop_context);
	for (;;)
	{
		ResetLatch(MyLatch);
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			zkl_queueview_disconnected();
			zkl_supervisor_reload(boottime_us());
		}
		take_requests();
		take_frames();
		check_stop();
		send_what_is_at_hand();
		MemoryContextReset(loop_context);
		zkl_link_wait(sleep_ms());
	}
}
