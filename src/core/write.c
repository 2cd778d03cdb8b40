/*
 * write.c
 *	  Writes to znodes: where each of them is, and when the next batch is sent.
 *
 * Owns ZklWrite, ZklSeat, ZklWrites, m->stuck_until, m->batches and m->pace.
 * batch.c sends those that are pending, and says what became of a batch.  Runs in
 * the worker (and in tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "core/host.h"
#include "core/node.h"
#include "core/write.h"

void
zkl_write_init_all(ZklManager *m)
{
	ZklWriteRank rank;

	for (rank = 0; rank < ZKL_RANKS; rank++)
		zkl_list_init(&m->writes.pending[rank]);
	zkl_list_init(&m->writes.stuck);
	zkl_list_init(&m->writes.alone);
}

static void
go_to(ZklWrite *w, ZklWriteState state)
{
	zkl_list_remove(&w->link);
	if (w->seat != NULL)
		w->seat->write = NULL;
	w->seat = NULL;
	w->state = state;
}

void
zkl_write_hold(ZklWrite *w, const ZklWriter *by)
{
	go_to(w, ZKL_WRITE_HELD);
	w->by = by;
}

void
zkl_write_pend(ZklManager *m, ZklWrite *w, const ZklWriter *by,
			   ZklWriteRank rank)
{
	go_to(w, ZKL_WRITE_PENDING);
	w->by = by;
	w->rank = rank;
	zkl_list_append(&m->writes.pending[rank], &w->link);
}

void
zkl_write_stick(ZklManager *m, ZklWrite *w, const ZklWriter *by,
				ZklWriteRank rank)
{
	zkl_write_retry_later(m);
	zkl_write_hold(w, by);
	w->rank = rank;
	zkl_list_append(&m->writes.stuck, &w->link);
}

void
zkl_write_drop(ZklWrite *w)
{
	go_to(w, ZKL_WRITE_NONE);
}

void
zkl_write_unsettle(ZklWrite *w)
{
	ZKL_ASSERT(w->state >= ZKL_WRITE_BATCH);
	go_to(w, ZKL_WRITE_UNSETTLED);
}

void
zkl_write_take_seat(ZklWrite *w, ZklSeat *seat, uint32_t index)
{
	ZKL_ASSERT(index > 0);		/* operation 0 is the beat */
	go_to(w, ZKL_WRITE_BATCH);
	w->seat = seat;
	w->seat->write = w;
	w->seat->index = index;
}

void
zkl_write_go_alone(ZklManager *m, ZklWrite *w, const ZklWriter *by)
{
	go_to(w, ZKL_WRITE_ALONE);
	w->by = by;
	zkl_list_append(&m->writes.alone, &w->link);
}

void
zkl_write_settle(ZklManager *m, ZklWrite *w, const ZklOutcome *outcome)
{
	ZKL_ASSERT(w->state == ZKL_WRITE_BATCH || w->state == ZKL_WRITE_ALONE);
	zkl_write_unsettle(w);
	w->by->settle(m, w, outcome);
}

void
zkl_write_lost(ZklManager *m)
{
	static const ZklOutcome unknown = {.kind = ZKL_OUTCOME_UNKNOWN};

	while (!zkl_list_empty(&m->writes.alone))
		zkl_write_settle(m, zkl_container(ZklWrite, link,
										  m->writes.alone.head.next), &unknown);
}

void
zkl_write_retry(ZklManager *m)
{
	while (!zkl_list_empty(&m->writes.stuck))
	{
		ZklWrite   *w = zkl_container(ZklWrite, link, m->writes.stuck.head.next);

		ZKL_ASSERT(w->state == ZKL_WRITE_HELD);
		zkl_write_pend(m, w, w->by, w->rank);
	}
}

bool
zkl_write_is_urgent(const ZklManager *m)
{
	ZklWriteRank rank;

	for (rank = 0; rank < ZKL_RANK_ALONE; rank++)
	{
		if (rank != ZKL_RANK_LATE_DELETE && rank != ZKL_RANK_CREATE &&
			!zkl_list_empty(&m->writes.pending[rank]))
			return true;
	}
	return false;
}

