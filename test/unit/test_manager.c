/*
 * test_manager.c
 *	  The whole core through manager.h, against a tiny ZooKeeper: one scenario
 *	  per function.  That nothing is granted wrongly is checked by
 *	  world_oracle.c all the while.
 *
 * Here: requests of one server among themselves, and upgrades.
 */
#include <stdio.h>

#include "unit.h"
#include "world.h"
#include "znode/znode.h"

/* ---- one server alone ---- */

/* The first acquire of a lock: parents are made, nothing needs a listing. */
static void
first_acquire(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/batch/nightly", 1, ZKL_EXCLUSIVE);

	world_run(w);
	CHECK(world_holds(w, r));
	CHECK_INT(w->requests[r].record.seq, 0);
	CHECK_INT(world_nodes(w, "/batch/nightly"), 1);
	world_release(w, r);
	world_run(w);
	CHECK(w->requests[r].state == SLOT_FREE);
	CHECK_INT(world_nodes(w, "/batch/nightly"), 0);
	world_wind_up(w);
}

/* In a known directory an acquire is one create: no read of any kind. */
static void
uncontended_in_known_directory(void)
{
	World	   *w = world_ready();
	int			i;

	world_warm_up(w, "/a");
	for (i = 0; i < 10; i++)
	{
		uint32_t	r;

		world_count_anew(w);
		r = world_submit(w, "/a", 1, i & 1 ? ZKL_SHARED : ZKL_EXCLUSIVE);
		world_run(w);
		CHECK(world_holds(w, r));
		CHECK_INT(w->zk.counts.creates, 1);
		CHECK_INT(w->zk.counts.multis, 1);
		CHECK_INT(w->zk.counts.gets, 0);
		CHECK_INT(w->zk.counts.lists, 0);
		world_release(w, r);
		world_run(w);
		CHECK_INT(w->zk.counts.multis, 2);
		CHECK_INT(w->zk.counts.unwatches, 0);
	}
	world_wind_up(w);
}

/*
 * A directory that others have used is listed, and watched from the second
 * visit on; then it is known.
 */
static void
unknown_directory(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	int			visit;

	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	for (visit = 1; visit <= 4; visit++)
	{
		uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);

		world_run(w);
		CHECK(world_holds(w, r));
		CHECK_INT(w->zk.counts.lists, visit < 2 ? 1 : 2);
		CHECK_INT(w->zk.counts.gets, visit < 2 ? 0 : 1);
		world_release(w, r);
		world_run(w);
	}
	world_wind_up(w);
}

/* The next in line is granted in the very flush of the release. */
static void
local_hand_over(void)
{
	World	   *w = world_ready();
	uint32_t	r[4];
	int			i;

	for (i = 0; i < 4; i++)
		r[i] = world_submit(w, "/a", (uint64_t) i, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r[0]));

	/* the second changes its mind: the third is next */
	world_leave(w, r[1]);
	world_release(w, r[0]);
	CHECK(world_holds(w, r[2]));
	CHECK_INT(world_nodes(w, "/a"), 4);
	CHECK(w->conn.outbox == NULL);
	world_run(w);
	CHECK_INT(world_nodes(w, "/a"), 2);
	world_release(w, r[2]);
	CHECK(world_holds(w, r[3]));
	world_wind_up(w);
}

/* Readers in a row are granted together when the writer goes. */
static void
readers_together(void)
{
	World	   *w = world_ready();
	uint32_t	r[6];
	int			i;

	for (i = 0; i < 6; i++)
		r[i] = world_submit(w, "/a", (uint64_t) i,
							i == 0 || i == 4 ? ZKL_EXCLUSIVE : ZKL_SHARED);
	world_run(w);
	CHECK(world_holds(w, r[0]) && !world_holds(w, r[1]));
	world_release(w, r[0]);
	CHECK(world_holds(w, r[1]) && world_holds(w, r[2]) &&
		  world_holds(w, r[3]));
	CHECK(!world_holds(w, r[4]) && !world_holds(w, r[5]));
	world_leave(w, r[1]);
	world_leave(w, r[2]);
	world_release(w, r[3]);
	CHECK(world_holds(w, r[4]) && !world_holds(w, r[5]));
	world_wind_up(w);
}

