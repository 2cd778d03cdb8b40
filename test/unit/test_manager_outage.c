/*
 * test_manager_outage.c
 *	  Scenarios of a lease that ends.
 */
#include "unit.h"
#include "world.h"

/*
 * A request that comes in the last moments of an idle server's lease has been
 * granted nothing under it: that it ends is no reason to reconnect.
 */
static void
leftover_lease(void)
{
	World	   *w = world_ready();
	uint32_t	r;

	world_sleep(w, zkl_manager_lease(w->m) - 2000 - w->now);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	CHECK(zkl_manager_lease(w->m) > w->now);
	CHECK(w->conn.inbox != NULL);
	w->now = zkl_manager_lease(w->m) + 1000;
	world_flush(w);
	CHECK(!w->gave_up);
	world_serve(w, INT32_MAX);
	world_deliver(w, INT32_MAX);
	CHECK(!w->gave_up);
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/*
 * One request was released, another came, before the lease ended: nothing
 * relies on that lease any more.
 */
static void
lease_of_one_that_is_gone(void)
{
	World	   *w = world_ready();
	uint32_t	gone = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	r;

	world_run(w);
	CHECK(world_holds(w, gone));
	world_leave(w, gone);
	r = world_submit(w, "/b", 2, ZKL_EXCLUSIVE);
	w->now = zkl_manager_lease(w->m) + 1000;
	world_flush(w);
	CHECK(!w->gave_up);
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/* One that has its place in the queue does rely on it, although it waits. */
static void
lease_of_one_that_waits(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;

	world_warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, r));
	w->now = zkl_manager_lease(w->m) + 1000;
	world_flush(w);
	CHECK(w->gave_up);
	world_run(w);
	foreign_leave_all(w, "/a");
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(leftover_lease);
	RUN(lease_of_one_that_is_gone);
	RUN(lease_of_one_that_waits);
	return unit_finish();
}
