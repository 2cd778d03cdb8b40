/*
 * cache.c
 *	  Locks that stay on the server that uses them.
 *
 * Owns ZklCache, ZklCaching, ZklHeat, and which request of a lock may be cached.
 * Runs in the worker (and in tests), takes no locks, knows neither PostgreSQL
 * nor ZooKeeper.
 *
 * To the core a cached lock is a hold like any other.  In shared memory sessions
 * release and take it as they like.  The host begins this at our offer, and ends it
 * at a recall, in one step each; only a recall tells whose the lock is.  See recall.
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
 * Only the node of a hot lock is marked.
 */
#include <string.h>

#include "core/cache.h"
#include "core/host.h"
#include "core/node.h"
#include "core/owner.h"
#include "core/reads.h"
#include "core/request.h"

static bool cache_is_hot(ZklManager *m, const ZklLock *lock);
static void cache_learn(ZklManager *m, const ZklLock *lock, bool wanted,
						int64_t takes);

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
	ZKL_ASSERT(r->lock->cached == NULL || r->lock->cached == r);
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
	ZKL_ASSERT(r->lock->cached == r);
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
		r->demand != ZKL_DEMAND_WAITING || r->lock->cached != NULL ||
		!cache_is_hot(m, r->lock) ||
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
		cache_learn(m, r->lock, false, 0);
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

/* ---- what a recall does here: see recall ---- */

/*
 * r was HOPED, or CACHEABLE and taken so often: it is neither any more.  wanted:
 * by another session, of whatever server.
 */
static void
cache_give_up(ZklManager *m, ZklRequest *r, bool wanted)
{
	withdraw(r);
	cache_learn(m, r->lock, wanted, 0);
	zkl_rewrite_unmark(m, r);
}

