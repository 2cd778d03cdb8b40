/*
 * worker.c
 *	  The background worker: its beginning, its loop and its end.
 *
 * Owns the core's manager, the decision whether the gate is open, and the state of a
 * session that is being closed.  Runs as one process per server, with shared memory
 * but without a database.  Takes no locks of its own but the slots' mutexes, one at
 * a time, and locks through identity.c.  It decides nothing about locks: that is for
 * core/.  events.c tells the core what happened, and carry_out.c does what the core
 * decides.  Only zklock_session speaks to ZooKeeper.
 */
#include "postgres.h"

#include <signal.h>

#include "core/assert.h"
#include "deadlock/deadlock.h"
#include "miscadmin.h"
#include "observe/inspect.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "postmaster/postmaster.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "worker/answers.h"
#include "worker/carry_out.h"
#include "worker/connect_settings.h"
#include "worker/events.h"
#include "worker/identity.h"
#include "worker/link.h"
#include "worker/operation.h"
#include "worker/peer_key.h"
#include "worker/peers.h"
#include "worker/report.h"
#include "worker/root_watch.h"
#include "worker/supervisor.h"
#include "worker/worker.h"
#include "worker/worker_slot.h"

/* ---- closing: closing the gate for new requests, and then the ZooKeeper session ---- */

/*
 * Takes the slots' mutexes, one at a time, and locks through identity.c.  It must
 * not know how the next session begins.
 *
 * When the gate closes, holders keep their locks, go on, and commit.  Sessions that wait
 * are woken, and find the gate closed.
 */

/* ---- the gate ---- */

/*
 * A hold that was lost may still be relied on by a transaction that is past its
 * commit check.
 */
static bool
is_used(const ZklSlot *slot, bool kept)
{
	switch ((ZklSlotState) slot->s_state)
	{
		case ZKL_SLOT_WAITING:
		case ZKL_SLOT_GRANTED:
			return true;
		case ZKL_SLOT_LOST:
			return slot->s_holder.quiet ||
				(kept && slot->s_promised_until > zkl_boottime_ms());
		case ZKL_SLOT_RELEASED:
			return slot->s_epilogue ||
				(kept && slot->s_keep_until > zkl_boottime_ms());
		default:
			return false;
	}
}

/*
 * Whether a slot holds or awaits something, its transaction is past its commit
 * check, or an epilogue is still to be written; or, with "kept", a lock is kept.
 */
static bool
closing_is_in_use(bool kept)
{
	ZklSlot		slot;
	int			i;

	if (pg_atomic_read_u32(&zkl_control->ctl_breaks) > 0)
		return true;
	for (i = 0; i < zkl_control->ctl_nslots; i++)
	{
		if (zkl_slot_peek(i) <= ZKL_SLOT_CLAIMED)
			continue;
		zkl_slot_copy(i, &slot);
		if (is_used(&slot, kept))
			return true;
	}
	return false;
}

bool
zkl_closing_needs_session(void)
{
	return zkl_enabled || closing_is_in_use(true);
}

static void
log_change(ZklGate gate)
{
	if (gate == ZKL_GATE_DISABLED)
		ereport(LOG,
				(errmsg("distributed locks are disabled"),
				 errdetail("Sessions keep the locks that they hold.")));
	else
		ereport(LOG,
				(errmsg("distributed locks are enabled")));
}

/* Sets the gate as "zklock.enabled" wants it. */
static void
closing_tick(void)
{
	ZklGate		gate = zkl_enabled ? ZKL_GATE_OPEN : ZKL_GATE_DISABLED;

	if (gate == zkl_gate_read())
		return;
	zkl_gate_set(gate);
	log_change(gate);
	if (gate != ZKL_GATE_OPEN)
	{
		zkl_tickets_withdraw_all();
		zkl_worker_slot_wake_waiters();
	}
}

/* ---- when the server stops ---- */

/*
 * Whether a slot keeps a lock that somebody relies on, who outlives the server: a time
 * was told, or the lock is reserved.
 */
static bool
is_promised(const ZklSlot *slot)
{
	return (slot->s_state == ZKL_SLOT_RELEASED || slot->s_state == ZKL_SLOT_LOST) &&
		(slot->s_promised_until > zkl_boottime_ms() || zkl_slot_is_reserved(slot));
}

/*
 * Whether a lock that nobody holds is reserved, or promised to whoever held it: then the
 * session must not be closed.
 */
