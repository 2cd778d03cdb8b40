/*
 * worker.c
 *	  The background worker: its beginning, its loop and its end.
 *
 * Owns the core's manager.  Runs as one process per server, with shared memory
 * but without a database.  Takes no locks of its own.  It decides nothing about
 * locks: that is for core/.  from_slots.c and from_link.c tell the core
 * what happened, and carry_out.c does what the core decides.  Only
 * zklock_session speaks to ZooKeeper.
 *
 * The worker never exits with 0, because the postmaster would not start it
 * again.  After 1 the postmaster restarts it within a second.  The next worker has
 * another session: all holds of the one before are lost, and its requests wait on.
 */
#include "postgres.h"

#include <signal.h>

#include "miscadmin.h"
#include "observe/inspect.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "postmaster/postmaster.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/status.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "core/assert.h"
#include "deadlock/deadlock.h"
#include "shared/compat.h"
#include "worker/answers.h"
#include "worker/bounds.h"
#include "worker/from_slots.h"
#include "worker/carry_out.h"
#include "worker/fleet_entry.h"
#include "worker/from_link.h"
#include "worker/closing.h"
#include "worker/identity.h"
#include "worker/link.h"
#include "worker/operation.h"
#include "worker/peer_key.h"
#include "worker/peers.h"
#include "worker/diagnosis.h"
#include "worker/reconnects.h"
#include "worker/renewals.h"
#include "worker/root_watch.h"
#include "worker/supervisor.h"
#include "worker/tracefile.h"
#include "worker/trial.h"
#include "worker/worker.h"

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
	zkl_trace_event(&zkl_tracefile, event);
	zkl_manager_event(zkl_core, zkl_boottime_us(), event);
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
send_pending_work(void)
{
	int64		now = zkl_boottime_us();

	zkl_closing_tick();

	/* Before the supervisor sees that the session is not needed any more */
	zkl_from_slots_set_cache_time(ShutdownRequestPending);
	zkl_supervisor_tick(now);
	check_core();
	zkl_bounds_tick();
	zkl_root_watch_tick(zkl_manager_ready(zkl_core));
	zkl_peer_key_tick(zkl_manager_ready(zkl_core));
	zkl_manager_flush(zkl_core, zkl_boottime_us());
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
	gone = zkl_closing_let_go();
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
	if (!zkl_closing_is_in_use(true) && !zkl_closing_is_promised())
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
		stop_until = zkl_boottime_us() + (int64) zkl_session_timeout * 1000;
	}

	/* From now on no session can take a lock that none seems to hold. */
	zkl_from_slots_set_cache_time(true);
	used = zkl_closing_is_in_use(false);
	if (!used && zkl_closing_is_promised())
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
	zkl_tracefile_flush();
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
