/*
 * test_manager_release_request.c
 *	  Holders are asked, by the data of their nodes, to give their locks up.
 */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "world.h"

static const char mark[] = "{\"revoke\":\"somebody\",\"zklock\":1}";

static void
ask(World *w, uint32_t r, const char *data)
{

	world_write(w, r, data);
	world_run(w);
}

/* Right after the grant, when nobody watches the node, and later. */
static void
young_and_old(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);

	world_run(w);
	ask(w, r, mark);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK_INT(w->requests[r].asked, 1);
	CHECK_STR(w->asker, "somebody");

	/* once for each write, and for no other one */
	ask(w, r, mark);
	CHECK_INT(w->requests[r].asked, 2);
	ask(w, r, "__REVOKE__");
	CHECK_INT(w->requests[r].asked, 3);
	CHECK_STR(w->asker, "");
	ask(w, r, "{\"zklock\":1}");
	ask(w, r, "something else");
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK_INT(w->requests[r].asked, 3);

	CHECK(world_holds(w, r) && world_waits(w, next));
	world_release(w, r);
	world_run(w);
	CHECK(world_holds(w, next));
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK_INT(w->requests[next].asked, 0);
	world_wind_up(w);
}

/* Another connection, another worker: what was told is not told again. */
static void
not_told_again(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);

	world_run(w);
	ask(w, r, mark);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK_INT(w->requests[r].asked, 1);
	world_disconnect(w);
	world_connect(w);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK_INT(w->requests[r].asked, 1);

	/* but what came meanwhile is */
	world_disconnect(w);
	ask(w, r, mark);
	world_connect(w);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK_INT(w->requests[r].asked, 2);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/* Asked while it waits, as the holder that it is not yet: told with the grant. */
static void
asked_early(void)
{
	World	   *w = world_ready();
	uint32_t	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	r = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);

	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	ask(w, r, mark);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(world_waits(w, r));
	CHECK_INT(w->requests[r].asked, 0);
	world_release(w, holder);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK_INT(w->requests[r].asked, 1);
	world_wind_up(w);
}

/*
 * All holds of one node; but not one that came later, if the node has become a
 * reader's meanwhile, which nobody has written to.
 */
static void
several_holds(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	second,
				third;

	world_run(w);
	second = world_submit(w, "/a", 1, ZKL_SHARED);
	world_run(w);
	ask(w, r, mark);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK_INT(w->requests[r].asked, 1);
	CHECK_INT(w->requests[second].asked, 1);
	world_release(w, r);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK_INT(w->requests[second].asked, 1);

	third = world_submit(w, "/a", 1, ZKL_SHARED);
	world_run(w);
	CHECK(world_holds(w, third));
	CHECK_INT(w->requests[third].asked, 0);
	world_release(w, second);
	world_run(w);
	CHECK(world_holds(w, third));
	CHECK_INT(w->requests[third].asked, 0);
	ask(w, third, "__REVOKE__");
	CHECK_INT(w->requests[third].asked, 1);
	world_wind_up(w);
}

/* A break counts more, and is seen beside it. */
static void
broken_as_well(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);

	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	ask(w, r, "{\"revoke\":\"a\",\"breaking\":true,\"zklock\":1}");
	CHECK(w->requests[r].state == SLOT_LOST);
	CHECK_INT(w->requests[r].failure, ZKL_FAILURE_BROKEN);
	CHECK_INT(w->requests[r].asked, 0);
	ask(w, r, mark);
	CHECK_INT(w->requests[r].asked, 0);
	world_wind_up(w);
}

/*
 * Who is asked may go on as a reader: the mark is no reason to stay exclusive,
 * whether or not it had been read before.
 */
static void
downgraded(void)
{
	int			seen;

	for (seen = 0; seen < 2; seen++)
	{
		World	   *w = world_ready();
		uint32_t	writer = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		uint32_t	reader,
					other;

		world_run(w);
		reader = world_submit(w, "/a", 1, ZKL_SHARED);
		CHECK(world_holds(w, reader));
		ask(w, writer, mark);
		if (seen)
			world_sleep(w, 2 * WORLD_BEAT);
		CHECK_INT(w->requests[writer].asked, seen);
		other = world_submit(w, "/a", 2, ZKL_SHARED);
		world_run(w);
		CHECK(world_waits(w, other));
		world_release(w, writer);
		world_sleep(w, 2 * WORLD_BEAT);
		CHECK(world_holds(w, reader) && world_holds(w, other));
		CHECK_INT(w->requests[reader].asked, 1);
		world_wind_up(w);
	}
}

/*
 * Asked while it waits.  On another connection it is granted, and goes on as a reader
 * before its node has been read again.
 */
static void
downgraded_early(void)
{
	World	   *w = world_ready();
	uint32_t	holder = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	uint32_t	writer = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	reader;

	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	ask(w, writer, mark);
	world_disconnect(w);
	world_connect(w);
	world_run(w);
	world_release(w, holder);
	world_run(w);
	CHECK(world_holds(w, writer));
	CHECK_INT(w->requests[writer].asked, 0);
	reader = world_submit(w, "/a", 1, ZKL_SHARED);
	world_release(w, writer);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(world_holds(w, reader));
	CHECK_INT(w->requests[reader].asked, 1);
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(young_and_old);
	RUN(not_told_again);
	RUN(asked_early);
	RUN(several_holds);
	RUN(broken_as_well);
	RUN(downgraded);
	RUN(downgraded_early);
	return unit_finish();
}
