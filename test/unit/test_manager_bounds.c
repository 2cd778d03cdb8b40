/*
 * test_manager_bounds.c
 *	  Holds whose time is over, and locks that are kept after their release.
 */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "world.h"

#define MINUTE	(60 * 1000000LL)

static uint32_t
hold(World *w, uint64_t owner, ZklLockMode mode)
{
	uint32_t	r = world_submit(w, "/a", owner, mode);

	world_run(w);
	CHECK(world_holds(w, r));
	return r;
}

/* Its time is over: the next one gets it; it is freed after the release. */
static void
overdue(void)
{
	World	   *w = world_ready();
	uint32_t	r = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);

	world_run(w);
	CHECK(world_waits(w, next));
	world_overdue(w, r);
	world_run(w);
	CHECK(world_holds(w, next));
	CHECK_INT(world_nodes(w, "/a"), 1);
	CHECK_INT(w->losses, 0);
	world_overdue(w, r);
	CHECK(w->requests[r].state != SLOT_FREE);
	world_release(w, r);
	CHECK(w->requests[r].state == SLOT_FREE);
	world_overdue(w, r);
	CHECK(world_holds(w, next));
	world_wind_up(w);
}

/* Whoever shares the node goes on with it, whichever of them is overdue. */
static void
overdue_siblings(void)
{
	int			which;

	for (which = 0; which < 2; which++)
	{
		World	   *w = world_ready();
		uint32_t	both[2];
		uint32_t	next;

		both[0] = hold(w, 1, ZKL_EXCLUSIVE);
		both[1] = hold(w, 1, ZKL_SHARED);
		next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
		world_run(w);
		world_overdue(w, both[which]);
		world_run(w);
		CHECK(world_holds(w, both[1 - which]));
		CHECK(world_waits(w, next));
		world_overdue(w, both[1 - which]);
		world_run(w);
		CHECK(world_holds(w, next));
		world_wind_up(w);
	}
}

/* The hold that a demand names is overdue by then: it finds the others. */
static void
overdue_sibling_named(void)
{
	World	   *w = world_ready();
	uint32_t	first = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	second = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	uint32_t	third = 9;
	Slot	   *r;

	world_run(w);
	world_overdue(w, first);
	r = world_fill(w, third, "/a", 1, ZKL_EXCLUSIVE);
	r->sibling = (int) first;
	worker_look(&w->worker, third);
	world_flush(w);
	CHECK(world_holds(w, second) && world_holds(w, third));
	CHECK(world_waits(w, next));
	world_wind_up(w);
}

/* Kept, it is in everybody's way, until its time is over. */
static void
kept(void)
{
	World	   *w = world_ready();
	uint32_t	r = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	other = world_submit(w, "/a", 2, ZKL_SHARED);
	uint32_t	again;
	uint32_t	try;

	world_run(w);
	world_keep(w, r, MINUTE);
	again = world_submit(w, "/a", 1, ZKL_SHARED);
	try = world_try(w, "/a", 1, ZKL_SHARED);
	world_run(w);
	CHECK(world_waits(w, other) && world_waits(w, again));
	CHECK(w->requests[try].state == SLOT_DENIED);
	CHECK(w->requests[r].record.disowned);
	world_release(w, try);
	world_sleep(w, MINUTE - 1000);
	CHECK(world_waits(w, other) && world_waits(w, again));
	CHECK_INT(world_nodes(w, "/a"), 3);
	world_check(w);
	world_sleep(w, 2000);
	CHECK(world_holds(w, other) && world_holds(w, again));
	CHECK(w->requests[r].state == SLOT_FREE);
	CHECK_INT(w->losses, 0);
	world_wind_up(w);
}

/* until: on the host's clock; -1: it is cancelled */
static void
renew(World *w, uint32_t request, int64_t until)
{
	w->requests[request].renewal = until;
	worker_look(&w->worker, (int) request);
	world_flush(w);
	world_run(w);
}

