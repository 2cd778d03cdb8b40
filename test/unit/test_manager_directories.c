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
set_counter(uint32_t counter)
{
	tree_find(WORLD_ROOT "/a")->counter = (int32_t) counter;
}

static bool
has_no_number(const World *w, uint32_t r)
{
	return w->requests[r].state == SLOT_FAILED &&
		w->requests[r].failure == ZKL_FAILURE_NO_NUMBER;
}

/* A request fails for want of a number, and is released. */
static void
fail_without_number(World *w, uint64_t owner)
{
	uint32_t	r = world_submit(w, "/a", owner, ZKL_EXCLUSIVE);

	world_run(w);
	CHECK(has_no_number(w, r));
	world_release(w, r);
	world_run(w);
}

/* A request gets the first number of a directory that has begun anew. */
static void
begin_anew(World *w, uint64_t owner)
{
	uint32_t	r = world_submit(w, "/a", owner, ZKL_EXCLUSIVE);

	world_run(w);
	CHECK(world_holds(w, r));
	CHECK_INT(w->requests[r].record.seq, 0);
	world_release(w, r);
	world_run(w);
}

/* The first has the last good number; its end is that of the directory. */
static void
sequence_limit(void)
{
	World	   *w = world_ready();
	uint32_t	r[3];
	uint32_t	i;
	int			creates;

	world_warm_up(w, "/a");
	set_counter(ZKL_SEQ_LIMIT - 1);
	for (i = 0; i < 3; i++)
		r[i] = world_submit(w, "/a", i, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r[0]));
	CHECK_INT(w->requests[r[0]].record.seq, ZKL_SEQ_LIMIT - 1);
	CHECK_INT(world_nodes(w, "/a"), 1);
	CHECK(has_no_number(w, r[1]) && has_no_number(w, r[2]));

	/* While it is here, no others need to be created. */
	creates = tree_find(WORLD_ROOT "/a")->counter;
	fail_without_number(w, 4);
	CHECK_INT(tree_find(WORLD_ROOT "/a")->counter, creates);
	CHECK(world_holds(w, r[0]));
	world_release(w, r[0]);
	world_run(w);
	CHECK(tree_find(WORLD_ROOT "/a") == NULL);
	begin_anew(w, 5);
	world_wind_up(w);
}

/* The counter is past its end, with strangers inside: they leave first. */
static void
sequence_past_its_end(void)
{
	static const uint32_t counters[] = {
		0x7FFFFFFF, 0x80000000, 0xFFFFFFFE
	};
	size_t		i;

	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
	{
		World	   *w = world_ready();
		char		other[ZKL_MAX_PATH + 1];

		foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
		set_counter(counters[i]);
		fail_without_number(w, 1);
		CHECK_INT(world_nodes(w, "/a"), 0);
		CHECK(tree_find(other) != NULL);
		CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
		fail_without_number(w, 2);
		CHECK(tree_find(WORLD_ROOT "/a") == NULL);
		begin_anew(w, 3);
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
	uint32_t	r;

	foreign_enter(w, "/a", ZKL_SHARED, before);
	set_counter(ZKL_SEQ_LIMIT);
	fail_without_number(w, 1);
	CHECK_INT(model_delete(&w->zk, before), ZKL_RC_OK);
	CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a"), ZKL_RC_OK);
	foreign_enter(w, "/a", ZKL_SHARED, other);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, r));
	foreign_leave_all(w, "/a");
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/*
 * One of our nodes lands in the new directory while another request fails in the old
 * one.  What its owner asks for on top waits behind the others there.
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
	set_counter(ZKL_SEQ_LIMIT);
	first = world_submit(w, "/a", 1, ZKL_SHARED);
	world_serve(w, INT32_MAX);
	holder = world_submit(w, "/a", 2, ZKL_SHARED);
	w->tampered = true;
	CHECK_INT(model_delete(&w->zk, tree_newest()->text), ZKL_RC_OK);
	CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a"), ZKL_RC_OK);
	foreign_enter(w, "/a", ZKL_SHARED, other);
	world_serve(w, INT32_MAX);
	world_deliver(w, INT32_MAX);
	CHECK(has_no_number(w, first));
	CHECK_INT(w->requests[holder].record.seq, 1);
	upgrade = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, holder));
	CHECK(world_waits(w, upgrade));
	foreign_leave_all(w, "/a");
	world_run(w);
	CHECK(world_holds(w, upgrade));
	world_wind_up(w);
}

/* Shared to exclusive, when the counter is at its end: the hold stays. */
static void
sequence_limit_at_upgrade(void)
{
	World	   *w = world_ready();
	uint32_t	holder = world_submit(w, "/a", 1, ZKL_SHARED);

	world_run(w);
	set_counter(ZKL_SEQ_LIMIT);
	fail_without_number(w, 1);
	fail_without_number(w, 1);
	CHECK(world_holds(w, holder));
	world_release(w, holder);
	world_run(w);
	CHECK(tree_find(WORLD_ROOT "/a") == NULL);
	begin_anew(w, 1);
	world_wind_up(w);
}

/* The answer to the directory's delete is lost, or refuses it: others go on. */
static void
sequence_limit_unanswered(void)
{
	World	   *w = world_ready();
	uint32_t	r;

	world_warm_up(w, "/a");
	model_mkdir(&w->zk, WORLD_ROOT "/a/left");
	set_counter(ZKL_SEQ_LIMIT);
	fail_without_number(w, 1);
	fail_without_number(w, 2);
	CHECK_INT(tree_find(WORLD_ROOT "/a")->counter, (int32_t) ZKL_SEQ_LIMIT + 2);
	CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a/left"), ZKL_RC_OK);
	r = world_submit(w, "/a", 3, ZKL_EXCLUSIVE);
	while (tree_find(WORLD_ROOT "/a") != NULL)
	{
		world_serve(w, INT32_MAX);
		if (tree_find(WORLD_ROOT "/a") != NULL)
			world_deliver(w, INT32_MAX);
	}
	CHECK(has_no_number(w, r));
	world_release(w, r);
	world_disconnect(w);
	world_connect(w);
	begin_anew(w, 4);
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
	RUN(sequence_limit_unanswered);
	return unit_finish();
}
