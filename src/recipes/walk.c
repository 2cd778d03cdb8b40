/*
 * walk.c
 *	  All contenders of all locks below a path, of all servers and clients.
 *
 * Owns the walk, and what stands for what in a directory.  Run by backends.  Takes
 * no locks; waits as wait.c does.
 *
 * Must not know what the contenders are shown for.
 *
 * The walk goes depth first, and keeps the names of the directories that it is
 * in.  The name of a znode tells whether it is a contender; all others may be
 * directories.  Two sorts of contenders have names that directories can have as
 * well: a member of Curator's barriers, and a permit of kazoo's semaphores.  These
 * are told apart by their owner, because no directory is ephemeral.
 *
 * The queue is as ZooKeeper shows it, and decided as each client decides: by the
 * znodes ahead.
 */
#include "postgres.h"

#include "backend/errand.h"
#include "miscadmin.h"
#include "recipes/semaphore.h"
#include "recipes/walk.h"
#include "utils/memutils.h"
#include "znode/zkapi.h"
#include "znode/znode.h"

#define MAX_WALK_PATH	1024	/* longer than any lock of ours, by far */

/* What the children of a directory are, in the order in which they are read */
typedef enum
{
	/* the values of ZklDialect come first */
	KAZOO_LEASE = ZKL_DIALECTS,
	DIRECTORY,
	HIDDEN
} ChildSort;

typedef struct
{
	const char *name;
	int			sort;			/* ZklDialect or Sort */
	bool		doubtful;		/* a directory unless it is ephemeral */
	ZklLockMode mode;
	ZklSeq		seq;
} Child;

/* A directory that has "leases" below it, and perhaps "locks" */
typedef struct
{
	int			permits;		/* that were found */
	int			max;			/* 0: not known */
} Semaphore;

typedef struct
{
	const char *name;			/* of what is walked, for errors */
	void		(*fn) (void *arg, const ZklWalkEntry *entry);
	void	   *arg;
} Walk;

/* A directory that the walk is in */
typedef struct
{
	const Walk *walk;
	const char *path;
	ZklTarget	target;			/* the same */
	Child	   *children;
	int			nchildren;
	Semaphore  *above;			/* whose permits or guard may be here */
	Semaphore	semaphore;		/* whose parts may be below */
	bool		is_permits;		/* by its name */

	/* of the contenders before, of the same sort */
	int			sort;
	int			position;
	bool		exclusive_ahead;
} Visit;

/* Children of a directory that are read in the same way */
typedef struct
{
	Visit	   *visit;
	Child	  **children;
	const char **names;
	int			n;
} Reads;

static void visit_directory(const Walk *walk, const char *path,
							Semaphore *above, const char *names, Size length);

/* ---- names ---- */

static bool
is_last_part(const char *path, const char *part)
{
	size_t		length = strlen(path);
	size_t		part_length = strlen(part);

	return length >= part_length &&
		strcmp(path + length - part_length, part) == 0;
}

static bool
is_bare_uuid(const char *name, bool dashes)
{
	ZklUuid		uuid;

	return strlen(name) == (dashes ? ZKL_UUID_TEXT : ZKL_UUID_HEX) &&
		zkl_uuid_parse_start(name, dashes, &uuid);
}

/* zklock's own directories are no locks, but the turns of jobs are. */
static bool
is_hidden(const char *path, const char *name)
{
	return name[0] == '.' &&
		!(path[0] == '\0' && strcmp(name, &ZKL_ONCE_DIRECTORY[1]) == 0);
}

static void
sort_out(const char *path, Child *child)
{
	bool		has_uuid;
	ZklUuid		uuid;

	for (child->sort = 0; child->sort < ZKL_DIALECTS; child->sort++)
	{
		if (zkl_znode_parse((ZklDialect) child->sort, child->name, &child->mode,
							&child->seq, &has_uuid, &uuid))
			return;
	}
	child->doubtful = true;
	if (is_bare_uuid(child->name, true))
		child->sort = ZKL_DIALECT_MEMBER;
	else if (is_bare_uuid(child->name, false))
		child->sort = KAZOO_LEASE;
	else
		child->sort = is_hidden(path, child->name) ? HIDDEN : DIRECTORY;
}

static int
compare_children(const void *a, const void *b)
{
	const Child *x = a,
			   *y = b;

	if (x->sort != y->sort)
		return x->sort - y->sort;
	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	if (x->mode != y->mode)
		return (int) x->mode - (int) y->mode;
	return strcmp(x->name, y->name);
}

