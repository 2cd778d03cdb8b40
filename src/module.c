/*
 * module.c
 *	  Loading: settings, shared memory, hooks, and the worker's registration.
 *
 * Run by the postmaster while it preloads libraries, and once in each process
 * that loads the library otherwise (CREATE EXTENSION on a server that does not
 * preload it, say): such a process gets nothing but functions that refuse.
 * Takes no locks.
 */
#include "postgres.h"

#include "backend/lifetime.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/loaded.h"
#include "shared/settings.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

#define LIBRARY_NAME	"zklock"
#define WORKER_MAIN		"zkl_worker_main"

static void
register_worker(void)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = 1;
	strlcpy(worker.bgw_library_name, LIBRARY_NAME, BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, WORKER_MAIN, BGW_MAXLEN);
	strlcpy(worker.bgw_name, "zklock worker", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "zklock worker", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
	zkl_loaded_set_worker(zkl_worker_is_registered(LIBRARY_NAME));
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	zkl_settings_define();
	zkl_control_request();
	zkl_lifetime_init();
	if (!IsBinaryUpgrade)
		register_worker();
}
