/*
 * reads.c
 *	  Directories: listings and watches, and whether they are there.
 *
 * Owns ZklReads, ZklDirectories and ZklParents; of a lock ZklDirectory, ZklAhead,
 * ZklListings and ZklTries; and the attempts of a request.  Every watch state is
 * written by zkl_reads_set_watch, which counts the armed watches: reads_reply.c
 * calls it when an answer or an event comes, node.c for the watches on our own
 * nodes.  Runs in the worker (and in tests), takes no locks, knows neither
 * PostgreSQL nor ZooKeeper.
 *
 * A get sets each data watch: an exists-watch on a node that is already gone
 * would stay for ever.  A listing sets the watch on a directory's children.
 * A watch lives as long as its connection; after a reconnect it is set again
 * when it is needed.
 */
#include <string.h>

#include "core/assert.h"
#include "core/contenders.h"
#include "core/host.h"
#include "core/reads.h"
#include "core/write.h"

void
zkl_reads_init(ZklManager *m)
{
	zkl_list_init(&m->reads.readers);
	zkl_list_init(&m->reads.stuck);
}

void
zkl_reads_set_watch(ZklManager *m, ZklWatchState *watch, ZklWatchState state)
{
	ZKL_ASSERT(*watch != ZKL_WATCH_ARMED || m->reads.watches > 0);
	if (*watch == ZKL_WATCH_ARMED)
		m->reads.watches--;
	if (state == ZKL_WATCH_ARMED)
		m->reads.watches++;
	*watch = state;
}

void
zkl_reads_want(ZklManager *m, ZklLock *lock)
{
	if (!zkl_list_linked(&lock->reader))
		zkl_list_append(&m->reads.readers, &lock->reader);
}

void
zkl_reads_list_again(ZklManager *m, ZklLock *lock)
{
	lock->listing.wanted = true;
	zkl_reads_want(m, lock);
}

/* If a listing is under way, its answer has the lock decided again. */
void
zkl_reads_want_listing(ZklManager *m, ZklLock *lock)
{
	if (!lock->listing.sent)
		zkl_reads_list_again(m, lock);
}

void
zkl_reads_list_later(ZklManager *m, ZklLock *lock)
{
	if (zkl_list_linked(&lock->listing.stuck))
		return;
	zkl_write_retry_later(m);
	zkl_list_append(&m->reads.stuck, &lock->listing.stuck);
}

void
zkl_reads_retry(ZklManager *m)
{
	while (!zkl_list_empty(&m->reads.stuck))
	{
		ZklLock    *lock = zkl_container(ZklLock, listing.stuck,
										 m->reads.stuck.head.next);

		zkl_list_remove(&lock->listing.stuck);
		zkl_reads_list_again(m, lock);
	}
}

void
zkl_reads_want_children(ZklManager *m, ZklLock *lock)
{
	if (lock->listing.sent || lock->listing.watch >= ZKL_WATCH_SENT)
		return;
	zkl_reads_set_watch(m, &lock->listing.watch, ZKL_WATCH_WANTED);
	zkl_reads_want_listing(m, lock);
}

static uint32_t *
visit_of(ZklManager *m, const char *path, size_t length, uint32_t *tag)
{
	uint64_t	hash = zkl_table_hash(path, length);

	*tag = (uint32_t) (hash >> 32);
	return &m->reads.visits[hash & (ZKL_VISITS - 1)];
}

/* Whether we came to a directory lately; nobody will, as it is deleted. */
static bool
reads_has_visited(ZklManager *m, const char *path, size_t length)
{
	uint32_t	tag;

	return *visit_of(m, path, length, &tag) == tag;
}

static void
reads_forget_visit(ZklManager *m, const char *path, size_t length)
{
	uint32_t	tag;
	uint32_t   *visit = visit_of(m, path, length, &tag);

	if (*visit == tag)
		*visit = 0;
}

/*
 * With the watch the next create needs no listing.  If a server comes here
 * only once in a while, the watch never pays: it costs a read, the watch and
 * its end.
 */
