/*
 * test_manager_directories.c
 *	  Scenarios of directories that somebody deletes, and of the counter's end.
 */
#include "unit.h"
#include "world.h"

/*
 * The directory was deleted with our holder's node in it, before anything was
 * watched, and made again: our next create tells by its number.
 */
static void
directory_deleted_with_a_holder(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	holder;
	uint32_t	next;

	world_warm_up(w, "/a");
	holder = world_submit(w, "/a", 1, ZKL_SHARED);
	world_run(w);
	w->tampered = true;
	world_path(w, holder, path);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a"), ZKL_RC_OK);
	model_mkdir(&w->zk, WORLD_ROOT "/a");
	next = world_submit(w, "/a", 2, ZKL_SHARED);
	world_run(w);
	CHECK(w->requests[holder].state == SLOT_LOST);
	CHECK(world_holds(w, next));
	world_wind_up(w);
}

/*
 * The directory was made again between our create and the watch behind it, and
 * its counter stands where ours would go on: its czxid tells.
 */
static void
directory_made_again_before_the_watch(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	first;
	uint32_t	next;

	w->tampered = true;
	foreign_enter(w, "/a", ZKL_SHARED, other);
	first = world_submit(w, "/a", 1, ZKL_SHARED);
	world_serve(w, 2);
	CHECK_INT(world_nodes(w, "/a"), 1);
	CHECK_INT(w->zk.counts.lists, 1);
	CHECK_INT(model_delete(&w->zk, tree_newest()->text), ZKL_RC_OK);
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a"), ZKL_RC_OK);
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	world_serve(w, INT32_MAX);
	world_deliver(w, INT32_MAX);
	next = world_enter(w, "/a", 2, ZKL_SHARED, false);
	world_release(w, first);
	world_run(w);
	CHECK(!world_holds(w, next));
	CHECK_INT(w->requests[next].record.seq, 2);
	foreign_leave_all(w, "/a");
	world_run(w);
	CHECK(world_holds(w, next));
	world_wind_up(w);
}

/* Another client comes to the directory, and leaves again. */
static void
foreign_visit(World *w, const char *name)
{
	char		created[ZKL_MAX_PATH + 1];

	foreign_enter(w, name, ZKL_EXCLUSIVE, created);
	CHECK_INT(model_delete(&w->zk, created), ZKL_RC_OK);
}

/* A request gets the lock, and lets it go. */
static void
pass(World *w, const char *name)
{
	uint32_t	r = world_submit(w, name, 1, ZKL_EXCLUSIVE);

	world_run(w);
	CHECK(world_holds(w, r));
	world_release(w, r);
	world_run(w);
}

/*
 * Others came before our last create: the listing that the next one needs, if they
 * came again, goes along with it.  Once they did not, it does so no more.
 */
static void
listing_goes_with_the_create(void)
{
	World	   *w = world_ready();
	int			lists;
	uint32_t	r;

	world_warm_up(w, "/a");
	lists = w->zk.counts.lists;
	foreign_visit(w, "/a");
	pass(w, "/a");
	CHECK_INT(w->zk.counts.lists, lists + 1);
	foreign_visit(w, "/a");
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_serve(w, INT32_MAX);
	CHECK_INT(w->zk.counts.lists, lists + 2);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK_INT(w->zk.counts.lists, lists + 2);
	world_release(w, r);
	world_run(w);
	pass(w, "/a");
	CHECK_INT(w->zk.counts.lists, lists + 3);
	pass(w, "/a");
	CHECK_INT(w->zk.counts.lists, lists + 3);
	world_wind_up(w);
}

/* ---- the end of the counter ---- */

static void
sequence_limit(void)
{
	World	   *w = world_ready();
	uint32_t	r[3];
	uint32_t	i;

	world_warm_up(w, "/a");
	tree_find(WORLD_ROOT "/a")->counter = (int32_t) (ZKL_SEQ_LIMIT - 1);
	for (i = 0; i < 3; i++)
		r[i] = world_submit(w, "/a", i, ZKL_EXCLUSIVE);
	world_run(w);

	/* the first has the last good number; the others wait for a new start */
	CHECK(world_holds(w, r[0]));
	CHECK_INT(w->requests[r[0]].record.seq, ZKL_SEQ_LIMIT - 1);
	CHECK_INT(world_nodes(w, "/a"), 1);
	CHECK(world_waits(w, r[1]) && world_waits(w, r[2]));
	world_release(w, r[0]);
	world_run(w);
	CHECK(world_holds(w, r[1]));
	CHECK_INT(w->requests[r[1]].record.seq, 0);
	world_release(w, r[1]);
	world_run(w);
	CHECK(world_holds(w, r[2]));
	world_wind_up(w);
}