/* A kept lock is kept for longer, or less long, or no longer, as is asked for in time. */
static void
renewed(void)
{
	World	   *w = world_ready();
	uint32_t	first = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	other = world_submit(w, "/b", 1, ZKL_EXCLUSIVE);
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	uint32_t	last = world_submit(w, "/a", 3, ZKL_EXCLUSIVE);

	world_run(w);
	world_keep(w, first, MINUTE);
	world_keep(w, other, 2 * MINUTE);
	renew(w, first, w->worker.now + 3 * MINUTE);
	world_sleep(w, 2 * MINUTE + 2000);
	CHECK(world_keeps(w, first) && w->requests[other].state == SLOT_FREE);
	CHECK(world_waits(w, next));
	renew(w, first, w->worker.now + 1000);
	world_sleep(w, 2000);
	CHECK(world_holds(w, next));
	world_keep(w, next, MINUTE);
	w->worker.now += MINUTE;
	renew(w, next, w->worker.now + MINUTE);
	CHECK(world_holds(w, last));
	world_keep(w, last, MINUTE);
	renew(w, last, -1);
	CHECK(w->requests[last].state == SLOT_FREE);
	CHECK_INT(w->losses, 0);
	world_wind_up(w);
}

/* One is renewed beyond the end of another, which ends at its time all the same. */
static void
renewed_beyond_another(void)
{
	World	   *w = world_ready();
	uint32_t	first = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	other = world_submit(w, "/b", 2, ZKL_EXCLUSIVE);

	world_run(w);
	world_keep(w, first, MINUTE);
	world_keep(w, other, 2 * MINUTE);
	renew(w, first, w->worker.now + 3 * MINUTE);
	world_sleep(w, 2 * MINUTE + 1000);
	CHECK(world_keeps(w, first) && w->requests[other].state == SLOT_FREE);
	renew(w, first, -1);
	world_wind_up(w);
}

/* Several, of different ends; and what comes when it is over already. */
static void
kept_in_order(void)
{
	static const int64_t ends[] = {3, 1, 2, 5, 4};
	World	   *w = world_ready();
	uint32_t	r[5];
	int			i;

	for (i = 0; i < 5; i++)
		r[i] = hold(w, (uint64_t) i + 1, ZKL_SHARED);
	for (i = 0; i < 5; i++)
		world_keep(w, r[i], ends[i] * MINUTE);
	world_sleep(w, MINUTE / 2);
	for (i = 1; i <= 5; i++)
	{
		CHECK_INT(world_nodes(w, "/a"), (uint32_t) (6 - i));
		world_sleep(w, MINUTE);
	}
	CHECK_INT(world_nodes(w, "/a"), 0);
	r[0] = hold(w, 1, ZKL_EXCLUSIVE);
	world_keep(w, r[0], 0);
	world_run(w);
	CHECK(w->requests[r[0]].state == SLOT_FREE);
	world_wind_up(w);
}

/* As long as its owner holds the lock otherwise, it is still his. */
static void
kept_beside_a_hold(void)
{
	World	   *w = world_ready();
	uint32_t	reader = hold(w, 1, ZKL_SHARED);
	uint32_t	writer = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	again;

	CHECK_INT(world_nodes(w, "/a"), 2);
	world_keep(w, reader, 2 * MINUTE);
	CHECK(!w->requests[reader].record.disowned);
	CHECK(world_holds(w, hold(w, 1, ZKL_EXCLUSIVE)));
	world_leave(w, writer + 1);
	world_keep(w, writer, MINUTE);
	world_run(w);
	CHECK(w->requests[reader].record.disowned && w->requests[writer].record.disowned);
	again = world_submit(w, "/a", 1, ZKL_SHARED);
	world_run(w);
	CHECK(world_waits(w, again));
	world_sleep(w, MINUTE);
	CHECK(world_holds(w, again));
	world_wind_up(w);
}

/* One that leans on another hold's node, which stays for it */
static void
kept_under_cover(void)
{
	World	   *w = world_ready();
	uint32_t	r = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	covered = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);

	world_run(w);
	world_keep(w, covered, MINUTE);
	world_release(w, r);
	world_run(w);
	CHECK(world_keeps(w, covered));
	CHECK(world_waits(w, next));
	world_sleep(w, MINUTE);
	CHECK(world_holds(w, next));
	world_wind_up(w);
}

