/*
 * contenders.c
 *	  What a lock knows of the other contenders in its directory: continuity
 *	  of the numbers, the last listing, and taint.
 *
 * Owns the fields of ZklLock from "foreign" to "directory_czxid".  Runs in
 * the worker (and in tests), takes no locks, knows neither PostgreSQL nor
 * ZooKeeper.
 */
#include <string.h>

#include "core/contenders.h"
#include "core/downgrade.h"
#include "core/lock.h"
#include "core/look.h"
#include "core/memory.h"
#include "core/node.h"
#include "core/queue.h"
#include "core/reads.h"
#include "core/request.h"

bool
zkl_contenders_continuous(const ZklLock *lock)
{
	if (ZKL_MUTANT(CONTINUITY_WITHOUT_WATCH))
		return lock->base_known;
	return lock->base_known && lock->directory_watch == ZKL_WATCH_ARMED &&
		lock->directory_czxid < lock->base_zxid;
}

static void
forget_foreign(ZklManager *m, ZklLock *lock)
{
	if (lock->foreign != NULL)
	{
		zkl_memory_release(m, lock->foreign);
		zkl_memory_release(m, lock->names);
	}
	lock->foreign = NULL;
	lock->names = NULL;
	lock->nforeign = 0;
}

void
zkl_contenders_forget(ZklManager *m, ZklLock *lock)
{
	forget_foreign(m, lock);
	lock->strangers = 0;
	lock->unknown_from = 0;
	lock->passed = 0;
	lock->tainted = false;
	lock->base_known = false;
}

void
zkl_contenders_disconnected(ZklManager *m, ZklLock *lock)
{
	ZklLink    *link,
			   *after;

	if (!ZKL_MUTANT(CONTINUITY_RECONNECT))
		zkl_reads_set_watch(m, &lock->directory_watch, ZKL_WATCH_NONE);
	if (!ZKL_MUTANT(WATCH_FORGOTTEN))
		zkl_reads_set_watch(m, &lock->ahead_watch, ZKL_WATCH_NONE);
	zkl_reads_set_watch(m, &lock->children_watch, ZKL_WATCH_NONE);
	lock->list_sent = false;
	lock->drain_sent = false;
	lock->base_known &= ZKL_MUTANT(CONTINUITY_RECONNECT);
	zkl_foreach(link, after, &lock->own)
	{
		ZklRequest *r = zkl_container(ZklRequest, queued, link);

		zkl_look_forget(m, r);
	}
}

/*
 * A create came back with a number that is not above all of ours: the counter
 * started again, so the directory was deleted, with our nodes in it.
 */
static void
lose_older_incarnation(ZklManager *m, ZklLock *lock, ZklSeq seq)
{
	while (!zkl_list_empty(&lock->own) &&
		   !ZKL_MUTANT(OLDER_INCARNATION_KEPT))
	{
		ZklRequest *last = zkl_container(ZklRequest, queued,
										 lock->own.head.prev);

		if (last->node.seq < seq)
			return;
		zkl_request_vanished(m, last);
	}
}

bool
zkl_contenders_account(ZklManager *m, ZklLock *lock, ZklSeq seq, int64_t zxid)
{
	bool		next = false;

	lose_older_incarnation(m, lock, seq);
	if (seq == 0)
	{
		zkl_contenders_forget(m, lock);
		lock->unknown_from = ZKL_SEQ_NONE;
	}
	else if (!zkl_contenders_continuous(lock) || seq <= lock->base_seq)
		lock->unknown_from = 0;
	else if (seq > lock->base_seq + 1 && !ZKL_MUTANT(IGNORE_GAP))
	{
		if (lock->unknown_from > lock->base_seq + 1)
			lock->unknown_from = lock->base_seq + 1;
	}
	else
		next = true;
	m->counters.continuous += next;
	lock->base_known = true;
	lock->base_seq = seq;
	lock->base_zxid = zxid;
	return next;
}

void
zkl_contenders_ahead_gone(ZklManager *m, ZklLock *lock, bool plain)
{
	size_t		i;

	for (i = 0; i < lock->nforeign; i++)
	{
		ZklContender *c = &lock->foreign[i];

		if (strcmp(lock->names + c->name, lock->ahead_name) == 0)
		{
			memmove(c, c + 1, (lock->nforeign - i - 1) * sizeof(*c));
			lock->nforeign--;
			break;
		}
	}
	if (lock->ahead.seq > lock->passed)
		lock->passed = lock->ahead.seq;

	/*
	 * A writer of Curator's or zklock's that downgrades leaves a reader of
	 * its own number behind, created just before the writer's node goes.
	 */
	if ((lock->dialect == ZKL_DIALECT_CURATOR_RW || lock->ahead.zklock) &&
		lock->ahead.mode == ZKL_EXCLUSIVE && !plain && !ZKL_MUTANT(NO_TAINT))
	{
		lock->tainted = true;
		lock->tainted_at = m->operations.order;
	}
	zkl_lock_touch(m, lock);
}

