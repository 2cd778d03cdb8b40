/*
 * write.c
 *	  Writes to znodes: where each of them is.
 *
 * Owns ZklWrite, ZklSeat, ZklWrites and m->stuck_until.  batch.c sends those that
 * are pending, and batch_reply.c says what became of a batch.  Runs in the worker
 * (and in tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include "core/state.h"
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
