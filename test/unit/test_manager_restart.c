/*
 * test_manager_restart.c
 *	  Scenarios of a restart of the worker.
 */
#include <stdio.h>
#include <string.h>

#include "../model/memory.h"
#include "observe/check.h"
#include "unit.h"
#include "world.h"

static void
restart(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	covered;
	uint32_t	released;
	uint32_t	waits;
	uint32_t	sent;
	uint32_t	fresh;
	int64_t		token;

	world_run(w);
	covered = world_submit(w, "/a", 1, ZKL_SHARED);
	waits = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	released = world_submit(w, "/b", 1, ZKL_EXCLUSIVE);
	foreign_enter(w, "/c", ZKL_EXCLUSIVE, other);
	world_run(w);
	world_release(w, released);
	sent = world_submit(w, "/c", 3, ZKL_EXCLUSIVE);
	fresh = world_enter(w, "/c", 4, ZKL_EXCLUSIVE, false);
	world_serve(w, 2);
	token = w->requests[held].token;
	world_restart(w);
	CHECK_INT(zkl_manager_lease(w->worker.m), 0);
	CHECK_INT(zkl_manager_live(w->worker.m), 5);
	CHECK(!zkl_manager_ready(w->worker.m));
	world_connect(w);
	world_run(w);
	CHECK(zkl_manager_ready(w->worker.m));
	CHECK(world_holds(w, held) && world_holds(w, covered));
	CHECK_INT(w->requests[held].token, token);
	CHECK(world_waits(w, waits) && world_waits(w, sent) &&
		  world_waits(w, fresh));
	CHECK(w->requests[released].state == SLOT_FREE);
	CHECK_INT(world_nodes(w, "/a"), 2);
	CHECK_INT(world_nodes(w, "/b"), 0);
	CHECK_INT(world_nodes(w, "/c"), 2);
	CHECK_INT(w->losses, 0);

	world_release(w, held);
	world_run(w);
	CHECK(world_waits(w, waits));
	world_release(w, covered);
	world_run(w);
	CHECK(world_holds(w, waits));
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, sent));
	world_wind_up(w);
}

/*
 * A hold is released and its node deleted, but the worker ends before it hears
 * of that: who asks for the lock again cannot lean on it.
 */
static void
restart_with_a_released_hold(void)
{
	World	   *w = world_ready();
	uint32_t	reader = world_submit(w, "/a", 1, ZKL_SHARED);
	uint32_t	writer;
	uint32_t	again;
	uint32_t	rival;

	world_run(w);
	writer = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, reader) && world_holds(w, writer));
	world_release(w, writer);
	w->worker.now += 1000;
	world_flush(w);
	world_serve(w, 10);
	CHECK_INT(world_nodes(w, "/a"), 1);
	again = world_enter(w, "/a", 1, ZKL_EXCLUSIVE, false);
	rival = world_enter(w, "/a", 2, ZKL_SHARED, false);
	world_restart(w);
	CHECK(world_holds(w, reader));
	CHECK(world_waits(w, again) && world_waits(w, rival));
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, reader));
	CHECK(!world_holds(w, again) || !world_holds(w, rival));
	world_wind_up(w);
}

/* The session expired while no worker ran. */
static void
restart_without_session(void)
{
	World	   *w = world_ready();
	uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	waits = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);

	world_run(w);
	world_restart(w);
	world_expire_session(w);
	CHECK(w->requests[held].state == SLOT_LOST);
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, waits));
	world_wind_up(w);
}

/* A hold's node was deleted while no worker ran. */
static void
restart_without_the_node(void)
{
	World	   *w = world_ready();
	uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	waits = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	char		path[ZKL_MAX_PATH + 1];

	world_run(w);
	w->tampered = true;
	world_path(w, held, path);
	world_restart(w);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	world_connect(w);
	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(w->requests[held].state == SLOT_LOST);
	CHECK(world_holds(w, waits));
	world_wind_up(w);
}

