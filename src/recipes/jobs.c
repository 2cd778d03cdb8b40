/*
 * jobs.c
 *	  All jobs of zk_once() that have a history.
 *
 * Owns the walk over their directories, and which histories are old.  Run by
 * backends.  Takes no locks but the distributed ones of the jobs that it purges;
 * waits for errands.
 *
 * Must not know how a history is read or written.
 *
 * The directory of a job has its history, the znodes of its lock, and the
 * directories of the jobs whose names begin with its own.
 */
#include "postgres.h"

#include "backend/refusal.h"
#include "backend/target.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "recipes/jobs.h"
#include "utils/memutils.h"

static ZklTarget
job_at(const char *path)
{
	ZklTarget	target = {path, zkl_text_to_display(path, (int) strlen(path)),
	ZKL_DIALECT_CURATOR_RW};

	return target;
}

/* ---- the walk ---- */

/*
 * Goes down level by level, as many directories at a time as an errand reads.  The names
 * are those of jobs, without the first slash.
 */
typedef struct Walk
{
	MemoryContext context;
	List	   *level;			/* directories that are yet to be read */
	const char **names;			/* those that are being read */
	List	   *jobs;			/* directories that have a history */
} Walk;

static const ZklTarget once_directory = {ZKL_ONCE_DIRECTORY, ZKL_ONCE_DIRECTORY,
ZKL_DIALECT_CURATOR_RW};

static bool
is_turn(const char *name)
{
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;

	return zkl_znode_parse(ZKL_DIALECT_CURATOR_RW, name, &mode, &seq, &has_uuid,
						   &uuid);
}

/*
 * In memory of the walk; "directory" is empty at the top.  A name that is too long is
 * none that we made.
 */
static void
add_child(Walk *walk, const char *directory, const char *child)
{
	MemoryContext old = MemoryContextSwitchTo(walk->context);
	Size		most = ZKL_MAX_NAME - strlen(ZKL_ONCE_DIRECTORY "/");
	bool		top = directory[0] == '\0';

	if (!top && strcmp(child, ZKL_HISTORY_NODE) == 0)
		walk->jobs = lappend(walk->jobs, pstrdup(directory));
	else if (child[0] != '.' && !is_turn(child) &&
			 strlen(directory) + !top + strlen(child) <= most)
		walk->level = lappend(walk->level,
							  psprintf("%s%s%s", directory, top ? "" : "/", child));
	MemoryContextSwitchTo(old);
}

/* As new as this call, so what is read next is it, too. */
static void
list_top(Walk *walk)
{
	ZklErrand  *errand = zkl_errand_list(&once_directory, true);
	const char *name = NULL;

	while ((name = zkl_errand_next(errand, name)) != NULL)
		add_child(walk, "", name);
	zkl_errand_free(errand);
}

static void
take_job_names(void *arg, int number, const ZklErrandAnswer *answer)
{
	Walk	   *walk = arg;
	const char *directory = walk->names[number];
	const char *name;

	if (answer->rc != ZKL_RC_OK && answer->rc != ZKL_RC_NONODE)
		zkl_refusal_raise_failed(job_at(psprintf("%s/%s", ZKL_ONCE_DIRECTORY, directory)).name,
								 ZKL_ERROR_ZOOKEEPER, answer->rc);
	for (name = answer->bytes; name < answer->bytes + answer->size;
		 name += strlen(name) + 1)
		add_child(walk, directory, name);
}

/* The strings of a list */
static const char **
strings_of(const List *list)
{
	const char **strings = palloc((list_length(list) + 1) * sizeof(char *));
	int			i;

	for (i = 0; i < list_length(list); i++)
		strings[i] = list_nth(list, i);
	return strings;
}

/* The jobs that have a history */
static List *
find_jobs(void)
{
	Walk		walk = {CurrentMemoryContext};

	list_top(&walk);
	while (walk.level != NIL)
	{
		int			n = list_length(walk.level);

		walk.names = strings_of(walk.level);
		walk.level = NIL;
		zkl_errand_read_each(ZKL_ERRAND_LIST, &once_directory, walk.names, n,
							 take_job_names, &walk);
	}
	return walk.jobs;
}

