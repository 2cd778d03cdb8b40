/*
 * compat.h
 *	  What differs between PostgreSQL 15, 16, 17, 18 and 19.
 */
#ifndef ZKL_SHARED_COMPAT_H
#define ZKL_SHARED_COMPAT_H

#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/ilist.h"
#include "postmaster/bgworker_internals.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/proc.h"
#if PG_VERSION_NUM >= 180000
#include "storage/waiteventset.h"
#endif
#include "tcop/pquery.h"
#if PG_VERSION_NUM >= 190000
#include "utils/lsyscache.h"	/* get_database_name */
#else
#include "commands/dbcommands.h"
#endif
#include "utils/timestamp.h"
#include "utils/wait_event.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#if PG_VERSION_NUM < 150000
#error "zklock needs PostgreSQL 15 or later"
#endif

/* The word for it from PostgreSQL 18 on, in front of a declaration */
#ifndef pg_noreturn
#define pg_noreturn __attribute__((noreturn))
#endif

/* From PostgreSQL 18 on, pg_get_loaded_modules() shows a name and a version. */
#if PG_VERSION_NUM >= 180000
#define ZKL_MODULE_MAGIC(module, release) \
	PG_MODULE_MAGIC_EXT(.name = module, .version = release)
#else
#define ZKL_MODULE_MAGIC(module, release)	PG_MODULE_MAGIC
#endif

/* PG_FUNCTION_INFO_V1 exports the function itself from PostgreSQL 16 on */
#define ZKL_FUNCTION(name) \
	extern PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
	PG_FUNCTION_INFO_V1(name)

/* Such a function that is only a call, with its fcinfo and further arguments */
#define ZKL_SQL_CALL(name, callee, ...) \
	ZKL_FUNCTION(name); \
	Datum \
	name(PG_FUNCTION_ARGS) \
	{ \
		return callee(fcinfo, __VA_ARGS__); \
	} \
	extern PGDLLEXPORT Datum name(PG_FUNCTION_ARGS)

/* Whether a foreign table can have a trigger for TRUNCATE */
#define ZKL_FOREIGN_TRUNCATE_TRIGGERS	(PG_VERSION_NUM >= 160000)

/* The number of this process's PGPROC */
static inline int
zkl_compat_my_procno(void)
{
#if PG_VERSION_NUM >= 170000
	return MyProcNumber;
#else
	return MyProc->pgprocno;
#endif
}

/* Whether the backend with that number is in a transaction, at this moment */
static inline bool
zkl_compat_is_in_transaction(int procno)
{
	volatile PGPROC *proc = &ProcGlobal->allProcs[procno];

#if PG_VERSION_NUM >= 170000
	return LocalTransactionIdIsValid(proc->vxid.lxid);
#else
	return LocalTransactionIdIsValid(proc->lxid);
#endif
}

/*
 * The wait events, as docs/monitoring.md explains them.  Extensions can name
 * theirs from PostgreSQL 17 on; that needs shared memory to be there.
 */
typedef enum ZklWaitEvent
{
	ZKL_EVENT_LOCK,				/* others have the lock, or are ahead */
	ZKL_EVENT_ZOOKEEPER,		/* an answer of ZooKeeper or of the worker */
	ZKL_EVENT_CACHED_ANSWER,	/* another server, which may have it cached */
	ZKL_EVENT_COMMIT_CHECK,		/* the lease, so that a commit can go on */
	ZKL_EVENT_WORKER			/* the worker, for requests and for ZooKeeper */
} ZklWaitEvent;

#define ZKL_EVENTS_HAVE_NAMES	(PG_VERSION_NUM >= 170000)

static inline uint32
zkl_compat_wait_event(ZklWaitEvent event)
{
#if ZKL_EVENTS_HAVE_NAMES
	static const char *const names[] = {
		"ZklockLock", "ZklockZooKeeper", "ZklockCachedAnswer",
		"ZklockCommitCheck", "ZklockWorker"
	};
	static uint32 numbers[lengthof(names)];

	if (numbers[event] == 0)
		numbers[event] = WaitEventExtensionNew(names[event]);
	return numbers[event];
#else
	return PG_WAIT_EXTENSION;
#endif
}