static bool
closing_is_promised(void)
{
	ZklSlot		slot;
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		if (zkl_slot_peek(i) <= ZKL_SLOT_CLAIMED)
			continue;
		zkl_slot_copy(i, &slot);
		if (is_promised(&slot))
			return true;
	}
	return false;
}

/*
 * For the end of the server: lets go of all other locks.  Whether that is done; else the
 * worker has to look at its slots.
 */
static bool
closing_let_go(void)
{
	bool		gone = true;
	ZklSlot		slot;
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		if (zkl_slot_peek(i) <= ZKL_SLOT_CLAIMED)
			continue;
		zkl_slot_copy(i, &slot);
		if (is_promised(&slot) || zkl_from_slots_is_left(i) || slot.s_record.stays)
			continue;
		gone = false;
		if (slot.s_state != ZKL_SLOT_RELEASED || slot.s_keep_until == 0)
			continue;
		zkl_worker_slot_keep(i, 0);
		zkl_dirty_set(i, ZKL_WAKE_NOW);
	}
	return gone;
}

/* ---- the session ---- */

#define SHUTDOWN_MS		3000

static int64 closing_until = 0; /* 0: no session is being closed */
static bool replacing = false;	/* it could be used: no pause behind it */

/* ZooKeeper may carry out the close late, so the core loses the session first. */
static void
begin_closing(uint32 connection, int64 now)
{
	zkl_worker_tell(ZKL_EVENT(SESSION_LOST));
	zkl_link_say(ZKL_WIRE_CLOSE, connection);
	closing_until = now + ZKL_CLOSING_TIME;
}

void
zkl_closing_give_up(uint32 connection, int64 now)
{
	zkl_identity_lose();
	begin_closing(connection, now);
}

/*
 * The server is idle.  New requests wait for the next session, which begins once
 * the present one has surely ended.
 */
void
zkl_closing_replace(uint32 connection, int64 now)
{
	replacing = true;
	zkl_identity_left(zkl_status_timeout_ms());
	zkl_identity_leave();
	begin_closing(connection, now);
}

int64
zkl_closing_until(void)
{
	return closing_until;
}

bool
zkl_closing_end(bool acknowledged)
{
	bool		replaced = replacing;

	if (replaced && acknowledged)
		zkl_identity_left(0);
	else if (replaced)
		ereport(LOG,
				(errmsg("ZooKeeper did not acknowledge that the session is closed"),
				 errdetail("The next session begins when the old one has expired.")));
	closing_until = 0;
	replacing = false;
	return replaced;
}

int64
zkl_closing_not_before(void)
{
	return zkl_control->ctl_status.left_until * 1000;
}

bool
zkl_closing_wait(uint32 connection)
{
	ZklWireHeader header;
	ZklWireReader body;
	int64		until = zkl_boottime_ms() + SHUTDOWN_MS;
	bool		up = true,
				closed = false;

	zkl_link_say(ZKL_WIRE_CLOSE, connection);
	while (up && zkl_boottime_ms() < until)
	{
		if (!zkl_link_flush() || !zkl_link_read())
			break;
		while (zkl_link_next(&header, &body) > 0)
		{
			if (header.type != ZKL_WIRE_GONE)
				continue;
			up = false;
			closed = zkl_wire_get_u8(&body) == ZKL_WIRE_GONE_CLOSED;
		}
		if (up)
		{
			zkl_link_wait(Max(until - zkl_boottime_ms(), 0));
			ResetLatch(MyLatch);
		}
	}
	return closed;
}

/* ---- worker ---- */

/*
 * The worker never exits with 0, because the postmaster would not start it
 * again.  After 1 the postmaster restarts it within a second.  The next worker has
 * another session: all holds of the one before are lost, and its requests wait on.
 */

/* Chosen by measurement, as are the numbers in core/write.c */
#ifndef ZKL_BATCHES_IN_FLIGHT
#define ZKL_BATCHES_IN_FLIGHT	2
#endif
#ifndef ZKL_BATCH_OPERATIONS
#define ZKL_BATCH_OPERATIONS	256
#endif
#define BATCH_BYTES			(256 * 1024)
#define LEAVE_TIME			1000000 /* µs */
#define MOMENT_MS			2	/* in so short a sleep, requests can wait */
#define LONGEST_SLEEP_MS	(3600 * 1000L)

