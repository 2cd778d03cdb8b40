/*
 * recall.c
 *	  The end of caching: whose a lock is that sessions took in shared memory.
 *
 * Owns nothing: what a recall changes is cache.c's and the request's.  Runs in the
 * worker (and in tests), takes no locks.
 *
 * The core recalls a hold that may be cached before it uses or tells who owns it,
 * and before it decides anything about those who want the lock.
 */
#include "core/cache.h"
#include "core/recall.h"
#include "core/request.h"
#include "core/rewrite.h"

static void
recalled(ZklManager *m, ZklRequest *r, ZklRecallCause cause,
		 const ZklRecalled *found)
{
	ZKL_ASSERT(r->demand == ZKL_DEMAND_GRANTED && r->ring.cover == NULL);
	zkl_cache_end(m, r, cause != ZKL_RECALL_OVER, found->token - r->token);
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
		zkl_cache_give_up(m, r, cause != ZKL_RECALL_OVER);
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
			zkl_cache_used(m, r, found.state == ZKL_RECALLED_CACHED ?
						   found.released_at : m->now);
	}
}
