/*
 * cache.c
 *	  Locks that stay on the server that uses them.
 *
 * Owns ZklCache, ZklCaching, and which request of a lock may be cached.  Runs in
 * the worker (and in tests), takes no locks, knows neither PostgreSQL nor
 * ZooKeeper.
 *
 * To the core a cached lock is a hold like any other.  In shared memory sessions
 * release and take it as they like.  The host begins this at our offer, and ends it
 * at a recall, in one step each; only a recall tells whose the lock is.  See recall.c.
 *
 *	  NONE -> HOPED -> CACHEABLE -> NONE
 *			    |                     ^
 *			    +---------------------+
 *
 * The node of a HOPED request was created with a mark that tells other servers
 * that its lock may be cached: their tries do not take it for a lock that is
 * held.  It becomes CACHEABLE once a listing with a watch on the children shows
 * it, and no contender beside it: from then on the watch tells of each one that
 * comes.  A mark of a request in state NONE is taken away.
 *
 * Only the node of a hot lock is marked: see heat.c.
 */
#include <string.h>

#include "core/cache.h"
#include "core/downgrade.h"
#include "core/heat.h"
#include "core/keep.h"
#include "core/look.h"
#include "core/mark.h"
#include "core/node.h"
#include "core/operations.h"
#include "core/reads.h"
#include "core/rewrite.h"

void
zkl_cache_init_all(ZklManager *m)
{
	zkl_list_init(&m->cache.hoped);
	zkl_list_init(&m->cache.cacheable);
}

/* ---- the mark ---- */

/* Whether another request of ours wants the lock, or has it */
static bool
has_company(const ZklRequest *r)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &r->lock->requests.all)
	{
		const ZklRequest *other = zkl_container(ZklRequest, all, link);

		if (other != r && other->demand != ZKL_DEMAND_RELEASED)
			return true;
	}
	return false;
}

static void
promise(ZklRequest *r, ZklCacheState state, ZklList *list)
{
	r->cache.state = state;
	zkl_list_remove(&r->cache.link);
	zkl_list_append(list, &r->cache.link);
	r->lock->cached = r;
}

static void
withdraw(ZklRequest *r)
{
	if (r->cache.state == ZKL_CACHE_NONE)
		return;
	r->cache.state = ZKL_CACHE_NONE;
	r->cache.clear = false;
	zkl_list_remove(&r->cache.link);
	r->lock->cached = NULL;
}

void
zkl_cache_choose(ZklManager *m, ZklRequest *r)
{
	zkl_cache_forget(m, r);
	r->cache.contended = false;
	if (m->cache.time == 0 || !r->plain || r->ring.next != r ||
		r->demand != ZKL_DEMAND_WAITING || r->lock->renumber.wanted ||
		r->lock->cached != NULL || !zkl_heat_is_hot(m, r->lock) ||
		(has_company(r) && !ZKL_MUTANT(CACHED_IN_COMPANY)))
		return;
	zkl_rewrite_set_marked(r, true);
	promise(r, ZKL_CACHE_HOPED, &m->cache.hoped);
}

size_t
zkl_cache_mark(const ZklRequest *r, char *data, size_t length)
{
	return r->rewrite.marked ? zkl_node_data_cached(data, length) : length;
}

void
zkl_cache_forget(ZklManager *m, ZklRequest *r)
{
	if (r->cache.state == ZKL_CACHE_HOPED)
		zkl_heat_learn(m, r->lock, false, 0);
	withdraw(r);
	zkl_rewrite_forget(r);
}

/* If others have written over the mark, the lock is not cached without it. */
bool
zkl_cache_read(ZklRequest *r, const ZklReply *reply)
{
	if (r->rewrite.writing || r->node.state != ZKL_NODE_EXISTS ||
		!zkl_dialect_marks(r->lock->dialect))
		return false;
	zkl_rewrite_set_marked(r, zkl_node_data_is_cached(reply->data,
													  reply->data_length));
	return r->cache.state != ZKL_CACHE_NONE && !r->rewrite.marked &&
		!ZKL_MUTANT(UNMARKED_STAYS_CACHED);
}

/* ---- what a recall does here: see recall.c ---- */

