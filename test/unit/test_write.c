/*
 * test_write.c
 *	  The places of a write, without what it writes.
 */
#include "core/state.h"
#include "core/write.h"
#include "unit.h"

static const ZklWriter writer = {.nops = 1};

static ZklManager *
make(void)
{
	static ZklManager m;

	memset(&m, 0, sizeof(m));
	zkl_write_init_all(&m);
	zkl_list_init(&m.reads.stuck);
	return &m;
}

/* The writes that are pending in a rank, by their places in an array */
static void
check_pending(const ZklManager *m, ZklWriteRank rank, const ZklWrite *all,
			  const char *expected)
{
	const ZklList *list = &m->writes.pending[rank];
	const ZklLink *link;
	char		got[16] = "";
	size_t		n = 0;

	for (link = list->head.next; link != &list->head && n < sizeof(got) - 1;
		 link = link->next)
		got[n++] = (char) ('0' + (zkl_container(ZklWrite, link, link) - all));
	CHECK_STR(got, expected);
}

/* A write is in one place at a time, and leaves its seat empty when it goes. */
static void
one_place(void)
{
	ZklManager *m = make();
	ZklWrite	w[1] = {{0}};
	ZklSeat		seats[2] = {{0}};
	int			step;

	for (step = 0; step < 6; step++)
	{
		zkl_write_pend(m, w, &writer, ZKL_RANK_CREATE);
		CHECK(zkl_write_is_in_place(w));
		check_pending(m, ZKL_RANK_CREATE, w, "0");
		zkl_write_take_seat(w, &seats[0], 3);
		CHECK(zkl_write_is_in_place(w));
		CHECK_INT(w->state, ZKL_WRITE_BATCH);
		CHECK_INT(seats[0].index, 3);
		check_pending(m, ZKL_RANK_CREATE, w, "");
		switch (step)
		{
			case 0:
				zkl_write_drop(w);
				break;
			case 1:
				zkl_write_unsettle(w);
				break;
			case 2:
				zkl_write_hold(w, &writer);
				break;
			case 3:
				zkl_write_go_alone(m, w, &writer);
				break;
			case 4:
				zkl_write_take_seat(w, &seats[1], 1);
				CHECK(seats[1].write == w);
				break;
			default:
				zkl_write_stick(m, w, &writer, ZKL_RANK_DELETE);
		}
		CHECK(zkl_write_is_in_place(w));
		CHECK(seats[0].write == NULL);
	}
}

/* What was refused waits once for all, from the first refusal on. */
static void
refused(void)
{
	ZklManager *m = make();
	ZklWrite	w[2] = {{0}};

	m->now = 1000;
	CHECK(!zkl_write_any_stuck(m));
	zkl_write_stick(m, &w[0], &writer, ZKL_RANK_DELETE);
	CHECK(zkl_write_any_stuck(m));
	CHECK_INT(m->stuck_until, 1000 + ZKL_RETRY_DELAY);
	m->now += ZKL_RETRY_DELAY / 2;
	zkl_write_stick(m, &w[1], &writer, ZKL_RANK_CHANGE);
	CHECK_INT(m->stuck_until, 1000 + ZKL_RETRY_DELAY);
	zkl_write_retry(m);
	CHECK(!zkl_write_any_stuck(m));
	check_pending(m, ZKL_RANK_DELETE, w, "0");
	check_pending(m, ZKL_RANK_CHANGE, w, "1");

	/* Reads and the sweep of old heartbeats count as well. */
	m->chain.sweep_refused = true;
	CHECK(zkl_write_any_stuck(m));
	zkl_write_retry_later(m);
	CHECK_INT(m->stuck_until, 1000 + ZKL_RETRY_DELAY);
	m->chain.sweep_refused = false;
	zkl_write_retry_later(m);
	CHECK_INT(m->stuck_until, m->now + ZKL_RETRY_DELAY);
}

/* A late delete and a create can wait; anything else cannot. */
static void
urgency(void)
{
	ZklWriteRank rank;

	for (rank = 0; rank < ZKL_RANKS; rank++)
	{
		ZklManager *m = make();
		ZklWrite	w[1] = {{0}};
		bool		waits = rank == ZKL_RANK_LATE_DELETE ||
		rank == ZKL_RANK_CREATE || rank == ZKL_RANK_ALONE;

		zkl_write_pend(m, w, &writer, rank);
		CHECK_MSG(zkl_write_is_urgent(m) == !waits, "rank %d", (int) rank);
	}
}

int
main(void)
{
	unit_start();
	RUN(one_place);
	RUN(refused);
	RUN(urgency);
	return unit_finish();
}