/*
 * Notes one listed child: marks our own, settles what was unsettled, and
 * keeps foreign contenders up to our last number.
 */
static void
note_child(ZklManager *m, ZklLock *lock, uint64_t order, const char *child,
		   size_t *names)
{
	ZklContender *c = &lock->foreign[lock->nforeign];
	size_t		length;
	bool		has_uuid;
	ZklUuid		uuid;

	if (!zkl_znode_parse(lock->dialect, child, &c->mode, &c->seq, &has_uuid,
						 &uuid))
	{
		lock->strangers++;
		return;
	}
	if (has_uuid)
	{
		ZklRequest *r = zkl_node_find(m, &uuid);

		if (r != NULL && r->lock == lock)
		{
			zkl_node_set_seen(r, order);
			if (r->downgrade == ZKL_DOWNGRADE_UNSETTLED)
				zkl_downgrade_settle(m, r, c->mode == ZKL_SHARED);
			if (r->node.state == ZKL_NODE_UNSETTLED)
				zkl_request_exists(m, r, c->seq,
								   ZKL_MUTANT(TOKEN_FROM_HEARTBEAT) ?
								   m->zxid_seen : 0);
			return;
		}
	}
	length = strlen(child) + 1;
	c->zklock = has_uuid && zkl_uuid_is_zklock(&uuid);
	c->name = (uint32_t) *names;
	memcpy(lock->names + *names, child, length);
	*names += length;
	lock->nforeign++;
}

/* What the listing did not show of ours is not there. */
static void
settle_unseen(ZklManager *m, ZklLock *lock, uint64_t order)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &lock->requests)
	{
		ZklRequest *r = zkl_container(ZklRequest, all, link);

		if (r->node.seen == order)
			continue;
		if (r->node.state == ZKL_NODE_UNSETTLED)
			zkl_request_absent(m, r);
		else if (r->node.state == ZKL_NODE_EXISTS && !ZKL_MUTANT(DYING_SESSION))
			zkl_request_vanished(m, r);
		else if (r->downgrade == ZKL_DOWNGRADE_UNSETTLED)
			zkl_downgrade_refused(m, r, ZKL_RC_NONODE);
	}
}

static ZklSeq
last_own(const ZklLock *lock)
{
	if (zkl_list_empty(&lock->own))
		return -1;
	return zkl_container(ZklRequest, queued, lock->own.head.prev)->node.seq;
}

void
zkl_contenders_listed(ZklManager *m, ZklLock *lock, uint64_t order,
					  const ZklReply *reply)
{
	size_t		bytes = 0,
				names = 0,
				i;
	ZklSeq		last;

	forget_foreign(m, lock);
	lock->strangers = 0;
	for (i = 0; i < reply->nchildren; i++)
		bytes += strlen(reply->children[i]) + 1;
	if (reply->nchildren > 0)
	{
		lock->foreign = zkl_memory_alloc(m, reply->nchildren *
										 sizeof(ZklContender));
		lock->names = zkl_memory_alloc(m, bytes);
	}
	for (i = 0; i < reply->nchildren; i++)
		note_child(m, lock, order, reply->children[i], &names);
	settle_unseen(m, lock, order);

	/*
	 * Those behind our last create are none of its business, and the next one
	 * will learn of them by the gap: a listed name is no base for continuity.
	 * That create counts even if its node is gone, for the next one continues
	 * from its number.
	 */
	zkl_queue_sort(lock->foreign, lock->nforeign);
	last = last_own(lock);
	if (lock->base_known && lock->base_seq > last)
		last = lock->base_seq;
	if (ZKL_MUTANT(CONTINUITY_FROM_LISTED) && lock->nforeign > 0 &&
		lock->foreign[lock->nforeign - 1].seq > lock->base_seq)
		lock->base_seq = lock->foreign[lock->nforeign - 1].seq;
	while (lock->nforeign > 0 && lock->foreign[lock->nforeign - 1].seq > last)
		lock->nforeign--;
	if (lock->nforeign == 0)
		forget_foreign(m, lock);
	lock->unknown_from = last >= 0 ? ZKL_SEQ_NONE : 0;
	lock->passed = 0;
	if (order > lock->tainted_at)
		lock->tainted = false;
	zkl_lock_touch(m, lock);
}