/* What is submitted together goes out together, one number after another. */
static void
group_commit(void)
{
	World	   *w = world_ready();
	uint32_t	r[40];
	char		name[16];
	int			i;

	for (i = 0; i < 40; i++)
	{
		snprintf(name, sizeof(name), "/a%d", i);
		world_warm_up(w, name);
	}
	world_count_anew(w);
	for (i = 0; i < 40; i++)
	{
		snprintf(name, sizeof(name), "/a%d", i);
		r[i] = world_enter(w, name, (uint64_t) i, ZKL_EXCLUSIVE, false);
	}
	world_flush(w);
	world_run(w);
	CHECK_INT(w->zk.counts.multis, 1);
	CHECK_INT(w->zk.counts.creates, 40);
	CHECK_INT(w->zk.counts.lists + w->zk.counts.gets, 0);
	for (i = 0; i < 40; i++)
	{
		CHECK(world_holds(w, r[i]));
		CHECK_INT(w->requests[r[i]].token,
				  w->requests[r[0]].token + i);
	}
	world_wind_up(w);
}

/* One owner, both lifetimes: one znode, which stays until the last hold. */
static void
two_lifetimes(void)
{
	World	   *w = world_ready();
	uint32_t	session = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	transaction;
	uint32_t	shared;
	uint32_t	other;
	uint64_t	operations;
	ZklCounters counters;

	world_run(w);
	zkl_manager_counters(w->worker.m, &counters);
	operations = counters.operations;
	transaction = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	shared = world_submit(w, "/a", 1, ZKL_SHARED);
	CHECK(world_holds(w, transaction) && world_holds(w, shared));
	CHECK_INT(w->requests[shared].token, w->requests[session].token);
	zkl_manager_counters(w->worker.m, &counters);
	CHECK_INT((int64_t) (counters.operations - operations), 0);

	other = world_submit(w, "/a", 2, ZKL_SHARED);
	world_run(w);
	CHECK(!world_holds(w, other));
	world_release(w, session);
	world_run(w);
	CHECK_INT(world_nodes(w, "/a"), 2);
	CHECK(!world_holds(w, other));
	world_release(w, transaction);
	world_run(w);
	CHECK_INT(world_nodes(w, "/a"), 2);
	CHECK(w->requests[shared].record.sent);
	CHECK_INT(w->requests[shared].record.mode, ZKL_SHARED);
	CHECK(world_holds(w, shared) && world_holds(w, other));
	world_release(w, shared);
	world_run(w);
	CHECK_INT(world_nodes(w, "/a"), 1);
	world_wind_up(w);
}

static uint32_t
in_use(const World *w)
{
	uint32_t	n = 0;
	uint32_t	i;

	for (i = 0; i < w->config.max_requests; i++)
		n += w->requests[i].state != SLOT_FREE;
	return n;
}

/*
 * A session takes a lock over and over, and gives back what it took before: the znode
 * stays with the request that made it, and the slots do not grow in number.
 */
static void
taken_over_and_over(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	first = r;
	uint32_t	next;
	ZklUuid		uuid;
	int			i;

	world_run(w);
	uuid = w->requests[r].record.uuid;
	for (i = 0; i < 20; i++)
	{
		uint32_t	again = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);

		world_release(w, r);
		world_run(w);
		r = again;
		CHECK(world_holds(w, r));
		CHECK(w->requests[first].record.stays && !w->requests[first].record.sent);
		CHECK(w->requests[r].record.sent &&
			  zkl_uuid_equal(&w->requests[r].record.uuid, &uuid));
		CHECK_INT(in_use(w), 2);
	}
	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, next));
	world_release(w, r);
	world_run(w);
	CHECK(world_holds(w, next));
	CHECK_INT(in_use(w), 1);
	CHECK_INT(world_nodes(w, "/a"), 1);
	world_wind_up(w);
}

/* A cancel in each state of the node ends in its delete, without a grant. */
static void
cancel_anywhere(void)
{
	int			state;

	for (state = 0; state < 5; state++)
	{
		World	   *w = world_ready();
		uint32_t	r;

		world_warm_up(w, "/a");
		r = world_enter(w, "/a", 1, ZKL_EXCLUSIVE, false);
		if (state >= 1)
			world_flush(w);
		if (state >= 2)
			world_serve(w, 1);
		if (state >= 3)
			world_deliver(w, 1);
		if (state == 4)
			world_run(w);
		CHECK_INT(world_holds(w, r), state >= 3);
		world_release(w, r);
		world_run(w);
		CHECK(w->requests[r].state == SLOT_FREE);
		CHECK_INT(world_nodes(w, "/a"), 0);
		CHECK_INT(w->grants, 3 + (state >= 3));
		world_wind_up(w);
	}
}

/* A try is denied behind a holder of ours at once, without any operation. */
static void
try_behind_local_holder(void)
{
	World	   *w = world_ready();
	uint32_t	held = world_submit(w, "/a", 1, ZKL_SHARED);
	uint32_t	r;

	world_run(w);
	r = world_try(w, "/a", 2, ZKL_EXCLUSIVE);
	CHECK(w->requests[r].state == SLOT_DENIED);
	CHECK(w->conn.inbox == NULL);
	world_release(w, r);
	CHECK(w->requests[r].state == SLOT_FREE);
	r = world_try(w, "/a", 2, ZKL_SHARED);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK(world_holds(w, held));
	world_wind_up(w);
}