bool
zkl_write_is_in_place(const ZklWrite *w)
{
	bool		listed = zkl_list_linked(&w->link);

	if ((w->state == ZKL_WRITE_BATCH) != (w->seat != NULL) ||
		(w->seat != NULL && w->seat->write != w))
		return false;
	return w->state == ZKL_WRITE_HELD ||
		listed == (w->state == ZKL_WRITE_PENDING || w->state == ZKL_WRITE_ALONE);
}

/* ---- when to try refused work again ---- */

bool
zkl_write_any_stuck(const ZklManager *m)
{
	return !zkl_list_empty(&m->writes.stuck) ||
		!zkl_list_empty(&m->reads.stuck) || m->chain.sweep_refused;
}

void
zkl_write_retry_later(ZklManager *m)
{
	if (!zkl_write_any_stuck(m))
		m->stuck_until = m->now + ZKL_RETRY_DELAY;
}

/* ---- batches ---- */

/* The batches under way, the beats that open them, and when a batch is sent. */

void
zkl_batches_init(ZklManager *m)
{
	size_t		size = m->config.batches_in_flight * sizeof(ZklBatch);
	uint32_t	i;

	m->batches.all = zkl_memory_alloc(m, size);
	memset(m->batches.all, 0, size);
	for (i = 0; i < m->config.batches_in_flight; i++)
	{
		m->batches.all[i].seats =
			zkl_memory_alloc(m, m->config.batch_operations * sizeof(ZklSeat));
	}
	m->batches.limit = m->config.batch_operations;
}

void
zkl_batches_free(ZklManager *m)
{
	uint32_t	i;

	for (i = 0; i < m->config.batches_in_flight; i++)
		zkl_memory_release(m, m->batches.all[i].seats);
	zkl_memory_release(m, m->batches.all);
}

ZklBatch *
zkl_batches_begin(ZklManager *m, int32_t version)
{
	ZklBatch   *batch = zkl_batches_get(m, m->batches.n++);

	batch->version = version;
	batch->sent_at = m->batches.sent_at = m->now;
	batch->nops = 1;
	batch->nseats = 0;
	m->batches.number++;
	m->batches.beat_wanted = false;
	return batch;
}

void
zkl_batches_add(ZklBatch *batch, ZklWrite *w)
{
	ZklSeat    *seat = &batch->seats[batch->nseats++];

	ZKL_ASSERT(w->state == ZKL_WRITE_PENDING);
	zkl_write_take_seat(w, seat, batch->nops);
	batch->nops += w->by->nops;
}

void
zkl_batches_sent(const ZklManager *m, ZklBatch *batch)
{
	batch->order = m->operations.order;
}

ZklBatch *
zkl_batches_take(ZklManager *m)
{
	ZklBatch   *batch = zkl_batches_get(m, 0);

	ZKL_ASSERT(m->batches.n > 0);
	m->batches.first = (m->batches.first + 1) % m->config.batches_in_flight;
	m->batches.n--;
	return batch;
}

void
zkl_batches_applied(ZklManager *m, const ZklBatch *batch)
{
	m->batches.napplied++;
	m->batches.refused = false;
	if (m->batches.number - m->batches.n >= m->batches.unproved_until)
		m->batches.unproved_until = 0;
	m->batches.acknowledged_at = batch->sent_at;
	m->batches.unknown_streak = 0;
	if (m->batches.limit < m->config.batch_operations)
		m->batches.limit = m->batches.limit * 2 < m->config.batch_operations ?
			m->batches.limit * 2 : m->config.batch_operations;
}

void
zkl_batches_refused(ZklManager *m)
{
	m->batches.refused = true;
}

void
zkl_batches_unanswered(ZklManager *m)
{
	m->batches.unknown_streak++;
}

/*
 * If two in a row are unknown, they may be too large for the server, so the
 * next are smaller.
 */
void
zkl_batches_unknown(ZklManager *m, const ZklBatch *batch)
{
	if (m->batches.unknown_streak < 2 || batch->nseats == 0)
		return;
	m->batches.limit = batch->nops / 2 + 1;
	if (m->batches.limit < 2)
		m->batches.limit = 2;
}