typedef struct Reader
{
	void		(*fn) (void *arg, const char *name, const ZklJobRecord *record);
	void	   *arg;
	const List *jobs;
	ZklJobRecord record;
} Reader;

static void
take_history(void *arg, int number, const ZklErrandAnswer *answer)
{
	Reader	   *reader = arg;
	char	   *name = psprintf("/%s", (char *) list_nth(reader->jobs, number));

	if (zkl_job_read_record(name, answer, &reader->record))
		reader->fn(reader->arg, name, &reader->record);
}

void
zkl_jobs_each(void (*fn) (void *arg, const char *name,
						  const ZklJobRecord *record), void *arg)
{
	List	   *jobs = find_jobs();
	int			n = list_length(jobs);
	const char **histories = palloc((n + 1) * sizeof(char *));
	Reader	   *reader = palloc0(sizeof(Reader));
	int			i;

	reader->fn = fn;
	reader->arg = arg;
	reader->jobs = jobs;
	for (i = 0; i < n; i++)
		histories[i] = psprintf("%s/%s", (char *) list_nth(jobs, i), ZKL_HISTORY_NODE);
	zkl_errand_read_each(ZKL_ERRAND_GET, &once_directory, histories, n, take_history,
						 reader);
}

/* ---- how many ---- */

typedef struct JobCount
{
	const char *role;
	int			n;
} JobCount;

static void
count_own(void *arg, const char *name, const ZklJobRecord *record)
{
	JobCount   *count = arg;

	if (record->readable && strcmp(record->history.role, count->role) == 0)
		count->n++;
}

/* Only if there are so many histories at all, their roles are read. */
void
zkl_jobs_check_room(const char *role)
{
	JobCount	own = {role, 0};

	if (superuser_arg(GetSessionUserId()))
		return;
	if (list_length(find_jobs()) >= ZKL_JOBS_PER_ROLE)
		zkl_jobs_each(count_own, &own);
	if (own.n >= ZKL_JOBS_PER_ROLE)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("too many jobs are recorded for role \"%s\"",
						zkl_text_to_display(role, (int) strlen(role))),
				 errdetail("ZooKeeper has records of %d jobs that this role was the first to run.",
						   own.n),
				 errhint("Remove those that are no longer used with zk_once_purge().")));
}

/* ---- old histories ---- */

typedef struct Purge
{
	int64		before;			/* ms since 1970 */
	const char *role;			/* NULL: any */
	int64		purged;
} Purge;

static bool
may_go(const Purge *purge, const ZklJobRecord *record)
{
	return record->readable && record->mtime <= purge->before &&
		(purge->role == NULL || strcmp(record->history.role, purge->role) == 0);
}

/* Other sessions write only under the job's lock, so the second look decides. */
static void
purge_locked(Purge *purge, const ZklTarget *job)
{
	ZklJobRecord *record = palloc0(sizeof(ZklJobRecord));

	if (zkl_job_look(job, record) && may_go(purge, record) &&
		zkl_job_delete(job, record->version))
		purge->purged++;
	pfree(record);
}

static void
purge_if_old(void *arg, const char *name, const ZklJobRecord *record)
{
	Purge	   *purge = arg;
	char	   *path = psprintf("%s%s", ZKL_ONCE_DIRECTORY, name);
	ZklTarget	job = job_at(path);

	if (may_go(purge, record) && zkl_job_find(&job) == NULL &&
		zkl_job_try_lock(&job))
	{
		purge_locked(purge, &job);
		zkl_job_unlock(&job);
	}
	pfree(path);
}

int64
zkl_jobs_purge(int64 unused_ms, const char *role)
{
	Purge		purge = {zkl_job_time(), role, 0};

	if (unused_ms > purge.before)
		return 0;
	purge.before -= unused_ms;
	zkl_jobs_each(purge_if_old, &purge);
	return purge.purged;
}
