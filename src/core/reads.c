/*
 * reads.c
 *	  Sends listings, and sets and removes watches.
 *
 * Owns m->visits, and sends the reads of the locks in m->readers.  Every watch
 * state is written by zkl_reads_set_watch, which counts the armed watches.
 * Other files call it, too: reads_reply.c when an answer or an event comes,
 * batch_reply.c and lock.c for the watches of a lock, look.c for those on our
 * own nodes.  Runs in the worker (and in tests), takes no locks, knows neither
 * PostgreSQL nor ZooKeeper.
 *
 * A get sets each data watch: an exists-watch on a node that is already gone
 * would stay for ever.  A listing sets the watch on a directory's children.
 * A watch lives as long as its connection; after a reconnect it is set again
 * when it is needed.
 */
#include <string.h>

#include "core/actions.h"
#include "core/memory.h"
#include "core/operations.h"
#include "core/reads.h"

void
zkl_reads_set_watch(ZklManager *m, ZklWatchState *watch, ZklWatchState state)
{
	if (*watch == ZKL_WATCH_ARMED)
		m->counters.watches--;
	if (state == ZKL_WATCH_ARMED)
		m->counters.watches++;
	*watch = state;
}

void
zkl_reads_want(ZklManager *m, ZklLock *lock)
{
	if (!zkl_linked(&lock->reader))
		zkl_list_append(&m->readers, &lock->reader);
}

/* If a listing is under way, its answer has the lock decided again. */
void
zkl_reads_want_listing(ZklManager *m, ZklLock *lock)
{
	if (lock->list_sent)
		return;
	lock->list_wanted = true;
	zkl_reads_want(m, lock);
}

void
zkl_reads_want_children(ZklManager *m, ZklLock *lock)
{
	if (lock->list_sent || lock->children_watch >= ZKL_WATCH_SENT)
		return;
	zkl_reads_set_watch(m, &lock->children_watch, ZKL_WATCH_WANTED);
	zkl_reads_want_listing(m, lock);
}

/*
 * With the watch the next create needs no listing.  If a server comes here
 * only once in a while, the watch never pays: it costs a read, the watch and
 * its end.
 */
void
zkl_reads_visit(ZklManager *m, ZklLock *lock)
{
	uint64_t	hash = zkl_hash(lock->path, lock->path_length);
	uint32_t   *visit = &m->visits[hash & (ZKL_VISITS - 1)];
	uint32_t	tag = (uint32_t) (hash >> 32);

	if (lock->directory_watch != ZKL_WATCH_NONE)
		return;
	if (*visit == tag)
	{
		lock->visited = true;
		zkl_reads_set_watch(m, &lock->directory_watch, ZKL_WATCH_WANTED);
	}
	*visit = tag;
}

/* ---- the watch on the contender ahead ---- */

void
zkl_reads_watch_ahead(ZklManager *m, ZklLock *lock, size_t i)
{
	const ZklContender *c = &lock->foreign[i];
	const char *name = lock->names + c->name;
	size_t		length = strlen(name) + 1;

	/* The answer under way brings us back here. */
	if (lock->ahead_watch == ZKL_WATCH_SENT)
		return;
	if (lock->ahead_watch != ZKL_WATCH_NONE)
	{
		if (strcmp(lock->ahead_name, name) == 0)
			return;
		zkl_reads_unwatch_ahead(m, lock);
	}
	if (lock->ahead_name != NULL)
		zkl_memory_release(m, lock->ahead_name);
	lock->ahead_name = zkl_memory_alloc(m, length);
	memcpy(lock->ahead_name, name, length);
	lock->ahead = *c;
	zkl_reads_set_watch(m, &lock->ahead_watch, ZKL_WATCH_WANTED);
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
	if (lock->ahead_watch == ZKL_WATCH_ARMED)
		send_unwatch(m, zkl_actions_join(m, lock->path, "/",
										 lock->ahead_name));
	if (lock->ahead_watch != ZKL_WATCH_SENT)
		zkl_reads_set_watch(m, &lock->ahead_watch, ZKL_WATCH_NONE);
}

void
zkl_reads_unwatch_directory(ZklManager *m, ZklLock *lock, bool shared)
{
	if (lock->directory_watch == ZKL_WATCH_ARMED && !shared)
		send_unwatch(m, zkl_actions_join(m, lock->path, "", ""));
	zkl_reads_set_watch(m, &lock->directory_watch, ZKL_WATCH_NONE);
}

/* ---- sending ---- */

/* Sends the look that tries wait for, if there are any. */
static void
send_probe(ZklManager *m, ZklLock *lock)
{
	if (zkl_list_empty(&lock->tries) || lock->probe_sent)
		return;
	lock->probe_sent = true;
	lock->probe_stale = false;
	m->counters.listings++;
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

	if (lock->list_wanted && !lock->list_sent)
	{
		bool		watch = lock->children_watch == ZKL_WATCH_WANTED;

		lock->list_wanted = false;
		lock->list_sent = true;
		m->counters.listings++;
		zkl_operations_read(m, ZKL_OP_LIST, lock, NULL, ZKL_SEND_LIST,
							path, watch);
		if (watch)
		{
			zkl_reads_set_watch(m, &lock->children_watch, ZKL_WATCH_SENT);
			lock->children_order = m->operations.order;
		}
	}
	send_probe(m, lock);
	if (lock->directory_watch == ZKL_WATCH_WANTED)
	{
		zkl_reads_set_watch(m, &lock->directory_watch, ZKL_WATCH_SENT);
		zkl_operations_read(m, ZKL_OP_WATCH_DIRECTORY, lock, NULL,
							ZKL_SEND_GET, path, true);
	}
	if (lock->ahead_watch == ZKL_WATCH_WANTED)
	{
		zkl_reads_set_watch(m, &lock->ahead_watch, ZKL_WATCH_SENT);
		path = zkl_actions_join(m, lock->path, "/", lock->ahead_name);
		zkl_operations_read(m, ZKL_OP_WATCH_AHEAD, lock, NULL,
							ZKL_SEND_GET, path, true);
		lock->ahead_order = m->operations.order;
	}
}

void
zkl_reads_send(ZklManager *m)
{
	if (m->connection.state != ZKL_CONNECTION_READY)
		return;
	while (!zkl_list_empty(&m->readers) && zkl_operations_may_read(m))
	{
		ZklLink    *link = m->readers.head.next;

		zkl_unlink(link);
		send_lock_reads(m, zkl_container(ZklLock, reader, link));
	}
}

void
zkl_reads_disconnected(ZklManager *m, ZklLock *lock)
{
	if (!ZKL_MUTANT(CONTINUITY_RECONNECT))
		zkl_reads_set_watch(m, &lock->directory_watch, ZKL_WATCH_NONE);
	if (!ZKL_MUTANT(WATCH_FORGOTTEN))
		zkl_reads_set_watch(m, &lock->ahead_watch, ZKL_WATCH_NONE);
	zkl_reads_set_watch(m, &lock->children_watch, ZKL_WATCH_NONE);
	lock->list_sent = false;
}
