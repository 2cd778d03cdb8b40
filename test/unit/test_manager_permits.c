/*
 * test_manager_permits.c
 *	  Leases of a semaphore: a request waits behind those of other servers until
 *	  one of them ends, whatever becomes of its watch meanwhile.
 */
#include "unit.h"
#include "world.h"

static World *
world_semaphore(uint32_t max)
{
	World	   *w = world_ready();

	w->dialect = ZKL_DIALECT_PERMIT;
	w->max = max;
	return w;
}

/* Any of those ahead may be the first to go. */
static void
one_of_several_ends(void)
{
	World	   *w = world_semaphore(2);
	char		first[ZKL_MAX_PATH + 1];
	char		second[ZKL_MAX_PATH + 1];
	uint32_t	r;

	foreign_enter(w, "/a", ZKL_EXCLUSIVE, first);
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, second);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, r));
	CHECK_INT(model_delete(&w->zk, first), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK_INT(model_delete(&w->zk, second), ZKL_RC_OK);
	world_run(w);
	world_wind_up(w);
}

/*
 * The watch on the children is taken back by somebody else on the same
 * connection: right behind the listing that set it, or when it stands.  The
 * manager is told so before the answer to that listing comes.
 */
static void
watch_taken_back(void)
{
	bool		answered;

	for (answered = false;; answered = true)
	{
		World	   *w = world_semaphore(1);
		char		other[ZKL_MAX_PATH + 1];
		uint32_t	r;
		int			rounds = 0;

		foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
		r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		while (tree_find(WORLD_ROOT "/a")->child_watch == NULL &&
			   CHECK(++rounds < 20))
		{
			world_deliver(w, INT32_MAX);
			world_serve(w, 1);
		}
		if (answered)
			world_run(w);
		CHECK(watch_remove(&tree_find(WORLD_ROOT "/a")->child_watch,
						   &w->conn.watcher));
		worker_tell(&w->worker, ZKL_EVENT(CHILDREN,.path = WORLD_ROOT "/a"));
		world_flush(w);
		world_run(w);
		CHECK(world_waits(w, r));
		CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
		world_run(w);
		CHECK_MSG(world_holds(w, r), "never woken, answered %d", answered);
		world_wind_up(w);
		if (answered)
			break;
	}
}

/* Our own releases are enough to know of, if the others leave room. */
static void
behind_our_own_and_another(void)
{
	World	   *w = world_semaphore(3);
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r[4];
	int			i;

	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	for (i = 0; i < 4; i++)
	{
		r[i] = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		CHECK_INT(world_holds(w, r[i]), i < 2);
	}
	world_release(w, r[0]);
	world_run(w);
	CHECK(world_holds(w, r[2]) && world_waits(w, r[3]));
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, r[3]));
	world_wind_up(w);
}

/* A contender of another client, or a child that is a lease to Curator only */
static void
another_enters(World *w, bool contender)
{
	char		path[ZKL_MAX_PATH + 1];

	if (contender)
		foreign_enter(w, "/a", ZKL_EXCLUSIVE, path);
	else
	{
		model_mkdir(&w->zk, WORLD_ROOT "/a");
		(void) model_create(&w->zk, WORLD_ROOT "/a/stranger", true, 77, "",
							NULL);
	}
}

static void
random_step(World *w)
{
	uint32_t	r = unit_random_below(8);

	switch (unit_random_below(16))
	{
		case 0:
		case 1:
			another_enters(w, unit_random_below(4) > 0);
			break;
		case 2:
			foreign_leave_all(w, "/a");
			break;
		case 3:
			world_restart(w);
			world_connect(w);
			break;
		case 4:
			world_disconnect(w);
			world_connect(w);
			break;
		case 5:
			world_expire_session(w);
			world_connect(w);
			break;
		case 6:
			world_run(w);
			break;
		case 7:
		case 8:
		case 9:
			world_serve(w, 1);
			break;
		case 10:
		case 11:
		case 12:
			world_deliver(w, 1);
			break;
		default:
			if (w->requests[r].state == SLOT_FREE)
				(void) world_submit(w, "/a", 1 + r / 2, ZKL_EXCLUSIVE);
			else
				world_release(w, r);
	}
}

/* The world checks each grant.  In the end nobody waits for a free lease. */
static void
random_walks(void)
{
	int			i;
	int			step;

	for (i = 0; i < 300; i++)
	{
		World	   *w = world_semaphore(1 + (uint32_t) i % 3);
		uint32_t	holds = 0;
		uint32_t	waits = 0;
		uint32_t	r;

		for (step = 0; step < 100; step++)
			random_step(w);
		foreign_leave_all(w, "/a");
		world_sleep(w, 2 * WORLD_BEAT);
		for (r = 0; r < w->config.max_requests; r++)
		{
			holds += world_holds(w, r);
			waits += world_waits(w, r);
		}
		CHECK(waits == 0 || holds == w->max);
		world_wind_up(w);
	}
}

int
main(void)
{
	unit_start();
	RUN(one_of_several_ends);
	RUN(watch_taken_back);
	RUN(behind_our_own_and_another);
	RUN(random_walks);
	return unit_finish();
}