void
zkl_reads_visit(ZklManager *m, ZklLock *lock)
{
	uint32_t	tag;
	uint32_t   *visit = visit_of(m, lock->path, lock->path_length, &tag);

	if (lock->directory.watch != ZKL_WATCH_NONE)
		return;
	if (*visit == tag)
	{
		lock->directory.visited = true;
		zkl_reads_set_watch(m, &lock->directory.watch, ZKL_WATCH_WANTED);
	}
	*visit = tag;
}

/* ---- the watch on the contender ahead ---- */

static void
forget_ahead(ZklManager *m, ZklAhead *ahead)
{
	if (ahead->name != NULL)
		zkl_memory_release(m, ahead->name);
	if (ahead->data != NULL)
		zkl_memory_release(m, ahead->data);
	ahead->name = ahead->data = NULL;
}

void
zkl_reads_watch_ahead(ZklManager *m, ZklLock *lock, size_t i)
{
	const ZklContender *c = &lock->foreign.all[i];
	const char *name = lock->foreign.names + c->name;
	size_t		length = strlen(name) + 1;

	ZKL_ASSERT(i < lock->foreign.n);

	/* The answer under way brings us back here. */
	if (lock->ahead.watch == ZKL_WATCH_SENT)
		return;
	if (lock->ahead.watch != ZKL_WATCH_NONE)
	{
		if (strcmp(lock->ahead.name, name) == 0)
			return;
		zkl_reads_unwatch_ahead(m, lock);
	}
	forget_ahead(m, &lock->ahead);
	lock->ahead.name = zkl_memory_alloc(m, length);
	memcpy(lock->ahead.name, name, length);
	lock->ahead.contender = *c;
	zkl_reads_set_watch(m, &lock->ahead.watch, ZKL_WATCH_WANTED);
	zkl_reads_want(m, lock);
}

static void
send_unwatch(ZklManager *m, const char *path)
{
	zkl_operations_send(m, ZKL_OP_IGNORE, NULL, NULL, ZKL_SEND_UNWATCH, path);
}

void
zkl_reads_unwatch_ahead(ZklManager *m, ZklLock *lock)
{
	/* One that has departed goes, and ends the watch without a request. */
	if (lock->ahead.watch == ZKL_WATCH_ARMED &&
		!zkl_departed_is(m, lock, &lock->ahead.contender))
		send_unwatch(m, zkl_actions_join(m, lock->path, "/",
										 lock->ahead.name));
	if (lock->ahead.watch != ZKL_WATCH_SENT)
		zkl_reads_set_watch(m, &lock->ahead.watch, ZKL_WATCH_NONE);
}

static void
keep_data(ZklManager *m, ZklAhead *ahead, const ZklReply *reply)
{
	if (ahead->data != NULL)
		zkl_memory_release(m, ahead->data);
	ahead->data = NULL;
	if (reply->data_length == 0 || reply->data_length > ZKL_MAX_NODE_DATA)
		return;
	ahead->data = zkl_memory_alloc(m, reply->data_length);
	memcpy(ahead->data, reply->data, reply->data_length);
	ahead->data_length = (uint32_t) reply->data_length;
}

void
zkl_reads_ahead_watched(ZklManager *m, ZklLock *lock, const ZklReply *reply)
{
	ZklAhead   *ahead = &lock->ahead;
	ZklNodeData data;

	zkl_reads_set_watch(m, &ahead->watch, ZKL_WATCH_ARMED);
	ahead->plain = ahead->contender.zklock &&
		!zkl_node_data_downgrading(reply->data, reply->data_length);
	keep_data(m, ahead, reply);
	ahead->cached = ahead->contender.zklock &&
		zkl_node_data_is_cached(reply->data, reply->data_length);
	if (!ahead->cached)
		return;
	(void) zkl_node_data_parse(reply->data, reply->data_length, &data);
	memcpy(ahead->server, data.server, sizeof(ahead->server));
}

/* ---- the watch on the directory ---- */