/* ---- shared to exclusive ---- */

static void
upgrade_alone(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	shared = world_submit(w, "/a", 1, ZKL_SHARED);
	uint32_t	other_shared = world_submit(w, "/a", 2, ZKL_SHARED);
	uint32_t	exclusive;

	world_run(w);
	foreign_enter(w, "/a", ZKL_SHARED, other);
	exclusive = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, exclusive));
	world_release(w, other_shared);
	world_run(w);
	CHECK(world_waits(w, exclusive));
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, exclusive) && world_holds(w, shared));
	world_release(w, exclusive);
	world_run(w);
	CHECK(world_holds(w, shared));
	CHECK_INT(world_nodes(w, "/a"), 1);
	world_wind_up(w);
}

/* Another writer in between, ours or not, makes it a deadlock. */
static void
upgrade_refused(void)
{
	int			foreign;

	for (foreign = 0; foreign < 2; foreign++)
	{
		World	   *w = world_ready();
		char		other[ZKL_MAX_PATH + 1];
		uint32_t	shared = world_submit(w, "/a", 1, ZKL_SHARED);
		uint32_t	local = 0;
		uint32_t	exclusive;

		world_run(w);
		if (foreign)
			foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
		else
			local = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
		exclusive = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		CHECK(w->requests[exclusive].state == SLOT_FAILED);
		CHECK_INT(w->requests[exclusive].failure, ZKL_FAILURE_DEADLOCK);
		CHECK(world_holds(w, shared));
		CHECK_INT(world_nodes(w, "/a"), foreign ? 1 : 2);
		world_release(w, exclusive);
		world_release(w, shared);
		world_run(w);
		CHECK(foreign || world_holds(w, local));
		world_wind_up(w);
	}
}

/*
 * A leftover writer of our own session in between makes no deadlock: nobody waits
 * there, and it is deleted.  If another writer stands before it, that is one.
 */
static void
upgrade_behind_a_leftover(void)
{
	int			foreign;

	for (foreign = 0; foreign < 2; foreign++)
	{
		World	   *w = world_ready();
		ZklUuid		uuid = world_leftover(w);
		char		path[ZKL_MAX_PATH + 1];
		char		name[ZKL_MAX_ZNODE_NAME + 1];
		uint32_t	shared = world_submit(w, "/a", 1, ZKL_SHARED);
		uint32_t	exclusive;

		world_run(w);
		if (foreign)
			foreign_enter(w, "/a", ZKL_EXCLUSIVE, path);
		zkl_znode_prefix(ZKL_DIALECT_CURATOR_RW, &uuid, ZKL_EXCLUSIVE, name);
		snprintf(path, sizeof(path), WORLD_ROOT "/a/%s", name);
		CHECK_INT(model_create(&w->zk, path, true, w->worker.session.id, "",
							   path), ZKL_RC_OK);
		exclusive = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		CHECK(world_holds(w, shared));
		if (foreign)
			CHECK_INT(w->requests[exclusive].failure, ZKL_FAILURE_DEADLOCK);
		else
			CHECK(world_holds(w, exclusive));
		foreign_leave_all(w, "/a");
		if (foreign)
			model_delete(&w->zk, path);
		world_wind_up(w);
	}
}

/* Two that both want more: the second is refused, the first goes on. */
static void
upgrades_meet(void)
{
	World	   *w = world_ready();
	uint32_t	shared[2];
	uint32_t	exclusive[2];
	int			i;

	for (i = 0; i < 2; i++)
		shared[i] = world_submit(w, "/a", (uint64_t) i, ZKL_SHARED);
	world_run(w);
	for (i = 0; i < 2; i++)
		exclusive[i] = world_submit(w, "/a", (uint64_t) i, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, exclusive[0]));
	CHECK(w->requests[exclusive[1]].state == SLOT_FAILED);
	world_leave(w, exclusive[1]);
	world_release(w, shared[1]);
	world_run(w);
	CHECK(world_holds(w, exclusive[0]) && world_holds(w, shared[0]));
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(first_acquire);
	RUN(uncontended_in_known_directory);
	RUN(unknown_directory);
	RUN(local_hand_over);
	RUN(readers_together);
	RUN(group_commit);
	RUN(two_lifetimes);
	RUN(taken_over_and_over);
	RUN(cancel_anywhere);
	RUN(try_behind_local_holder);
	RUN(upgrade_alone);
	RUN(upgrade_refused);
	RUN(upgrade_behind_a_leftover);
	RUN(upgrades_meet);
	return unit_finish();
}