/* The counter is past its end, with strangers inside: they leave first. */
static void
sequence_past_its_end(void)
{
	static const uint32_t counters[] = {
		0x7FFFFFFF, 0x80000000, 0xFFFFFFFF
	};
	size_t		i;

	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
	{
		World	   *w = world_ready();
		char		other[ZKL_MAX_PATH + 1];
		uint32_t	r;

		foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
		tree_find(WORLD_ROOT "/a")->counter = counters[i];
		r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		CHECK(world_waits(w, r));
		CHECK_INT(world_nodes(w, "/a"), 0);
		CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
		world_run(w);
		CHECK(world_holds(w, r));
		CHECK_INT(w->requests[r].record.seq, 0);
		world_wind_up(w);
	}
}

/* Another server makes the directory anew, and it does not empty again. */
static void
sequence_begun_by_another(void)
{
	World	   *w = world_ready();
	char		before[ZKL_MAX_PATH + 1];
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r[2];
	uint32_t	i;

	foreign_enter(w, "/a", ZKL_SHARED, before);
	tree_find(WORLD_ROOT "/a")->counter = (int32_t) ZKL_SEQ_LIMIT;
	for (i = 0; i < 2; i++)
	{
		r[i] = world_submit(w, "/a", i, i == 0 ? ZKL_EXCLUSIVE : ZKL_SHARED);
		world_run(w);
		CHECK(world_waits(w, r[i]));
	}
	CHECK_INT(world_nodes(w, "/a"), 0);
	CHECK_INT(model_delete(&w->zk, before), ZKL_RC_OK);
	CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a"), ZKL_RC_OK);
	foreign_enter(w, "/a", ZKL_SHARED, other);
	world_run(w);
	CHECK_INT(world_nodes(w, "/a"), 2);
	CHECK(world_waits(w, r[0]) && world_waits(w, r[1]));
	foreign_leave_all(w, "/a");
	world_run(w);
	CHECK(world_holds(w, r[0]));
	world_wind_up(w);
}

/*
 * One of our nodes lands in the new directory while another request waits for
 * the end of the old one.  What its owner asks for on top waits behind the
 * others there.
 */
static void
sequence_begun_with_our_hold(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	first;
	uint32_t	holder;
	uint32_t	upgrade;

	world_warm_up(w, "/a");
	tree_find(WORLD_ROOT "/a")->counter = (int32_t) ZKL_SEQ_LIMIT;
	first = world_submit(w, "/a", 1, ZKL_SHARED);
	world_serve(w, INT32_MAX);
	holder = world_submit(w, "/a", 2, ZKL_SHARED);
	w->tampered = true;
	CHECK_INT(model_delete(&w->zk, tree_newest()->text), ZKL_RC_OK);
	CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a"), ZKL_RC_OK);
	foreign_enter(w, "/a", ZKL_SHARED, other);
	world_serve(w, INT32_MAX);
	world_deliver(w, INT32_MAX);
	CHECK_INT(w->requests[holder].record.seq, 1);
	upgrade = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, holder));
	CHECK(world_waits(w, upgrade) && world_waits(w, first));
	foreign_leave_all(w, "/a");
	world_run(w);
	CHECK(world_holds(w, upgrade));
	world_wind_up(w);
}

/*
 * Shared to exclusive, when the counter is at its end: the directory cannot begin anew
 * while the session itself has a znode in it.
 */
static void
sequence_limit_at_upgrade(void)
{
	World	   *w = world_ready();
	uint32_t	holder = world_submit(w, "/a", 1, ZKL_SHARED);
	uint32_t	upgrade;
	int			i;

	world_run(w);
	CHECK(world_holds(w, holder));
	tree_find(WORLD_ROOT "/a")->counter = (int32_t) ZKL_SEQ_LIMIT;

	/* The first one has a number, the second one is parked from the start. */
	(void) world_submit(w, "/a", 2, ZKL_SHARED);
	for (i = 0; i < 2; i++)
	{
		upgrade = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		CHECK_INT(w->requests[upgrade].state, SLOT_FAILED);
		CHECK_INT(w->requests[upgrade].failure, ZKL_FAILURE_DEADLOCK);
		CHECK(world_holds(w, holder));
		world_release(w, upgrade);
		world_run(w);
	}
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(directory_deleted_with_a_holder);
	RUN(directory_made_again_before_the_watch);
	RUN(listing_goes_with_the_create);
	RUN(sequence_limit);
	RUN(sequence_past_its_end);
	RUN(sequence_begun_by_another);
	RUN(sequence_begun_with_our_hold);
	RUN(sequence_limit_at_upgrade);
	return unit_finish();
}
