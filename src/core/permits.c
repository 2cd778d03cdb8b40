/*
 * permits.c
 *	  Which requests hold a permit of a semaphore.
 *
 * Owns nothing: it reads locks and requests, and calls request.c and reads.c
 * for the consequences.  Runs in the worker (and in tests), takes no locks of
 * its own, knows neither PostgreSQL nor ZooKeeper.
 *
 * A request that waits needs any one of the contenders ahead to go.  So it
 * watches no single node but the children of the directory, and lists them
 * again at each change.  While the permits of this server alone fill the
 * semaphore, its own releases are enough to know of.
 */
#include "core/janitor.h"
#include "core/permits.h"
#include "core/reads.h"
#include "core/request.h"

ZklDecision
zkl_permits_decide_one(const ZklPermitView *view, ZklSeq seq, uint32_t max)
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
	return zkl_permits_decide_one(&view, r->node.seq, r->max);
}

/*
 * A node of ours that no request claims would be in the way for ever: have
 * the janitor look.
 */
static void
look_for_leftovers(ZklManager *m, const ZklLock *lock)
{
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;
	size_t		i;

	for (i = 0; i < lock->foreign.n; i++)
	{
		const char *name = lock->foreign.names + lock->foreign.all[i].name;

		if (lock->foreign.all[i].zklock &&
			zkl_znode_parse(lock->dialect, name, &mode, &seq, &has_uuid,
							&uuid))
			zkl_janitor_look(m, lock->path, name, &uuid);
	}
}

/* Decides for the first that waits.  True: it is granted, look at the next. */
static bool
decide_first_permit(ZklManager *m, ZklLock *lock, uint32_t own)
{
	ZklRequest *r = lock->queue.waiting;

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
zkl_permits_decide(ZklManager *m, ZklLock *lock)
{
	do
	{
		while (lock->queue.waiting != NULL &&
			   decide_first_permit(m, lock, count_ahead(lock)))
			;
	} while (deny_permits(m, lock));
}
