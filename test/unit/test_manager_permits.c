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
		zkl_manager_event(w->worker.m, w->worker.now, ZKL_EVENT_CHILDREN, WORLD_ROOT "/a");
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

int
main(void)
{
	unit_start();
	RUN(one_of_several_ends);
	RUN(watch_taken_back);
	return unit_finish();
}
