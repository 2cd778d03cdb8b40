/*
 * test_manager_failures.c
 *	  Scenarios in which ZooKeeper refuses, or its answer is lost.
 */
#include <stdio.h>

#include "unit.h"
#include "world.h"

/* ---- missing parents, failing operations ---- */

/* 256 names at once, no directory there: few rounds, never one per name. */
static void
parents_of_256_names(void)
{
	World	   *w = world_make();
	uint32_t	r[256];
	int			i;

	w->config.max_requests = 300;
	world_begin(w);
	world_connect(w);
	world_run(w);
	world_warm_up(w, "/known");
	world_count_anew(w);
	for (i = 0; i < 256; i++)
	{
		char		name[32];

		snprintf(name, sizeof(name), "/%d/%d/x", i % 16, i);
		r[i] = world_enter(w, name, (uint64_t) i, ZKL_EXCLUSIVE, false);
	}
	world_flush(w);
	world_run(w);
	for (i = 0; i < 256; i++)
		CHECK(world_holds(w, r[i]));

	/* 256 and the beat do not fit into one batch: at most 3 rounds of two */
	CHECK_MSG(w->zk.counts.failed_multis <= 3 && w->zk.counts.multis <= 6,
			  "%u batches, %u failed", w->zk.counts.multis,
			  w->zk.counts.failed_multis);
	world_wind_up(w);
}

/* A directory that is reaped under our feet is made again. */
static void
reaped_directory(void)
{
	World	   *w = world_ready();
	uint32_t	r;
	int			i;

	for (i = 0; i < 3; i++)
	{
		world_warm_up(w, "/a/b");
		CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a/b"), ZKL_RC_OK);
		if (i == 1)
			CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a"), ZKL_RC_OK);
		if (i == 2)
			world_run(w);
		r = world_submit(w, "/a/b", 1, ZKL_EXCLUSIVE);
		world_run(w);
		CHECK(world_holds(w, r));
		CHECK_INT(w->requests[r].record.seq, 0);
		world_release(w, r);
		world_run(w);
	}
	world_wind_up(w);
}

/*
 * It was reaped and made again by others, who hold, and its counter stands
 * where ours would go on: the directory's watch tells.
 */
static void
recreated_directory(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;

	world_warm_up(w, "/a");
	CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a"), ZKL_RC_OK);
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, r));
	CHECK_INT(w->requests[r].record.seq, 2);
	foreign_leave_all(w, "/a");
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/*
 * What a request leaves behind must not trouble the next of its number.  Each
 * of the many that are listed is looked up by its unique id.
 */
static void
use_number_again(World *w, uint32_t r)
{
	char		other[ZKL_MAX_PATH + 1];
	int			i;

	world_release(w, r);
	world_run(w);
	for (i = 0; i < 400; i++)
		foreign_zklock(w, "/other", ZKL_SHARED, "{}", other);
	for (i = 0; i < 3; i++)
	{
		CHECK_INT(world_submit(w, "/other", 1, ZKL_SHARED), r);
		world_run(w);
		CHECK(world_holds(w, r));
		world_release(w, r);
		world_run(w);
	}
}

