/*
 * queuefuncs.c
 *	  The set-returning functions zk_queue() and zk_fleet_locks().
 *
 * Decides what a role may see of the queue of a lock or a semaphore, and of the locks of
 * all servers and clients.  Run by backends.  Takes no locks.  Must not know which locks
 * this backend holds, nor how the others are found.
 *
 * As in zk_locks, each role sees all rows of zk_fleet_locks(), but names of locks and
 * znodes are only shown to roles that may read all statistics: no other role can prove
 * that a row from another server is about itself.  Where grants decide about a name, such
 * a role also needs the privilege to look at it.
 */
#include "postgres.h"

#include "backend/errand.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "catalog/pg_authid.h"
#include "functions/ownqueue.h"
#include "functions/queuerow.h"
#include "miscadmin.h"
#include "recipes/semaphore.h"
#include "recipes/walk.h"
#include "shared/gate.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "znode/zkapi.h"

/* ---- zk_queue() ---- */

ZKL_FUNCTION(zkl_sql_queue);

typedef struct
{
	ZklQueueRows rows;
	ZklTarget	lock;			/* as it was asked for */
	int			position;
} Show;

/* Numbers the rows in the order of the calls. */
static void
put_row(Show *show, const ZklTarget *target, const char *mode, const ZklJudged *c)
{
	ZklQueueRow r = {show->lock.path};

	r.path_length = (int) strlen(show->lock.path);
	r.directory = target->path;
	r.name = c->entry->name;
	r.mode = mode;
	r.dialect = target->dialect < ZKL_LOCK_DIALECTS && strcmp(mode, "permit") != 0 ?
		zkl_dialect_name(target->dialect) : "curator";
	r.position = ++show->position;
	r.granted = c->granted;
	r.cached = c->cached;
	r.kept = c->kept;
	r.visible = show->rows.stats || c->is_own;
	r.data = c->entry->data;
	r.length = c->entry->length;
	r.session_id = c->entry->session_id;
	r.ctime_ms = c->entry->ctime_ms;
	r.granted_ms = c->granted_ms;
	r.until_ms = c->until_ms;
	zkl_queuerow_put(&show->rows, &r);
}

/* Shows a queue, of which "most" are granted.  No mode: each has its own. */
static void
put_queue(Show *show, const ZklTarget *target, const ZklLockQueue *queue,
		  const char *mode, int most)
{
	int			n;
	ZklJudged  *all = zkl_ownqueue_judge(target, queue, most, &n);
	int			i;

	for (i = 0; i < n; i++)
		put_row(show, target, mode ? mode : zkl_row_mode_name(all[i].entry->mode), &all[i]);
	pfree(all);
}

/* The same, of those of that dialect in the directory of the lock */
static void
put_listed(Show *show, const ZklErrand *listing, ZklDialect dialect,
		   const char *mode, int most)
{
	ZklTarget	target = show->lock;
	ZklLockQueue queue;

	target.dialect = dialect;
	zkl_errand_read_listed(&target, listing, &queue);
	put_queue(show, &target, &queue, mode, most);
}

/* Shows the queue for the guard of a semaphore, without the first "skip". */
static void
put_guard(Show *show, const ZklTarget *guard, int skip)
{
	ZklLockQueue queue;
	ZklJudged  *all;
	int			n;
	int			i;

	zkl_errand_read_queue(guard, &queue);
	all = zkl_ownqueue_judge(guard, &queue, 0, &n);
	for (i = skip; i < n; i++)
	{
		all[i].granted = false;
		put_row(show, guard, "permit", &all[i]);
	}
	pfree(all);
}

/*
 * Shows the permits of the semaphore of that name, then the waiters for its
 * guard.  If the holder of the guard waits, its permits are already among the
 * others, past the maximum.  If no maximum is recorded, all permits count as
 * granted.
 */
static void
put_semaphore(Show *show, const ZklTarget *lock)
{
	ZklTarget	permits = *lock;
	ZklTarget	guard = *lock;
	ZklLockQueue queue;
	int			max;

	permits.path = psprintf("%s%s", lock->path, ZKL_SEMAPHORE_PERMITS);
	permits.dialect = ZKL_DIALECT_PERMIT;
	guard.path = psprintf("%s%s", lock->path, ZKL_SEMAPHORE_GUARD);
	guard.dialect = ZKL_DIALECT_CURATOR_MUTEX;
	if (strlen(permits.path) > ZKL_MAX_NAME)
		return;
	zkl_errand_read_queue(&permits, &queue);
	if (queue.n == 0)
		return;
	max = zkl_maximum_recorded(lock);
	if (max == 0)
		max = queue.n;
	put_queue(show, &permits, &queue, "permit", max);
	put_guard(show, &guard, queue.n > max);
}

Datum
zkl_sql_queue(PG_FUNCTION_ARGS)
{
	Show		show = {{0}};
	ZklErrand  *listing;

	show.lock = zkl_target_any(PG_GETARG_TEXT_PP(0), ZKL_MAY_LOOK);
	zkl_queuerow_begin(&show.rows, fcinfo);
	listing = zkl_errand_list(&show.lock, false);
	put_listed(&show, listing, show.lock.dialect, NULL, ZKL_BY_MODES);
	put_listed(&show, listing, ZKL_DIALECT_LATCH, "leader", 1);
	put_listed(&show, listing, ZKL_DIALECT_MEMBER, "member", PG_INT32_MAX);
	zkl_errand_free(listing);
	put_semaphore(&show, &show.lock);
	return (Datum) 0;
}

/* ---- zk_fleet_locks() ---- */

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
