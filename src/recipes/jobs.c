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

#include "backend/text.h"
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
 * Adds the directories below one to those to look into.  Returns whether it has a
 * history.  A name that is too long is none that we made.
 */
static bool
look_into(const char *path, List **directories)
{
	ZklTarget	target = job_at(path);
	ZklErrand  *errand = zkl_errand_list(&target, true);
	const char *name = NULL;
	bool		has_history = false;

	while ((name = zkl_errand_next(errand, name)) != NULL)
	{
		if (strcmp(name, ZKL_HISTORY_NODE) == 0)
			has_history = true;
		else if (name[0] != '.' && !is_turn(name) &&
				 strlen(path) + 1 + strlen(name) <= ZKL_MAX_NAME)
			*directories = lappend(*directories, psprintf("%s/%s", path, name));
	}
	zkl_errand_free(errand);
	return has_history;
}

/* Calls fn for the directory of each job that has a history. */
static void
each_directory(void (*fn) (void *arg, const char *path), void *arg)
{
	List	   *directories = list_make1(pstrdup(ZKL_ONCE_DIRECTORY));

	while (directories != NIL)
	{
		char	   *path = llast(directories);

		CHECK_FOR_INTERRUPTS();
		directories = list_delete_last(directories);
		if (look_into(path, &directories))
			fn(arg, path);
		pfree(path);
	}
}

typedef struct Reader
{
	void		(*fn) (void *arg, const char *name, const ZklJobRecord *record);
	void	   *arg;
	ZklJobRecord record;
} Reader;

static void
read_history(void *arg, const char *path)
{
	Reader	   *reader = arg;
	ZklTarget	job = job_at(path);

	if (zkl_job_look(&job, &reader->record))
		reader->fn(reader->arg, path + strlen(ZKL_ONCE_DIRECTORY),
				   &reader->record);
}

void
zkl_jobs_each(void (*fn) (void *arg, const char *name,
						  const ZklJobRecord *record), void *arg)
{
	Reader	   *reader = palloc0(sizeof(Reader));

	reader->fn = fn;
	reader->arg = arg;
	each_directory(read_history, reader);
	pfree(reader);
}

/* ---- how many ---- */

typedef struct JobCount
{
	const char *role;
	int			n;
} JobCount;

static void
count_directory(void *arg, const char *path)
{
	((JobCount *) arg)->n++;
}

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
	JobCount	all = {role, 0};
	JobCount	own = {role, 0};

	if (superuser_arg(GetSessionUserId()))
		return;
	each_directory(count_directory, &all);
	if (all.n >= ZKL_JOBS_PER_ROLE)
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