/* What ends it early; nobody is told, for there is nobody. */
static void
kept_and_gone(void)
{
	int			how;

	for (how = 0; how < 3; how++)
	{
		World	   *w = world_ready();
		char		path[ZKL_MAX_PATH + 1];
		uint32_t	r = hold(w, 1, ZKL_EXCLUSIVE);
		uint32_t	covered = hold(w, 1, ZKL_SHARED);
		uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);

		world_sleep(w, 2 * WORLD_BEAT);
		world_keep(w, r, MINUTE);
		world_keep(w, covered, 2 * MINUTE);
		world_run(w);
		w->tampered = true;
		world_path(w, r, path);
		if (how == 0)
			CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
		else if (how == 1)
			CHECK_INT(model_set(&w->zk, path, WORLD_BREAK), ZKL_RC_OK);
		else
		{
			world_expire_session(w);
			world_connect(w);
		}
		world_run(w);
		CHECK_MSG(world_holds(w, next), "how %d", how);
		CHECK(w->requests[r].state == SLOT_FREE && w->requests[covered].state == SLOT_FREE);
		CHECK_INT(w->losses, 0);
		world_wind_up(w);
	}
}

/*
 * It is broken, and its host says that somebody relies on it for a while: until then its
 * node stays, and it cannot be renewed.
 */
static void
kept_and_promised(void)
{
	World	   *w = world_ready();
	uint32_t	r = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	char		path[ZKL_MAX_PATH + 1];

	world_sleep(w, 2 * WORLD_BEAT);
	world_keep(w, r, MINUTE);
	w->requests[r].promised_until = w->worker.now + 2 * WORLD_BEAT;
	world_path(w, r, path);
	CHECK_INT(model_set(&w->zk, path, WORLD_BREAK), ZKL_RC_OK);
	world_run(w);
	CHECK(w->requests[r].kept_lost && !zkl_manager_keeps(w->worker.m, r));
	CHECK(world_waits(w, next));
	world_sleep(w, WORLD_BEAT);
	CHECK(world_waits(w, next));
	world_sleep(w, WORLD_BEAT);
	CHECK(world_holds(w, next));
	CHECK(w->requests[r].state == SLOT_FREE);
	world_wind_up(w);
}

/*
 * Likewise, and the broken node is that of another hold, which is released: it goes over
 * to the hold that somebody relies on.
 */
static void
promised_on_the_node_of_another(void)
{
	World	   *w = world_ready();
	uint32_t	first = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	kept = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);

	world_sleep(w, 2 * WORLD_BEAT);
	world_keep(w, kept, MINUTE);
	w->requests[kept].promised_until = w->worker.now + 2 * WORLD_BEAT;
	world_write(w, first, WORLD_BREAK);
	world_run(w);
	CHECK(w->requests[first].state == SLOT_LOST && w->requests[kept].kept_lost);
	world_release(w, first);
	world_run(w);
	CHECK(world_waits(w, next));
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(world_holds(w, next));
	CHECK(w->requests[kept].state == SLOT_FREE);
	world_wind_up(w);
}

/* It is lost with the worker, as any hold; what waits goes on, of its owner, too. */
static void
kept_over_a_restart(void)
{
	World	   *w = world_ready();
	uint32_t	r = hold(w, 1, ZKL_SHARED);
	uint32_t	reader;
	uint32_t	writer;

	world_keep(w, r, MINUTE);
	reader = hold(w, 1, ZKL_SHARED);
	writer = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	world_restart(w);
	CHECK(w->requests[r].state == SLOT_FREE && w->requests[reader].state == SLOT_LOST);
	CHECK(world_waits(w, writer));
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, writer));
	world_wind_up(w);
}

/*
 * One hold of an owner is kept, and another one is broken: whether or not that
 * is acknowledged, the owner waits for what is kept like everybody else.
 */
static void
kept_beside_a_broken_hold(void)
{
	World	   *w = world_ready();
	uint32_t	reader = hold(w, 1, ZKL_SHARED);
	uint32_t	writer = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	again;

	world_sleep(w, 2 * WORLD_BEAT);
	world_keep(w, writer, MINUTE);
	world_write(w, reader, WORLD_BREAK);
	world_run(w);
	CHECK(w->requests[reader].state == SLOT_LOST && world_keeps(w, writer));
	again = world_submit(w, "/a", 1, ZKL_SHARED);
	world_run(w);
	CHECK(world_waits(w, again));
	world_release(w, reader);
	world_run(w);
	CHECK(world_waits(w, again));
	world_sleep(w, MINUTE);
	CHECK(world_holds(w, again));
	world_wind_up(w);
}