static void
cache_end(ZklManager *m, ZklRequest *r, bool wanted, int64_t takes)
{
	withdraw(r);
	m->cache.recalls++;
	cache_learn(m, r->lock, wanted, takes);
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

static void
cache_used(ZklManager *m, ZklRequest *r, int64_t at)
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

	/* It is not clear before a departed znode is gone, which the watch tells. */
	if (lock->foreign.departed)
		r->cache.clear = false;
	if (!lock->foreign.departed && r->node.state == ZKL_NODE_EXISTS &&
		r->node.seen == order &&
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

/* ---- which locks are used here again and again ---- */

/*
 * A lock is hot once its releases were each followed by a demand from here soon,
 * within the time for which a lock is cached, as many times in a row as the lock
 * needs.  When somebody else wanted the lock, or it was cached in vain, that number
 * doubles: sessions that release before the lock can be cached must not pay.  When
 * it was taken more often than that number, the number halves.  If the numbers of
 * our nodes tell that a contender of another client came between two of them, the
 * count begins again from 0: servers that take turns must not pay either.
 */

#define LEAST_NEEDED	2
#define MOST_NEEDED		64

/* What is known of a lock; one that has the same place takes it over. */
static ZklHeat *
heat_of(ZklManager *m, const ZklLock *lock)
{
	uint64_t	hash = zkl_table_hash(lock->path, lock->path_length);
	ZklHeat    *heat = &m->heat[hash & (ZKL_HEATS - 1)];
	uint32_t	tag = (uint32_t) (hash >> 32);

	if (heat->tag != tag || heat->needed == 0)
		*heat = (ZklHeat)
	{
		.tag = tag,.needed = LEAST_NEEDED
	};
	return heat;
}

static uint32_t
to_ms(int64_t time)
{
	return (uint32_t) (time / 1000);
}

void
zkl_cache_demanded(ZklManager *m, const ZklRequest *r)
{
	ZklHeat    *heat;

	if (m->cache.time == 0)
		return;
	heat = heat_of(m, r->lock);
	if (!heat->released)
		return;
	heat->released = false;
	if (!r->plain || to_ms(m->now) - heat->released_ms >
		to_ms(m->cache.time))
		heat->in_a_row = 0;
	else if (heat->in_a_row < MOST_NEEDED)
		heat->in_a_row++;
}

void
zkl_cache_released(ZklManager *m, const ZklRequest *r)
{
	ZklHeat    *heat;

	if (m->cache.time == 0 || !r->plain)
		return;
	heat = heat_of(m, r->lock);
	heat->released = true;
	heat->released_ms = to_ms(m->now);
	if (!r->node.alone)
		heat->in_a_row = 0;
}

static bool
cache_is_hot(ZklManager *m, const ZklLock *lock)
{
	const ZklHeat *heat = heat_of(m, lock);

	return heat->in_a_row >= heat->needed;
}

/*
 * The lock was to be cached, and is no longer: whether somebody else wanted it,
 * and how often it was taken meanwhile.
 */
static void
cache_learn(ZklManager *m, const ZklLock *lock, bool wanted, int64_t takes)
{
	ZklHeat    *heat = heat_of(m, lock);

	heat->in_a_row = 0;
	if (takes > heat->needed)
		heat->needed = heat->needed / 2 > LEAST_NEEDED ?
			heat->needed / 2 : LEAST_NEEDED;
	else if ((wanted || takes == 0) && heat->needed < MOST_NEEDED)
		heat->needed *= 2;
}

/* ---- recall ---- */

/*
 * The end of caching: whose a lock is that sessions took in shared memory.
 *
 * What a recall changes is cache's and the request's.
 *
 * The core recalls a hold that may be cached before it uses or tells who owns it,
 * and before it decides anything about those who want the lock.
 */

static void
recalled(ZklManager *m, ZklRequest *r, ZklRecallCause cause,
		 const ZklRecalled *found)
{
	ZKL_ASSERT(r->demand == ZKL_DEMAND_GRANTED && r->ring.cover == NULL);
	cache_end(m, r, cause != ZKL_RECALL_OVER, found->token - r->token);
	if (cause == ZKL_RECALL_DEMANDED || !ZKL_MUTANT(OWNER_AT_DEMANDS_ONLY))
		zkl_request_taken(m, r, found);
	if (found->state == ZKL_RECALLED_CACHED)
		zkl_request_release(m, r);
	else
		zkl_rewrite_unmark(m, r);
}

void
zkl_recall_request(ZklManager *m, ZklRequest *r, ZklRecallCause cause)
{
	ZklRecalled found;

	if (r->cache.state == ZKL_CACHE_HOPED)
		cache_give_up(m, r, cause != ZKL_RECALL_OVER);
	else if (r->cache.state == ZKL_CACHE_CACHEABLE)
	{
		(void) m->config.recall(m->config.host, r->id, 0, &found);
		recalled(m, r, cause, &found);
	}
}

void
zkl_recall_lock(ZklManager *m, const ZklLock *lock, ZklRecallCause cause)
{
	if (lock->cached != NULL)
		zkl_recall_request(m, lock->cached, cause);
}

static void
recall_list(ZklManager *m, const ZklList *list)
{
	while (!zkl_list_empty(list))
		zkl_recall_request(m, zkl_container(ZklRequest, cache.link,
											list->head.next), ZKL_RECALL_OVER);
}

void
zkl_recall_all(ZklManager *m)
{
	recall_list(m, &m->cache.hoped);
	recall_list(m, &m->cache.cacheable);
}

static bool
is_one_of(uint64_t owner, const uint64_t *others, size_t n)
{
	while (n > 0)
	{
		if (others[--n] == owner)
			return true;
	}
	return false;
}

/*
 * Sessions that wait take and release nothing, so what they hold stays with them.
 */
void
zkl_recall_owners(ZklManager *m, uint64_t owner, const uint64_t *others,
				  size_t n)
{
	ZklRecalled found;
	ZklLink    *link,
			   *after;

	if (ZKL_MUTANT(CACHED_HOLDS_UNKNOWN))
		return;
	zkl_foreach(link, after, &m->cache.cacheable)
	{
		ZklRequest *r = zkl_container(ZklRequest, cache.link, link);

		(void) m->config.recall(m->config.host, r->id, 1, &found);
		if (r->ring.owner == owner || found.owner == owner ||
			is_one_of(r->ring.owner, others, n) ||
			is_one_of(found.owner, others, n))
			zkl_recall_request(m, r, ZKL_RECALL_OVER);
	}
}

void
zkl_recall_idle(ZklManager *m)
{
	while (!zkl_list_empty(&m->cache.cacheable))
	{
		ZklRequest *r = zkl_container(ZklRequest, cache.link,
									  m->cache.cacheable.head.next);
		ZklRecalled found;

		if (r->cache.due > m->now)
			return;
		if (m->config.recall(m->config.host, r->id, m->now - m->cache.time,
							 &found))
			recalled(m, r, ZKL_RECALL_OVER, &found);
		else
			cache_used(m, r, found.state == ZKL_RECALLED_CACHED ?
					   found.released_at : m->now);
	}
}
