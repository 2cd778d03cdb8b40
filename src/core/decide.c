/*
 * decide.c
 *	  What follows from a lock's queue: which requests are granted, denied or
 *	  refused, and which wait for which; likewise for the permits of a
 *	  semaphore.
 *
 * Owns nothing: it reads locks and requests, and calls request.c and reads.c
 * for the consequences.  Runs in the worker (and in tests), takes no locks of
 * its own, knows neither PostgreSQL nor ZooKeeper.
 */
#include "core/contenders.h"
#include "core/decide.h"
#include "core/janitor.h"
#include "core/lock.h"
#include "core/node.h"
#include "core/owner.h"
#include "core/queue.h"
#include "core/reads.h"
#include "core/request.h"

/*
 * The number of the nearest conflicting contender of another local owner
 * ahead of r.  All contenders ahead of the first that waits are holders.  If
 * none of them is exclusive, no walk over a thousand readers is needed.
 */
static ZklSeq
own_ahead(const ZklLock *lock, const ZklRequest *r)
{
	const ZklQueue *queue = &lock->queue;
	const ZklLink *link;

	if (r->mode == ZKL_SHARED && r == queue->waiting && queue->nexclusive == 0)
		return ZKL_SEQ_NONE;
	for (link = r->place.link.prev; link != &queue->own.head; link = link->prev)
	{
		const ZklRequest *ahead = zkl_container(ZklRequest, place.link, link);

		if (ahead->ring.owner != r->ring.owner &&
			zkl_mode_conflicts(ahead->node.mode, r->mode))
			return ahead->node.seq;
	}
	return ZKL_SEQ_NONE;
}

/* Decides for the first that waits.  True: it is granted, look at the next. */
static bool
decide_first(ZklManager *m, ZklLock *lock, ZklDecision *decision)
{
	ZklRequest *r = lock->queue.waiting;
	ZklQueueView view;
	size_t		blocker;

	ZKL_ASSERT(r->demand == ZKL_DEMAND_WAITING && r->lock == lock);
	ZKL_ASSERT(r->node.state == ZKL_NODE_EXISTS);
	view.own_ahead = own_ahead(lock, r);
	view.foreign = lock->foreign.all;
	view.nforeign = lock->foreign.n;
	view.unknown_from = lock->foreign.unknown_from;
	view.tainted = lock->foreign.tainted;
	*decision = zkl_queue_decide(&view, r->mode, r->node.seq, &blocker);
	switch (*decision)
	{
		case ZKL_DECISION_GRANT:
			return zkl_request_grant(m, r);
		case ZKL_DECISION_BEHIND_OWN:
			return false;
		case ZKL_DECISION_BEHIND_FOREIGN:
			ZKL_ASSERT(blocker < lock->foreign.n);

			/*
			 * A queue is served in order: if one contender has gone, those
			 * before it mostly have gone, too.  One look tells of all of
			 * them.
			 */
			if (lock->foreign.all[blocker].seq < lock->foreign.passed)
				zkl_reads_want_listing(m, lock);
			else
				zkl_reads_watch_ahead(m, lock, blocker);
			zkl_words_ask(m, lock, r);
			return false;
		case ZKL_DECISION_LIST:
			zkl_reads_want_listing(m, lock);
			return false;
	}
	return false;
}

/*
 * Whether another client's exclusive contender is listed between two of ours.  A
 * leftover of ours is none: nobody waits there, and it is deleted.
 */
static bool
has_writer_between(const ZklLock *lock, ZklSeq first, ZklSeq last)
{
	size_t		i;

	for (i = 0; i < lock->foreign.n; i++)
	{
		const ZklContender *c = &lock->foreign.all[i];

		if (c->mode == ZKL_EXCLUSIVE && c->seq > first && c->seq <= last &&
			!c->leftover)
			return true;
	}
	return false;
}

/*
 * Whether another owner's exclusive contender stands between the shared hold
 * "held" and r, which is to become exclusive on top of it: neither could ever
 * go on.  A listing from before r's create does not count.
 */
static bool
upgrade_is_deadlock(ZklManager *m, ZklLock *lock, const ZklRequest *r,
					const ZklRequest *held)
{
	const ZklLink *link;

	for (link = r->place.link.prev; link != &held->place.link; link = link->prev)
	{
		const ZklRequest *ahead;

		if (link == &lock->queue.own.head)
			break;
		ahead = zkl_container(ZklRequest, place.link, link);
		if (ahead->ring.owner != r->ring.owner &&
			ahead->node.mode == ZKL_EXCLUSIVE)
			return true;
	}
	if (has_writer_between(lock, held->node.seq, r->node.seq))
	{
		if (r->node.seen != 0 || ZKL_MUTANT(UPGRADE_BY_OLD_LISTING))
			return true;
		zkl_reads_want_listing(m, lock);
	}
	else if (lock->foreign.unknown_from < r->node.seq)
		zkl_reads_want_listing(m, lock);
	return false;
}