/* From 17 on, a resource owner could look after it; ours lives for good. */
static inline WaitEventSet *
zkl_compat_create_wait_event_set(MemoryContext context, int nevents)
{
#if PG_VERSION_NUM >= 170000
	return CreateWaitEventSet(NULL, nevents);
#else
	return CreateWaitEventSet(context, nevents);
#endif
}

/*
 * Whether any callback of a transaction may be unregistered now.  From PostgreSQL 16
 * on, a running callback must not unregister the one that comes next.  While the portal
 * of a procedure has a snapshot, no callback runs: a commit takes the snapshot away
 * first (ForgetPortalSnapshots).
 */
static inline bool
zkl_compat_may_unregister(void)
{
#if PG_VERSION_NUM >= 160000
	return SPI_inside_nonatomic_context() && ActivePortal != NULL &&
		ActivePortal->portalSnapshot != NULL;
#else
	return true;
#endif
}

/*
 * What stays the same while the procedure that a client has called cannot have
 * committed: the snapshot of its portal, in any function that it calls.  NULL: there
 * is none, or it does not matter, as any callback may be unregistered.
 */
static inline const void *
zkl_compat_portal_snapshot(void)
{
#if PG_VERSION_NUM >= 160000
	return ActivePortal != NULL ? ActivePortal->portalSnapshot : NULL;
#else
	return NULL;
#endif
}

/* What the hook of ExecutorRun gets, and passes on */
#if PG_VERSION_NUM >= 180000
#define ZKL_EXECUTOR_RUN_PARAMETERS \
	QueryDesc *query, ScanDirection direction, uint64 count
#define ZKL_EXECUTOR_RUN_ARGUMENTS	query, direction, count
#else
#define ZKL_EXECUTOR_RUN_PARAMETERS \
	QueryDesc *query, ScanDirection direction, uint64 count, bool once
#define ZKL_EXECUTOR_RUN_ARGUMENTS	query, direction, count, once
#endif

/* 15.0 had only the former name of this function */
#ifndef MAT_SRF_USE_EXPECTED_DESC
#define InitMaterializedSRF(fcinfo, flags)	SetSingleFuncCall(fcinfo, flags)
#endif

/* 'infinity' and '-infinity' became intervals in PostgreSQL 17 */
static inline bool
zkl_compat_interval_is_infinite(const Interval *interval)
{
#if PG_VERSION_NUM >= 170000
	return INTERVAL_IS_NOEND(interval);
#else
	return false;
#endif
}

static inline bool
zkl_compat_interval_is_minus_infinite(const Interval *interval)
{
#if PG_VERSION_NUM >= 170000
	return INTERVAL_IS_NOBEGIN(interval);
#else
	return false;
#endif
}

/*
 * Whether the postmaster took a worker that was registered while preloading:
 * registration itself does not tell when max_worker_processes is used up.
 */
static inline bool
zkl_compat_worker_is_registered(const char *library)
{
#if PG_VERSION_NUM >= 180000
	dlist_iter	iter;

	dlist_foreach(iter, &BackgroundWorkerList)
	{
		RegisteredBgWorker *rw = dlist_container(RegisteredBgWorker, rw_lnode,
												 iter.cur);
#else
	slist_iter	iter;

	slist_foreach(iter, &BackgroundWorkerList)
	{
		RegisteredBgWorker *rw = slist_container(RegisteredBgWorker, rw_lnode,
												 iter.cur);
#endif

		if (strcmp(rw->rw_worker.bgw_library_name, library) == 0)
			return true;
	}
	return false;
}

/* Whether this process has that lock, in that mode */
static inline bool
zkl_compat_has_lock(const LOCKTAG * tag, LOCKMODE mode)
{
#if PG_VERSION_NUM >= 170000
	return LockHeldByMe(tag, mode, false);
#else
	return LockHeldByMe(tag, mode);
#endif
}

#endif							/* ZKL_SHARED_COMPAT_H */
