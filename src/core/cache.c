/*
 * cache.c
 *	  Locks that stay on the server that uses them.
 *
 * Owns ZklCache, ZklCaching, and which request of a lock may be cached.  Runs in
 * the worker (and in tests), takes no locks, knows neither PostgreSQL nor
 * ZooKeeper.
 *
 * To the core a cached lock is a hold like any other.  In shared memory sessions
 * release and take it as they like, and only a recall tells whose it is: one step
 * of the host's that ends this, and says what it found.  See recall.c.
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

#include "core/actions.h"
#include "core/cache.h"
#include "core/downgrade.h"
#include "core/heat.h"
#include "core/keep.h"
#include "core/look.h"
#include "core/mark.h"
#include "core/node.h"
#include "core/operations.h"
#include "core/reads.h"

void
zkl_cache_init_all(ZklManager *m)
{
	zkl_list_init(&m->cache.hoped);
	zkl_list_init(&m->cache.cacheable);
	zkl_list_init(&m->cache.to_unmark);
	zkl_list_init(&m->cache.refused);
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
		r->demand != ZKL_DEMAND_WAITING || r->lock->drain.wanted ||
		r->lock->cached != NULL || !zkl_heat_is_hot(m, r->lock) || has_company(r))
		return;
	r->cache.marked = true;
	promise(r, ZKL_CACHE_HOPED, &m->cache.hoped);
}

size_t
zkl_cache_mark(const ZklRequest *r, char *data, size_t length)
{
	return r->cache.marked ? zkl_node_data_cached(data, length) : length;
}

void
zkl_cache_forget(ZklManager *m, ZklRequest *r)
{
	if (r->cache.state == ZKL_CACHE_HOPED)
		zkl_heat_learn(m, r->lock, false, 0);
	withdraw(r);
	zkl_list_remove(&r->cache.to_unmark);
	r->cache.marked = r->cache.writing = false;
}

/* A write of r's that is under way tells nothing of the heir. */
void
zkl_cache_hand_on(ZklManager *m, const ZklRequest *r, ZklRequest *heir)
{
	heir->cache.marked = r->cache.marked;
	zkl_cache_unmark(m, heir);
}

/* A delete or another create may be at hand; a read may have to come first. */
void
zkl_cache_unmark(ZklManager *m, ZklRequest *r)
{
	if (r->cache.marked && !r->cache.writing &&
		!zkl_list_linked(&r->cache.to_unmark) && !ZKL_MUTANT(MARK_STAYS))
		zkl_list_append(&m->cache.to_unmark, &r->cache.to_unmark);
}

/*
 * Writes the data of the present holder, without the mark, over what was read in
 * this version.  If it puts a question again, "question" is the zxid of the write
 * that put it first, and 0 otherwise.
 */
static void
send_unmarking(ZklManager *m, ZklRequest *r, int32_t version,
			   const char *data, size_t length, int64_t question)
{
	ZklMultiOp *op = (ZklMultiOp *) (void *)
	zkl_actions_text(m, sizeof(ZklMultiOp));
	char	   *text = zkl_actions_text(m, length + ZKL_NODE_DATA_TIMEOUT);
	ZklAction  *action;

	memcpy(text, data, length);
	memset(op, 0, sizeof(*op));
	op->kind = ZKL_MULTI_SET;
	op->path = zkl_node_path(m, r);
	op->version = version;
	op->data = text;
	op->data_length = zkl_node_data_timeout(text, length,
											m->session.timeout_ms);
	r->cache.writing = true;
	r->cache.question = question;
	action = zkl_operations_send(m, ZKL_OP_UNMARK, r->lock, r, ZKL_SEND_MULTI,
								 NULL);
	action->multi = op;
	action->nmulti = 1;
}

void
zkl_cache_send(ZklManager *m)
{
	ZklLink    *link,
			   *after;

	if (m->connection.state != ZKL_CONNECTION_READY)
		return;
	while (!zkl_list_empty(&m->cache.refused) && m->now >= m->cache.retry_at)
	{
		link = m->cache.refused.head.next;
		zkl_list_remove(link);
		zkl_list_append(&m->cache.to_unmark, link);
	}
	zkl_foreach(link, after, &m->cache.to_unmark)
	{
		ZklRequest *r = zkl_container(ZklRequest, cache.to_unmark, link);

		if (r->node.state < ZKL_NODE_EXISTS)
			continue;
		zkl_list_remove(link);
		if (r->node.state != ZKL_NODE_EXISTS ||
			r->downgrade.state != ZKL_DOWNGRADE_NONE)
			continue;
		if (r->node.version == 0)
			send_unmarking(m, r, 0, r->node.data, r->node.data_length, 0);
		else
			zkl_look_again(m, r);
	}
}

