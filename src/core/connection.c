/*
 * connection.c
 *	  What it means for all locks and requests when a connection stands or
 *	  breaks, and when a session ends.
 *
 * Owns nothing: it calls the files concerned in order.  Runs in the worker (and
 * in tests), takes no locks.
 */
#include "core/batch_reply.h"
#include "core/batches.h"
#include "core/connection.h"
#include "core/contenders.h"
#include "core/directories.h"
#include "core/downgrade.h"
#include "core/hooks.h"
#include "core/janitor.h"
#include "core/lock.h"
#include "core/look.h"
#include "core/memory.h"
#include "core/node.h"
#include "core/operations.h"
#include "core/probe.h"
#include "core/reads.h"
#include "core/recall.h"
#include "core/request.h"
#include "core/revived.h"
#include "core/rewrite.h"
#include "core/session.h"
#include "core/session_lease.h"

void
zkl_connection_up(ZklManager *m, const ZklSession *session)
{
	bool		unproved = zkl_batches_take_unproved(m);

	if (session->id != m->session.id)
	{
		zkl_session_lease_end(m);
		zkl_batches_new_session(m);
	}
	else if (unproved)
		zkl_janitor_want(m);
	zkl_revived_connected(m, session);
	zkl_session_begin(m, session);
	zkl_session_zxid_show(m);
	zkl_session_zxid_believe(m, session->zxid_seen);
	zkl_session_lease_begin(m, session->begun_at);
}

/* Contenders that had gone may be back. */
static void
forget_contenders(ZklManager *m)
{
	size_t		i;
	ZklLink    *link,
			   *after;

	for (i = 0; i < m->locks.by_path.nbuckets; i++)
	{
		zkl_foreach(link, after, &m->locks.by_path.buckets[i])
			zkl_contenders_forget(m, zkl_container(ZklLock, by_path, link));
	}
}

void
zkl_connection_writes_lost(ZklManager *m)
{
	zkl_janitor_want(m);
	forget_contenders(m);
	ZKL_HOOKS(m, writes_lost);
}

void
zkl_connection_elected(ZklManager *m, int64_t zxid)
{
	forget_contenders(m);
	zkl_revived_elected(m, zxid);
}

static void
forget_operations(ZklManager *m)
{
	uint32_t	next = 0;
	ZklOp		op;

	while (zkl_operations_abandon(m, &next, &op))
	{
		if (op.lock == NULL)
			continue;
		zkl_operations_unpin(op.lock);
		zkl_lock_settle_idle(m, op.lock);
	}
}

static void
disconnect_lock(ZklManager *m, ZklLock *lock)
{
	ZklLink    *link,
			   *after;

	zkl_contenders_disconnected(lock);
	zkl_reads_disconnected(m, lock);
	zkl_lock_counter_good(lock);
	zkl_foreach(link, after, &lock->queue.own)
		zkl_look_forget(m, zkl_container(ZklRequest, place.link, link));
	zkl_probe_disconnected(m, lock);
}

void
zkl_connection_down(ZklManager *m)
{
	size_t		i;
	uint32_t	id;
	ZklLink    *link,
			   *after;

	zkl_recall_all(m);
	zkl_rewrite_disconnected(m);
	zkl_session_disconnected(m);
	zkl_janitor_disconnected(m);
	zkl_directories_disconnected(m);
	zkl_batch_reply_lost(m);
	ZKL_HOOKS(m, disconnected);
	zkl_revived_disconnected(m);
	for (i = 0; i < m->locks.by_path.nbuckets; i++)
	{
		zkl_foreach(link, after, &m->locks.by_path.buckets[i])
		{
			ZklLock    *lock = zkl_container(ZklLock, by_path, link);

			disconnect_lock(m, lock);
		}
	}
	forget_operations(m);
	while (!zkl_list_empty(&m->locks.idle) && !ZKL_MUTANT(CONTINUITY_RECONNECT))
		zkl_lock_settle_idle(m, zkl_container(ZklLock, idle,
											  m->locks.idle.head.next));
	for (id = 0; id < m->config.max_requests; id++)
	{
		ZklRequest *r = &m->requests.all[id];

		zkl_look_stop(r);
		zkl_node_forget_version(r);
		if (r->node.state == ZKL_NODE_EXISTS && !zkl_downgrade_pending(r) &&
			(r->demand == ZKL_DEMAND_GRANTED || r->lock->queue.waiting == r))
			zkl_look_later(m, r, zkl_list_linked(&r->look.unseen) ?
						   r->look.unseen_since : m->batches.acknowledged_at);

		/*
		 * A mark may have come while there was no watch: look before the
		 * grant.
		 */
		if (r->demand == ZKL_DEMAND_WAITING && !ZKL_MUTANT(DYING_SESSION))
			zkl_node_set_czxid(r, 0);
	}
}

/* Appends all requests in use to "live", in order of submission. */
static uint32_t
sort_requests(ZklManager *m, ZklRequest **live)
{
	uint32_t	n = 0,
				gap,
				i,
				j;

	for (i = 0; i < m->config.max_requests; i++)
	{
		if (m->requests.all[i].demand != ZKL_DEMAND_UNUSED)
			live[n++] = &m->requests.all[i];
	}
	for (gap = n / 2; gap > 0; gap /= 2)
	{
		for (i = gap; i < n; i++)
		{
			ZklRequest *r = live[i];

			for (j = i; j >= gap && live[j - gap]->submitted > r->submitted;
				 j -= gap)
				live[j] = live[j - gap];
			live[j] = r;
		}
	}
	return n;
}

void
zkl_connection_session_lost(ZklManager *m)
{
	ZklRequest **live;
	uint32_t	n,
				i;
	size_t		bucket;
	ZklLink    *link,
			   *after;

	zkl_connection_down(m);
	zkl_session_end(m);
	zkl_session_lease_end(m);
	ZKL_HOOKS(m, session_lost);
	for (bucket = 0; bucket < m->locks.by_path.nbuckets; bucket++)
	{
		zkl_foreach(link, after, &m->locks.by_path.buckets[bucket])
			zkl_contenders_forget(m, zkl_container(ZklLock, by_path, link));
	}
	live = zkl_memory_alloc(m, m->config.max_requests * sizeof(ZklRequest *));
	n = sort_requests(m, live);
	for (i = 0; i < n; i++)
		zkl_request_session_lost(m, live[i]);
	zkl_memory_release(m, live);
}
