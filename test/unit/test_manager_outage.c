/*
 * test_manager_outage.c
 *	  Scenarios of a lease that ends, and of answers that cannot be right.
 */
#include "unit.h"
#include "world.h"

#define ABSURD	(INT64_C(1) << 60)

/*
 * A request that comes in the last moments of an idle server's lease has been
 * granted nothing under it: that it ends is no reason to reconnect.
 */
static void
leftover_lease(void)
{
	World	   *w = world_ready();
	uint32_t	r;

	world_sleep(w, zkl_manager_lease(w->worker.m) - 2000 - w->worker.now);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	CHECK(zkl_manager_lease(w->worker.m) > w->worker.now);
	CHECK(w->conn.inbox != NULL);
	w->worker.now = zkl_manager_lease(w->worker.m) + 1000;
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
	w->worker.now = zkl_manager_lease(w->worker.m) + 1000;
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
	w->worker.now = zkl_manager_lease(w->worker.m) + 1000;
	world_flush(w);
	CHECK(w->gave_up);
	world_run(w);
	foreign_leave_all(w, "/a");
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/* Holds so many locks, and is connected anew. */
static World *
reconnected(int holds)
{
	World	   *w = world_make();
	char		name[16];
	int			i;

	w->config.max_requests = WORLD_REQUESTS;
	world_begin(w);
	world_connect(w);
	world_run(w);
	for (i = 0; i < holds; i++)
	{
		snprintf(name, sizeof(name), "/m%d", i);
		(void) world_submit(w, name, 1, ZKL_EXCLUSIVE);
	}
	world_run(w);
	world_disconnect(w);
	world_connect(w);
	while (!zkl_manager_ready(w->worker.m))
	{
		world_serve(w, 1);
		world_deliver(w, 1);
	}
	return w;
}

/*
 * The lease ends while a new connection looks at all holds: another connection would
 * have to look at all of them again.
 */
static void
lease_during_looks(void)
{
	World	   *w = reconnected(20);

	world_serve(w, 5);
	world_deliver(w, 5);
	CHECK(w->conn.inbox != NULL);
	w->worker.now = zkl_manager_lease(w->worker.m) + 1000;
	world_flush(w);
	CHECK(!w->gave_up);
	world_run(w);
	CHECK(zkl_manager_lease(w->worker.m) > w->worker.now);
	CHECK_INT(w->losses, 0);

	/* If it ends later, all are looked at again. */
	w->worker.now = zkl_manager_lease(w->worker.m) + 1000;
	world_flush(w);
	CHECK(w->gave_up);
	world_wind_up(w);
}

/* Makes the next answer to a batch, or to a get of our node, absurd. */
static void
deliver_absurd(World *w, bool batch)
{
	bool		done = false;

	while (!done && !w->gave_up &&
		   (w->conn.inbox != NULL || w->conn.outbox != NULL))
	{
		Frame	   *message;

		world_serve(w, 1);
		for (message = w->conn.outbox; message != NULL && !done;
			 message = message->next)
		{
			ZklReply   *reply = &message->reply;

			done = !message->is_event && reply->rc == ZKL_RC_OK &&
				(reply->nresults > 0) == batch &&
				reply->stat.ephemeral_owner == w->worker.session.id;
			if (done && batch)
				reply->stat.mzxid = ABSURD;
			else if (done)
				reply->stat.czxid = ABSURD;
		}
		world_deliver(w, INT32_MAX);
	}
	CHECK(done);
}

/* One answer with an absurd transaction id is not believed. */
static void
absurd_id(void)
{
	World	   *w = world_ready();
	uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	r;
	int64_t		seen;

	world_run(w);
	seen = zkl_manager_zxid(w->worker.m);
	r = world_submit(w, "/b", 2, ZKL_EXCLUSIVE);
	deliver_absurd(w, true);
	CHECK(w->gave_up);
	CHECK(!world_holds(w, r));
	CHECK_INT(zkl_manager_zxid(w->worker.m), seen);
	world_run(w);
	CHECK(world_holds(w, r) && world_holds(w, held));
	CHECK(w->requests[r].token < (seen + 100) * 4096);
	CHECK(zkl_manager_zxid(w->worker.m) < seen + 100);
	CHECK_INT(w->losses, 0);
	world_wind_up(w);
}

/* Nor is it the first thing that a server ever hears. */
static void
absurd_from_the_start(void)
{
	World	   *w = world_make();
	uint32_t	r;

	world_begin(w);
	world_connect(w);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	deliver_absurd(w, true);
	CHECK(w->gave_up);
	CHECK_INT(zkl_manager_zxid(w->worker.m), 0);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK_INT(zkl_manager_zxid(w->worker.m), w->zk.zxid);
	world_wind_up(w);
}

/* A leap that the next connection confirms is one: elections go by unseen. */
static void
leap_of_ids(void)
{
	World	   *w = world_ready();
	uint32_t	r;
	int64_t		seen = zkl_manager_zxid(w->worker.m);

	w->zk.zxid += INT64_C(3) << 32;
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_serve(w, INT32_MAX);
	world_deliver(w, INT32_MAX);
	CHECK(!w->gave_up);
	world_run(w);
	CHECK(world_holds(w, r));

	w->zk.zxid += INT64_C(1000) << 32;
	r = world_submit(w, "/b", 1, ZKL_EXCLUSIVE);
	while (!w->gave_up && (w->conn.inbox != NULL || w->conn.outbox != NULL))
	{
		world_serve(w, INT32_MAX);
		world_deliver(w, INT32_MAX);
	}
	CHECK(w->gave_up);
	CHECK(zkl_manager_zxid(w->worker.m) < seen + (INT64_C(4) << 32));
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK_INT(zkl_manager_zxid(w->worker.m), w->zk.zxid);
	world_wind_up(w);
}

/* A fencing token is not made of an id above all that were acknowledged. */
static void
absurd_token(void)
{
	World	   *w = world_ready();
	uint32_t	r;
	int64_t		seen = zkl_manager_zxid(w->worker.m);

	/* The answer to its create is lost, so its id is asked for. */
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	while (world_nodes(w, "/a") == 0)
	{
		world_serve(w, INT32_MAX);
		if (world_nodes(w, "/a") == 0)
			world_deliver(w, INT32_MAX);
	}
	world_disconnect(w);
	world_connect(w);
	while (!zkl_manager_ready(w->worker.m))
	{
		world_serve(w, INT32_MAX);
		world_deliver(w, INT32_MAX);
	}
	deliver_absurd(w, false);
	CHECK(w->gave_up);
	CHECK(!world_holds(w, r));
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK(w->requests[r].token < (seen + 100) * 4096);
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(leftover_lease);
	RUN(lease_of_one_that_is_gone);
	RUN(lease_of_one_that_waits);
	RUN(lease_during_looks);
	RUN(absurd_id);
	RUN(absurd_from_the_start);
	RUN(leap_of_ids);
	RUN(absurd_token);
	return unit_finish();
}