void
zkl_cache_written(ZklManager *m, ZklRequest *r, const ZklReply *reply)
{
	int32_t		rc = reply->rc;

	if (!r->cache.writing)
		return;
	r->cache.writing = false;
	if (rc != ZKL_RC_OK && reply->nresults > 0)
		rc = reply->results[0].rc;
	if (r->node.state != ZKL_NODE_EXISTS || !r->cache.marked)
		return;
	if (rc == ZKL_RC_OK)
	{
		r->cache.marked = false;
		zkl_node_set_version(r, reply->stat.version);
		if (r->cache.question != 0)
			zkl_mark_rewritten(r, r->cache.question, reply->stat.mzxid);
	}
	else if (rc == ZKL_RC_BADVERSION || rc == ZKL_RC_NONODE)
	{
		if (!zkl_downgrade_pending(r))
			zkl_look_again(m, r);
	}
	else
	{
		if (zkl_list_empty(&m->cache.refused))
			m->cache.retry_at = m->now + ZKL_RETRY_DELAY;
		zkl_list_append(&m->cache.refused, &r->cache.to_unmark);
	}
}

/*
 * What others have written stays, unless the holder knows: a question to somebody
 * who has yet to be granted the lock.  One that was put is not written again, or
 * our write would put it once more; if it was put while that write was under way, the
 * write counts as put, too.  A later hold of this node belongs to the same
 * session, which has been asked.  If others have written over the mark, the lock is
 * not cached without it.
 */
bool
zkl_cache_read(ZklManager *m, ZklRequest *r, const ZklReply *reply)
{
	char		asker[ZKL_MAX_NODE_DATA];
	char		data[ZKL_MAX_NODE_DATA];
	size_t		length;

	if (r->cache.writing || r->node.state != ZKL_NODE_EXISTS ||
		!zkl_dialect_marks(r->lock->dialect))
		return false;
	r->cache.marked = zkl_node_data_is_cached(reply->data, reply->data_length);
	zkl_list_remove(&r->cache.to_unmark);
	if (r->cache.state != ZKL_CACHE_NONE)
		return !r->cache.marked && !ZKL_MUTANT(UNMARKED_STAYS_CACHED);
	if (!r->cache.marked || r->broken ||
		r->downgrade.state != ZKL_DOWNGRADE_NONE || ZKL_MUTANT(MARK_STAYS))
		return false;
	if ((r->asked.zxid == reply->stat.mzxid && !ZKL_MUTANT(ASKED_BY_OWN_WRITE)) ||
		!zkl_node_data_revoking(reply->data, reply->data_length, asker,
								sizeof(asker)) ||
		ZKL_MUTANT(QUESTION_UNMARKED))
	{
		send_unmarking(m, r, reply->stat.version, r->node.data,
					   r->node.data_length, 0);
		return false;
	}
	length = zkl_node_data_revoke(r->node.data, r->node.data_length, asker,
								  data);
	send_unmarking(m, r, reply->stat.version, data, length, reply->stat.mzxid);
	return false;
}

/* ---- what a recall does here: see recall.c ---- */

void
zkl_cache_give_up(ZklManager *m, ZklRequest *r, bool wanted)
{
	withdraw(r);
	zkl_heat_learn(m, r->lock, wanted, 0);
	zkl_cache_unmark(m, r);
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

void
zkl_cache_disconnected(ZklManager *m)
{
	uint32_t	i;

	for (i = 0; i < m->config.max_requests; i++)
	{
		ZklRequest *r = &m->requests.all[i];

		if (!r->cache.writing)
			continue;
		r->cache.writing = false;
		zkl_cache_unmark(m, r);
	}
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
	int64_t		due = -1;

	if (!zkl_list_empty(&m->cache.cacheable))
		due = zkl_container(ZklRequest, cache.link,
							m->cache.cacheable.head.next)->cache.due;
	if (!zkl_list_empty(&m->cache.refused) &&
		m->connection.state == ZKL_CONNECTION_READY &&
		(due < 0 || m->cache.retry_at < due))
		due = m->cache.retry_at;
	return due;
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
		r->lock->requests.n == 1 && !zkl_keep_is_on(r) &&
		(r->lock->listing.watch == ZKL_WATCH_ARMED ||
		 ZKL_MUTANT(CACHED_UNWATCHED)) &&
		r->downgrade.state == ZKL_DOWNGRADE_NONE;
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
		zkl_actions_add(m, ZKL_ACTION_CACHEABLE)->request = r->id;
	}
}
