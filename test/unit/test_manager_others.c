/*
 * test_manager_others.c
 *	  Scenarios with contenders of other servers and clients: what is listed
 *	  and watched, how often, and what is believed.
 */
#include "unit.h"
#include "world.h"

/* A try is denied only behind a contender that is seen to be alive. */
static void
try_behind_foreign_holder(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;

	world_warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_SHARED, other);
	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(w->requests[r].state == SLOT_DENIED);
	world_release(w, r);
	world_run(w);
	CHECK(w->requests[r].state == SLOT_FREE);

	/* the answer comes when the time is over, not before */
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, r));
	world_expire(w, r);
	world_run(w);
	CHECK(w->requests[r].state == SLOT_DENIED);
	CHECK_INT(world_nodes(w, "/a"), 0);
	world_wind_up(w);
}

/*
 * Others came in while our holder held: the listing that names them is made
 * once, when our next is first of ours, however often we look in between.
 */
static void
gap_means_one_listing(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	holder;
	uint32_t	next;
	uint32_t	last;

	world_warm_up(w, "/a");
	world_count_anew(w);
	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	foreign_enter(w, "/a", ZKL_SHARED, other);
	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	last = world_submit(w, "/a", 3, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK_INT(w->zk.counts.lists, 0);
	world_release(w, holder);
	world_expire(w, last);
	CHECK(w->requests[last].state == SLOT_DENIED);
	world_run(w);
	CHECK(!world_holds(w, next));
	CHECK_INT(w->zk.counts.lists, 1);
	CHECK_INT(w->zk.counts.gets, 1);
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, next));
	CHECK_INT(w->zk.counts.lists, 1);
	CHECK_INT(w->zk.counts.gets, 1);
	world_wind_up(w);
}

/* What parses as no contender counts for continuity and blocks nobody. */
static void
strange_children(void)
{
	World	   *w = world_ready();
	uint32_t	r;

	world_warm_up(w, "/a");
	CHECK_INT(model_create(&w->zk, WORLD_ROOT "/a/b", false, 0, "", NULL), 0);
	CHECK_INT(model_create(&w->zk, WORLD_ROOT "/a/x-lock-", true, 7, "", NULL),
			  0);
	world_count_anew(w);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK_INT(w->zk.counts.lists, 1);
	world_wind_up(w);
}

/*
 * A foreign child came between two creates of ours, of which the second is
 * gone when the listing comes: what follows must not forget the child.
 */
static void
listing_behind_a_cancelled_create(void)
{
	World	   *w = world_ready();
	char		first[ZKL_MAX_PATH + 1];
	char		second[ZKL_MAX_PATH + 1];
	uint32_t	one;
	uint32_t	two;
	uint32_t	three;

	world_warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_SHARED, first);
	one = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_serve(w, 1);
	foreign_enter(w, "/a", ZKL_SHARED, second);
	two = world_enter(w, "/a", 2, ZKL_EXCLUSIVE, false);
	world_flush(w);
	world_serve(w, 1);

	/* both creates are answered, the listing is on its way */
	world_deliver(w, 2);
	world_release(w, two);
	world_run(w);
	CHECK(world_waits(w, one));
	three = world_submit(w, "/a", 3, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK_INT(model_delete(&w->zk, first), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, one));
	world_release(w, one);
	world_run(w);
	CHECK(!world_holds(w, three));
	CHECK_INT(model_delete(&w->zk, second), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, three));
	world_wind_up(w);
}

/* A thousand wait behind one foreign holder: one watch, one listing. */
static void
thousand_waiters(void)
{
	World	   *w = world_make();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r[1000];
	int			i;

	w->config.max_requests = 1100;
	world_begin(w);
	world_connect(w);
	world_run(w);
	world_warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	world_count_anew(w);
	for (i = 0; i < 1000; i++)
		r[i] = world_enter(w, "/a", (uint64_t) i,
						   i < 500 ? ZKL_SHARED : ZKL_EXCLUSIVE, false);
	world_flush(w);
	world_run(w);
	CHECK_INT(w->zk.counts.creates, 1000);
	CHECK_INT(w->zk.counts.lists, 1);
	CHECK_INT(w->zk.counts.gets, 1);
	CHECK(w->zk.counts.multis <= 5);
	CHECK_INT(world_nodes(w, "/a"), 1000);
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	world_run(w);
	for (i = 0; i < 1000; i++)
	{
		CHECK_INT(world_holds(w, r[i]), i < 500);
		if (i < 500)
			world_leave(w, r[i]);
	}
	world_flush(w);
	world_run(w);

	/* one more listing, for the writer may have left a reader behind */
	CHECK(world_holds(w, r[500]));
	CHECK_INT(w->zk.counts.lists, 2);
	for (i = 500; i < 999; i++)
	{
		world_release(w, r[i]);
		CHECK(world_holds(w, r[i + 1]));
	}
	world_run(w);
	CHECK_INT(w->zk.counts.gets, 1);
	CHECK_INT(w->zk.counts.lists, 2);
	world_wind_up(w);
}

/*
 * Of ten foreign contenders ahead only the nearest is watched.  When it goes,
 * one listing tells of the others, whether they have gone before it or not.
 */