void
zkl_cache_give_up(ZklManager *m, ZklRequest *r, bool wanted)
{
	withdraw(r);
	zkl_heat_learn(m, r->lock, wanted, 0);
	zkl_rewrite_unmark(m, r);
}

void
zkl_cache_end(ZklManager *m, ZklRequest *r, bool wanted, int64_t takes)
{
	withdraw(r);
	m->cache.recalls++;
	zkl_heat_learn(m, r->lock, wanted, takes);
	r->cache.contended = wanted;
}

/* What may be cached now is looked at as if it had always been so. */
void
zkl_cache_set_time(ZklManager *m, int64_t time)
{
	ZklLink    *link,
			   *after;

	if (time == m->cache.time)
		return;
	zkl_foreach(link, after, &m->cache.cacheable)
		zkl_container(ZklRequest, cache.link, link)->cache.due +=
		time - m->cache.time;
	m->cache.time = time;
}

static void
plan_use(ZklManager *m, ZklRequest *r, int64_t due)
{
	ZklLink    *where;

	zkl_list_remove(&r->cache.link);
	where = m->cache.cacheable.head.prev;
	while (where != &m->cache.cacheable.head &&
		   zkl_container(ZklRequest, cache.link, where)->cache.due > due)
		where = where->prev;
	r->cache.due = due;
	zkl_list_insert_after(&r->cache.link, where);
}

void
zkl_cache_used(ZklManager *m, ZklRequest *r, int64_t at)
{
	plan_use(m, r, at + m->cache.time);
}

int64_t
zkl_cache_timer(const ZklManager *m)
{
	return zkl_list_empty(&m->cache.cacheable) ? -1 :
		zkl_container(ZklRequest, cache.link,
					  m->cache.cacheable.head.next)->cache.due;
}

/* ---- the directory ---- */

/*
 * The listing counts if it shows the node, so that it is from after the create,
 * and if no event has come since on the watch that it set.
 */
bool
zkl_cache_listed(ZklManager *m, ZklLock *lock, uint64_t order, size_t others)
{
	ZklRequest *r = lock->cached;

	if (r == NULL)
		return false;
	if (others > 0 && !ZKL_MUTANT(CACHED_BEFORE_OTHERS))
		return true;
	if (r->cache.state != ZKL_CACHE_HOPED)
		return false;
	if (r->node.state == ZKL_NODE_EXISTS && r->node.seen == order &&
		(lock->listing.watch == ZKL_WATCH_ARMED ||
		 ZKL_MUTANT(CACHED_UNWATCHED)))
		r->cache.clear = true;
	else
		zkl_reads_want_children(m, lock);
	return false;
}

bool
zkl_cache_directory_event(ZklManager *m, ZklLock *lock)
{
	ZklRequest *r = lock->cached;

	if (r == NULL || ZKL_MUTANT(RECALL_LOST))
		return false;
	if (r->cache.state == ZKL_CACHE_CACHEABLE)
		return true;

	/* Mostly it was us. */
	r->cache.clear = false;
	zkl_reads_want_children(m, lock);
	return false;
}

/* Whether a HOPED request may be cached from now on */
static bool
is_cacheable(const ZklRequest *r)
{
	return r->cache.clear && r->demand == ZKL_DEMAND_GRANTED && !r->broken &&
		(r->lock->requests.n == 1 || ZKL_MUTANT(CACHED_IN_COMPANY)) &&
		!zkl_keep_is_on(r) &&
		(r->lock->listing.watch == ZKL_WATCH_ARMED ||
		 ZKL_MUTANT(CACHED_UNWATCHED)) &&
		!zkl_downgrade_is_on(r);
}

void
zkl_cache_offer(ZklManager *m)
{
	ZklLink    *link,
			   *after;

	if (m->connection.state != ZKL_CONNECTION_READY)
		return;
	zkl_foreach(link, after, &m->cache.hoped)
	{
		ZklRequest *r = zkl_container(ZklRequest, cache.link, link);

		if (!is_cacheable(r))
			continue;
		promise(r, ZKL_CACHE_CACHEABLE, &m->cache.cacheable);
		plan_use(m, r, m->now + m->cache.time);
		m->config.offer(m->config.host, r->id);
	}
}
