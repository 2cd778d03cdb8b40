/*
 * directories.c
 *	  The directories of locks: whether one is missing, and the end of those that
 *	  nobody else uses.
 *
 * Owns ZklParents, ZklDirectories, and the attempts of a request.  Runs in the worker
 * (and in tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
 *
 * A directory is a container: ZooKeeper deletes it some time after its last child has
 * left, and the next create in it fails.  So a lock that was not used lately mostly has
 * none.  To send a create that fails, then all levels of the directory, and then the
 * create again, takes two round trips.  If the last name that came new under the same
 * parent had no directory, the next one probably has none either: then its container
 * goes ahead of the create in the first place.  ZooKeeper keeps the order of a session,
 * and to create what is there does no harm.
 *
 * A directory that this session made, and in which it met nobody, is deleted when its
 * lock was not used for T, or if too many wait for that.  Many go in one transaction;
 * it is refused if anybody is in one of them, who keeps that.
 */
#include <string.h>

#include "core/actions.h"
#include "core/directories.h"
#include "core/memory.h"
#include "core/mutant.h"
#include "core/operations.h"
#include "core/reads.h"

/* One that is to be deleted */
struct ZklLeft
{
	ZklLink		link;			/* in m->directories.left, in the order of
								 * "due" */
	ZklLink		by_path;
	int64_t		due;
	ZklSeq		creates;		/* of ours, ever */
	ZklDialect	dialect;
	size_t		length;
	char		path[];			/* NUL terminated */
};

void
zkl_directories_init_all(ZklManager *m)
{
	zkl_list_init(&m->directories.left);
	zkl_memory_make_table(m, &m->directories.by_path, ZKL_MAX_LEFT);
}

static void
forget_left(ZklManager *m, ZklLeft *left)
{
	zkl_list_remove(&left->link);
	zkl_list_remove(&left->by_path);
	m->directories.nleft--;
	zkl_memory_release(m, left);
}

void
zkl_directories_disconnected(ZklManager *m)
{
	m->directories.ngoing = 0;
	while (!zkl_list_empty(&m->directories.left))
		forget_left(m, zkl_container(ZklLeft, link, m->directories.left.head.next));
}

void
zkl_directories_free_all(ZklManager *m)
{
	zkl_directories_disconnected(m);
	zkl_memory_release(m, m->directories.by_path.buckets);
}

/* ---- made ahead of a create ---- */

static void
make_level(ZklManager *m, ZklLock *lock, const char *path, size_t length, bool last)
{
	char	   *level = zkl_actions_join(m, path, "", "");

	level[length] = '\0';
	zkl_operations_send(m, last ? ZKL_OP_DIRECTORY : ZKL_OP_PARENT, lock, NULL,
						ZKL_SEND_CREATE_CONTAINER, level);
}

void
zkl_directories_make(ZklManager *m, ZklLock *lock, const char *path,
					 const char *skip)
{
	size_t		length = strlen(path),
				shared = 0,
				i;

	if (lock != NULL)
	{
		lock->parents.missing = false;
		lock->parents.rc = 0;
	}
	for (i = 0; path[i] != '\0' && path[i] == skip[i]; i++)
	{
		if (path[i] == '/')
			shared = i;
	}
	if ((path[i] == '\0' || path[i] == '/') &&
		(skip[i] == '\0' || skip[i] == '/'))
		shared = i;
	for (i = shared + 1; i <= length; i++)
	{
		if (path[i] == '/' || path[i] == '\0')
			make_level(m, lock, path, i, i == length);
	}
}

void
zkl_directories_missing(ZklLock *lock)
{
	lock->parents.missing = true;
}

bool
zkl_directories_try_again(ZklRequest *r)
{
	return r->lock->parents.rc == 0 && ++r->attempts < ZKL_MAX_ATTEMPTS;
}

void
zkl_directories_made(ZklLock *lock)
{
	lock->parents.made = true;
}

void
zkl_directories_refused(ZklLock *lock, int32_t rc)
{
	lock->parents.rc = rc;
}

/* ---- which one is probably missing ---- */

/* What was met last under the parent of a lock's directory */
static ZklParentGuess *
guess_of(ZklManager *m, const ZklLock *lock)
{
	size_t		length = lock->path_length;
	uint64_t	hash;
	ZklParentGuess *guess;

	while (lock->path[length] != '/')
		length--;
	hash = zkl_table_hash(lock->path, length);
	guess = &m->directories.guesses[hash & (ZKL_PARENT_GUESSES - 1)];
	if (guess->tag != (uint32_t) (hash >> 32))
		*guess = (ZklParentGuess)
	{
		(uint32_t) (hash >> 32), false
	};
	return guess;
}

/* One that we came to lately is there, unless we have deleted it. */
bool
zkl_directories_is_missing(ZklManager *m, const ZklLock *lock)
{
	return !lock->parents.found && lock->dialect != ZKL_DIALECT_PERMIT &&
		guess_of(m, lock)->missing &&
		!zkl_reads_has_visited(m, lock->path, lock->path_length);
}

void
zkl_directories_guess(ZklManager *m, ZklLock *lock)
{
	if (lock->parents.guessed || !zkl_directories_is_missing(m, lock))
		return;
	lock->parents.guessed = true;
	make_level(m, lock, lock->path, lock->path_length, true);
}