static void
long_foreign_queue(void)
{
	World	   *w = world_ready();
	char		others[10][ZKL_MAX_PATH + 1];
	uint32_t	r;
	int			left;
	int			i;

	for (left = 0; left < 2; left++)
	{
		world_warm_up(w, "/a");
		for (i = 0; i < 10; i++)
			foreign_zklock(w, "/a", ZKL_EXCLUSIVE, "{\"zklock\":1}",
						   others[i]);
		r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		for (i = left; i < 9; i++)
			CHECK_INT(model_delete(&w->zk, others[i]), ZKL_RC_OK);
		world_run(w);
		world_count_anew(w);
		CHECK_INT(model_delete(&w->zk, others[9]), ZKL_RC_OK);
		world_run(w);
		CHECK_INT(world_holds(w, r), left == 0);
		CHECK_INT(w->zk.counts.lists, 1);
		CHECK_INT(w->zk.counts.gets, left);
		if (left > 0)
			CHECK_INT(model_delete(&w->zk, others[0]), ZKL_RC_OK);
		world_run(w);
		CHECK(world_holds(w, r));
		CHECK_INT(w->zk.counts.lists, 1);
		world_release(w, r);
		world_run(w);
	}
	world_wind_up(w);
}

/*
 * Where two servers stand in a queue by turns, the next of theirs is behind the
 * one that has gone: it is watched at once.
 */
static void
queue_by_turns(void)
{
	World	   *w = world_ready();
	char		others[4][ZKL_MAX_PATH + 1];
	uint32_t	r[4];
	int			i;

	world_warm_up(w, "/a");
	for (i = 0; i < 4; i++)
	{
		foreign_zklock(w, "/a", ZKL_EXCLUSIVE, "{\"zklock\":1}", others[i]);
		r[i] = world_submit(w, "/a", (uint64_t) i, ZKL_EXCLUSIVE);
		world_run(w);
	}
	world_count_anew(w);
	for (i = 0; i < 4; i++)
	{
		CHECK_INT(model_delete(&w->zk, others[i]), ZKL_RC_OK);
		world_run(w);
		CHECK(world_holds(w, r[i]));
		world_release(w, r[i]);
		world_run(w);
		CHECK_INT(w->zk.counts.lists, 1);
	}
	CHECK_INT(w->zk.counts.gets, 3);
	world_wind_up(w);
}

/* Who waits no longer watches no longer. */
static void
watch_given_up(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;

	world_warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(tree_find(other)->data_watch);
	world_release(w, r);
	world_run(w);
	CHECK(!tree_find(other)->data_watch);
	world_wind_up(w);
}

/* No more directories are remembered, and watched, than the host allows. */
static void
directories_forgotten(void)
{
	World	   *w = world_make();
	const Path *node;
	int			watched = 0;
	int			i;

	w->config.max_directories = 5;
	world_begin(w);
	world_connect(w);
	world_run(w);
	for (i = 0; i < 20; i++)
	{
		char		name[16];

		snprintf(name, sizeof(name), "/%d", i);
		world_warm_up(w, name);
	}
	for (node = tree_newest(); node != NULL; node = node->all)
		watched += node->node[HEAD].data_watch != NULL;
	CHECK_INT(watched, 5);
	world_wind_up(w);
}

/*
 * A Curator writer that goes may leave a reader of its own number: nobody of
 * ours is exclusive before a listing has looked, hand-over included.
 */
static void
taint_after_foreign_writer(void)
{
	World	   *w = world_ready();
	char		writer[ZKL_MAX_PATH + 1];
	char		reader[ZKL_MAX_PATH + 1];
	uint32_t	shared;
	uint32_t	exclusive;

	world_warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, writer);
	shared = world_submit(w, "/a", 1, ZKL_SHARED);
	exclusive = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	foreign_downgrade(w, writer, reader);
	world_run(w);
	CHECK(world_holds(w, shared));
	world_count_anew(w);
	world_release(w, shared);
	CHECK(!world_holds(w, exclusive));
	world_run(w);
	CHECK(!world_holds(w, exclusive));
	CHECK_INT(w->zk.counts.lists, 1);
	CHECK_INT(model_delete(&w->zk, reader), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, exclusive));
	CHECK_INT(w->zk.counts.lists, 1);
	world_wind_up(w);
}

/* Exempt is a zklock writer that was not marked as downgrading. */
static void
no_taint_after_zklock_writer(void)
{
	static const char *const data[] = {
		"{\"zklock\":1,\"server\":\"b\"}",
		"{\"zklock\":1,\"downgrading\":true}"
	};
	int			marked;

	for (marked = 0; marked < 2; marked++)
	{
		World	   *w = world_ready();
		char		writer[ZKL_MAX_PATH + 1];
		uint32_t	r;

		world_warm_up(w, "/a");
		foreign_zklock(w, "/a", ZKL_EXCLUSIVE, data[marked], writer);
		r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		world_count_anew(w);
		CHECK_INT(model_delete(&w->zk, writer), ZKL_RC_OK);
		world_run(w);
		CHECK(world_holds(w, r));
		CHECK_INT(w->zk.counts.lists, marked);
		world_wind_up(w);
	}
}