static void
sort_names(Visit *visit, const char *names, Size length)
{
	const char *name;
	Size		n = 0;

	for (name = names; name < names + length; name += strlen(name) + 1)
		n++;
	visit->children = MemoryContextAllocHuge(CurrentMemoryContext,
											 (n + 1) * sizeof(Child));
	for (name = names; name < names + length; name += strlen(name) + 1)
	{
		Child	   *child = &visit->children[visit->nchildren++];

		memset(child, 0, sizeof(*child));
		child->name = name;
		sort_out(visit->path, child);
	}
	qsort(visit->children, (size_t) visit->nchildren, sizeof(Child),
		  compare_children);
}

/* ---- contenders ---- */

static const char *
dialect_of(int sort)
{
	if (sort == KAZOO_LEASE)
		return zkl_dialect_name(ZKL_DIALECT_KAZOO);
	return sort < ZKL_LOCK_DIALECTS ? zkl_dialect_name((ZklDialect) sort) :
		"curator";
}

static ZklWalkMode
mode_of(const Child *child)
{
	if (child->sort < ZKL_LOCK_DIALECTS)
		return child->mode == ZKL_SHARED ? ZKL_WALK_SHARED : ZKL_WALK_EXCLUSIVE;
	return child->sort == ZKL_DIALECT_LATCH ? ZKL_WALK_LEADER :
		child->sort == ZKL_DIALECT_MEMBER ? ZKL_WALK_MEMBER : ZKL_WALK_PERMIT;
}

/* By the contenders ahead, which were asked before */
static bool
is_granted(const Visit *visit, const Child *child)
{
	switch (mode_of(child))
	{
		case ZKL_WALK_SHARED:
			return !visit->exclusive_ahead;
		case ZKL_WALK_PERMIT:
			return !visit->is_permits || visit->above->max == 0 ||
				visit->position <= visit->above->max;
		case ZKL_WALK_MEMBER:
			return true;
		default:
			return visit->position == 1;
	}
}

static bool
is_guard(const Visit *visit, const Child *child)
{
	return child->sort == ZKL_DIALECT_CURATOR_MUTEX &&
		visit->above->permits > 0 &&
		is_last_part(visit->path, ZKL_SEMAPHORE_GUARD);
}

static void
begin_contender(Visit *visit, const Child *child)
{
	if (child->sort != visit->sort)
	{
		visit->position = 0;
		visit->exclusive_ahead = false;
	}
	visit->sort = child->sort;
	visit->position++;
}

/*
 * A contender for the guard of a semaphore waits for permits.  The holder of the guard
 * does, too, unless its permits are past the maximum: these were shown already.
 */
static bool
place_guard(const Visit *visit, ZklWalkEntry *entry)
{
	const Semaphore *semaphore = visit->above;
	bool		full = semaphore->max > 0 && semaphore->permits > semaphore->max;

	entry->dialect = dialect_of(ZKL_DIALECT_PERMIT);
	entry->mode = ZKL_WALK_PERMIT;
	entry->granted = false;
	entry->position = semaphore->permits + visit->position - full;
	return !full || visit->position > 1;
}

/* How much of the path is the name that users of the lock know */
static int
shown_length(const Visit *visit, const Child *child)
{
	bool		permit = child->sort == ZKL_DIALECT_PERMIT && visit->is_permits;

	return (int) zkl_znode_shown_length(permit ? ZKL_DIALECT_PERMIT :
										ZKL_DIALECT_CURATOR_RW,
										is_guard(visit, child), visit->path);
}

static void
put_contender(Visit *visit, const Child *child, const ZklErrandAnswer *answer)
{
	ZklWalkEntry entry = {visit->path};

	begin_contender(visit, child);
	entry.path_length = shown_length(visit, child);
	entry.directory = visit->path;
	entry.name = child->name;
	entry.dialect = dialect_of(child->sort);
	entry.mode = mode_of(child);
	entry.position = visit->position;
	entry.granted = is_granted(visit, child);
	entry.rc = answer->rc;
	entry.data = answer->bytes;
	entry.length = (uint32) answer->size;
	entry.session_id = answer->stat.session_id;
	entry.ctime_ms = answer->stat.ctime;
	visit->exclusive_ahead |= entry.mode == ZKL_WALK_EXCLUSIVE;
	if (visit->is_permits && child->sort == ZKL_DIALECT_PERMIT)
		visit->above->permits = visit->position;
	if (!is_guard(visit, child) || place_guard(visit, &entry))
		visit->walk->fn(visit->walk->arg, &entry);
}

static void
take_contender(void *arg, int number, const ZklErrandAnswer *answer)
{
	Reads	   *reads = arg;
	Child	   *child = reads->children[number];

	if (answer->rc == ZKL_RC_NONODE)
		return;
	if (child->doubtful &&
		(answer->rc != ZKL_RC_OK || answer->stat.session_id == 0))
		child->sort = DIRECTORY;
	else
		put_contender(reads->visit, child, answer);
}

/* ---- semaphores ---- */

