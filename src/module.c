/*
 * module.c
 *	  Loading: settings, shared memory, hooks, the session process's program, and
 *	  the worker's registration.
 *
 * Run by the postmaster while it preloads libraries, and once in each process
 * that loads the library otherwise (CREATE EXTENSION on a server that does not
 * preload it, say): such a process gets nothing but functions that refuse.
 * Takes no locks.
 */
#include "postgres.h"

#include "backend/commit.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/program.h"
#include "shared/settings.h"
#include "utils/varlena.h"
#include "wire/version.h"

ZKL_MODULE_MAGIC("zklock", ZKL_VERSION);

extern PGDLLEXPORT void _PG_init(void);

#define LIBRARY_NAME	"zklock"
#define WORKER_MAIN		"zkl_worker_main"

/* Whether an entry of shared_preload_libraries means this library */
static bool
is_own_name(const char *entry)
{
	const char *slash = strrchr(entry, '/');
	const char *base = slash != NULL ? slash + 1 : entry;
	size_t		length = strlen(LIBRARY_NAME);

	return strncmp(base, LIBRARY_NAME, length) == 0 &&
		(base[length] == '\0' || strcmp(base + length, DLSUFFIX) == 0);
}

/*
 * The name by which the postmaster loads this library.  The worker must be
 * registered by the same one: if that is an absolute path, another name leads
 * to another file, or to none.
 */
static const char *
preloaded_name(void)
{
	List	   *entries;
	ListCell   *cell;

	if (SplitDirectoriesString(pstrdup(shared_preload_libraries_string), ',',
							   &entries))
		foreach(cell, entries)
	{
		if (is_own_name(lfirst(cell)))
			return lfirst(cell);
	}
	return LIBRARY_NAME;
}

static void
register_worker(void)
{
	BackgroundWorker worker = {0};
	const char *name = preloaded_name();

	if (strlen(name) >= sizeof(worker.bgw_library_name))
		ereport(ERROR,
				(errcode(ERRCODE_CONFIG_FILE_ERROR),
				 errmsg("zklock cannot be preloaded from \"%s\"", name),
				 errdetail("PostgreSQL starts background workers only from paths of less than %d bytes.",
						   (int) sizeof(worker.bgw_library_name)),
				 errhint("Add \"zklock\" to \"shared_preload_libraries\" without a path, and its directory to \"dynamic_library_path\".")));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = 1;
	strlcpy(worker.bgw_library_name, name, sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, WORKER_MAIN, BGW_MAXLEN);
	strlcpy(worker.bgw_name, "zklock worker", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "zklock worker", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
	zkl_gate_set_worker(zkl_compat_worker_is_registered(name));
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;

	zkl_settings_define();
	zkl_control_request();
	zkl_lifetime_init();
	if (IsBinaryUpgrade)
		return;
	zkl_program_open();
	register_worker();
}
