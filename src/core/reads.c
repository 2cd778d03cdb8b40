/*
 * reads.c
 *	  Sends listings, and sets and removes watches.
 *
 * Owns ZklReads, and of a lock ZklDirectory, ZklAhead and ZklListings.  Every
 * watch state is written by zkl_reads_set_watch, which counts the armed
 * watches: reads_reply.c calls it when an answer or an event comes, look.c for
 * the watches on our own nodes.  Runs in the worker (and in tests), takes no
 * locks, knows neither PostgreSQL nor ZooKeeper.
 *
 * A get sets each data watch: an exists-watch on a node that is already gone
 * would stay for ever.  A listing sets the watch on a directory's children.
 * A watch lives as long as its connection; after a reconnect it is set again
 * when it is needed.
 */
#include <string.h>

#include "core/actions.h"
#include "core/departed.h"
#include "core/memory.h"
#include "core/operations.h"
#include "core/reads.h"
#include "core/tries.h"
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

bool
zkl_reads_has_visited(ZklManager *m, const char *path, size_t length)
{
	uint32_t	tag;

	return *visit_of(m, path, length, &tag) == tag;
}

void
zkl_reads_forget_visit(ZklManager *m, const char *path, size_t length)
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