static void
take_maximum(void *arg, int number, const ZklErrandAnswer *answer)
{
	if (answer->rc == ZKL_RC_OK)
		((Semaphore *) arg)->max = zkl_maximum_parse(answer->bytes, answer->size);
}

static void
read_itself(ZklErrandKind kind, const ZklTarget *directory, ZklReadingTaker take,
			void *arg)
{
	const char *itself = NULL;

	zkl_errand_read_each(kind, directory, &itself, 1, take, arg);
}

/* How many permits there may be stands in the directory above them. */
static void
read_maximum(const Visit *visit)
{
	ZklTarget	above = visit->target;
	char	   *path = pstrdup(visit->path);

	*strrchr(path, '/') = '\0';
	above.path = path;
	read_itself(ZKL_ERRAND_GET, &above, take_maximum, visit->above);
	pfree(path);
}

/* ---- directories ---- */

static void
put_unread(const Walk *walk, const char *path, int32 rc)
{
	ZklWalkEntry entry = {path};

	entry.path_length = (int) strlen(path);
	entry.rc = rc;
	walk->fn(walk->arg, &entry);
}

static void
take_names(const Walk *walk, const char *path, Semaphore *above,
		   const ZklErrandAnswer *answer)
{
	if (answer->rc == ZKL_RC_OK && answer->size > 0)
		visit_directory(walk, path, above, answer->bytes, answer->size);
	else if (answer->rc != ZKL_RC_OK && answer->rc != ZKL_RC_NONODE)
		put_unread(walk, path, answer->rc);
}

static char *
path_of(const Visit *visit, const Child *child)
{
	return psprintf("%s/%s", visit->path, child->name);
}

static void
take_directory(void *arg, int number, const ZklErrandAnswer *answer)
{
	Reads	   *reads = arg;
	Visit	   *visit = reads->visit;

	take_names(visit->walk, path_of(visit, reads->children[number]),
			   &visit->semaphore, answer);
}

static bool
is_too_long(const Visit *visit, const Child *child)
{
	return strlen(visit->path) + 1 + strlen(child->name) > MAX_WALK_PATH;
}

static void
add_read(Reads *reads, Child *child)
{
	reads->children[reads->n] = child;
	reads->names[reads->n++] = child->name;
}

/* First the contenders, then the directories */
static void
walk_children(Visit *visit)
{
	Size		room = (visit->nchildren + 1) * sizeof(char *);
	Reads		reads = {visit};
	int			i;

	reads.children = MemoryContextAllocHuge(CurrentMemoryContext, room);
	reads.names = MemoryContextAllocHuge(CurrentMemoryContext, room);
	for (i = 0; i < visit->nchildren; i++)
	{
		if (visit->children[i].sort < DIRECTORY)
			add_read(&reads, &visit->children[i]);
	}
	zkl_errand_read_each(ZKL_ERRAND_GET, &visit->target, reads.names, reads.n,
						 take_contender, &reads);
	reads.n = 0;
	for (i = 0; i < visit->nchildren; i++)
	{
		Child	   *child = &visit->children[i];

		if (child->sort == DIRECTORY && is_too_long(visit, child))
			put_unread(visit->walk, path_of(visit, child), ZKL_RC_TOO_LONG);
		else if (child->sort == DIRECTORY)
			add_read(&reads, child);
	}
	zkl_errand_read_each(ZKL_ERRAND_LIST, &visit->target, reads.names, reads.n,
						 take_directory, &reads);
}

static void
visit_directory(const Walk *walk, const char *path, Semaphore *above,
				const char *names, Size length)
{
	Visit		visit = {walk, path, {path, walk->name, ZKL_DIALECT_CURATOR_RW}};
	MemoryContext old = CurrentMemoryContext;
	MemoryContext context = AllocSetContextCreate(old, "zklock walk",
												  ALLOCSET_SMALL_SIZES);

	check_stack_depth();
	MemoryContextSwitchTo(context);
	visit.above = above;
	visit.sort = -1;
	visit.is_permits = is_last_part(path, ZKL_SEMAPHORE_PERMITS);
	sort_names(&visit, names, length);
	if (visit.is_permits)
		read_maximum(&visit);
	walk_children(&visit);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

static void
take_start(void *arg, int number, const ZklErrandAnswer *answer)
{
	Visit	   *nowhere = arg;

	take_names(nowhere->walk, nowhere->path, &nowhere->semaphore, answer);
}

void
zkl_walk(const ZklTarget *from, void (*fn) (void *arg, const ZklWalkEntry *entry),
		 void *arg)
{
	Walk		walk = {from->name, fn, arg};
	Visit		nowhere = {&walk, from->path};

	read_itself(ZKL_ERRAND_LIST, from, take_start, &nowhere);
}
