/*
 * test_manager_marks.c
 *	  Marks of operators that our server is late to see, and nodes that it cannot
 *	  read: the lease ends before it could be wrong.
 */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "world.h"

static const int64_t T = WORLD_TIMEOUT_MS * 1000LL;

/*
 * Goes on, answer by answer, until r has lost its node.  Returns the greatest
 * lease that was published while it held: it may be stopped at any moment.
 */
static int64_t
lease_until_loss(World *w, uint32_t r)
{
	int64_t		until = w->worker.now + 2 * T;
	int64_t		most = 0;
	uint32_t	nodes = w->requests[r].znodes;

	for (;;)
	{
		int64_t		due;

		while (w->conn.inbox != NULL || w->conn.outbox != NULL)
		{
			w->worker.now += 100;
			world_serve(w, INT32_MAX);
			world_deliver(w, 1);
			if (w->requests[r].state == SLOT_LOST || w->requests[r].znodes != nodes)
				return most;
			if (world_holds(w, r) && zkl_manager_lease(w->worker.m) > most)
				most = zkl_manager_lease(w->worker.m);
		}
		due = zkl_manager_timer(w->worker.m);
		CHECK(due >= 0 && due < until);
		if (due < 0 || due >= until)
			return most;
		w->worker.now = due > w->worker.now ? due : w->worker.now + 1;
		world_flush(w);
	}
}

/* A node is marked that waits behind nobody, but its server hears nothing. */
static void
marked_in_silence(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	r;
	int64_t		marked_at;

	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_sleep(w, 4 * WORLD_BEAT + WORLD_BEAT / 100);
	CHECK(world_waits(w, r));
	world_path(w, r, path);
	marked_at = w->worker.now;
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	CHECK_INT(model_set(&w->zk, path, WORLD_BREAK), ZKL_RC_OK);
	w->worker.now += T / 3;
	world_disconnect(w);
	world_connect(w);
	CHECK(lease_until_loss(w, r) <= marked_at + T);
	world_run(w);
	world_wind_up(w);
}

/* A node is marked before its server knows that it has made it. */
static void
marked_before_the_reply(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1] = "";
	uint32_t	r;
	int64_t		marked_at;

	world_sleep(w, 10 * WORLD_BEAT);
	world_warm_up(w, "/a");
	world_run(w);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_serve(w, INT32_MAX);
	snprintf(path, sizeof(path), "%s", tree_newest()->text);
	marked_at = w->worker.now;
	CHECK_INT(model_set(&w->zk, path, WORLD_BREAK), ZKL_RC_OK);
	w->worker.now += T / 3 - 1000;
	CHECK(lease_until_loss(w, r) <= marked_at + T);
	world_run(w);
	world_wind_up(w);
}

/*
 * Our own node cannot be read on a new connection.  Somebody may have marked
 * it, so no beat renews the lease before it has been read.
 */
static void
own_node_not_read(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	int64_t		lease;

	world_sleep(w, 2 * WORLD_BEAT);
	world_disconnect(w);
	lease = zkl_manager_lease(w->worker.m);
	w->zk.single_rc = MODEL_THROTTLED;
	w->zk.single_kind = ZKL_SEND_GET;
	w->zk.single_path = "/a/";
	world_connect(w);
	world_run(w);
	CHECK_INT(w->zk.single_rc, 0);
	CHECK_INT(zkl_manager_lease(w->worker.m), lease);
	world_sleep(w, WORLD_BEAT + WORLD_BEAT / 2);
	CHECK(world_holds(w, r) && zkl_manager_lease(w->worker.m) > lease);
	world_wind_up(w);
}

/*
 * Or never again: its ACL was changed.  Nobody can rely on that hold, but on
 * the others of this server.
 */
static void
own_node_unreadable(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	other = world_submit(w, "/b", 1, ZKL_EXCLUSIVE);

	world_run(w);
	world_disconnect(w);
	w->zk.no_read = "/a/";
	world_connect(w);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(w->requests[r].state == SLOT_LOST);
	CHECK_INT(w->requests[r].failure, ZKL_FAILURE_UNREADABLE);
	CHECK(world_holds(w, other));
	CHECK(zkl_manager_lease(w->worker.m) > w->worker.now);
	CHECK_INT(world_nodes(w, "/a"), 1);
	world_release(w, r);
	world_run(w);
	CHECK_INT(world_nodes(w, "/a"), 0);
	w->zk.no_read = NULL;
	world_wind_up(w);
}

/*
 * A young hold's node is marked, then ZooKeeper answers something else, and
 * then the worker is held up, within the lease.  A beat that is acknowledged
 * before the first look at the node must not prolong the lease past the time at
 * which the operator deletes it.
 */