/* Marks a request's node, as zk_break_lock() does. */
static void
break_node(World *w, uint32_t request)
{

	world_write(w, request, WORLD_BREAK);
}

/* Goes on by the smallest steps until this is so, and no further. */
static void
step(World *w)
{
	w->worker.now += 100;
	world_serve(w, 1);
	world_deliver(w, 1);
}

static void
run_until(World *w, const bool *so)
{
	int			rounds = 0;

	while (!*so && CHECK(++rounds < 100))
		step(w);
}

static void
run_to(World *w, uint32_t request, SlotState state)
{
	int			rounds = 0;

	while (w->requests[request].state != state && CHECK(++rounds < 100))
		step(w);
}

/*
 * An operator has broken a hold, and then a waiter's place; behind both the
 * former holder has the lock again.  The worker ends before the waiter's node
 * is deleted: the next one must not put it back ahead of the holder.
 */
static void
restart_with_a_broken_waiter(void)
{
	World	   *w = world_ready();
	uint32_t	first = world_submit(w, "/b", 9, ZKL_EXCLUSIVE);
	uint32_t	broken = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	waiter = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	uint32_t	holder;
	uint32_t	reader;

	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	break_node(w, broken);
	run_to(w, broken, SLOT_LOST);
	world_release(w, first);
	world_run(w);

	/* in a slot ahead of the broken one's */
	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	CHECK(holder < broken);
	world_run(w);
	CHECK(world_waits(w, holder));
	break_node(w, waiter);
	run_to(w, holder, SLOT_GRANTED);
	CHECK(world_waits(w, waiter));
	world_restart(w);
	world_release(w, broken);
	reader = world_submit(w, "/a", 3, ZKL_SHARED);
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, holder));
	CHECK(world_waits(w, waiter) && world_waits(w, reader));
	world_wind_up(w);
}

/* An operator broke a lock that was kept: no restart keeps it any longer. */
static void
restart_with_a_broken_kept_lock(void)
{
	World	   *w = world_ready();
	uint32_t	kept = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	waits = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	int			rounds = 0;

	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	world_keep(w, kept, 100 * WORLD_BEAT);
	world_run(w);
	break_node(w, kept);
	while (zkl_manager_live(w->worker.m) == 2 && CHECK(++rounds < 100))
	{
		w->worker.now += 100;
		world_serve(w, 1);
		world_deliver(w, 1);
	}
	world_restart(w);
	CHECK_INT(zkl_manager_live(w->worker.m), 1);
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, waits));
	CHECK(w->requests[kept].state == SLOT_FREE);
	world_wind_up(w);
}

/*
 * An operator breaks a lock that its owner holds twice.  The worker ends when
 * one of the two slots says so: the other one must still be told, also when the
 * first one is released before the next worker has read the mark.
 */
static void
restart_amid_a_break(void)
{
	int			moment;

	for (moment = 0; moment < 5; moment++)
	{
		World	   *w = world_ready();
		uint32_t	told = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		uint32_t	untold;

		world_run(w);
		untold = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_sleep(w, 2 * WORLD_BEAT);
		break_node(w, told);
		if (moment % 2 != 0)
		{
			uint32_t	swap = told;

			told = untold;
			untold = swap;
		}
		run_to(w, told, SLOT_LOST);
		w->requests[untold].state = SLOT_GRANTED;
		w->requests[untold].failure = 0;
		if (moment == 4)
		{
			/* and the mark cannot be read */
			w->zk.single_rc = MODEL_THROTTLED;
			w->zk.single_kind = ZKL_SEND_GET;
			w->zk.single_path = "/a/";
			w->zk.singles = 1000000;
		}
		world_restart(w);
		if (moment == 2 || moment == 3)
			world_release(w, told);
		world_connect(w);
		world_run(w);
		CHECK_MSG(w->requests[untold].state == SLOT_LOST, "moment %d", moment);
		CHECK_INT(w->requests[untold].failure, ZKL_FAILURE_BROKEN);
		w->zk.single_rc = 0;
		world_wind_up(w);
	}
}

