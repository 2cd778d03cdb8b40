/*
 * listing.c
 *	  What the listing of a lock's directory tells of our nodes and of the
 *	  others.
 *
 * Owns nothing.  Runs in the worker (and in tests), takes no locks.
 */
#include <string.h>

#include "core/cache.h"
#include "core/contenders.h"
#include "core/downgrade.h"
#include "core/downgrade_reply.h"
#include "core/listing.h"
#include "core/lock.h"
#include "core/node.h"
#include "core/recall.h"
#include "core/request.h"
#include "core/revived.h"

/* Settles what was unsettled about a listed node of ours. */
static void
note_own(ZklManager *m, ZklRequest *r, uint64_t order, ZklLockMode mode,
		 ZklSeq seq)
{
	zkl_node_set_seen(r, order);
	if (zkl_downgrade_is_unsettled(r))
		zkl_downgrade_reply_settle(m, r, mode == ZKL_SHARED);
	if (zkl_node_is_unsettled(r))
		zkl_request_exists(m, r, seq, ZKL_MUTANT(TOKEN_FROM_HEARTBEAT) ?
						   m->zxid.seen : 0);
}

static void
note_child(ZklManager *m, ZklLock *lock, uint64_t order, const char *child)
{
	ZklContender c;
	bool		has_uuid;
	ZklUuid		uuid;
	ZklRequest *r;

	if (!zkl_znode_parse(lock->dialect, child, &c.mode, &c.seq, &has_uuid,
						 &uuid))
	{
		zkl_contenders_add_stranger(lock);
		return;
	}
	r = has_uuid ? zkl_node_find(m, &uuid) : NULL;
	if (r != NULL && r->lock == lock)
		note_own(m, r, order, c.mode, c.seq);
	else
	{
		c.zklock = has_uuid && zkl_uuid_is_zklock(&uuid);
		zkl_contenders_add(lock, &c, child);
	}
}

/* Our nodes that the listing did not show do not exist. */
static void
settle_unseen(ZklManager *m, ZklLock *lock, uint64_t order)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &lock->requests.all)
	{
		ZklRequest *r = zkl_container(ZklRequest, all, link);

		if (r->node.seen == order)
			continue;
		if (zkl_node_is_unsettled(r))
			zkl_request_absent(m, r);
		else if (r->node.state == ZKL_NODE_EXISTS && !ZKL_MUTANT(DYING_SESSION))
			zkl_request_vanished(m, r);
		else if (zkl_downgrade_is_unsettled(r))
			zkl_downgrade_reply_refused(m, r, ZKL_RC_NONODE);
	}
}

void
zkl_listing_take(ZklManager *m, ZklLock *lock, uint64_t order,
				 const ZklReply *reply)
{
	size_t		others,
				i;

	zkl_contenders_begin(m, lock, reply);
	for (i = 0; i < reply->nchildren; i++)
		note_child(m, lock, order, reply->children[i]);
	others = lock->foreign.n;
	settle_unseen(m, lock, order);
	zkl_revived_listed(m, lock);
	zkl_contenders_end(m, lock, order);
	if (zkl_cache_listed(m, lock, order, others))
		zkl_recall_lock(m, lock, ZKL_RECALL_WANTED);
	zkl_lock_touch(m, lock);
}