/* What was not granted keeps nothing, nor what was lost. */
static void
nothing_to_keep(void)
{
	World	   *w = world_ready();
	uint32_t	r = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	waits = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	uint32_t	next;

	world_run(w);
	world_keep(w, waits, MINUTE);
	world_run(w);
	CHECK(w->requests[waits].state == SLOT_FREE);
	next = world_submit(w, "/a", 3, ZKL_EXCLUSIVE);
	world_run(w);
	world_overdue(w, r);
	world_keep(w, r, MINUTE);
	world_run(w);
	CHECK(w->requests[r].state == SLOT_FREE);
	CHECK(world_holds(w, next));
	world_wind_up(w);
}

/*
 * What its holder has left keeps everybody out until it is released, and so it
 * does him.
 */
static void
left_and_not_released(void)
{
	World	   *w = world_ready();
	uint32_t	r = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	again;

	w->requests[r].left = true;
	worker_tell(&w->worker, ZKL_EVENT(RELEASE,.request = r,.end.epilogue = true));
	world_flush(w);
	again = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, again));
	world_release(w, r);
	world_run(w);
	CHECK(world_holds(w, again));
	world_wind_up(w);
}

/* The same, if another hold, which was released, stays for that one */
static void
left_under_cover(void)
{
	World	   *w = world_ready();
	uint32_t	cover = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	r = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	again;

	world_release(w, cover);
	w->requests[r].left = true;
	worker_tell(&w->worker, ZKL_EVENT(RELEASE,.request = r,.end.epilogue = true));
	world_flush(w);
	again = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, again));
	world_release(w, r);
	world_run(w);
	CHECK(world_holds(w, again));
	world_wind_up(w);
}

static bool (*check_action) (Worker *w, const ZklAction *action);
static Slot *showing;			/* the znode, if none of the others does */

/* A worker that ends here leaves a slot that shows the znode. */
static bool
is_shown(Worker *w, const ZklAction *action)
{
	CHECK(action->kind != ZKL_ACTION_RECORD || action->record.sent ||
		  &w->slots[action->request] == showing || showing->record.sent);
	return check_action(w, action);
}

/* The time of the last hold is over for which another one stays. */
static void
overdue_under_cover(void)
{
	World	   *w = world_ready();
	uint32_t	cover = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	r = hold(w, 1, ZKL_EXCLUSIVE);

	world_release(w, cover);
	world_run(w);
	showing = &w->requests[cover];
	check_action = w->worker.before;
	w->worker.before = is_shown;
	world_overdue(w, r);
	world_run(w);
	w->worker.before = check_action;
	CHECK(!world_holds(w, r));
	world_release(w, r);
	world_run(w);
	world_wind_up(w);
}

/* Who names a hold that is over finds no cover in what is kept meanwhile. */
static void
kept_from_its_owner(void)
{
	World	   *w = world_ready();
	uint32_t	kept = hold(w, 1, ZKL_EXCLUSIVE);
	uint32_t	named = hold(w, 1, ZKL_SHARED);
	uint32_t	again = 9;
	Slot	   *r;

	world_keep(w, kept, MINUTE);
	world_overdue(w, named);
	world_run(w);
	r = world_fill(w, again, "/a", 1, ZKL_EXCLUSIVE);
	r->sibling = (int) named;
	worker_look(&w->worker, again);
	world_flush(w);
	world_run(w);
	CHECK(world_waits(w, again));
	world_sleep(w, 2 * MINUTE);
	CHECK(world_holds(w, again));
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(overdue);
	RUN(overdue_siblings);
	RUN(overdue_sibling_named);
	RUN(kept);
	RUN(renewed);
	RUN(renewed_beyond_another);
	RUN(kept_in_order);
	RUN(kept_beside_a_hold);
	RUN(kept_under_cover);
	RUN(kept_and_gone);
	RUN(kept_and_promised);
	RUN(promised_on_the_node_of_another);
	RUN(kept_over_a_restart);
	RUN(kept_beside_a_broken_hold);
	RUN(nothing_to_keep);
	RUN(left_and_not_released);
	RUN(left_under_cover);
	RUN(overdue_under_cover);
	RUN(kept_from_its_owner);
	return unit_finish();
}