/* PostgreSQL's postmaster.pid, line 8 (utils/pidfile.h) */
#define PM_STATUS_LINE		8

PGDLLEXPORT void zkl_worker_main(Datum arg);

ZklManager *zkl_core = NULL;
static MemoryContext core_context = NULL;
static int64 stop_until = 0;	/* while stopping: serve at most until then */
static int64 leave_until = 0;	/* likewise, delete what nobody relies on */

void
zkl_worker_tell(const ZklEvent *event)
{
	int64_t		now = zkl_boottime_us();

	zkl_trace_event(&zkl_tracefile, now, event);
	zkl_manager_event(zkl_core, now, event);
}

/* The core has a bug.  Not abort(): that would restart all of PostgreSQL. */
void
zkl_assert_failed(const char *condition, const char *file, int line)
{
	ereport(FATAL,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg_internal("zklock's core failed an assertion: %s, at %s:%d",
							 condition, file, line),
			 errdetail_internal("Its ZooKeeper session ends, so this server loses its distributed locks."),
			 errhint("This is a bug of zklock.  Please report it.")));
	pg_unreachable();
}

/* ---- the phases of the loop ---- */

/* In assert builds, stop where the core breaks. */
static void
check_core(void)
{
#ifdef USE_ASSERT_CHECKING
	const char *why = zkl_check_all(zkl_core);

	if (why != NULL)
		elog(PANIC, "zklock's queues are corrupted: %s", why);
#endif
}

static void
flush_core(void)
{
	int64_t		now = zkl_boottime_us();

	zkl_trace_flush(&zkl_tracefile, now);
	zkl_manager_flush(zkl_core, now);
}

static void
send_pending_work(void)
{
	int64		now = zkl_boottime_us();

	closing_tick();

	/* Before the supervisor sees that the session is not needed any more */
	zkl_from_slots_set_cache_time(ShutdownRequestPending);
	zkl_supervisor_tick(now);
	check_core();
	zkl_bounds_tick();
	zkl_root_watch_tick(zkl_manager_ready(zkl_core));
	zkl_peer_key_tick(zkl_manager_ready(zkl_core));
	zkl_claims_tick();
	flush_core();
	zkl_carry_out_actions();
	check_core();
	zkl_renewals_tick();
	zkl_reconnects_tick();
	zkl_diagnosis_tick();
	zkl_fleet_entry_tick(zkl_manager_ready(zkl_core));
	zkl_operation_tick(zkl_manager_ready(zkl_core), now);
	if (zkl_link_up() && !zkl_link_flush())
		zkl_supervisor_link_broken(now);
	zkl_control_wake_noted();
	zkl_tracefile_flush();
}

