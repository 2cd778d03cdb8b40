/*
 * test_manager_pace.c
 *	  When batches go: deletes that wait for company, and creates that wait
 *	  for those who come back.
 */
#include "unit.h"
#include "world.h"

#define DELAY	1000			/* µs, as in core/write.c */
#define ENOUGH	16

/* All that is under way is answered, and no time passes. */
static void
answer(World *w)
{
	while (w->conn.inbox != NULL || w->conn.outbox != NULL)
	{
		world_serve(w, 10);
		world_deliver(w, 10);
	}
}

/* The delete of a lock that nobody else comes for goes with the next create. */
static void
late_delete(void)
{
	World	   *w = world_ready();
	uint32_t	r;
	int			i;

	world_warm_up(w, "/a");
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	world_count_anew(w);
	for (i = 0; i < 10; i++)
	{
		world_release(w, r);
		CHECK_INT(zkl_manager_timer(w->worker.m), w->worker.now + DELAY);
		w->worker.now += DELAY - 1;
		r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_serve(w, 10);
		world_deliver(w, 10);
		CHECK(world_holds(w, r));
	}
	CHECK_INT(w->zk.counts.multis, 10);
	world_release(w, r);
	w->worker.now += DELAY;
	world_flush(w);
	world_serve(w, 10);
	CHECK_INT(w->zk.counts.multis, 11);
	CHECK_INT(world_nodes(w, "/a"), 0);
	world_wind_up(w);
}

/* It waits for no answer to a batch that went before, which may never come. */
static void
late_delete_in_silence(void)
{
	World	   *w = world_ready();
	uint32_t	r;

	world_warm_up(w, "/a");
	world_warm_up(w, "/b");
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	answer(w);
	(void) world_submit(w, "/b", 2, ZKL_EXCLUSIVE);
	world_release(w, r);
	CHECK_INT(zkl_manager_timer(w->worker.m), w->worker.now + DELAY);
	w->worker.now += DELAY;
	world_flush(w);
	world_serve(w, 100);
	CHECK_INT(world_nodes(w, "/a"), 0);
	world_wind_up(w);
}

/* One that somebody else may wait for goes at once. */
static void
prompt_delete(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;

	world_warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	world_release(w, r);
	world_serve(w, 10);
	CHECK_INT(world_nodes(w, "/a"), 0);
	world_wind_up(w);
}

/* n sessions that come back as soon as they have their locks */
static void
run_loops(World *w, uint32_t *r, int n)
{
	int			i;

	for (i = 0; i < n; i++)
	{
		CHECK(world_holds(w, r[i]));
		world_release(w, r[i]);
		r[i] = world_submit(w, i % 2 ? "/odd" : "/even", (uint64_t) i,
							ZKL_SHARED);
	}
}

/*
 * Those who come back one after the other go in one batch; but nobody waits
 * for one who does not come for longer than a moment.
 */
static void
gathering(void)
{
	World	   *w = world_ready();
	uint32_t	r[4];
	int			round,
				i;

	world_warm_up(w, "/odd");
	world_warm_up(w, "/even");
	for (i = 0; i < 4; i++)
		r[i] = world_enter(w, i % 2 ? "/odd" : "/even", (uint64_t) i,
						   ZKL_SHARED, false);
	world_flush(w);
	answer(w);
	run_loops(w, r, 4);
	answer(w);
	world_count_anew(w);
	for (round = 0; round < 5; round++)
	{
		CHECK_INT(zkl_manager_awaited(w->worker.m), 4);
		CHECK_INT(zkl_manager_timer(w->worker.m), w->worker.now + DELAY);
		run_loops(w, r, 4);
		CHECK_INT(zkl_manager_awaited(w->worker.m), 0);
		answer(w);
	}
	CHECK_INT(w->zk.counts.multis, 5);

	/* This time one of them keeps his lock. */
	run_loops(w, r, 3);
	CHECK_INT(zkl_manager_awaited(w->worker.m), 1);
	answer(w);
	CHECK_INT(w->zk.counts.multis, 5);
	w->worker.now += DELAY;
	world_flush(w);
	answer(w);
	CHECK_INT(w->zk.counts.multis, 6);

	/* Having been disappointed, the next are sent as they come. */
	CHECK_INT(zkl_manager_awaited(w->worker.m), 0);
	run_loops(w, r, 1);
	answer(w);
	CHECK_INT(w->zk.counts.multis, 7);
	world_wind_up(w);
}

/* What is enough for a batch waits for nobody. */
static void
enough_at_hand(void)
{
	World	   *w = world_ready();
	uint32_t	r[ENOUGH + 2];
	int			i;

	world_warm_up(w, "/odd");
	world_warm_up(w, "/even");
	for (i = 0; i < ENOUGH + 2; i++)
		r[i] = world_enter(w, i % 2 ? "/odd" : "/even", (uint64_t) i,
						   ZKL_SHARED, false);
	world_flush(w);
	answer(w);
	run_loops(w, r, ENOUGH + 2);
	answer(w);
	world_count_anew(w);
	CHECK_INT(zkl_manager_awaited(w->worker.m), ENOUGH);
	run_loops(w, r, ENOUGH - 1);
	answer(w);
	CHECK_INT(w->zk.counts.multis, 0);
	run_loops(w, r + ENOUGH - 1, 1);
	world_serve(w, 10);
	CHECK_INT(w->zk.counts.multis, 1);
	world_wind_up(w);
}

/* Where somebody waits, a release may be what he waits for. */
static void
nobody_awaited(void)
{
	World	   *w = world_ready();
	uint32_t	r,
				waits;

	world_warm_up(w, "/a");
	world_warm_up(w, "/b");
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	answer(w);
	world_release(w, r);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	answer(w);
	CHECK_INT(zkl_manager_awaited(w->worker.m), 1);
	waits = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	answer(w);
	CHECK(world_waits(w, waits));
	CHECK_INT(zkl_manager_awaited(w->worker.m), 0);
	world_release(w, r);
	r = world_submit(w, "/b", 1, ZKL_EXCLUSIVE);
	answer(w);
	CHECK(world_holds(w, waits));
	CHECK_INT(zkl_manager_awaited(w->worker.m), 1);
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(late_delete);
	RUN(late_delete_in_silence);
	RUN(prompt_delete);
	RUN(gathering);
	RUN(enough_at_hand);
	RUN(nobody_awaited);
	return unit_finish();
}
