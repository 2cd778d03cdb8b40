/*
 * restore.c
 *	  What a restarted worker finds: the session, the chain, and the slots.
 *
 * Owns nothing; it puts requests into the states that the worker before this
 * one left them in, as far as the slots tell.  Runs in the worker (and in
 * tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "core/core.h"
#include "core/downgrade.h"
#include "core/request.h"
#include "core/siblings.h"

void
zkl_manager_attach(ZklManager *m, const ZklSession *session, uint32_t chain,
				   uint32_t chain_kept)
{
	m->session = *session;
	m->chain = chain;
	m->chain_kept = chain_kept;

	/* What may be left from before that, the janitor finds. */
	m->chain_swept = chain_kept > 0 ? chain_kept - 1 : 0;
	m->chain_needed = true;
	m->chain_parents = chain_kept == 0;
	m->janitor.wanted = true;
}

/* A hold without a znode of its own: find the one that covers it. */
static void
restore_covered(ZklManager *m, ZklRequest *r)
{
	ZklLink    *link,
			   *after;

	r->demand = ZKL_DEMAND_GRANTED;
	zkl_foreach(link, after, &r->lock->requests)
	{
		ZklRequest *s = zkl_container(ZklRequest, all, link);

		if (s != r && s->owner == r->owner &&
			s->demand == ZKL_DEMAND_GRANTED && s->node == ZKL_NODE_EXISTS &&
			s->token == r->token)
			r->cover = s;
	}
	if (r->cover == NULL)
		zkl_request_vanished(m, r);
}

/*
 * Puts r into the ring of a granted request of its owner, if there is one.
 * Leases count each for itself.
 */
static void
find_sibling(ZklManager *m, const ZklDemand *demand, ZklDemand *completed)
{
	uint32_t	i;
	size_t		root = strlen(m->root);

	*completed = *demand;
	completed->sibling = -1;
	for (i = 0; i < m->config.max_requests; i++)
	{
		const ZklRequest *s = &m->requests[i];

		if (demand->dialect != ZKL_DIALECT_LEASE &&
			s->demand == ZKL_DEMAND_GRANTED && s->owner == demand->owner &&
			s->lock->dialect == demand->dialect &&
			strcmp(s->lock->path + root, demand->name) == 0)
			completed->sibling = (int32_t) i;
	}
}

/*
 * A demand that the worker before this one had not yet looked at may be covered
 * by a hold of its owner, the sibling that it names.  In the queue it would
 * wait behind those who wait for that very hold.
 */
static bool
restore_under_cover(ZklManager *m, ZklRequest *r, const ZklDemand *demand,
					const ZklRestored *restored)
{
	ZklRequest *cover = zkl_siblings_covering(r);

	if (restored->granted || restored->answered || restored->sent ||
		demand->sibling < 0 || cover == NULL)
		return false;
	zkl_request_cover(m, r, cover);
	return true;
}

/*
 * Two holds of one owner may claim one node: it was handed on from one that was
 * released to the other, and the worker ended before it gave the first one's
 * slot back.  Only one of them has it; the other leans on that.
 */
static bool
restore_shared_node(ZklManager *m, ZklRequest *r, const ZklRestored *restored)
{
	ZklRequest *first = NULL;

	if (restored->granted && restored->sent)
		first = zkl_request_find(m, &restored->uuid);
	if (first == NULL || first->demand != ZKL_DEMAND_GRANTED ||
		first->owner != r->owner || first->lock != r->lock)
		return false;
	r->demand = ZKL_DEMAND_GRANTED;
	r->cover = first;
	return true;
}

void
zkl_manager_restore(ZklManager *m, int64_t now, uint32_t request,
					const ZklDemand *demand, const ZklRestored *restored)
{
	ZklDemand	completed;
	ZklRequest *r;

	m->now = now;
	find_sibling(m, demand, &completed);
	completed.expired = demand->expired && !restored->granted;
	completed.together = demand->together && !restored->granted &&
		!restored->answered;
	r = zkl_request_begin(m, request, &completed);
	r->token = restored->token;
	r->broken = restored->broken;
	r->asked_zxid = restored->asked_zxid;
	if (restore_under_cover(m, r, demand, restored) ||
		restore_shared_node(m, r, restored))
		return;
	zkl_request_create(m, r);

	/* A node that two claim, and this one does not even hold: leave it. */
	if (!restored->sent || zkl_request_find(m, &restored->uuid) != NULL)
	{
		if (restored->granted)
		{
			zkl_unlink(&r->work);
			zkl_unlink(&r->by_uuid);
			r->node = ZKL_NODE_NONE;
			restore_covered(m, r);
		}
		else if (restored->answered)
			zkl_request_answered(m, r);
		return;
	}
	zkl_unlink(&r->work);
	zkl_unlink(&r->by_uuid);
	r->uuid = restored->uuid;
	r->node_mode = restored->znode_mode;
	r->index = restored->index;
	r->node = ZKL_NODE_UNSETTLED;
	zkl_list_append(zkl_table_bucket(&m->by_uuid,
									 zkl_hash(r->uuid.bytes, ZKL_UUID_BYTES)),
					&r->by_uuid);
	if (restored->answered)
		zkl_request_answered(m, r);
	if (restored->seq >= 0)
		zkl_request_exists(m, r, restored->seq, restored->granted ?
						   restored->token / 4096 : 0);

	/* One that is to go may have become a reader's before that was recorded. */
	if (r->node == ZKL_NODE_DELETE && r->mode == ZKL_SHARED &&
		r->node_mode == ZKL_EXCLUSIVE)
		zkl_downgrade_unknown(r);
	if (restored->granted && r->demand == ZKL_DEMAND_WAITING)
	{
		zkl_request_restore_hold(m, r);
		zkl_downgrade_want(m, r);
	}
}
