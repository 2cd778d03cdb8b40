/*
 * heat.c
 *	  Which locks are used here again and again.
 *
 * Owns ZklHeat.  Runs in the worker (and in tests), takes no locks.
 *
 * A lock is hot once its releases were each followed by a demand from here soon,
 * within the time for which a lock is cached, as many times in a row as the lock
 * needs.  When somebody else wanted the lock, or it was cached in vain, that number
 * doubles: sessions that release before the lock can be cached must not pay.  When
 * it was taken more often than that number, the number halves.  If the numbers of
 * our nodes tell that a contender of another client came between two of them, the
 * count begins again from 0: servers that take turns must not pay either.
 */
#include "core/heat.h"

#define LEAST_NEEDED	2
#define MOST_NEEDED		64

/* What is known of a lock; one that has the same place takes it over. */
static ZklHeat *
heat_of(ZklManager *m, const ZklLock *lock)
{
	uint64_t	hash = zkl_table_hash(lock->path, lock->path_length);
	ZklHeat    *heat = &m->heat[hash & (ZKL_HEATS - 1)];
	uint32_t	tag = (uint32_t) (hash >> 32);

	if (heat->tag != tag || heat->needed == 0)
		*heat = (ZklHeat)
	{
		.tag = tag,.needed = LEAST_NEEDED
	};
	return heat;
}

static uint32_t
to_ms(int64_t time)
{
	return (uint32_t) (time / 1000);
}

void
zkl_heat_demanded(ZklManager *m, const ZklRequest *r)
{
	ZklHeat    *heat;

	if (m->cache.time == 0)
		return;
	heat = heat_of(m, r->lock);
	if (!heat->released)
		return;
	heat->released = false;
	if (!r->plain || to_ms(m->now) - heat->released_ms >
		to_ms(m->cache.time))
		heat->in_a_row = 0;
	else if (heat->in_a_row < MOST_NEEDED)
		heat->in_a_row++;
}

void
zkl_heat_released(ZklManager *m, const ZklRequest *r)
{
	ZklHeat    *heat;

	if (m->cache.time == 0 || !r->plain)
		return;
	heat = heat_of(m, r->lock);
	heat->released = true;
	heat->released_ms = to_ms(m->now);
	if (!r->node.alone)
		heat->in_a_row = 0;
}

bool
zkl_heat_is_hot(ZklManager *m, const ZklLock *lock)
{
	const ZklHeat *heat = heat_of(m, lock);

	return heat->in_a_row >= heat->needed;
}

void
zkl_heat_learn(ZklManager *m, const ZklLock *lock, bool wanted, int64_t takes)
{
	ZklHeat    *heat = heat_of(m, lock);

	heat->in_a_row = 0;
	if (takes > heat->needed)
		heat->needed = heat->needed / 2 > LEAST_NEEDED ?
			heat->needed / 2 : LEAST_NEEDED;
	else if ((wanted || takes == 0) && heat->needed < MOST_NEEDED)
		heat->needed *= 2;
}