/*
 * The kept hold has the node, and the worker ends when it has recorded that this is
 * over, and before the node passes to the session that was told.
 */
static void
restart_amid_the_end_of_a_kept_hold(void)
{
	World	   *w = world_ready();
	uint32_t	kept = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	told;
	Slot		before;

	world_run(w);
	told = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_sleep(w, 2 * WORLD_BEAT);
	world_keep(w, kept, 100 * WORLD_BEAT);
	world_run(w);
	break_node(w, kept);
	before = w->requests[kept];
	before.keep_until = 0;
	before.kept_lost = before.record.disowned = true;
	run_to(w, told, SLOT_LOST);
	CHECK(w->requests[kept].state == SLOT_FREE);
	w->requests[kept] = before;
	w->requests[kept].name = take_string("/a");
	memset(&w->requests[told].record, 0, sizeof(ZklRecord));
	w->requests[told].record.seq = -1;
	w->requests[told].record.generation = before.record.generation;
	world_restart(w);
	world_connect(w);
	world_run(w);
	CHECK(w->requests[told].state == SLOT_LOST);
	CHECK_INT(world_nodes(w, "/a"), 1);
	world_release(w, told);
	world_run(w);
	CHECK_INT(world_nodes(w, "/a"), 0);
	world_wind_up(w);
}

/*
 * A session asks once more for a lock that it holds, and the hold is broken before the
 * worker looks, or before it ends and the next one does.  The request fails: it would
 * wait behind one that waits for that session to let go.
 */
static void
asks_amid_a_break(void)
{
	int			restart;

	for (restart = 0; restart < 2; restart++)
	{
		World	   *w = world_ready();
		uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		uint32_t	waiter = world_submit(w, "/a", 2, ZKL_SHARED);
		uint32_t	last;

		world_run(w);
		world_sleep(w, 2 * WORLD_BEAT);
		last = (uint32_t) worker_find_free(&w->worker);
		world_fill(w, last, "/a", 1, ZKL_SHARED);
		break_node(w, held);
		run_to(w, held, SLOT_LOST);
		if (restart)
		{
			world_restart(w);
			world_connect(w);
		}
		else
		{
			worker_look(&w->worker, (int) last);
			world_flush(w);
		}
		world_run(w);
		CHECK(w->requests[last].state == SLOT_FAILED);
		CHECK_INT(w->requests[last].failure, ZKL_FAILURE_BROKEN);
		CHECK(world_waits(w, waiter));
		world_release(w, held);
		world_run(w);
		CHECK(world_holds(w, waiter));
		world_wind_up(w);
	}
}

/*
 * One of three holds that share a broken node is kept, and the worker ends before it
 * records that this is over, too.  However often it restarts, the node stays until the
 * session that was told has let go.
 */
static void
restart_amid_a_break_of_a_kept_hold(void)
{
	World	   *w = world_ready();
	uint32_t	first = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	kept,
				told;
	Slot		before;

	world_run(w);
	kept = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	told = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_sleep(w, 2 * WORLD_BEAT);
	world_keep(w, kept, 100 * WORLD_BEAT);
	world_run(w);
	break_node(w, first);
	before = w->requests[kept];
	run_to(w, told, SLOT_LOST);
	CHECK(w->requests[kept].state == SLOT_FREE);
	w->requests[kept] = before;
	w->requests[kept].name = take_string("/a");
	world_leave(w, first);
	world_restart(w);
	world_restart(w);
	world_connect(w);
	world_run(w);
	CHECK(w->requests[told].state == SLOT_LOST);
	CHECK_INT(world_nodes(w, "/a"), 1);
	world_release(w, told);
	world_run(w);
	CHECK_INT(world_nodes(w, "/a"), 0);
	world_wind_up(w);
}