static void
refuse_upgrades(ZklManager *m, ZklLock *lock)
{
	ZklLink    *link,
			   *after;

	if (lock->queue.nupgrades == 0 || ZKL_MUTANT(UPGRADE_WAITS))
		return;
	zkl_foreach(link, after, &lock->queue.own)
	{
		ZklRequest *r = zkl_container(ZklRequest, place.link, link);
		ZklRequest *held;

		if (!r->place.upgrade)
			continue;
		ZKL_ASSERT(r->demand == ZKL_DEMAND_WAITING);
		held = zkl_siblings_upgraded(r);
		if (held != NULL && upgrade_is_deadlock(m, lock, r, held))
			zkl_request_fail(m, r, ZKL_FAILURE_DEADLOCK, 0);
	}
}

/*
 * Whether a contender of another local owner keeps r from the lock for good,
 * not only until a downgrade is done.
 */
static bool
waits_for_own(const ZklLock *lock, const ZklRequest *r)
{
	const ZklLink *link;

	if (own_ahead(lock, r) == ZKL_SEQ_NONE)
		return false;
	for (link = r->place.link.prev; link != &lock->queue.own.head;
		 link = link->prev)
	{
		const ZklRequest *ahead = zkl_container(ZklRequest, place.link, link);

		if (ahead->ring.owner != r->ring.owner &&
			zkl_mode_conflicts(zkl_node_mode(ahead), r->mode))
			return true;
	}
	return false;
}

/*
 * Whether a conflicting contender of somebody else is ahead of r, under a watch of
 * this connection: so it was there after r's create.
 */
static bool
waits_for_watched(const ZklManager *m, const ZklLock *lock, const ZklRequest *r)
{
	return lock->ahead.watch == ZKL_WATCH_ARMED &&
		(!zkl_departed_is(m, lock, &lock->ahead.contender) || ZKL_MUTANT(DEPARTED_WATCHED)) &&
		lock->ahead.contender.seq <= r->node.seq &&
		zkl_mode_conflicts(lock->ahead.contender.mode, r->mode);
}

/*
 * Denies each try that timed out and surely has a contender ahead: a local
 * one, or a foreign one, unless that may be cached.  Then the try waits for its
 * server, and is told so as long as it does.  Returns whether a try was denied.
 */
static bool
deny_timed_out(ZklManager *m, ZklLock *lock)
{
	ZklLink    *link,
			   *after;
	bool		denied = false;

	if (lock->requests.ntimed_out == 0)
		return false;
	zkl_foreach(link, after, &lock->queue.own)
	{
		ZklRequest *r = zkl_container(ZklRequest, place.link, link);
		bool		watched;

		if (r->demand != ZKL_DEMAND_WAITING || !r->timed_out)
			continue;
		watched = waits_for_watched(m, lock, r);
		if (waits_for_own(lock, r) || (watched && !lock->ahead.cached))
		{
			zkl_request_deny(m, r);
			denied = true;
		}
		else if (r->behind_cached != (watched || ZKL_MUTANT(BEHIND_UNWATCHED)))
			zkl_request_behind_cached(m, r, r->behind_cached ? NULL :
									  lock->ahead.server);
	}
	return denied;
}

/*
 * If an owner requested several locks at once and has to wait for one of
 * them, it must not stand in the queues of the later ones: another contender
 * there may hold this one.
 */
static void
tell_blocked(ZklManager *m, ZklLock *lock, ZklDecision decision)
{
	ZklLink    *link,
			   *after;

	if (lock->requests.ntogether == 0)
		return;
	zkl_foreach(link, after, &lock->requests.all)
	{
		ZklRequest *r = zkl_container(ZklRequest, all, link);

		if (r->demand == ZKL_DEMAND_WAITING && r->together &&
			r->node.state == ZKL_NODE_EXISTS &&
			(r != lock->queue.waiting || decision == ZKL_DECISION_BEHIND_OWN ||
			 decision == ZKL_DECISION_BEHIND_FOREIGN))
			zkl_request_blocked(m, r);
	}
}

void
zkl_decide_lock(ZklManager *m, ZklLock *lock)
{
	ZklDecision decision = ZKL_DECISION_GRANT;

	if (lock->dialect == ZKL_DIALECT_PERMIT)
		zkl_decide_permits(m, lock);
	else
	{
		do
		{
			refuse_upgrades(m, lock);
			while (lock->queue.waiting != NULL &&
				   decide_first(m, lock, &decision))
				;
		} while (deny_timed_out(m, lock));
		tell_blocked(m, lock, decision);
	}
}