/* Parents that cannot be made end in a failure, not in a loop. */
static void
parents_refused(void)
{
	World	   *w = world_ready();
	uint32_t	r;

	w->zk.no_write = "/a/b";
	r = world_submit(w, "/a/b", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(w->requests[r].state == SLOT_FAILED);
	CHECK_INT(w->requests[r].failure, ZKL_FAILURE_PARENTS);
	CHECK_INT(w->requests[r].rc, ZKL_RC_NOAUTH);
	CHECK(w->zk.counts.containers < 20);
	use_number_again(w, r);
	world_wind_up(w);
}

/*
 * With two batches under way the first fails for a missing directory, the
 * second by its version: both are sent again, in order.
 */
static void
refused_batches_keep_their_order(void)
{
	World	   *w = world_ready();
	uint32_t	r[6];
	int			i;

	world_warm_up(w, "/a");
	r[0] = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	r[1] = world_enter(w, "/new", 2, ZKL_EXCLUSIVE, false);
	r[2] = world_enter(w, "/a", 3, ZKL_EXCLUSIVE, false);
	world_flush(w);
	world_serve(w, INT32_MAX);
	for (i = 3; i < 6; i++)
		r[i] = world_submit(w, "/a", (uint64_t) i + 1, ZKL_EXCLUSIVE);
	world_run(w);
	for (i = 0; i < 6; i++)
	{
		if (i != 1)
			CHECK_INT(w->requests[r[i]].record.seq - w->requests[r[0]].record.seq,
					  i == 0 ? 0 : i - 1);
	}
	CHECK(world_holds(w, r[0]) && world_holds(w, r[1]));
	CHECK_INT(world_nodes(w, "/a"), 5);
	world_wind_up(w);
}

/* A lock that is refused again and again costs the others no lease. */
static void
refused_for_long(void)
{
	World	   *w = world_ready();
	uint32_t	holder;
	int			i;

	w->zk.no_write = "/b/";
	model_mkdir(&w->zk, WORLD_ROOT "/b");
	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	for (i = 0; i < 20; i++)
	{
		uint32_t	r;

		world_sleep(w, WORLD_BEAT / 2);
		CHECK(zkl_manager_lease(w->worker.m) > w->worker.now);
		r = world_submit(w, "/b", 2, ZKL_EXCLUSIVE);
		world_run(w);
		CHECK(w->requests[r].state == SLOT_FAILED);
		world_release(w, r);
		world_run(w);
	}
	CHECK(world_holds(w, holder));
	world_release(w, holder);
	world_wind_up(w);
}

/*
 * The same, if the next one is always there when ZooKeeper refuses one: the beat goes
 * alone.
 */
static void
refused_without_a_pause(void)
{
	World	   *w = world_make();
	uint32_t	refused[2];
	uint32_t	holder;
	int			i;

	w->config.batches_in_flight = 1;
	world_begin(w);
	world_connect(w);
	w->zk.no_write = "/b";
	model_mkdir(&w->zk, WORLD_ROOT "/b0");
	model_mkdir(&w->zk, WORLD_ROOT "/b1");
	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	refused[0] = world_submit(w, "/b0", 2, ZKL_EXCLUSIVE);
	for (i = 1; i < 40; i++)
	{
		refused[i % 2] = world_submit(w, i % 2 ? "/b1" : "/b0", 2, ZKL_EXCLUSIVE);
		while (world_waits(w, refused[1 - i % 2]))
		{
			w->worker.now += WORLD_BEAT / 4;
			world_serve(w, INT32_MAX);
			world_deliver(w, INT32_MAX);
		}
		CHECK(w->requests[refused[1 - i % 2]].state == SLOT_FAILED);
		CHECK(zkl_manager_lease(w->worker.m) > w->worker.now);
		world_release(w, refused[1 - i % 2]);
	}
	CHECK(world_holds(w, holder));
	world_wind_up(w);
}

/* A create that ZooKeeper refuses fails alone. */
static void
create_refused(void)
{
	World	   *w = world_ready();
	uint32_t	refused;
	uint32_t	good;

	world_warm_up(w, "/a");
	w->zk.no_write = "/b/";
	model_mkdir(&w->zk, WORLD_ROOT "/b");
	refused = world_enter(w, "/b", 1, ZKL_EXCLUSIVE, false);
	good = world_enter(w, "/a", 1, ZKL_EXCLUSIVE, false);
	world_flush(w);
	world_run(w);
	CHECK(world_holds(w, good));
	CHECK(w->requests[refused].state == SLOT_FAILED);
	CHECK_INT(w->requests[refused].failure, ZKL_FAILURE_ZOOKEEPER);
	CHECK_INT(w->requests[refused].rc, ZKL_RC_NOAUTH);
	use_number_again(w, refused);
	world_wind_up(w);
}

/* A delete that ZooKeeper refuses is tried again, and holds up nobody here. */
static void
delete_refused(void)
{
	World	   *w = world_ready();
	uint32_t	first = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	uint32_t	other = world_submit(w, "/b", 1, ZKL_EXCLUSIVE);

	world_run(w);
	w->zk.no_write = "/a/";
	world_leave(w, other);
	world_release(w, first);
	world_run(w);
	CHECK(world_holds(w, next));
	CHECK(w->requests[first].state != SLOT_FREE);
	CHECK(w->requests[other].state == SLOT_FREE);
	world_count_anew(w);
	world_sleep(w, 3000000);
	CHECK(w->zk.counts.failed_multis + w->zk.counts.multis < 10);
	w->zk.no_write = NULL;
	world_sleep(w, 3000000);
	CHECK(w->requests[first].state == SLOT_FREE);
	CHECK_INT(world_nodes(w, "/a"), 1);
	world_wind_up(w);
}

/* A listing or watch that ZooKeeper refuses fails the request that needs it. */
static void
read_refused(void)
{
	int			watch;

	for (watch = 0; watch < 2; watch++)
	{
		World	   *w = world_ready();
		char		other[ZKL_MAX_PATH + 1];
		uint32_t	r;

		foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
		w->zk.no_read = watch ? "/a/" : "/a";
		r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		CHECK(w->requests[r].state == SLOT_FAILED);
		CHECK_INT(w->requests[r].failure, ZKL_FAILURE_ZOOKEEPER);
		CHECK_INT(w->requests[r].rc, ZKL_RC_NOAUTH);
		use_number_again(w, r);
		world_wind_up(w);
	}
}

/* A delete of a node that is gone does not take the batch's rest with it. */
static void
delete_of_a_missing_node(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	r[3];
	int			i;

	for (i = 0; i < 3; i++)
	{
		char		lock[16];

		snprintf(lock, sizeof(lock), "/%d", i);
		r[i] = world_submit(w, lock, 1, ZKL_EXCLUSIVE);
	}
	world_run(w);
	w->tampered = true;
	world_path(w, r[1], path);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	for (i = 0; i < 3; i++)
		world_leave(w, r[i]);
	world_flush(w);
	world_run(w);
	for (i = 0; i < 3; i++)
		CHECK(w->requests[r[i]].state == SLOT_FREE);
	world_wind_up(w);
}

/* ---- lost replies ---- */

/* The connection breaks with creates under way, executed or not. */
static void
lost_replies(void)
{
	int			served;

	for (served = 0; served < 6; served++)
	{
		World	   *w = world_ready();
		char		other[ZKL_MAX_PATH + 1];
		uint32_t	r[4];
		int			applied;
		int			i;

		world_warm_up(w, "/a");
		foreign_enter(w, "/a", ZKL_SHARED, other);
		for (i = 0; i < 4; i++)
			r[i] = world_submit(w, "/a", (uint64_t) i, ZKL_EXCLUSIVE);
		world_serve(w, served);
		applied = (int) world_nodes(w, "/a");
		world_disconnect(w);
		CHECK(!zkl_manager_ready(w->worker.m));
		CHECK_INT(w->grants, 3);
		world_connect(w);
		world_run(w);
		CHECK_INT(world_nodes(w, "/a"), 4);
		CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
		world_run(w);
		CHECK_INT(w->grants, 4);

		/* what was applied stays as it is, the rest has new names */
		for (i = 0; i < 4; i++)
			CHECK(w->requests[r[i]].znodes == 1 || i >= applied);
		world_check(w);
		world_wind_up(w);
	}
}

/* Those cancelled meanwhile leave no node behind. */
static void
lost_replies_and_cancels(void)
{
	int			served;

	for (served = 0; served < 3; served++)
	{
		World	   *w = world_ready();
		uint32_t	r[4];
		int			i;

		world_warm_up(w, "/a");
		for (i = 0; i < 4; i++)
			r[i] = world_submit(w, "/a", (uint64_t) i, ZKL_SHARED);
		world_serve(w, served);
		world_disconnect(w);
		world_release(w, r[0]);
		world_release(w, r[3]);
		world_connect(w);
		world_run(w);
		CHECK(world_holds(w, r[1]) && world_holds(w, r[2]));
		CHECK_INT(world_nodes(w, "/a"), 2);
		world_wind_up(w);
	}
}

/* The whole multi comes back with a result that tells nothing. */
static void
unknown_results(void)
{
	static const int32_t rcs[] = {-2, -4, -5, -7, -112, -116, -118};
	size_t		i;
	int			applied;

	for (i = 0; i < sizeof(rcs) / sizeof(rcs[0]); i++)
		for (applied = 0; applied < 2; applied++)
		{
			World	   *w = world_ready();
			uint32_t	r;

			world_warm_up(w, "/a");
			w->zk.multi_rc = rcs[i];
			w->zk.multi_applied = applied;
			r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
			world_run(w);
			CHECK_MSG(world_holds(w, r), "rc %d", (int) rcs[i]);
			CHECK_INT(world_nodes(w, "/a"), 1);
			world_wind_up(w);
		}
}

/* Reads, and the creates of directories, are told that the session is over. */
static void
answers_about_the_session(void)
{
	static const int32_t rcs[] = {-112, -115, -116, -118};
	static const ZklSendKind kinds[] = {ZKL_SEND_LIST, ZKL_SEND_GET,
	ZKL_SEND_CREATE_CONTAINER};
	size_t		i;

	for (i = 0; i < 3 * 4; i++)
	{
		World	   *w = world_ready();
		char		other[ZKL_MAX_PATH + 1];
		uint32_t	r;

		world_warm_up(w, "/a");
		foreign_zklock(w, "/a", ZKL_SHARED, "{}", other);
		w->zk.single_kind = kinds[i / 4];
		w->zk.single_rc = rcs[i % 4];
		w->zk.single_path = i / 4 == 2 ? "/new" : "/a";
		w->zk.singles = 3;
		r = world_submit(w, i / 4 == 2 ? "/new" : "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		world_sleep(w, 20000000);
		CHECK_MSG(w->zk.singles == 0, "answered, case %zu", i);
		if (i / 4 != 2)
		{
			CHECK_MSG(w->requests[r].state == SLOT_WAITING, "case %zu", i);
			foreign_leave_all(w, "/a");
			world_run(w);
		}
		CHECK_MSG(world_holds(w, r), "case %zu", i);
		world_wind_up(w);
	}
}

/* Its number is known from a listing, its token may not be read: it fails. */
static void
token_refused(void)
{
	World	   *w = world_ready();
	uint32_t	r;

	world_warm_up(w, "/a");
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_serve(w, 1);
	world_disconnect(w);
	w->zk.no_read = "/a/";
	world_connect(w);
	world_run(w);
	CHECK(w->requests[r].state == SLOT_FAILED);
	CHECK_INT(w->requests[r].rc, ZKL_RC_NOAUTH);
	use_number_again(w, r);
	world_wind_up(w);
}

/* Its directory is refused to us, and then made by somebody else. */
static uint32_t
hold_in_a_refused_directory(World *w, const char *name, const char *directory)
{
	uint32_t	r = world_submit(w, name, 1, ZKL_EXCLUSIVE);

	w->zk.single_rc = ZKL_RC_NOAUTH;
	w->zk.single_kind = ZKL_SEND_CREATE_CONTAINER;
	w->zk.single_path = directory;
	while (w->zk.single_rc != 0 &&
		   CHECK(w->conn.inbox != NULL || w->conn.outbox != NULL))
	{
		world_serve(w, 1);
		if (w->zk.single_rc != 0)
			world_deliver(w, 1);
	}
	model_mkdir(&w->zk, directory);
	world_run(w);
	CHECK(world_holds(w, r));
	return r;
}

/*
 * A directory is missing whose making was refused once: that says nothing of
 * another one with that history.
 */
static void
another_directory_refused(void)
{
	World	   *w = world_ready();
	uint32_t	gone = hold_in_a_refused_directory(w, "/a", WORLD_ROOT "/a");
	uint32_t	held = hold_in_a_refused_directory(w, "/b/d",
												   WORLD_ROOT "/b/d");
	uint32_t	both[2];

	world_release(w, gone);
	world_run(w);
	CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a"), 0);
	both[0] = world_enter(w, "/a", 2, ZKL_EXCLUSIVE, false);
	both[1] = world_enter(w, "/b/d", 2, ZKL_EXCLUSIVE, false);
	world_flush(w);
	world_run(w);
	CHECK(world_holds(w, held));
	CHECK(world_holds(w, both[0]) && world_waits(w, both[1]));
	CHECK_INT(w->losses, 0);
	world_wind_up(w);
}

/*
 * A heartbeat node whose making was in doubt is to be deleted, but that is
 * refused: it is tried again, also on the same connection.
 */
static void
sweep_refused(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	chain = world_chain(w);

	world_run(w);
	world_heartbeat(w, chain + 1, path);

	/* The answer to a beat is lost, and so is that to the next chain. */
	w->zk.multi_rc = ZKL_RC_UNKNOWN;
	w->worker.now += WORLD_BEAT + 1000;
	world_flush(w);
	world_serve(w, INT32_MAX);
	world_deliver(w, INT32_MAX);
	w->zk.multi_rc = ZKL_RC_UNKNOWN;
	w->zk.multi_applied = true;
	w->zk.single_rc = MODEL_THROTTLED;
	w->zk.single_kind = ZKL_SEND_DELETE;
	w->zk.single_path = path;
	world_run(w);
	CHECK_INT(w->zk.single_rc, 0);
	CHECK(world_chain(w) > chain + 1);
	CHECK(tree_find(path) != NULL);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(tree_find(path) == NULL);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/* Releases whose answer is lost are settled as well. */
static void
lost_deletes(void)
{
	int			served;

	for (served = 0; served < 2; served++)
	{
		World	   *w = world_ready();
		uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);

		world_run(w);
		world_release(w, r);
		world_serve(w, served);
		world_disconnect(w);
		CHECK(w->requests[r].state != SLOT_FREE);
		world_connect(w);
		world_run(w);
		CHECK(w->requests[r].state == SLOT_FREE);
		CHECK_INT(world_nodes(w, "/a"), 0);
		world_wind_up(w);
	}
}

/* Somebody deletes our heartbeat node: a new chain, nothing is lost. */
static void
heartbeat_node_deleted(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	chain;

	world_run(w);
	chain = world_chain(w);
	world_heartbeat(w, chain, path);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	world_release(w, r);
	r = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_chain(w) > chain);
	CHECK(world_holds(w, r));
	CHECK_INT(w->losses, 0);
	CHECK_INT(world_nodes(w, "/a"), 1);
	CHECK_INT(world_nodes(w, "/.servers"), 1);
	world_wind_up(w);
}

/* The request of the latest batch does not get to the server. */
static uint64_t
take_latest(World *w)
{
	Request   **place = &w->conn.inbox;
	Request    *request;
	uint64_t	tag;

	while ((*place)->next != NULL)
		place = &(*place)->next;
	request = *place;
	CHECK(request->kind == REQUEST_WRITE && !request->single);
	tag = request->tag;
	*place = NULL;
	w->conn.inbox_end = place;
	message_free_request(request);
	return tag;
}

/* ZooKeeper's client refuses to send a batch: its answer overtakes that before it. */
static void
refused_by_client(void)
{
	static const int32_t codes[] = {-5, -8};
	size_t		i;

	for (i = 0; i < 2; i++)
	{
		World	   *w = world_ready();
		ZklMultiResult results[] = {{.rc = codes[i]}, {.rc = -2}};
		Frame		refusal = {
			.reply = {.rc = codes[i],.results = results,.nresults = 2}
		};
		uint32_t	first,
					second;

		world_warm_up(w, "/a");
		world_warm_up(w, "/b");
		first = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		second = world_submit(w, "/b", 2, ZKL_EXCLUSIVE);
		refusal.tag = take_latest(w);
		worker_deliver(&w->worker, &refusal);
		world_flush(w);
		world_run(w);
		CHECK(world_holds(w, first) && world_holds(w, second));
		world_wind_up(w);
	}
}

int
main(void)
{
	unit_start();
	RUN(parents_of_256_names);
	RUN(reaped_directory);
	RUN(recreated_directory);
	RUN(parents_refused);
	RUN(refused_batches_keep_their_order);
	RUN(refused_for_long);
	RUN(refused_without_a_pause);
	RUN(create_refused);
	RUN(delete_refused);
	RUN(read_refused);
	RUN(delete_of_a_missing_node);
	RUN(lost_replies);
	RUN(lost_replies_and_cancels);
	RUN(unknown_results);
	RUN(answers_about_the_session);
	RUN(token_refused);
	RUN(another_directory_refused);
	RUN(sweep_refused);
	RUN(lost_deletes);
	RUN(heartbeat_node_deleted);
	RUN(refused_by_client);
	return unit_finish();
}
