/*
 * fleetlocks.c
 *	  The set-returning function zk_fleet_locks().
 *
 * Decides what a role may see of the locks of all servers and clients.  Run by
 * backends.  Takes no locks.
 *
 * Must not know how they are found.
 *
 * As in zk_locks, each role sees all rows, but names of locks and znodes are only
 * shown to roles that may read all statistics: no other role can prove that a row
 * from another server is about itself.  Where grants decide about a name, such a
 * role also needs the privilege to look at it.
 */
#include "postgres.h"

#include "backend/reading.h"
#include "backend/refusal.h"
#include "backend/rights.h"
#include "backend/target.h"
#include "catalog/pg_authid.h"
#include "functions/queuerow.h"
#include "miscadmin.h"
#include "recipes/walk.h"
#include "shared/gate.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "znode/zkapi.h"

ZKL_FUNCTION(zkl_sql_fleet_locks);

static const char *const mode_names[] = {
	[ZKL_WALK_EXCLUSIVE] = "exclusive",
	[ZKL_WALK_SHARED] = "shared",
	[ZKL_WALK_LEADER] = "leader",
	[ZKL_WALK_PERMIT] = "permit",
	[ZKL_WALK_MEMBER] = "member"
};

/* The turns of a job count as the job. */
static bool
is_visible(const ZklQueueRows *rows, const ZklWalkEntry *entry)
{
	Size		directory = strlen(ZKL_ONCE_DIRECTORY);
	char	   *path;
	bool		turns;

	if (!rows->stats)
		return false;
	path = pnstrdup(entry->path, entry->path_length);
	turns = strncmp(path, ZKL_ONCE_DIRECTORY "/", directory + 1) == 0;
	return zkl_rights_may_look(turns ? path + directory : path);
}

static const char *
error_text(int32 rc)
{
	return rc == ZKL_RC_OK ? NULL : rc == ZKL_RC_TOO_LONG ?
		"The list of its znodes is too long to be read." :
		zkl_refusal_answer_text(rc);
}

static void
put_found(void *arg, const ZklWalkEntry *entry)
{
	ZklQueueRows *rows = arg;
	ZklQueueRow r = {entry->path, entry->path_length, entry->directory, entry->name};
	bool		read = entry->name != NULL && entry->rc == ZKL_RC_OK;

	r.mode = mode_names[entry->mode];
	r.dialect = entry->dialect;
	r.position = entry->position;
	r.granted = entry->granted;
	r.visible = is_visible(rows, entry);
	r.data = read ? entry->data : NULL;
	r.length = read ? entry->length : 0;
	r.cached = read && zkl_node_data_is_cached(entry->data, entry->length);
	r.session_id = entry->session_id;
	r.ctime_ms = entry->ctime_ms;
	r.error = error_text(entry->rc);
	zkl_queuerow_put(rows, &r);
}

/*
 * "/" is the root, and "/.once" has the turns of all jobs: these are no locks, and
 * everybody may look at what is below, as far as it is visible.
 */
static ZklTarget
start_at(const text *prefix)
{
	const char *given = text_to_cstring(prefix);
	ZklTarget	start = {given, given, ZKL_DIALECT_CURATOR_RW};

	if (strcmp(given, "/") == 0)
		start.path = "";
	else if (strcmp(given, ZKL_ONCE_DIRECTORY) != 0)
		start = zkl_target_any(prefix, ZKL_MAY_LOOK);
	return start;
}

Datum
zkl_sql_fleet_locks(PG_FUNCTION_ARGS)
{
	ZklTarget	start;
	ZklQueueRows rows;

	zkl_gate_check();
	zkl_queuerow_begin(&rows, fcinfo);
	start = start_at(PG_GETARG_TEXT_PP(0));
	zkl_walk(&start, put_found, &rows);
	return (Datum) 0;
}
