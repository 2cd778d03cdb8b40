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
 * shown to roles that may read all statistics: no other role can prove that it is
 * the one that a row from another server tells of.  Where grants decide about a
 * name, such a role also needs the privilege to look at it.
 */
#include "postgres.h"

#include "backend/refusal.h"
#include "backend/rights.h"
#include "backend/survey.h"
#include "backend/target.h"
#include "catalog/pg_authid.h"
#include "functions/contender.h"
#include "functions/row.h"
#include "miscadmin.h"
#include "recipes/walk.h"
#include "shared/loaded.h"
#include "shared/settings.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "znode/result.h"

#define FLEET_LOCKS_COLUMNS	14

ZKL_FUNCTION(zkl_sql_fleet_locks);

typedef struct
{
	FunctionCallInfo fcinfo;
	bool		stats;			/* the role may read all statistics */
} Show;

static const char *const mode_names[] = {
	[ZKL_WALK_EXCLUSIVE] = "exclusive",
	[ZKL_WALK_SHARED] = "shared",
	[ZKL_WALK_LEADER] = "leader",
	[ZKL_WALK_LEASE] = "lease",
	[ZKL_WALK_MEMBER] = "member"
};

static void
add_nulls(ZklRow *row, int n)
{
	while (n-- > 0)
		zkl_row_null(row);
}

/* The turns of a job count as the job. */
static bool
is_visible(const Show *show, const ZklWalkEntry *entry)
{
	Size		directory = strlen(ZKL_ONCE_DIRECTORY);
	char	   *path;
	bool		turns;

	if (!show->stats)
		return false;
	path = pnstrdup(entry->path, entry->path_length);
	turns = strncmp(path, ZKL_ONCE_DIRECTORY "/", directory + 1) == 0;
	return zkl_rights_may_look(turns ? path + directory : path);
}

static void
add_path(ZklRow *row, const ZklWalkEntry *entry, bool visible)
{
	if (!visible)
		zkl_row_null(row);
	else if (entry->path_length == 0)
		zkl_row_text(row, "/");
	else
		zkl_row_utf8(row, entry->path, (size_t) entry->path_length);
}

/* Columns mode, dialect, position and granted */
static void
add_place(ZklRow *row, const ZklWalkEntry *entry)
{
	if (entry->name == NULL)
	{
		add_nulls(row, 4);
		return;
	}
	zkl_row_text(row, mode_names[entry->mode]);
	zkl_row_text(row, entry->dialect);
	zkl_row_add(row, Int32GetDatum(entry->position));
	zkl_row_add(row, BoolGetDatum(entry->granted));
}

static void
add_znode(ZklRow *row, const ZklWalkEntry *entry, bool visible)
{
	char	   *znode;

	if (!visible || entry->name == NULL)
	{
		zkl_row_null(row);
		return;
	}
	znode = psprintf("%s%s/%s", zkl_root, entry->directory, entry->name);
	zkl_row_utf8(row, znode, strlen(znode));
}

static void
add_error(ZklRow *row, int32 rc)
{
	if (rc == ZKL_RC_OK)
		zkl_row_null(row);
	else
		zkl_row_text(row, rc == ZKL_RC_TOO_LONG ?
					 "The list of its znodes is too long to be read." :
					 zkl_refusal_answer_text(rc));
}

static void
put_found(void *arg, const ZklWalkEntry *entry)
{
	const Show *show = arg;
	ZklRow		row = {0};
	bool		visible = is_visible(show, entry);

	add_path(&row, entry, visible);
	add_place(&row, entry);
	if (entry->name != NULL && entry->rc == ZKL_RC_OK)
		zkl_contender_add(&row, entry->data, entry->length, false);
	else
		add_nulls(&row, 5);
	add_znode(&row, entry, visible);
	zkl_row_session_id(&row, entry->session_id);
	zkl_row_unix_ms_or_null(&row, entry->ctime_ms);
	add_error(&row, entry->rc);

	Assert(row.n == FLEET_LOCKS_COLUMNS);
	zkl_row_put(show->fcinfo, &row);
}

/*
 * "/" is the root, and "/.once" has the turns of all jobs: these are no locks, and
 * everybody may look at what is below, as far as it is visible.
 */
static const char *
path_of(const text *prefix)
{
	const char *given = text_to_cstring(prefix);

	if (strcmp(given, "/") == 0)
		return "";
	if (strcmp(given, ZKL_ONCE_DIRECTORY) == 0)
		return ZKL_ONCE_DIRECTORY;
	return zkl_target_any(prefix, ZKL_MAY_LOOK).path;
}

Datum
zkl_sql_fleet_locks(PG_FUNCTION_ARGS)
{
	Show		show = {fcinfo};

	zkl_loaded_check();
	show.stats = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	InitMaterializedSRF(fcinfo, 0);
	zkl_walk(path_of(PG_GETARG_TEXT_PP(0)), put_found, &show);
	return (Datum) 0;
}
