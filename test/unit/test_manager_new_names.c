/*
 * test_manager_new_names.c
 *	  Scenarios of names that were not used before: a directory that is made on a guess,
 *	  and those that are deleted again.
 */
#include "core/state.h"
#include "unit.h"
#include "world.h"

#define SESSION_TIMEOUT	(WORLD_TIMEOUT_MS * 1000LL)

static bool
is_there(const char *directory)
{
	return tree_find(directory) != NULL;
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

/* The first name under a parent is met as missing: so the next one probably is. */
static World *
world_with_parent(void)
{
	World	   *w = world_ready();

	pass(w, "/new/first");
	world_count_anew(w);
	return w;
}

/* Nothing is sent behind the container and the create, and nothing is awaited. */
static void
next_name_takes_one_round_trip(void)
{
	World	   *w = world_with_parent();
	uint32_t	r = world_submit(w, "/new/second", 1, ZKL_EXCLUSIVE);

	world_serve(w, INT32_MAX);
	world_deliver(w, INT32_MAX);
	CHECK(world_holds(w, r));
	CHECK_INT(w->zk.counts.containers, 1);
	CHECK_INT(w->zk.counts.multis, 1);
	CHECK_INT(w->zk.counts.failed_multis, 0);
	CHECK_INT(w->zk.counts.lists + w->zk.counts.gets, 0);
	world_release(w, r);
	world_run(w);
	CHECK_INT(w->zk.counts.multis, 2);
	CHECK_INT(w->zk.counts.lists, 0);
	world_wind_up(w);
}

/* So does a try, which need not look first. */
static void
try_of_a_new_name_takes_one_round_trip(void)
{
	World	   *w = world_with_parent();
	uint32_t	r = world_try(w, "/new/second", 1, ZKL_EXCLUSIVE);

	world_serve(w, INT32_MAX);
	world_deliver(w, INT32_MAX);
	CHECK(world_holds(w, r));
	CHECK_INT(w->zk.counts.lists, 0);
	world_wind_up(w);
}

/* The directory is there, and another client in it: its number tells. */
static void
wrong_guess_waits_for_a_holder(void)
{
	World	   *w = world_with_parent();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;

	foreign_enter(w, "/new/second", ZKL_EXCLUSIVE, other);
	r = world_submit(w, "/new/second", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, r));
	foreign_leave_all(w, "/new/second");
	world_run(w);
	CHECK(world_holds(w, r));
	world_release(w, r);
	world_run(w);

	/* The next one is looked for first. */
	world_count_anew(w);
	r = world_submit(w, "/new/third", 1, ZKL_EXCLUSIVE);
	world_serve(w, INT32_MAX);
	CHECK_INT(w->zk.counts.containers, 0);
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/* The parent is gone, too: all levels are made. */
static void
parent_is_missing(void)
{
	World	   *w = world_with_parent();
	uint32_t	r;

	CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/new/first"), ZKL_RC_OK);
	CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/new"), ZKL_RC_OK);
	r = world_submit(w, "/new/second", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/*
 * Neither of two directories may be made, as their parent is somebody's.  That one of them
 * is missing says nothing of the other one.
 */
static void
guesses_are_refused(void)
{
	World	   *w = world_with_parent();
	uint32_t	missing,
				there;

	model_mkdir(&w->zk, WORLD_ROOT "/new/there");
	w->zk.single_rc = ZKL_RC_NOAUTH;
	w->zk.single_kind = ZKL_SEND_CREATE_CONTAINER;
	w->zk.single_path = WORLD_ROOT "/new/";
	w->zk.singles = 2;
	missing = world_enter(w, "/new/missing", 1, ZKL_EXCLUSIVE, false);
	there = world_enter(w, "/new/there", 1, ZKL_EXCLUSIVE, false);
	world_flush(w);
	world_run(w);
	CHECK(w->requests[missing].state == SLOT_FAILED);
	CHECK_INT(w->requests[missing].failure, ZKL_FAILURE_PARENTS);
	CHECK(world_holds(w, there));
	world_wind_up(w);
}

/* What the lost answer said is found out by a listing, which shows the other client. */
static void
lost_answer_grants_nothing(void)
{
	World	   *w = world_with_parent();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r = world_submit(w, "/new/second", 1, ZKL_EXCLUSIVE);

	world_disconnect(w);
	foreign_enter(w, "/new/second", ZKL_EXCLUSIVE, other);
	world_connect(w);
	world_run(w);
	CHECK(world_waits(w, r));
	foreign_leave_all(w, "/new/second");
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/* In one transaction, once they were not used for the session timeout */
static void
directories_go_again(void)
{
	World	   *w = world_with_parent();
	uint32_t	multis;

	pass(w, "/new/second");
	multis = w->zk.counts.multis;
	world_sleep(w, SESSION_TIMEOUT * 9 / 10);
	CHECK(is_there(WORLD_ROOT "/new/first"));
	CHECK(is_there(WORLD_ROOT "/new/second"));
	world_sleep(w, SESSION_TIMEOUT / 5);
	world_run(w);
	CHECK(!is_there(WORLD_ROOT "/new/first"));
	CHECK(!is_there(WORLD_ROOT "/new/second"));
	CHECK(is_there(WORLD_ROOT "/new"));
	CHECK(w->zk.counts.multis - multis <= 2);

	/* Which is the cheapest that a name can be. */
	world_count_anew(w);
	pass(w, "/new/second");
	CHECK_INT(w->zk.counts.failed_multis, 0);
	CHECK_INT(w->zk.counts.containers, 1);
	world_wind_up(w);
}

/* Somebody is in some of them: after one refusal, the others go all the same. */
static void
directory_in_use_stays(void)
{
	World	   *w = world_with_parent();
	char		other[ZKL_MAX_PATH + 1];

	pass(w, "/new/second");
	pass(w, "/new/third");
	pass(w, "/new/fourth");
	foreign_enter(w, "/new/second", ZKL_EXCLUSIVE, other);
	foreign_enter(w, "/new/third", ZKL_EXCLUSIVE, other);
	world_sleep(w, SESSION_TIMEOUT * 2);
	world_run(w);
	CHECK(!is_there(WORLD_ROOT "/new/first"));
	CHECK(is_there(WORLD_ROOT "/new/second"));
	CHECK(is_there(WORLD_ROOT "/new/third"));
	CHECK(!is_there(WORLD_ROOT "/new/fourth"));
	CHECK_INT(w->zk.counts.failed_multis, 1);
	foreign_leave_all(w, "/new/second");
	foreign_leave_all(w, "/new/third");
	world_wind_up(w);
}

/* Those of others stay. */
static void
directories_of_others_stay(void)
{
	World	   *w = world_with_parent();
	char		other[ZKL_MAX_PATH + 1];

	model_mkdir(&w->zk, WORLD_ROOT "/new/theirs");
	pass(w, "/new/theirs");
	foreign_enter(w, "/new/common", ZKL_SHARED, other);
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	pass(w, "/new/common");
	world_sleep(w, SESSION_TIMEOUT * 2);
	world_run(w);
	CHECK(!is_there(WORLD_ROOT "/new/first"));
	CHECK(is_there(WORLD_ROOT "/new/theirs"));
	CHECK(is_there(WORLD_ROOT "/new/common"));
	world_wind_up(w);
}

/* Another client was met by a look, and by nothing else. */
static void
directory_in_which_a_try_met_somebody(void)
{
	World	   *w = world_with_parent();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;

	foreign_enter(w, "/new/first", ZKL_EXCLUSIVE, other);
	r = world_try(w, "/new/first", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(!world_holds(w, r) && !world_waits(w, r));
	world_release(w, r);
	world_run(w);
	foreign_leave_all(w, "/new/first");
	world_sleep(w, SESSION_TIMEOUT * 2);
	world_run(w);
	CHECK(is_there(WORLD_ROOT "/new/first"));
	world_wind_up(w);
}

/* It went while its lock was remembered, and then another client made it. */
static void
directory_that_another_one_has_made_since(void)
{
	World	   *w = world_with_parent();
	uint32_t	multis;

	pass(w, "/new/first");
	pass(w, "/new/first");
	CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/new/first"), ZKL_RC_OK);
	model_mkdir(&w->zk, WORLD_ROOT "/new/first");
	world_run(w);
	multis = w->zk.counts.multis;
	world_sleep(w, SESSION_TIMEOUT * 2);
	world_run(w);
	CHECK(is_there(WORLD_ROOT "/new/first"));
	CHECK_INT(w->zk.counts.multis, multis);
	world_wind_up(w);
}

static void
one_round_trip(World *w)
{
	world_serve(w, INT32_MAX);
	world_deliver(w, INT32_MAX);
}

/* Each is refused, and takes a round trip: what is remembered has an end all the same. */
static void
directories_that_cannot_be_deleted(void)
{
	World	   *w = world_with_parent();
	char		path[128];
	uint32_t	requests[32];
	int			round,
				i;

	for (round = 0; round < 100; round++)
	{
		for (i = 0; i < 32; i++)
		{
			snprintf(path, sizeof(path), WORLD_ROOT "/new/%d.%d", round, i);
			requests[i] = world_submit(w, path + strlen(WORLD_ROOT), 1, ZKL_EXCLUSIVE);
		}
		one_round_trip(w);
		one_round_trip(w);
		for (i = 0; i < 32; i++)
		{
			CHECK(world_holds(w, requests[i]));
			snprintf(path, sizeof(path), WORLD_ROOT "/new/%d.%d/below", round, i);
			model_mkdir(&w->zk, path);
			world_release(w, requests[i]);
		}
		one_round_trip(w);
		one_round_trip(w);
	}
	CHECK(w->worker.m->directories.nleft <= 2 * ZKL_MAX_LEFT);
	world_run(w);
	world_wind_up(w);
}

/* A name that comes back in time keeps its directory, for as long as it is used. */
static void
name_that_comes_back(void)
{
	World	   *w = world_with_parent();
	int			i;

	for (i = 0; i < 4; i++)
	{
		world_sleep(w, SESSION_TIMEOUT * 2 / 3);
		pass(w, "/new/first");
		CHECK_INT(w->zk.counts.containers, 0);
	}
	world_sleep(w, SESSION_TIMEOUT * 2 / 3);
	CHECK(is_there(WORLD_ROOT "/new/first"));
	world_wind_up(w);
}

/* More than are remembered: the first ones go at once. */
static void
too_many_directories(void)
{
	World	   *w = world_with_parent();
	char		name[64];
	int			i;

	for (i = 0; i < ZKL_MAX_LEFT + 8; i++)
	{
		snprintf(name, sizeof(name), "/new/%d", i);
		pass(w, name);
	}
	CHECK(!is_there(WORLD_ROOT "/new/first"));
	CHECK(!is_there(WORLD_ROOT "/new/0"));
	CHECK(is_there(WORLD_ROOT "/new/1000"));
	CHECK_INT(w->zk.counts.failed_multis, 0);
	CHECK_INT(w->zk.counts.containers, ZKL_MAX_LEFT + 8);
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(next_name_takes_one_round_trip);
	RUN(try_of_a_new_name_takes_one_round_trip);
	RUN(wrong_guess_waits_for_a_holder);
	RUN(parent_is_missing);
	RUN(guesses_are_refused);
	RUN(lost_answer_grants_nothing);
	RUN(directories_go_again);
	RUN(directory_in_use_stays);
	RUN(directories_of_others_stay);
	RUN(directory_in_which_a_try_met_somebody);
	RUN(directory_that_another_one_has_made_since);
	RUN(directories_that_cannot_be_deleted);
	RUN(name_that_comes_back);
	RUN(too_many_directories);
	return unit_finish();
}
