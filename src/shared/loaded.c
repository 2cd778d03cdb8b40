/*
 * loaded.c
 *	  Whether zklock can be used in this process at all.
 *
 * Owns whether the worker is registered.  Run by backends.  Takes no locks.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "shared/control.h"
#include "shared/loaded.h"

static bool worker_registered = false;

void
zkl_loaded_set_worker(bool registered)
{
	worker_registered = registered;
}

void
zkl_loaded_check(void)
{
	if (zkl_control == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("zklock is not loaded"),
				 errhint("Add \"zklock\" to \"shared_preload_libraries\" and restart the server.")));
}

void
zkl_loaded_check_worker(void)
{
	zkl_loaded_check();
	if (!IsUnderPostmaster || IsBinaryUpgrade)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("distributed locks are not available in this mode of the server"),
				 errdetail("The zklock worker does not run in single-user mode or during a binary upgrade.")));
	if (!worker_registered)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("could not start the zklock worker"),
				 errhint("Increase \"max_worker_processes\" and restart the server.")));
}