void
zkl_batches_set_broken(ZklManager *m, bool broken)
{
	m->batches.broken = broken;
}

void
zkl_batches_new_session(ZklManager *m)
{
	m->batches.unknown_streak = 0;
}

void
zkl_batches_want_proof(ZklManager *m)
{
	m->batches.unproved_until = m->batches.number + 1;
	m->batches.beat_wanted = true;
}

bool
zkl_batches_take_unproved(ZklManager *m)
{
	bool		unproved = m->batches.unproved_until != 0;

	m->batches.unproved_until = 0;
	return unproved;
}

void
zkl_batches_want_beat(ZklManager *m, bool wanted)
{
	m->batches.beat_wanted = wanted;
}

/* ---- when to send a batch: at once, or in a moment and with more in it ---- */

/*
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

#define ZKL_PACE_DELAY		1000	/* µs */

/* The number of pending creates that wait no longer; 0: no gathering */
#ifndef ZKL_PACE_ENOUGH
#define ZKL_PACE_ENOUGH		16
#endif

bool
zkl_batches_pace_is_solitary(const ZklRequest *r)
{
	return r->node.alone && !r->cache.contended && !zkl_askers_has_any(r) &&
		r->lock->foreign.n == 0 && r->lock->foreign.unknown_from == ZKL_SEQ_NONE;
}

void
zkl_batches_pace_delete(ZklManager *m, ZklRequest *r)
{
	ZKL_ASSERT(r->node.state >= ZKL_NODE_EXISTS);
	if (!zkl_batches_pace_is_solitary(r))
	{
		zkl_node_delete(m, r, ZKL_RANK_DELETE);
		return;
	}
	if (zkl_list_empty(&m->writes.pending[ZKL_RANK_LATE_DELETE]))
		m->pace.late_until = m->now + ZKL_PACE_DELAY;
	zkl_node_delete(m, r, ZKL_RANK_LATE_DELETE);
}

void
zkl_batches_pace_hurry(ZklManager *m, ZklRequest *r)
{
	if (r->node.write.state == ZKL_WRITE_PENDING &&
		r->node.write.rank == ZKL_RANK_LATE_DELETE)
		zkl_node_delete(m, r, ZKL_RANK_DELETE);
}

void
zkl_batches_pace_acknowledged(ZklManager *m)
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
zkl_batches_pace_granted(ZklManager *m)
{
	if (m->pace.counting)
		m->pace.expected++;
}

void
zkl_batches_pace_decided(ZklManager *m)
{
	m->pace.counting = false;
}

void
zkl_batches_pace_submitted(ZklManager *m)
{
	ZklPace    *pace = &m->pace;

	if (pace->expected > 0 && --pace->expected == 0)
		pace->returning = true;
}

bool
zkl_batches_pace_due(const ZklManager *m)
{
	return !zkl_list_empty(&m->writes.pending[ZKL_RANK_LATE_DELETE]) &&
		m->now >= m->pace.late_until && !ZKL_MUTANT(LATE_DELETE_FORGOTTEN);
}

uint32_t
zkl_batches_pace_missing(const ZklManager *m)
{
	const ZklList *creates = &m->writes.pending[ZKL_RANK_CREATE];
	const ZklLink *link;
	uint32_t	enough = ZKL_PACE_ENOUGH;

	if (m->now >= m->pace.gather_until || m->batches.n > 0 ||
		m->batches.beat_wanted || zkl_batches_pace_due(m) || zkl_write_is_urgent(m))
		return 0;
	for (link = creates->head.next; link != &creates->head && enough > 0;
		 link = link->next)
		enough--;
	return enough < m->pace.expected ? enough : m->pace.expected;
}

int64_t
zkl_batches_pace_timer(const ZklManager *m)
{
	int64_t		due = -1;

	/* If no batch may go now, the answer to one brings us back. */
	if (m->batches.broken || m->batches.n == m->config.batches_in_flight)
		return -1;
	if (!zkl_list_empty(&m->writes.pending[ZKL_RANK_LATE_DELETE]))
		due = m->pace.late_until;
	if (zkl_batches_pace_missing(m) > 0 && (due < 0 || m->pace.gather_until < due))
		due = m->pace.gather_until;
	return due;
}