/* ---- which requests hold a permit of a semaphore ---- */

/*
 * A request that waits needs any one of the contenders ahead to go.  So it
 * watches no single node but the children of the directory, and lists them
 * again at each change.  While the permits of this server alone fill the
 * semaphore, its own releases are enough to know of.
 */

ZklDecision
zkl_decide_permit(const ZklPermitView *view, ZklSeq seq, uint32_t max)
{
	uint64_t	ahead = view->own;
	size_t		i;

	if (ZKL_MUTANT(SEMAPHORE_ONE_MORE))
		max++;
	if (ahead >= max)
		return ZKL_DECISION_BEHIND_OWN;
	ahead += ZKL_MUTANT(SEMAPHORE_ONLY_CONTENDERS) ? 0 : view->strangers;
	for (i = 0; i < view->nforeign && view->foreign[i].seq <= seq; i++)
		ahead++;
	if (ZKL_MUTANT(SEMAPHORE_OWN_ONLY))
		return ZKL_DECISION_GRANT;
	if (ahead >= max)
		return ZKL_DECISION_BEHIND_FOREIGN;
	if (view->unknown_from < seq)
		return ZKL_DECISION_LIST;
	return ZKL_DECISION_GRANT;
}

static ZklDecision
judge(const ZklLock *lock, const ZklRequest *r, uint32_t own)
{
	ZklPermitView view;

	view.own = own;
	view.foreign = lock->foreign.all;
	view.nforeign = lock->foreign.n;
	view.strangers = lock->foreign.strangers;
	view.unknown_from = lock->foreign.unknown_from;
	return zkl_decide_permit(&view, r->node.seq, r->max);
}

/*
 * A node of ours that no request claims would be in the way for ever: have
 * the janitor look.
 */
static void
look_for_leftovers(ZklManager *m, const ZklLock *lock)
{
	size_t		i;

	for (i = 0; i < lock->foreign.n; i++)
	{
		const ZklContender *c = &lock->foreign.all[i];

		if (c->leftover)
			zkl_janitor_look(m, lock->path, lock->foreign.names + c->name);
	}
}

/* Decides for the first that waits.  True: it is granted, look at the next. */
static bool
decide_first_permit(ZklManager *m, ZklLock *lock, uint32_t own)
{
	ZklRequest *r = lock->queue.waiting;

	ZKL_ASSERT(r->demand == ZKL_DEMAND_WAITING && r->lock == lock);
	switch (judge(lock, r, own))
	{
		case ZKL_DECISION_GRANT:
			return zkl_request_grant(m, r);
		case ZKL_DECISION_BEHIND_OWN:
			return false;
		case ZKL_DECISION_BEHIND_FOREIGN:
			look_for_leftovers(m, lock);
			if (!ZKL_MUTANT(SEMAPHORE_UNWATCHED) || r->node.seen == 0)
				zkl_reads_want_children(m, lock);
			return false;
		case ZKL_DECISION_LIST:
			zkl_reads_want_listing(m, lock);
			return false;
	}
	return false;
}

/*
 * Denies each try that timed out and is surely behind enough others: permits
 * of this server, or listed contenders that have not changed since, as a
 * watch of this connection tells.
 */
static bool
deny_permits(ZklManager *m, ZklLock *lock)
{
	ZklLink    *link,
			   *after;
	uint32_t	own = 0;
	bool		denied = false;

	if (lock->requests.ntimed_out == 0)
		return false;
	zkl_foreach(link, after, &lock->queue.own)
	{
		ZklRequest *r = zkl_container(ZklRequest, place.link, link);
		ZklDecision decision;

		if (r->demand == ZKL_DEMAND_WAITING && r->timed_out)
		{
			decision = judge(lock, r, own);
			if (decision == ZKL_DECISION_BEHIND_OWN ||
				(decision == ZKL_DECISION_BEHIND_FOREIGN &&
				 lock->listing.watch == ZKL_WATCH_ARMED))
			{
				zkl_request_deny(m, r);
				denied = true;
				continue;
			}
		}
		own++;
	}
	return denied;
}

/* How many contenders of this server are ahead of the first that waits */
static uint32_t
count_ahead(const ZklLock *lock)
{
	const ZklLink *link = lock->queue.waiting->place.link.prev;
	uint32_t	n = 0;

	for (; link != &lock->queue.own.head; link = link->prev)
		n++;
	return n;
}

void
zkl_decide_permits(ZklManager *m, ZklLock *lock)
{
	do
	{
		while (lock->queue.waiting != NULL &&
			   decide_first_permit(m, lock, count_ahead(lock)))
			;
	} while (deny_permits(m, lock));
}