void
zkl_reads_watch_directory(ZklManager *m, ZklLock *lock)
{
	zkl_reads_set_watch(m, &lock->directory.watch, ZKL_WATCH_WANTED);
	zkl_reads_want(m, lock);
}

void
zkl_reads_directory_watched(ZklManager *m, ZklLock *lock,
							const ZklReply *reply)
{
	if (lock->directory.watch != ZKL_WATCH_SENT)
		return;
	zkl_reads_set_watch(m, &lock->directory.watch,
						reply->rc == ZKL_RC_OK ?
						ZKL_WATCH_ARMED : ZKL_WATCH_NONE);
	if (reply->rc == ZKL_RC_OK)
		lock->directory.czxid = reply->stat.czxid;
}

void
zkl_reads_unwatch_directory(ZklManager *m, ZklLock *lock, bool shared)
{
	if (lock->directory.watch == ZKL_WATCH_ARMED && !shared)
		send_unwatch(m, zkl_actions_join(m, lock->path, "", ""));
	zkl_reads_set_watch(m, &lock->directory.watch, ZKL_WATCH_NONE);
}

/* ---- sending ---- */

/* Sends the look that tries wait for, if there are any. */
static void
send_probe(ZklManager *m, ZklLock *lock)
{
	if (zkl_list_empty(&lock->tries.all) || lock->tries.sent)
		return;
	zkl_tries_look_sent(lock);
	m->reads.listings++;
	if (!ZKL_MUTANT(PROBE_WITHOUT_SYNC))
		zkl_operations_send(m, ZKL_OP_PROBE_SYNC, lock, NULL, ZKL_SEND_SYNC,
							zkl_actions_join(m, lock->path, "", ""));

	/* A try that comes from now on needs another look. */
	zkl_operations_send(m, ZKL_OP_PROBE, lock, NULL, ZKL_SEND_LIST,
						zkl_actions_join(m, lock->path, "", ""));
}

static void
send_lock_reads(ZklManager *m, ZklLock *lock)
{
	char	   *path = zkl_actions_join(m, lock->path, "", "");

	if (lock->listing.wanted && !lock->listing.sent)
	{
		bool		watch = lock->listing.watch == ZKL_WATCH_WANTED;

		lock->listing.wanted = false;
		lock->listing.sent = true;
		m->reads.listings++;
		zkl_operations_read(m, ZKL_OP_LIST, lock, NULL, ZKL_SEND_LIST,
							path, watch);
		if (watch)
		{
			zkl_reads_set_watch(m, &lock->listing.watch, ZKL_WATCH_SENT);
			lock->listing.order = m->operations.order;
		}
	}
	send_probe(m, lock);
	if (lock->directory.watch == ZKL_WATCH_WANTED)
	{
		zkl_reads_set_watch(m, &lock->directory.watch, ZKL_WATCH_SENT);
		zkl_operations_read(m, ZKL_OP_WATCH_DIRECTORY, lock, NULL,
							ZKL_SEND_GET, path, true);
	}
	if (lock->ahead.watch == ZKL_WATCH_WANTED)
	{
		ZKL_ASSERT(lock->ahead.name != NULL);
		zkl_reads_set_watch(m, &lock->ahead.watch, ZKL_WATCH_SENT);
		path = zkl_actions_join(m, lock->path, "/", lock->ahead.name);
		zkl_operations_read(m, ZKL_OP_WATCH_AHEAD, lock, NULL,
							ZKL_SEND_GET, path, true);
		lock->ahead.order = m->operations.order;
	}
}

void
zkl_reads_send(ZklManager *m)
{
	if (m->connection.state != ZKL_CONNECTION_READY)
		return;
	while (!zkl_list_empty(&m->reads.readers) && zkl_operations_may_read(m))
	{
		ZklLink    *link = m->reads.readers.head.next;

		zkl_list_remove(link);
		send_lock_reads(m, zkl_container(ZklLock, reader, link));
	}
}

/* ---- answers, and ends ---- */