/*
 * A broken hold's node is deleted while its holder has not let go: what comes
 * after it is held by others, and a restart does not bring it back.
 */
static void
restart_with_a_deleted_broken_hold(void)
{
	World	   *w = world_ready();
	uint32_t	broken = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	char		path[ZKL_MAX_PATH + 1];

	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	break_node(w, broken);
	run_to(w, broken, SLOT_LOST);
	world_path(w, broken, path);
	CHECK_INT(model_delete(&w->zk, path), 0);
	world_run(w);
	CHECK(world_holds(w, next));
	world_restart(w);
	CHECK_INT(zkl_manager_live(w->worker.m), 1);
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, next));
	world_wind_up(w);
}

/*
 * The node of a waiter is deleted, and the next one not yet made: a restarted
 * worker does not take it for one that is still in the queue.
 */
static void
restart_with_a_vanished_waiter(void)
{
	World	   *w = world_make();
	char		other[ZKL_MAX_PATH + 1];
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	waiter;

	w->config.batches_in_flight = 1;
	world_begin(w);
	world_connect(w);
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	waiter = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(world_waits(w, waiter));
	(void) world_submit(w, "/b", 2, ZKL_EXCLUSIVE);
	world_path(w, waiter, path);
	CHECK_INT(model_delete(&w->zk, path), 0);
	run_until(w, &w->requests[waiter].record.going);
	world_restart(w);
	world_connect(w);
	world_run(w);
	CHECK(world_waits(w, waiter) && !w->requests[waiter].record.going);
	CHECK_INT(world_nodes(w, "/a"), 1);
	foreign_leave_all(w, "/a");
	world_run(w);
	CHECK(world_holds(w, waiter));
	world_wind_up(w);
}

/*
 * The time of a hold is over, but its holder is in its commit check, so the znode
 * stays.  If somebody deletes it, the next worker finds no hold.
 */
static void
overdue_node_deleted(void)
{
	World	   *w = world_ready();
	uint32_t	overdue = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	char		path[ZKL_MAX_PATH + 1];

	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	w->requests[overdue].state = SLOT_LOST;
	w->requests[overdue].overdue = w->requests[overdue].quiet =
		w->requests[overdue].taken = true;
	w->tampered = true;
	world_path(w, overdue, path);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, next));
	world_disconnect(w);
	world_restart(w);
	CHECK(zkl_check_all(w->worker.m) == NULL);
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, next));
	world_wind_up(w);
}

/*
 * The znode of a hold whose time is over is deleted, and the next session has the
 * lock, when the holder comes to its commit check, where it finds the loss.  The
 * next worker does not take the two for holders.
 */
static void
overdue_and_next_held(void)
{
	World	   *w = world_ready();
	uint32_t	overdue = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);

	world_run(w);
	world_overdue(w, overdue);
	world_run(w);
	CHECK(world_holds(w, next));
	w->requests[overdue].quiet = w->requests[overdue].taken = true;
	world_disconnect(w);
	world_restart(w);
	CHECK(zkl_check_all(w->worker.m) == NULL);
	CHECK_INT(zkl_manager_live(w->worker.m), 1);
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, next));
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(restart_with_a_vanished_waiter);
	RUN(restart_amid_a_break);
	RUN(restart_amid_a_break_of_a_kept_hold);
	RUN(restart_amid_the_end_of_a_kept_hold);
	RUN(asks_amid_a_break);
	RUN(restart_with_a_deleted_broken_hold);
	RUN(restart_with_a_broken_waiter);
	RUN(restart_with_a_broken_kept_lock);
	RUN(restart);
	RUN(restart_with_a_released_hold);
	RUN(restart_without_session);
	RUN(restart_without_the_node);
	RUN(overdue_node_deleted);
	RUN(overdue_and_next_held);
	return unit_finish();
}
