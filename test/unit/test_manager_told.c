/*
 * test_manager_told.c
 *	  The node of a hold that had to wait says for how long: it is written once, late,
 *	  and never over what others have written.
 */
#include <string.h>

#include "unit.h"
#include "world.h"

#define A_WHILE	(3 * 1000000LL)

static const Node *
node_of(const World *w, uint32_t r)
{
	char		path[ZKL_MAX_PATH + 1];

	world_path(w, r, path);
	return tree_find(path);
}

/* What the node of r tells, in ms; 0: nothing */
static int64_t
told(const World *w, uint32_t r)
{
	const Node *node = node_of(w, r);
	ZklNodeData data;

	CHECK(node != NULL);
	return zkl_node_data_parse(node->data, node->length, &data) ?
		data.waited_ms : 0;
}

static int32_t
version(const World *w, uint32_t r)
{
	return node_of(w, r)->stat.version;
}

/* A hold of /a by owner 2 that has just begun, after a wait */
static World *
after_a_wait(uint32_t *r)
{
	World	   *w = world_ready();
	uint32_t	first = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);

	world_run(w);
	*r = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	world_sleep(w, A_WHILE);
	CHECK(world_waits(w, *r));
	world_release(w, first);
	world_run(w);
	CHECK(world_holds(w, *r));
	return w;
}

/* Not at once, and no more than once */
static void
once_and_late(void)
{
	uint32_t	r;
	World	   *w = after_a_wait(&r);

	world_sleep(w, WORLD_BEAT / 2);
	CHECK_INT(version(w, r), 0);
	world_sleep(w, WORLD_BEAT);
	CHECK_INT(version(w, r), 1);
	CHECK(told(w, r) >= A_WHILE / 1000 && told(w, r) < A_WHILE / 1000 + 100);
	world_sleep(w, 10 * WORLD_BEAT);
	CHECK_INT(version(w, r), 1);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/* A hold that did not wait, and one that is over soon, cost nothing. */
static void
no_wait_and_no_time(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint64_t	operations;

	world_run(w);
	world_sleep(w, 10 * WORLD_BEAT);
	CHECK_INT(version(w, r), 0);
	world_wind_up(w);

	w = after_a_wait(&r);
	world_sleep(w, WORLD_BEAT / 2);
	world_count_anew(w);
	world_release(w, r);
	world_run(w);
	operations = w->zk.counts.multis;
	CHECK(operations <= 1);
	world_wind_up(w);
}

/*
 * Somebody asks the holder to give the lock up before the write is due: the holder is
 * told, once, and then the node is written.
 */
static void
asked_meanwhile(void)
{
	uint32_t	r;
	World	   *w = after_a_wait(&r);

	world_write(w, r, "{\"revoke\":\"b\",\"zklock\":1}");
	world_sleep(w, 3 * WORLD_BEAT);
	CHECK_INT(w->requests[r].asked, 1);
	CHECK_STR(w->asker, "b");
	CHECK(told(w, r) >= A_WHILE / 1000);
	CHECK_INT(version(w, r), 2);
	world_disconnect(w);
	world_connect(w);
	world_sleep(w, 3 * WORLD_BEAT);
	CHECK_INT(w->requests[r].asked, 1);
	CHECK_INT(version(w, r), 2);
	world_wind_up(w);
}

/*
 * Who is asked has the node of a hold that is only kept.  That node is written, and the
 * answer is lost, or comes when the kept hold is over: nobody is told twice.
 */
static void
asked_beside_a_kept_hold(void)
{
	int			lost;

	for (lost = 0; lost < 2; lost++)
	{
		uint32_t	r;
		World	   *w = after_a_wait(&r);
		uint32_t	other = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);

		world_keep(w, r, 2 * WORLD_BEAT);
		world_write(w, r, "{\"revoke\":\"b\",\"zklock\":1}");
		world_run(w);
		CHECK_INT(w->requests[other].asked, 1);
		CHECK_INT(version(w, r), 1);
		for (w->worker.now += WORLD_BEAT; version(w, r) == 1; world_serve(w, 100))
		{
			world_flush(w);
			world_deliver(w, 100);
		}
		w->worker.now += WORLD_BEAT;
		if (lost)
		{
			world_disconnect(w);
			world_connect(w);
		}
		world_flush(w);
		world_sleep(w, 3 * WORLD_BEAT);
		CHECK(world_holds(w, other));
		CHECK_INT(w->requests[other].asked, 1);
		world_wind_up(w);
	}
}

