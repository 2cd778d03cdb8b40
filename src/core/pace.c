/*
 * pace.c
 *	  When to send a batch: at once, or in a moment and with more in it.
 *
 * Owns m->pace alone: when to send.  batch.c sends, and write.c owns the lists
 * of writes.  Runs in the worker (and in tests), takes no locks, knows neither
 * PostgreSQL nor ZooKeeper.
 *
 * A batch costs ZooKeeper a write to its disk and some 200 µs of processor
 * time; each operation in it costs some 10 µs.  So if more work is about to
 * come, a short wait pays.  bench/README.md has the figures behind the
 * rules.
 *
 * Late deletes: if no other contender comes to a lock, no one waits for a
 * delete there.  It goes with the next batch, or after ZKL_PACE_DELAY; alone
 * it would only keep the next create waiting.
 *
 * Gathering: sessions that acquire, release and acquire again come back right
 * after their grants.  As long as they do, pending creates wait after a batch
 * was acknowledged, until as many demands have come in as the batch led to
 * grants, or ZKL_PACE_ENOUGH creates are pending, or ZKL_PACE_DELAY is over.
 * Any other write, or a wanted beat, ends the wait at once.  If a wait was in
 * vain, there is no further one until as many demands have come back without
 * it.
 */
#include "core/node.h"
#include "core/pace.h"

#define ZKL_PACE_DELAY		1000	/* µs */

/* The number of pending creates that wait no longer; 0: no gathering */
#ifndef ZKL_PACE_ENOUGH
#define ZKL_PACE_ENOUGH		16
#endif

bool
zkl_pace_is_solitary(const ZklRequest *r)
{
	return r->node.alone && !r->cache.contended && r->lock->foreign.n == 0 &&
		r->lock->foreign.unknown_from == ZKL_SEQ_NONE;
}

void
zkl_pace_delete(ZklManager *m, ZklRequest *r)
{
	if (!zkl_pace_is_solitary(r))
	{
		zkl_node_delete(m, r, ZKL_RANK_DELETE);
		return;
	}
	if (zkl_list_empty(&m->writes.pending[ZKL_RANK_LATE_DELETE]))
		m->pace.late_until = m->now + ZKL_PACE_DELAY;
	zkl_node_delete(m, r, ZKL_RANK_LATE_DELETE);
}

void
zkl_pace_acknowledged(ZklManager *m)
{
	ZklPace    *pace = &m->pace;

	if (m->now >= pace->gather_until)
	{
		if (pace->expected > 0)
			pace->returning = false;
		pace->expected = 0;
	}
	pace->gather_until = pace->returning ? m->now + ZKL_PACE_DELAY : 0;
	pace->counting = true;
}

void
zkl_pace_granted(ZklManager *m)
{
	if (m->pace.counting)
		m->pace.expected++;
}

void
zkl_pace_decided(ZklManager *m)
{
	m->pace.counting = false;
}

void
zkl_pace_submitted(ZklManager *m)
{
	ZklPace    *pace = &m->pace;

	if (pace->expected > 0 && --pace->expected == 0)
		pace->returning = true;
}

bool
zkl_pace_due(const ZklManager *m)
{
	return !zkl_list_empty(&m->writes.pending[ZKL_RANK_LATE_DELETE]) &&
		m->now >= m->pace.late_until && !ZKL_MUTANT(LATE_DELETE_FORGOTTEN);
}

uint32_t
zkl_pace_missing(const ZklManager *m)
{
	const ZklList *creates = &m->writes.pending[ZKL_RANK_CREATE];
	const ZklLink *link;
	uint32_t	enough = ZKL_PACE_ENOUGH;

	if (m->now >= m->pace.gather_until || m->batches.n > 0 ||
		m->batches.beat_wanted || zkl_pace_due(m) || zkl_write_is_urgent(m))
		return 0;
	for (link = creates->head.next; link != &creates->head && enough > 0;
		 link = link->next)
		enough--;
	return enough < m->pace.expected ? enough : m->pace.expected;
}

int64_t
zkl_pace_timer(const ZklManager *m)
{
	int64_t		due = -1;

	/* If no batch may go now, the answer to one brings us back. */
	if (m->batches.broken || m->batches.n == m->config.batches_in_flight)
		return -1;
	if (!zkl_list_empty(&m->writes.pending[ZKL_RANK_LATE_DELETE]))
		due = m->pace.late_until;
	if (zkl_pace_missing(m) > 0 && (due < 0 || m->pace.gather_until < due))
		due = m->pace.gather_until;
	return due;
}