void
zkl_directories_found(ZklManager *m, ZklRequest *r, ZklSeq seq)
{
	ZklParents *parents = &r->lock->parents;

	if (!parents->found)
		guess_of(m, r->lock)->missing = seq == 0 && parents->made;
	parents->found = true;
	parents->guessed = false;
	parents->rc = 0;
	parents->creates++;
	if (seq != parents->creates - 1)
		parents->made = false;
	r->attempts = 0;
}

/* ---- the end ---- */

void
zkl_directories_shared(ZklLock *lock)
{
	lock->parents.made = false;
}

static ZklLeft *
find_left(const ZklManager *m, const ZklLock *lock)
{
	const ZklList *bucket = zkl_table_bucket(&m->directories.by_path,
											 zkl_table_hash(lock->path, lock->path_length));
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, bucket)
	{
		ZklLeft    *left = zkl_container(ZklLeft, by_path, link);

		if (left->length == lock->path_length && left->dialect == lock->dialect &&
			memcmp(left->path, lock->path, left->length) == 0)
			return left;
	}
	return NULL;
}

/*
 * kazoo makes a directory once for each Lock object, and then relies on it for as long as
 * that is used.
 */
void
zkl_directories_leave(ZklManager *m, const ZklLock *lock)
{
	ZklLeft    *left;

	if (!lock->parents.made ||
		(lock->dialect == ZKL_DIALECT_KAZOO && !ZKL_MUTANT(DIRECTORY_OF_KAZOO)) ||
		m->connection.state != ZKL_CONNECTION_READY)
		return;
	left = zkl_memory_alloc(m, sizeof(ZklLeft) + lock->path_length + 1);
	memset(left, 0, sizeof(ZklLeft));
	memcpy(left->path, lock->path, lock->path_length + 1);
	left->length = lock->path_length;
	left->dialect = lock->dialect;
	left->creates = lock->parents.creates;
	left->due = m->now + m->session.timeout_ms * INT64_C(1000);
	zkl_list_append(&m->directories.left, &left->link);
	zkl_list_append(zkl_table_bucket(&m->directories.by_path,
									 zkl_table_hash(left->path, left->length)),
					&left->by_path);
	m->directories.nleft++;
}

void
zkl_directories_return(ZklManager *m, ZklLock *lock)
{
	ZklLeft    *left = find_left(m, lock);

	if (left == NULL)
		return;
	lock->parents.made = lock->parents.found = true;
	lock->parents.creates = left->creates;
	forget_left(m, left);
}

/* The first ones go.  From now on their paths count as those of names that are new. */
static void
send_some(ZklManager *m)
{
	ZklMultiOp *ops = (ZklMultiOp *) (void *)
	zkl_actions_text(m, ZKL_MAX_GOING * sizeof(ZklMultiOp));
	ZklAction  *action;
	uint32_t	n = 0;
	ZklLink    *link = m->directories.left.head.next;

	memset(ops, 0, ZKL_MAX_GOING * sizeof(ZklMultiOp));
	for (; n < ZKL_MAX_GOING && link != &m->directories.left.head; link = link->next)
	{
		ZklLeft    *left = zkl_container(ZklLeft, link, link);

		zkl_list_remove(&left->by_path);
		zkl_reads_forget_visit(m, left->path, left->length);
		ops[n].kind = ZKL_MULTI_DELETE;
		ops[n].path = zkl_actions_join(m, left->path, "", "");
		ops[n++].version = -1;
	}
	m->directories.ngoing = n;
	action = zkl_operations_send(m, ZKL_OP_DIRECTORIES, NULL, NULL, ZKL_SEND_MULTI,
								 NULL);
	action->multi = ops;
	action->nmulti = n;
}

int64_t
zkl_directories_timer(const ZklManager *m)
{
	if (m->directories.ngoing > 0 || zkl_list_empty(&m->directories.left))
		return -1;
	return m->directories.nleft >= ZKL_MAX_LEFT ? m->now :
		zkl_container(ZklLeft, link, m->directories.left.head.next)->due;
}

void
zkl_directories_send(ZklManager *m)
{
	int64_t		due = zkl_directories_timer(m);

	if (m->connection.state == ZKL_CONNECTION_READY && due >= 0 && due <= m->now)
		send_some(m);
}

/* The operation that was refused; none: all are done, or nobody knows. */
static uint32_t
refused_one(const ZklReply *reply)
{
	uint32_t	i;

	for (i = 0; reply->rc != ZKL_RC_OK && i < reply->nresults; i++)
	{
		if (reply->results[i].rc != ZKL_RC_OK)
			return i;
	}
	return UINT32_MAX;
}

/* If one was refused, that one stays, and the others go at once. */
void
zkl_directories_deleted(ZklManager *m, const ZklReply *reply)
{
	uint32_t	refused = refused_one(reply);
	uint32_t	i;
	ZklLink    *link,
			   *after;

	i = 0;
	zkl_foreach(link, after, &m->directories.left)
	{
		ZklLeft    *left = zkl_container(ZklLeft, link, link);

		if (i == m->directories.ngoing)
			break;
		if (refused == UINT32_MAX || i == refused)
			forget_left(m, left);
		else
			left->due = m->now;
		i++;
	}
	m->directories.ngoing = 0;
}
