/*
 * test_manager_revived.c
 *	  ZooKeeper has lost the end of a session: the server that has the session again,
 *	  and one that has got a lock of it.
 */
#include <string.h>

#include "unit.h"
#include "world.h"

#define ELECTION	(INT64_C(1) << 32)

/* The server is away: for longer than its lease, and others elect a leader. */
static void
away(World *w, bool past_lease, bool elected)
{
	world_disconnect(w);
	if (past_lease)
		w->worker.now = zkl_manager_lease(w->worker.m);
	if (elected)
		w->zk.zxid += ELECTION;
}

/*
 * If the session may have ended meanwhile, a hold is lost for which another client
 * waits, and no other one; the lease goes on.
 */
static void
hold_is_overtaken(void)
{
	int			i;

	for (i = 0; i < 8; i++)
	{
		bool		past_lease = i & 1;
		bool		elected = i & 2;
		bool		awaited = i & 4;
		World	   *w = world_ready();
		uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		uint32_t	other = world_submit(w, "/b", 2, ZKL_EXCLUSIVE);
		char		behind[ZKL_MAX_PATH + 1];

		world_run(w);
		if (awaited)
			foreign_enter(w, "/a", ZKL_SHARED, behind);
		away(w, past_lease, elected);
		world_connect(w);
		world_run(w);
		if (past_lease && elected && awaited)
		{
			CHECK_INT(w->requests[held].state, SLOT_LOST);
			CHECK_INT(w->requests[held].failure, ZKL_FAILURE_OVERTAKEN);
			CHECK_INT(w->losses, 1);
		}
		else
			CHECK_MSG(world_holds(w, held), "held: case %d", i);
		CHECK(world_holds(w, other));
		CHECK(zkl_manager_lease(w->worker.m) > w->worker.now);
		foreign_leave_all(w, "/a");
		world_wind_up(w);
	}
}

/* What conflicts with nobody is kept. */
static void
reader_is_kept(void)
{
	World	   *w = world_ready();
	uint32_t	held = world_submit(w, "/a", 1, ZKL_SHARED);
	char		behind[ZKL_MAX_PATH + 1];

	world_run(w);
	foreign_enter(w, "/a", ZKL_SHARED, behind);
	away(w, true, true);
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, held));
	foreign_leave_all(w, "/a");
	world_wind_up(w);
}

/* Within the maximum nobody was in the way. */
static void
permit_is_overtaken(void)
{
	int			nothers;

	for (nothers = 1; nothers <= 2; nothers++)
	{
		World	   *w = world_ready();
		char		behind[ZKL_MAX_PATH + 1];
		uint32_t	held;
		int			i;

		w->dialect = ZKL_DIALECT_PERMIT;
		w->max = 2;
		held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		for (i = 0; i < nothers; i++)
			foreign_enter(w, "/a", ZKL_EXCLUSIVE, behind);
		away(w, true, true);
		world_connect(w);
		world_run(w);
		CHECK_INT(w->requests[held].state, nothers == 1 ? SLOT_GRANTED : SLOT_LOST);
		foreign_leave_all(w, "/a");
		world_wind_up(w);
	}
}

/* A request that waits goes behind the one that may have got the lock. */
static void
waiter_is_overtaken(void)
{
	World	   *w = world_ready();
	uint32_t	waiter;
	char		ahead[ZKL_MAX_PATH + 1];
	char		behind[ZKL_MAX_PATH + 1];

	world_warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, ahead);
	waiter = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, waiter));
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, behind);
	away(w, true, true);
	CHECK_INT(model_delete(&w->zk, ahead), ZKL_RC_OK);
	world_connect(w);
	world_run(w);
	CHECK(world_waits(w, waiter));
	CHECK_INT(model_delete(&w->zk, behind), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, waiter));
	world_wind_up(w);
}

/* The same if its create had no answer yet: the znode was made before the session ended. */
static void
unanswered_is_overtaken(void)
{
	World	   *w = world_ready();
	uint32_t	waiter;
	char		ahead[ZKL_MAX_PATH + 1];
	char		behind[ZKL_MAX_PATH + 1];

	world_warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, ahead);
	waiter = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_serve(w, INT32_MAX);
	CHECK_INT(world_nodes(w, "/a"), 1);
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, behind);
	away(w, true, true);
	CHECK_INT(model_delete(&w->zk, ahead), ZKL_RC_OK);
	world_connect(w);
	world_run(w);
	CHECK(world_waits(w, waiter));
	CHECK_INT(model_delete(&w->zk, behind), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, waiter));
	world_wind_up(w);
}

/* The connection breaks at any step before the listing has come. */
static void
doubt_lasts(void)
{
	int			steps;

	for (steps = 0; steps < 6; steps++)
	{
		World	   *w = world_ready();
		uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		char		behind[ZKL_MAX_PATH + 1];
		int			i;

		world_run(w);
		foreign_enter(w, "/a", ZKL_EXCLUSIVE, behind);
		away(w, true, true);
		world_connect(w);
		for (i = 0; i < steps && w->losses == 0; i++)
		{
			world_serve(w, 1);
			world_deliver(w, 1);
		}
		world_disconnect(w);
		world_connect(w);
		world_run(w);
		CHECK_MSG(w->requests[held].state == SLOT_LOST, "after %d steps", steps);
		foreign_leave_all(w, "/a");
		world_wind_up(w);
	}
}

/* The directory may not be listed: the lease does not wait for it for ever. */
static void
listing_is_refused(void)
{
	World	   *w = world_ready();
	uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);

	world_run(w);
	away(w, true, true);
	w->zk.single_rc = ZKL_RC_NOAUTH;
	w->zk.single_kind = ZKL_SEND_LIST;
	w->zk.single_path = "/a";
	w->zk.singles = 1000000;
	world_connect(w);
	world_run(w);
	CHECK_INT(w->requests[held].state, SLOT_LOST);
	CHECK_INT(w->requests[held].failure, ZKL_FAILURE_UNREADABLE);
	CHECK(zkl_manager_lease(w->worker.m) > w->worker.now);
	w->zk.single_rc = 0;
	world_wind_up(w);
}

/* After an election a server sees who stands ahead of its hold, and tells. */
static void
holder_sees_revived(void)
{
	static const ZklNodeData berlin = {.server = "berlin",.pid = 7};
	World	   *w = world_ready();
	char		data[ZKL_MAX_NODE_DATA];
	char		ahead[ZKL_MAX_PATH + 1];
	uint32_t	held;
	int			i;

	(void) zkl_node_data_format(&berlin, data, sizeof(data));
	world_warm_up(w, "/a");
	foreign_zklock(w, "/a", ZKL_EXCLUSIVE, data, ahead);
	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK_INT(model_delete(&w->zk, ahead), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, held));
	for (i = 0; i < 2; i++)
	{
		away(w, false, i == 1);
		if (i == 0)
			CHECK_INT(model_create(&w->zk, ahead, false, 99, data, NULL), ZKL_RC_OK);
		world_connect(w);
		world_run(w);
		CHECK_INT(w->revived, i);
	}
	CHECK_STR(w->asker, "berlin");
	CHECK(world_holds(w, held));
	CHECK_INT(model_delete(&w->zk, ahead), ZKL_RC_OK);
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(hold_is_overtaken);
	RUN(reader_is_kept);
	RUN(permit_is_overtaken);
	RUN(waiter_is_overtaken);
	RUN(unanswered_is_overtaken);
	RUN(doubt_lasts);
	RUN(listing_is_refused);
	RUN(holder_sees_revived);
	return unit_finish();
}
