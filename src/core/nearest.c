/*
 * nearest.c
 *	  What is ahead of a request that waits, as far as it is known.
 *
 * Owns nothing: it reads a lock's queue, for people.  Runs in the worker (and in
 * tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "core/nearest.h"
#include "core/queue.h"

/* The nearest local request that r waits for, or NULL; counts all ahead. */
static const ZklRequest *
find_own(const ZklRequest *r, int64_t *ahead)
{
	const ZklList *own = &r->lock->queue.own;
	const ZklRequest *nearest = NULL;
	const ZklLink *link;

	for (link = r->place.link.prev; link != &own->head; link = link->prev)
	{
		const ZklRequest *other = zkl_container(ZklRequest, place.link, link);

		++*ahead;
		if (nearest == NULL && other->ring.owner != r->ring.owner &&
			(r->lock->dialect == ZKL_DIALECT_PERMIT ||
			 zkl_mode_conflicts(other->node.mode, r->mode)))
			nearest = other;
	}
	return nearest;
}

/* The same of other clients' */
static const ZklContender *
find_foreign(const ZklRequest *r, int64_t *ahead)
{
	const ZklForeign *foreign = &r->lock->foreign;
	ZklLockMode mode = r->lock->dialect == ZKL_DIALECT_PERMIT ?
	ZKL_EXCLUSIVE : r->mode;
	ptrdiff_t	nearest = zkl_queue_nearest(foreign->all, foreign->n, mode,
											r->node.seq);
	size_t		i;

	for (i = 0; i < foreign->n && foreign->all[i].seq < r->node.seq; i++)
		++* ahead;
	return nearest < 0 ? NULL : &foreign->all[nearest];
}

static void
tell_queued(const ZklLock *lock, const ZklRequest *own, const ZklContender *foreign,
			ZklQueued *queued)
{
	memset(queued, 0, sizeof(*queued));
	queued->request = foreign == NULL && own != NULL ? (int64_t) own->id : -1;
	if (foreign == NULL)
		return;
	queued->znode = lock->foreign.names + foreign->name;
	if (lock->ahead.data == NULL || strcmp(queued->znode, lock->ahead.name) != 0)
		return;
	queued->data = lock->ahead.data;
	queued->data_length = lock->ahead.data_length;
}

/* The one that has the lock, if the queue is known */
static void
tell_first(const ZklLock *lock, ZklQueued *first)
{
	const ZklRequest *own = zkl_list_empty(&lock->queue.own) ? NULL :
	zkl_container(ZklRequest, place.link, lock->queue.own.head.next);
	const ZklContender *foreign = lock->foreign.n > 0 ? lock->foreign.all : NULL;

	if (own != NULL && foreign != NULL && own->node.seq < foreign->seq)
		foreign = NULL;
	tell_queued(lock, own, foreign, first);
}

bool
zkl_nearest_find(const ZklRequest *r, ZklNearest *nearest)
{
	const ZklRequest *own;
	const ZklContender *foreign;

	if (r->demand != ZKL_DEMAND_WAITING || !zkl_list_linked(&r->place.link))
		return false;
	nearest->place = 1;
	own = find_own(r, &nearest->place);
	foreign = find_foreign(r, &nearest->place);
	if (own != NULL && foreign != NULL && foreign->seq < own->node.seq)
		foreign = NULL;
	tell_queued(r->lock, own, foreign, &nearest->nearest);
	tell_first(r->lock, &nearest->first);
	return nearest->nearest.znode != NULL || nearest->nearest.request >= 0;
}
