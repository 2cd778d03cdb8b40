/*
 * test_manager_together.c
 *	  Requests that are asked for together with others: they are told once they
 *	  have to wait, so that those behind them can be given up.
 */
#include "unit.h"
#include "world.h"

static World *
world_together(void)
{
	World	   *w = world_ready();

	world_warm_up(w, "/a");
	w->together = true;
	return w;
}

static void
free_lock(void)
{
	World	   *w = world_together();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);

	world_run(w);
	CHECK(world_holds(w, r));
	CHECK(!w->requests[r].blocked);
	world_wind_up(w);
}

/* Behind a local holder, and behind a local one that waits */
static void
behind_local(void)
{
	World	   *w = world_together();
	uint32_t	r[3];
	int			i;

	for (i = 0; i < 3; i++)
		r[i] = world_submit(w, "/a", (uint64_t) i, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r[0]));
	CHECK(!w->requests[r[0]].blocked);
	CHECK(w->requests[r[1]].blocked);
	CHECK(w->requests[r[2]].blocked);
	world_wind_up(w);
}

/* Readers do not wait for each other. */
static void
beside_readers(void)
{
	World	   *w = world_together();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;

	foreign_enter(w, "/a", ZKL_SHARED, other);
	r = world_submit(w, "/a", 1, ZKL_SHARED);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK(!w->requests[r].blocked);
	r = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(w->requests[r].blocked);
	world_wind_up(w);
}

/* Not before it is known who is ahead, and only once */
static void
behind_foreign(void)
{
	World	   *w = world_together();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;

	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	CHECK(!w->requests[r].blocked);
	world_run(w);
	CHECK(w->requests[r].blocked);
	w->requests[r].blocked = false;
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	world_sleep(w, WORLD_TIMEOUT_MS * 1000LL);
	world_run(w);
	CHECK(!w->requests[r].blocked);
	world_wind_up(w);
}

/* A restarted worker tells only those who were not told, as their wait goes on. */
static void
after_a_restart(void)
{
	World	   *w = world_together();
	uint32_t	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	told = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	uint32_t	late;

	world_run(w);
	CHECK(w->requests[told].blocked);
	late = world_enter(w, "/a", 3, ZKL_EXCLUSIVE, false);
	world_restart(w);
	world_connect(w);
	world_run(w);
	CHECK_INT(w->requests[holder].state, SLOT_LOST);
	CHECK(world_holds(w, told));
	CHECK(w->requests[late].blocked);
	world_wind_up(w);
}

int
main(void)
{
	RUN(free_lock);
	RUN(behind_local);
	RUN(beside_readers);
	RUN(behind_foreign);
	RUN(after_a_restart);
	return unit_finish();
}
