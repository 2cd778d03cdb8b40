/*
 * nearest.c
 *	  What is ahead of a request that waits, as far as it is known.
 *
 * Owns nothing: it reads a lock's queue, for people.  Runs in the worker (and in
 * tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
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
	nearest->znode = foreign == NULL ? NULL :
		r->lock->foreign.names + foreign->name;
	nearest->request = foreign == NULL && own != NULL ? (int64_t) own->id : -1;
	return nearest->znode != NULL || nearest->request >= 0;
}