/* A zklock writer that is marked later changes its data first: look again. */
static void
taint_after_late_mark(void)
{
	World	   *w = world_ready();
	char		writer[ZKL_MAX_PATH + 1];
	char		reader[ZKL_MAX_PATH + 1];
	uint32_t	r;

	world_warm_up(w, "/a");
	foreign_zklock(w, "/a", ZKL_EXCLUSIVE, "{\"zklock\":1}", writer);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK_INT(model_set(&w->zk, writer, "{\"zklock\":1,\"downgrading\":true}"),
			  ZKL_RC_OK);
	foreign_downgrade(w, writer, reader);
	world_run(w);
	CHECK(!world_holds(w, r));
	CHECK_INT(model_delete(&w->zk, reader), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/* What is told of a waiting request: the nearest one in its way, and its place. */
static void
nearest_ahead(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	ZklNearest	nearest;
	uint32_t	reader;
	uint32_t	second;
	uint32_t	writer;

	foreign_zklock(w, "/a", ZKL_EXCLUSIVE, "{\"zklock\":1}", other);
	reader = world_submit(w, "/a", 1, ZKL_SHARED);
	second = world_submit(w, "/a", 2, ZKL_SHARED);
	writer = world_submit(w, "/a", 3, ZKL_EXCLUSIVE);
	CHECK(!zkl_manager_nearest(w->worker.m, reader, &nearest));
	world_run(w);
	CHECK(zkl_manager_nearest(w->worker.m, reader, &nearest));
	CHECK_INT(nearest.nearest.request, -1);
	CHECK(strcmp(nearest.nearest.znode, strrchr(other, '/') + 1) == 0);
	CHECK(strcmp(nearest.first.znode, nearest.nearest.znode) == 0);
	CHECK_INT(nearest.place, 2);

	/* what the watch has read of it is known, and no longer than its name */
	CHECK(nearest.first.data != NULL);
	CHECK_INT(nearest.first.data_length, (int64_t) strlen("{\"zklock\":1}"));
	CHECK(memcmp(nearest.first.data, "{\"zklock\":1}", nearest.first.data_length) == 0);

	/* another reader is not in the way */
	CHECK(zkl_manager_nearest(w->worker.m, second, &nearest));
	CHECK_INT(nearest.nearest.request, -1);
	CHECK_INT(nearest.place, 3);
	CHECK(zkl_manager_nearest(w->worker.m, writer, &nearest));
	CHECK_INT(nearest.nearest.request, second);
	CHECK(strcmp(nearest.first.znode, strrchr(other, '/') + 1) == 0);
	CHECK_INT(nearest.place, 4);

	/* a holder is in no one's way to itself */
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, second) && world_waits(w, writer));
	CHECK(!zkl_manager_nearest(w->worker.m, second, &nearest));
	world_release(w, second);
	world_run(w);
	CHECK(zkl_manager_nearest(w->worker.m, writer, &nearest));
	CHECK_INT(nearest.nearest.request, reader);
	CHECK_INT(nearest.first.request, reader);
	CHECK_INT(nearest.place, 2);
	world_wind_up(w);
}

/*
 * A reader goes whose server holds the lock in its place: ZooKeeper has lost a
 * downgrade.  It has elected a leader and lost none of our writes, or it is restored
 * and has lost some of them.
 */
static void
lose_downgrade_of_others(bool elected)
{
	World	   *w = world_ready();
	char		heartbeat[ZKL_MAX_PATH + 1];
	char		writer[ZKL_MAX_PATH + 1];
	char		reader[ZKL_MAX_PATH + 1];
	uint32_t	r;

	world_warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, writer);
	foreign_downgrade(w, writer, reader);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, r));
	world_sleep(w, WORLD_BEAT);
	world_disconnect(w);
	CHECK_INT(model_delete(&w->zk, reader), ZKL_RC_OK);
	foreign_restore(w, writer);
	if (elected)
		w->zk.zxid += INT64_C(1) << 32;
	else
	{
		world_heartbeat(w, world_chain(w), heartbeat);
		tree_find(heartbeat)->stat.version--;
	}
	world_connect(w);
	world_run(w);
	CHECK_INT(w->lost_writes, !elected);
	CHECK(world_waits(w, r));
	CHECK_INT(model_delete(&w->zk, writer), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

static void
downgrade_of_others_lost(void)
{
	lose_downgrade_of_others(true);
	lose_downgrade_of_others(false);
}

int
main(void)
{
	unit_start();
	RUN(try_behind_foreign_holder);
	RUN(gap_means_one_listing);
	RUN(strange_children);
	RUN(listing_behind_a_cancelled_create);
	RUN(thousand_waiters);
	RUN(long_foreign_queue);
	RUN(queue_by_turns);
	RUN(watch_given_up);
	RUN(directories_forgotten);
	RUN(taint_after_foreign_writer);
	RUN(no_taint_after_zklock_writer);
	RUN(taint_after_late_mark);
	RUN(nearest_ahead);
	RUN(downgrade_of_others_lost);
	return unit_finish();
}