/* An operator breaks the lock: the mark stays. */
static void
broken_meanwhile(void)
{
	uint32_t	r;
	World	   *w = after_a_wait(&r);

	world_write(w, r, "{\"breaking\":true,\"zklock\":1}");
	world_sleep(w, 3 * WORLD_BEAT);
	CHECK(w->requests[r].state == SLOT_LOST);
	CHECK_INT(version(w, r), 1);
	world_wind_up(w);
}

/* The connection breaks with the write under way: it is done, or done again. */
static void
answer_lost(void)
{
	int			applied;

	for (applied = 0; applied < 2; applied++)
	{
		uint32_t	r;
		World	   *w = after_a_wait(&r);

		w->worker.now += WORLD_BEAT;
		world_flush(w);
		if (applied)
			world_serve(w, 100);
		CHECK_INT(version(w, r), applied);
		world_disconnect(w);
		world_connect(w);
		world_sleep(w, 3 * WORLD_BEAT);
		CHECK(told(w, r) >= A_WHILE / 1000);
		CHECK_INT(version(w, r), 1);
		CHECK(world_holds(w, r));
		world_wind_up(w);
	}
}

/* ZooKeeper refuses it for now. */
static void
refused(void)
{
	uint32_t	r;
	World	   *w = after_a_wait(&r);

	world_sleep(w, WORLD_BEAT / 2);
	w->zk.multi_rc = MODEL_THROTTLED;
	world_sleep(w, WORLD_BEAT);
	w->zk.multi_rc = ZKL_RC_OK;
	world_sleep(w, 3 * WORLD_BEAT);
	CHECK(told(w, r) >= A_WHILE / 1000);
	world_wind_up(w);
}

/*
 * The node no longer says that its lock may be cached.  The write of that is under way
 * when the lock is granted, and does not tell the wait.
 */
static World *
granted_during_a_write(uint32_t *r)
{
	World	   *w = world_ready();
	int			i;

	world_warm_up(w, "/a");
	w->plain = true;
	worker_cache(&w->worker, 10 * 1000000LL);
	for (i = 0; i < 2; i++)
	{
		*r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		world_release(w, *r);
		world_run(w);
	}
	*r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_flush(w);
	world_serve(w, 100);
	world_disconnect(w);
	w->worker.now += A_WHILE;
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, *r));
	CHECK_INT(version(w, *r), 1);
	CHECK_INT(told(w, *r), 0);
	return w;
}

/* A later write tells it. */
static void
told_by_another_write(void)
{
	uint32_t	r;
	World	   *w = granted_during_a_write(&r);

	world_sleep(w, 3 * WORLD_BEAT);
	CHECK_INT(version(w, r), 2);
	CHECK(told(w, r) >= A_WHILE / 1000);
	world_wind_up(w);
}

/* Data of others is left alone, which says nothing of the wait. */
static void
written_by_others(void)
{
	uint32_t	r;
	World	   *w = after_a_wait(&r);

	world_sleep(w, 3 * WORLD_BEAT);
	world_write(w, r, "{}");
	world_disconnect(w);
	world_connect(w);
	world_sleep(w, 3 * WORLD_BEAT);
	CHECK(world_holds(w, r));
	CHECK_INT(version(w, r), 2);
	CHECK_INT(told(w, r), 0);
	world_wind_up(w);
}

/*
 * Another hold of the same session leans on the node, which goes on to say how long
 * the session has waited for the lock; as a reader's, too, which has data of its own.
 */
static void
stays_for_another_hold(void)
{
	ZklLockMode mode;

	for (mode = ZKL_EXCLUSIVE; mode <= ZKL_SHARED; mode++)
	{
		uint32_t	r;
		World	   *w = after_a_wait(&r);
		uint32_t	other = world_submit(w, "/a", 2, mode);

		CHECK(world_holds(w, other));
		world_release(w, r);
		world_sleep(w, 5 * WORLD_BEAT);
		CHECK(world_holds(w, other));
		CHECK_INT(told(w, other), 3000);
		CHECK_INT(version(w, other), mode == ZKL_EXCLUSIVE ? 1 : 0);
		world_wind_up(w);
	}
}

int
main(void)
{
	unit_start();
	RUN(once_and_late);
	RUN(no_wait_and_no_time);
	RUN(asked_meanwhile);
	RUN(asked_beside_a_kept_hold);
	RUN(broken_meanwhile);
	RUN(answer_lost);
	RUN(refused);
	RUN(told_by_another_write);
	RUN(written_by_others);
	RUN(stays_for_another_hold);
	return unit_finish();
}