static void
marked_while_held_up(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	r;
	int64_t		marked_at;

	world_sleep(w, 10 * WORLD_BEAT);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	world_path(w, r, path);
	marked_at = w->worker.now;
	CHECK_INT(model_set(&w->zk, path, WORLD_BREAK), ZKL_RC_OK);
	w->worker.now += T / 20;
	(void) world_submit(w, "/b", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	w->worker.now += T / 2;
	world_flush(w);
	CHECK(lease_until_loss(w, r) <= marked_at + T);
	CHECK(w->requests[r].state == SLOT_LOST);
	world_run(w);
	world_wind_up(w);
}

/*
 * A waiter's node is marked, and cannot be read; then it is its turn.  The
 * operator deletes the node a session timeout after the mark.
 */
static void
marked_waiter_not_read(void)
{
	static const int32_t rcs[] = {-1, ZKL_RC_NOAUTH, MODEL_THROTTLED};
	size_t		i;

	for (i = 0; i < sizeof(rcs) / sizeof(rcs[0]); i++)
	{
		World	   *w = world_ready();
		char		other[ZKL_MAX_PATH + 1];
		char		path[ZKL_MAX_PATH + 1];
		uint32_t	r;
		int64_t		marked_at;

		world_warm_up(w, "/a");
		foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
		r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		world_sleep(w, 3 * WORLD_BEAT);
		world_path(w, r, path);
		w->zk.single_rc = rcs[i];
		w->zk.single_kind = ZKL_SEND_GET;
		w->zk.single_path = strrchr(path, '/');
		w->zk.singles = 1000000;
		marked_at = w->worker.now;
		CHECK_INT(model_set(&w->zk, path, WORLD_BREAK), ZKL_RC_OK);
		world_run(w);
		world_sleep(w, marked_at + T * 9 / 10 - w->worker.now);
		CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
		world_run(w);
		world_sleep(w, marked_at + T - w->worker.now);
		CHECK_MSG(!world_holds(w, r) || zkl_manager_lease(w->worker.m) <= w->worker.now,
				  "rc %d", (int) rcs[i]);
		w->zk.single_rc = 0;
		world_run(w);
		world_sleep(w, 3 * WORLD_BEAT);
		world_wind_up(w);
	}
}

/*
 * Those ahead are deleted and the next one's node is marked, while the worker is
 * held up.  It grants the lock, is held up again, and stops when a beat is
 * acknowledged that went ahead of its look at the node.
 */
static void
marked_before_its_turn(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	char		path_now[ZKL_MAX_PATH + 1];
	uint32_t	holder,
				next,
				r;
	int64_t		marked_at;
	int			rounds = 0;

	world_warm_up(w, "/a");
	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	r = world_submit(w, "/a", 3, ZKL_EXCLUSIVE);
	world_sleep(w, 4 * WORLD_BEAT);
	w->tampered = true;
	world_path(w, holder, path);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	world_path(w, next, path);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	world_write(w, r, WORLD_BREAK);
	marked_at = w->worker.now;
	w->worker.now = zkl_manager_lease(w->worker.m) - 2000;
	world_deliver(w, INT32_MAX);
	world_flush(w);
	while (w->conn.inbox != NULL && CHECK(++rounds < 50))
	{
		w->worker.now += 100;
		world_serve(w, 1);
		world_deliver(w, 1);
	}
	w->worker.now += T * 7 / 24 + 1000;
	world_flush(w);
	world_serve(w, 1);
	world_deliver(w, 1);
	world_path(w, r, path_now);
	CHECK(!world_holds(w, r) || strcmp(path, path_now) != 0 ||
		  zkl_manager_lease(w->worker.m) <= marked_at + T);
	world_run(w);
	world_wind_up(w);
}

/*
 * A node is marked while two are ahead of it, so that nothing watches it.  Both
 * leave at once: the lease that is good by then is too long for this node.
 */
static void
marked_in_the_middle(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	char		path_now[ZKL_MAX_PATH + 1];
	uint32_t	holder,
				next,
				r;
	int64_t		marked_at;

	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	r = world_submit(w, "/a", 3, ZKL_EXCLUSIVE);
	world_run(w);
	world_write(w, r, WORLD_BREAK);
	marked_at = w->worker.now;
	world_sleep(w, T * 3 / 4);
	CHECK(zkl_manager_lease(w->worker.m) > marked_at + T);
	world_leave(w, next);
	world_leave(w, holder);
	world_flush(w);
	CHECK(!world_holds(w, r));
	world_run(w);
	world_path(w, r, path_now);
	CHECK(world_holds(w, r) && strcmp(path, path_now) != 0);
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(marked_in_silence);
	RUN(marked_before_the_reply);
	RUN(own_node_not_read);
	RUN(own_node_unreadable);
	RUN(marked_while_held_up);
	RUN(marked_waiter_not_read);
	RUN(marked_before_its_turn);
	RUN(marked_in_the_middle);
	return unit_finish();
}