/* The earlier one of two times at which something is due; -1 is none. */
static int64
earlier_due(int64 a, int64 b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static long
sleep_ms(void)
{
	int64		now = zkl_boottime_us();
	int64		due = zkl_supervisor_timer();

	due = earlier_due(due, zkl_manager_timer(zkl_core));
	due = earlier_due(due, zkl_operation_timer());
	due = earlier_due(due, zkl_bounds_timer());
	due = earlier_due(due, zkl_diagnosis_timer());
	due = earlier_due(due, zkl_peers_timer());
	due = earlier_due(due, zkl_renewals_timer());
	due = earlier_due(due, stop_until != 0 ? stop_until : -1);
	due = earlier_due(due, leave_until != 0 ? leave_until : -1);
	if (due < 0)
		return LONGEST_SLEEP_MS;
	if (due <= now)
		return 0;
	return (long) Min((due - now + 999) / 1000, LONGEST_SLEEP_MS);
}

/* During a short sleep, backends wake the worker only if the core asks for it. */
static void
sleep_until_needed(void)
{
	long		timeout_ms = sleep_ms();

	zkl_dirty_await(timeout_ms <= MOMENT_MS ? zkl_manager_awaited(zkl_core) : 0);
	zkl_link_wait(timeout_ms);
	zkl_dirty_await(0);
}

/* ---- the end ---- */

/*
 * Whether the whole server is going down, and not only the worker.  The
 * postmaster says so in its lock file before it signals any process.
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

/*
 * Nobody holds a lock any more, but somebody outside of the server relies on one.  So
 * the session is left to expire, which takes as long as that.  All other znodes go,
 * if ZooKeeper does it soon.
 */
static void
leave_session(void)
{
	int64		now = zkl_boottime_us();
	bool		gone;

	if (leave_until == 0)
	{
		leave_until = now + LEAVE_TIME;
		zkl_renewals_log_end();
		ereport(LOG,
				(errmsg("the ZooKeeper session is left to expire, as distributed locks are reserved or promised")));
	}
	gone = closing_let_go();
	gone = zkl_fleet_entry_take_back() && gone;
	if (gone || now >= leave_until || !zkl_manager_ready(zkl_core))
		proc_exit(1);
}

/*
 * Somebody ends this process alone.  The session is closed if nobody relies on it; else it
 * is left to expire, and the next worker waits for that.
 */
static void
end_alone(void)
{
	zkl_from_slots_set_cache_time(true);
	if (!closing_is_in_use(true) && !closing_is_promised())
	{
		zkl_lease_publish(zkl_control->ctl_status.generation, 0);
		zkl_supervisor_close_session();
	}
	proc_exit(1);
}

/*
 * While the server stops, the worker serves until the last holder is gone: a
 * transaction may be about to commit.  If a holder stays past the bound, the
 * worker does not close the session but leaves it to expire, which takes as long
 * as the holder may rely on it.
 */
static void
check_stop(void)
{
	bool		used;

	if (!ShutdownRequestPending)
		return;
	if (stop_until == 0)
	{
		if (!server_is_stopping())
			end_alone();
		zkl_tickets_withdraw_all();
		stop_until = zkl_boottime_us() + (int64) zkl_session_timeout * 1000;
	}

	/* From now on no session can take a lock that none seems to hold. */
	zkl_from_slots_set_cache_time(true);
	used = closing_is_in_use(false);
	if (!used && closing_is_promised())
		leave_session();
	else if (!used)
	{
		zkl_control_wake_noted();
		zkl_supervisor_close_session();
		proc_exit(1);
	}
	else if (zkl_boottime_us() >= stop_until)
	{
		zkl_lease_publish(zkl_control->ctl_status.generation, 0);
		proc_exit(1);
	}
}

/* However the worker ends, it kills the session process first. */
static void
end_worker(int code, Datum arg)
{
	/* An error may have ended a sleep that backends leave undisturbed. */
	zkl_dirty_await(0);
	zkl_control_wake_noted();
	zkl_link_kill();
	zkl_trial_end();
	zkl_tracefile_end();
	zkl_identity_end();
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
	static const ZklWing *const wings[] = {&zkl_deadlock_wing, NULL};
	ZklConfig	config;

	core_context = AllocSetContextCreate(TopMemoryContext, "zklock core",
										 ALLOCSET_DEFAULT_SIZES);
	memset(&config, 0, sizeof(config));
	config.root = zkl_root;
	config.server = zkl_settings_server_name();
	config.max_requests = (uint32) zkl_control->ctl_nrequests;
	config.max_directories = Max(4096, config.max_requests);
	config.batches_in_flight = ZKL_BATCHES_IN_FLIGHT;
	config.batch_operations = ZKL_BATCH_OPERATIONS;
	config.batch_bytes = BATCH_BYTES;
	config.offer = zkl_from_slots_offer;
	config.recall = zkl_from_slots_recall;
	config.worker_start = zkl_control->ctl_starts_from +
		(uint32) zkl_control->ctl_status.worker_starts;
	config.wings = wings;
	config.memory.alloc = core_alloc;
	config.memory.release = core_release;
	config.memory.context = core_context;
	zkl_core = zkl_manager_create(&config);
}

static void
set_up(void)
{
	int			orphan = zkl_control->ctl_status.session_pid;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();

	before_shmem_exit(end_worker, (Datum) 0);
	zkl_identity_begin();
	if (orphan != 0)
		zkl_link_await_orphan(orphan);
	zkl_identity_take_over();
	make_core();
	zkl_tracefile_begin();
	zkl_tickets_begin();
	zkl_bounds_begin();
	zkl_from_slots_begin();
	zkl_carry_out_begin();
	zkl_carry_out_take_over();
	zkl_peers_begin();
	zkl_supervisor_begin();
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
			zkl_supervisor_reload(zkl_boottime_us());
			zkl_tracefile_reload();
			zkl_peers_reload();
		}
		zkl_from_slots_take();
		zkl_from_link_take();
		zkl_peers_take();
		check_stop();
		send_pending_work();
		MemoryContextReset(loop_context);
		sleep_until_needed();
	}
}