void
zkl_reads_listed(ZklManager *m, ZklLock *lock, uint64_t order, bool found)
{
	lock->listing.sent = false;
	if (lock->listing.watch == ZKL_WATCH_SENT && lock->listing.order == order)
		zkl_reads_set_watch(m, &lock->listing.watch,
							found && order >= m->connection.proved_at ?
							ZKL_WATCH_ARMED : ZKL_WATCH_NONE);
	if (lock->listing.wanted)
		zkl_reads_want(m, lock);
}

void
zkl_reads_stop(ZklLock *lock)
{
	zkl_list_remove(&lock->reader);
	zkl_list_remove(&lock->listing.stuck);
	lock->listing.wanted = false;
}

void
zkl_reads_forget(ZklManager *m, ZklLock *lock)
{
	zkl_reads_stop(lock);
	zkl_reads_set_watch(m, &lock->listing.watch, ZKL_WATCH_NONE);
	forget_ahead(m, &lock->ahead);
}

void
zkl_reads_disconnected(ZklManager *m, ZklLock *lock)
{
	if (!ZKL_MUTANT(CONTINUITY_RECONNECT))
		zkl_reads_set_watch(m, &lock->directory.watch, ZKL_WATCH_NONE);
	if (!ZKL_MUTANT(WATCH_FORGOTTEN))
		zkl_reads_set_watch(m, &lock->ahead.watch, ZKL_WATCH_NONE);
	zkl_reads_set_watch(m, &lock->listing.watch, ZKL_WATCH_NONE);
	lock->listing.sent = false;
}

/* ---- directories ---- */

/*
 * The directories of locks: whether one is missing, and the end of those that nobody
 * else uses.
 *
 * A directory is a container: ZooKeeper deletes it some time after its last child has
 * left, and the next create in it fails.  So a lock that was not used lately mostly has
 * none.  A create that fails, and then all levels of the directory with the create once
 * more behind them, take two round trips.  If the last name that came new under the same
 * parent had no directory, the next one probably has none either: then its container
 * goes right ahead of its first create.  ZooKeeper keeps the order of a session, and to
 * create what is there does no harm.
 *
 * A directory that this session made, and in which it met nobody, is deleted T after its
 * lock was forgotten, or earlier if too many wait for that.  Many go in one transaction.
 * ZooKeeper refuses it for the first one that is in use, or gone: that one is left alone,
 * and the others are sent again.
 */

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
	zkl_operations_send(m, last ? ZKL_OP_MAKE_DIRECTORY : ZKL_OP_PARENT, lock, NULL,
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
		!reads_has_visited(m, lock->path, lock->path_length);
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
zkl_directories_disown(ZklLock *lock)
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
 * that is used.  If there are more than can be deleted, ZooKeeper deletes the others.
 */
void
zkl_directories_leave(ZklManager *m, const ZklLock *lock)
{
	ZklLeft    *left;

	if (!lock->parents.made ||
		(lock->dialect == ZKL_DIALECT_KAZOO && !ZKL_MUTANT(DIRECTORY_OF_KAZOO)) ||
		m->connection.state != ZKL_CONNECTION_READY ||
		m->directories.nleft >= 2 * ZKL_MAX_LEFT)
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
		reads_forget_visit(m, left->path, left->length);
		ops[n].kind = ZKL_MULTI_DELETE;
		ops[n].path = zkl_actions_join(m, left->path, "", "");
		ops[n++].version = -1;
	}
	m->directories.ngoing = n;
	action = zkl_operations_send(m, ZKL_OP_DELETE_DIRECTORIES, NULL, NULL, ZKL_SEND_MULTI,
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

/* If one was refused, that one stays, and the others go each by itself. */
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
		if (refused != UINT32_MAX && i != refused)
			zkl_operations_send(m, ZKL_OP_IGNORE, NULL, NULL, ZKL_SEND_DELETE,
								zkl_actions_join(m, left->path, "", ""));
		forget_left(m, left);
		i++;
	}
	m->directories.ngoing = 0;
}
