/*
 * test_manager_session.c
 *	  Scenarios of the connection, the session and the lease.
 */
#include "unit.h"
#include "world.h"

/* Nothing that a new connection answers counts before its first beat. */
static void
unproved_connection(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;

	world_warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_SHARED, other);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	world_disconnect(w);
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	w->worker.now += 1000;
	world_connect(w);
	CHECK(!zkl_manager_ready(w->worker.m));
	CHECK(!world_holds(w, r));
	CHECK(w->conn.inbox != NULL && w->conn.inbox->send == ZKL_SEND_MULTI);
	CHECK(w->conn.inbox != NULL && w->conn.inbox->next == NULL);
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/* Holds outlive a disconnection; the lease does not grow meanwhile. */
static void
disconnected_within_the_lease(void)
{
	World	   *w = world_ready();
	uint32_t	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	int64_t		lease;

	world_run(w);
	lease = zkl_manager_lease(w->worker.m);
	world_disconnect(w);
	CHECK_INT(zkl_manager_lease(w->worker.m), lease);
	CHECK(world_holds(w, holder));
	world_release(w, holder);
	CHECK(!world_holds(w, next));
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, next));
	CHECK_INT(w->losses, 0);
	CHECK(zkl_manager_lease(w->worker.m) > lease);
	world_wind_up(w);
}

/* The lease counts from when the beat was sent, two thirds of the timeout. */
static void
lease_and_beats(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	int64_t		sent;

	world_run(w);
	world_count_anew(w);
	sent = zkl_manager_timer(w->worker.m);
	CHECK(sent > w->worker.now && sent <= w->worker.now + WORLD_BEAT);
	w->worker.now = sent;
	world_flush(w);
	CHECK(w->conn.inbox != NULL);
	w->worker.now += 500000;
	world_serve(w, 1);
	world_deliver(w, 1);
	CHECK_INT(zkl_manager_lease(w->worker.m), sent + WORLD_LEASE);
	world_sleep(w, 10 * WORLD_BEAT);
	CHECK(w->zk.counts.multis >= 9 && w->zk.counts.multis <= 13);
	CHECK(zkl_manager_lease(w->worker.m) > w->worker.now + WORLD_LEASE / 2);

	/* no hold, no beats; but once the directory goes */
	world_release(w, r);
	world_run(w);
	world_count_anew(w);
	world_sleep(w, 10 * WORLD_BEAT);
	CHECK_INT(w->zk.counts.beats, 0);
	CHECK_INT(w->zk.counts.multis, 1);
	CHECK_INT(w->zk.counts.deletes, 1);
	world_wind_up(w);
}

/* However many locks there are, and however old each is: one beat per T/6 */
static void
beats_of_many(void)
{
	World	   *w = world_ready();
	int			i;

	for (i = 0; i < 10; i++)
	{
		char		name[16];

		snprintf(name, sizeof(name), "/%d", i);
		world_submit(w, name, 1, ZKL_EXCLUSIVE);
		world_submit(w, name, 2, ZKL_EXCLUSIVE);
		world_run(w);
		w->worker.now += WORLD_BEAT / 20;
	}
	world_count_anew(w);
	world_sleep(w, 12 * WORLD_BEAT);
	CHECK(w->zk.counts.multis >= 11 && w->zk.counts.multis <= 13);
	CHECK_INT(w->zk.counts.gets, 20);
	world_wind_up(w);
}

/*
 * What is left of the lease if ZooKeeper goes away now: docs/outages.md says so.
 */
static void
lease_if_it_breaks(void)
{
	const int64_t t = WORLD_TIMEOUT_MS * 1000LL;
	World	   *w = world_ready();
	int			below = 0;
	uint32_t	r;
	int			i;

	world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	world_sleep(w, 4 * WORLD_BEAT);
	for (i = 0; i < 1000; i++)
	{
		world_sleep(w, unit_random_below(WORLD_BEAT));
		CHECK(zkl_manager_lease(w->worker.m) - w->worker.now > t * 49 / 100);
		CHECK(zkl_manager_lease(w->worker.m) - w->worker.now <= t * 2 / 3);
	}

	/* with other batches between the beats */
	for (i = 0; i < 1000; i++)
	{
		world_sleep(w, unit_random_below(WORLD_BEAT));
		CHECK(zkl_manager_lease(w->worker.m) - w->worker.now > t * 33 / 100);
		CHECK(zkl_manager_lease(w->worker.m) - w->worker.now <= t * 2 / 3);
		below += zkl_manager_lease(w->worker.m) - w->worker.now < t * 2 / 5;
		r = world_submit(w, "/b", 1, ZKL_EXCLUSIVE);
		world_run(w);
		world_release(w, r);
		world_run(w);
	}
	CHECK(below < 20);
	world_wind_up(w);
}

/*
 * Somebody outside relies on the lease, and asks every T/12: a beat answers as often, and
 * leaves more, also with other batches in between.
 */
static void
lease_if_asked(void)
{
	const int64_t t = WORLD_TIMEOUT_MS * 1000LL;
	World	   *w = world_ready();
	ZklCounters before,
				after;
	int			others;
	int			i;

	world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	for (others = 0; others < 2; others++)
		for (i = 0; i < 500; i++)
		{
			int64_t		lease = zkl_manager_lease(w->worker.m);
			uint32_t	r;

			worker_tell(&w->worker, ZKL_EVENT(PROVE));
			world_flush(w);
			world_run(w);
			world_sleep(w, t / 12);
			CHECK(zkl_manager_lease(w->worker.m) > lease);
			CHECK(i < 6 || zkl_manager_lease(w->worker.m) - w->worker.now >
				  t * (others ? 60 : 62) / 100 - t / 12);
			if (others == 0)
				continue;
			world_sleep(w, unit_random_below((uint32_t) (t / 12)));
			r = world_submit(w, "/b", 1, ZKL_EXCLUSIVE);
			world_run(w);
			world_release(w, r);
			world_run(w);
		}

	/* Nobody asks any more. */
	world_sleep(w, t);
	zkl_manager_counters(w->worker.m, &before);
	world_sleep(w, 2 * t);
	zkl_manager_counters(w->worker.m, &after);
	CHECK(after.batches - before.batches <= 12);
	world_wind_up(w);
}

/*
 * What came lately may not have reached the leader: the lease of the first
 * batch after idleness counts from what an idle session asks every T/4.
 */
static void
lease_after_idleness(void)
{
	const int64_t t = WORLD_TIMEOUT_MS * 1000LL;
	World	   *w = world_ready();
	int64_t		asked;

	world_sleep(w, 10 * t);
	CHECK(w->zk.counts.gets >= 38 && w->zk.counts.gets <= 41);
	asked = zkl_manager_timer(w->worker.m) - t / 4;
	w->worker.now = asked + t / 8;
	world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(zkl_manager_lease(w->worker.m) > asked + t * 3 / 4 - t / 100);
	CHECK(zkl_manager_lease(w->worker.m) < asked + t * 3 / 4);
	world_sleep(w, 3 * WORLD_BEAT);
	CHECK(zkl_manager_lease(w->worker.m) > w->worker.now + WORLD_LEASE - 2 * WORLD_BEAT);
	world_wind_up(w);
}

/*
 * A worker that was stopped for long cannot rely on what was heard before: a
 * new connection is what renews the lease at once.
 */
static void
lease_after_silence(void)
{
	World	   *w = world_ready();
	uint32_t	r;

	w->worker.now += 10 * WORLD_LEASE;
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	CHECK(!world_holds(w, r));
	CHECK(w->gave_up);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK(zkl_manager_lease(w->worker.m) > w->worker.now + WORLD_LEASE - WORLD_BEAT);

	/* the same while it holds, and while somebody waits */
	w->worker.now += 2 * WORLD_LEASE;
	world_flush(w);
	CHECK(w->gave_up);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK(zkl_manager_lease(w->worker.m) > w->worker.now + WORLD_LEASE - WORLD_BEAT);
	world_wind_up(w);
}

/* Smaller transaction ids than before: no grant, and the session must go. */
static void
ids_go_back(void)
{
	World	   *w = world_ready();
	uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	r;
	int64_t		seen;

	world_run(w);
	CHECK(world_holds(w, held));
	seen = zkl_manager_zxid(w->worker.m);
	CHECK_INT(seen, w->zk.zxid);
	w->zk.zxid = 5;
	r = world_submit(w, "/b", 2, ZKL_EXCLUSIVE);
	while (!w->gave_up && (w->conn.inbox != NULL || w->conn.outbox != NULL))
	{
		world_serve(w, INT32_MAX);
		world_deliver(w, INT32_MAX);
	}
	CHECK(w->gave_up);
	CHECK(!zkl_manager_ready(w->worker.m));
	CHECK(!world_holds(w, r));
	CHECK_INT(zkl_manager_zxid(w->worker.m), seen);
	w->zk.zxid = seen;
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/*
 * While there is no connection, ZooKeeper loses what it has acknowledged: the
 * delete of a request's node and, if "beats" is 0, the heartbeat node with it, or
 * so many beats.
 */
static void
lose_delete(World *w, const char *node, int32_t beats)
{
	char		heartbeat[ZKL_MAX_PATH + 1];
	char		prefix[ZKL_MAX_PATH + 1];

	world_heartbeat(w, world_chain(w), heartbeat);
	if (beats == 0)
		CHECK_INT(model_delete(&w->zk, heartbeat), ZKL_RC_OK);
	else
		tree_find(heartbeat)->stat.version -= beats;
	snprintf(prefix, sizeof(prefix), "%.*s", (int) strlen(node) - 10, node);
	CHECK_INT(model_create(&w->zk, prefix, true, w->worker.session.id, "", NULL),
			  ZKL_RC_OK);
}

/* The node that is back goes again, and another hold does not notice. */
static void
lost_writes(void)
{
	int32_t		beats;

	for (beats = 0; beats < 3; beats++)
	{
		World	   *w = world_ready();
		uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		uint32_t	gone = world_submit(w, "/b", 2, ZKL_EXCLUSIVE);
		char		node[ZKL_MAX_PATH + 1];

		world_run(w);
		world_path(w, gone, node);
		world_leave(w, gone);
		world_sleep(w, WORLD_BEAT);
		CHECK_INT(world_nodes(w, "/b"), 0);
		world_disconnect(w);
		lose_delete(w, node, beats);
		world_connect(w);
		world_run(w);
		CHECK_MSG(w->lost_writes == 1, "lost: %d beats", beats);
		CHECK_INT(world_nodes(w, "/b"), 0);
		CHECK(world_holds(w, held));
		CHECK_INT(w->losses, 0);
		world_wind_up(w);
	}
}

/* One request is served, or if there is none, time passes until the next is due. */
static void
step(World *w)
{
	if (w->conn.inbox == NULL && w->conn.outbox == NULL)
	{
		w->worker.now = zkl_manager_timer(w->worker.m);
		world_flush(w);
	}
	world_serve(w, 1);
	world_deliver(w, 1);
}

/*
 * The same for a delete outside of batches: until a batch behind it is
 * acknowledged, the heartbeat node does not tell, so the server looks in any case.
 */
static void
lost_delete(void)
{
	World	   *w = world_ready();
	uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	gone = world_submit(w, "/b", 2, ZKL_EXCLUSIVE);
	uint32_t	frees;
	char		node[ZKL_MAX_PATH + 1];

	world_run(w);
	world_path(w, gone, node);
	frees = w->frees;
	w->zk.multi_rc = ZKL_RC_UNKNOWN;
	world_leave(w, gone);
	while (w->frees == frees)
		step(w);
	CHECK_INT(world_nodes(w, "/b"), 0);
	world_disconnect(w);
	node[strlen(node) - 10] = '\0';
	CHECK_INT(model_create(&w->zk, node, true, w->worker.session.id, "", NULL),
			  ZKL_RC_OK);
	world_connect(w);
	world_run(w);
	CHECK_INT(world_nodes(w, "/b"), 0);
	CHECK(world_holds(w, held));
	CHECK_INT(w->losses, 0);
	world_wind_up(w);
}

/* A node of our session in /b that no request claims; its path goes to "path". */
static void
make_orphan(World *w, char *path)
{
	CHECK_INT(model_create(&w->zk, WORLD_ROOT
						   "/b/_c_00000000-0000-8000-8000-000000000000-__WRIT__",
						   true, w->worker.session.id, "", path), ZKL_RC_OK);
}

/* Not yet connected again: then the janitor will look for such nodes */
static World *
parted_with_orphan(char *path)
{
	World	   *w = world_ready();

	model_mkdir(&w->zk, WORLD_ROOT "/b");
	make_orphan(w, path);
	world_disconnect(w);
	world_lose_a_beat(w);
	return w;
}

/* ZooKeeper has lost the delete. */
static void
check_orphan_goes_again(World *w, char *path)
{
	world_disconnect(w);
	make_orphan(w, path);
	world_connect(w);
	world_run(w);
	CHECK_INT(world_nodes(w, "/b"), 0);
	world_wind_up(w);
}

/*
 * The same for a delete of the janitor's whose answer was lost: that its next try
 * finds no node does not mean that ZooKeeper keeps the first one.
 */
static void
lost_delete_of_janitor(void)
{
	char		path[ZKL_MAX_PATH + 1];
	World	   *w = parted_with_orphan(path);
	uint32_t	deletes;

	w->zk.single_kind = ZKL_SEND_DELETE;
	w->zk.single_rc = ZKL_RC_UNKNOWN;
	w->zk.single_path = "/b/";
	w->zk.singles = 1;
	world_connect(w);
	while (w->zk.singles > 0)
		step(w);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	deletes = w->zk.counts.deletes;
	while (w->zk.counts.deletes == deletes)
		step(w);
	check_orphan_goes_again(w, path);
}

/*
 * The same for a delete of somebody else's, of a node that the janitor goes to look
 * at: it finds none.
 */
static void
lost_delete_of_others(void)
{
	char		path[ZKL_MAX_PATH + 1];
	World	   *w = parted_with_orphan(path);

	world_connect(w);
	while (w->conn.inbox == NULL || w->conn.inbox->send != ZKL_SEND_GET ||
		   strstr(w->conn.inbox->path, "/b/") == NULL)
		step(w);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	step(w);
	CHECK(w->conn.outbox == NULL);
	check_orphan_goes_again(w, path);
}

/* The path of our one contender for /b */
static void
path_of_b(char *path)
{
	const Path *child = tree_children(WORLD_ROOT "/b");

	while (!child->node[HEAD].exists)
		child = child->sibling;
	strcpy(path, child->text);
}

static void
until_listing_of_b(World *w)
{
	while (w->conn.inbox == NULL || w->conn.inbox->send != ZKL_SEND_LIST ||
		   strcmp(w->conn.inbox->path, WORLD_ROOT "/b") != 0)
		step(w);
}

/*
 * The same of a node of ours of which we do not know whether it exists: the create,
 * or the downgrade, of a request that is given up has no answer.
 */
static void
lost_delete_of_unsettled(void)
{
	int			downgrade;

	for (downgrade = 0; downgrade < 2; downgrade++)
	{
		World	   *w = world_ready();
		uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		uint32_t	r;
		uint32_t	multis;
		char		node[ZKL_MAX_PATH + 1];

		world_run(w);
		model_mkdir(&w->zk, WORLD_ROOT "/b");
		r = world_submit(w, "/b", 2, ZKL_EXCLUSIVE);
		if (downgrade)
		{
			uint32_t	writer = r;

			world_run(w);
			r = world_submit(w, "/b", 2, ZKL_SHARED);
			world_sleep(w, 2 * WORLD_BEAT);
			multis = w->zk.counts.multis;
			world_release(w, writer);
			while (w->zk.counts.multis == multis)
				world_serve(w, 1);
		}
		else
			while (world_nodes(w, "/b") == 0)
				world_serve(w, 1);
		path_of_b(node);
		world_disconnect(w);
		world_leave(w, r);
		world_connect(w);
		until_listing_of_b(w);
		CHECK_INT(model_delete(&w->zk, node), ZKL_RC_OK);
		step(w);
		world_disconnect(w);
		CHECK_INT(model_create(&w->zk, node, false, w->worker.session.id, "",
							   NULL), ZKL_RC_OK);
		world_connect(w);
		world_run(w);
		world_sleep(w, 2 * WORLD_BEAT);
		CHECK_MSG(world_nodes(w, "/b") == 0, "downgrade: %d", downgrade);
		CHECK(world_holds(w, held));
		world_wind_up(w);
	}
}

/*
 * Somebody has written to the heartbeat node, or deleted it while there was a
 * connection: then nothing is lost, and nobody looks through all directories.
 */
static void
heartbeat_of_others(void)
{
	bool		deleted;
	int			i;

	for (i = 0; i < 2; i++)
	{
		World	   *w = world_ready();
		uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		char		heartbeat[ZKL_MAX_PATH + 1];

		deleted = i == 1;
		world_run(w);
		world_heartbeat(w, world_chain(w), heartbeat);
		if (deleted)
			CHECK_INT(model_delete(&w->zk, heartbeat), ZKL_RC_OK);
		else
		{
			world_disconnect(w);
			CHECK_INT(model_set(&w->zk, heartbeat, "x"), ZKL_RC_OK);
			world_connect(w);
		}
		world_count_anew(w);
		world_sleep(w, WORLD_BEAT);
		CHECK_INT(w->lost_writes, 0);
		CHECK_INT(w->zk.counts.lists, 0);
		CHECK(world_holds(w, held));
		CHECK_INT(w->losses, 0);
		world_wind_up(w);
	}
}

/* Past the lease nothing is handed over, and no try is denied. */
static void
nothing_past_the_lease(void)
{
	World	   *w = world_ready();
	uint32_t	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	uint32_t	impatient;

	world_run(w);
	w->worker.now = zkl_manager_lease(w->worker.m);
	impatient = world_try(w, "/a", 3, ZKL_EXCLUSIVE);
	CHECK(w->requests[impatient].state != SLOT_DENIED);
	world_release(w, holder);
	CHECK(!world_holds(w, next));
	world_run(w);
	CHECK(world_holds(w, next));
	CHECK(w->requests[impatient].state == SLOT_DENIED);
	world_wind_up(w);
}

/* Expiry: what was held is lost, what waits begins again with new ids. */
static void
session_expires(void)
{
	World	   *w = world_ready();
	uint32_t	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	covered;
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	uint32_t	last = world_submit(w, "/a", 3, ZKL_EXCLUSIVE);
	ZklUuid		uuid;

	world_run(w);
	covered = world_submit(w, "/a", 1, ZKL_SHARED);
	CHECK(world_holds(w, covered));
	uuid = w->requests[next].record.uuid;
	world_expire_session(w);
	CHECK(w->requests[holder].state == SLOT_LOST && w->requests[covered].state == SLOT_LOST);
	CHECK_INT(w->requests[holder].failure, ZKL_FAILURE_SESSION_EXPIRED);
	CHECK(world_waits(w, next) && world_waits(w, last));
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, next));
	CHECK(memcmp(&uuid, &w->requests[next].record.uuid, sizeof(uuid)) != 0);
	CHECK(w->requests[next].record.seq < w->requests[last].record.seq);
	world_release(w, holder);
	world_release(w, covered);
	CHECK(w->requests[holder].state == SLOT_FREE && w->requests[covered].state == SLOT_FREE);
	world_wind_up(w);
}

/* It expires while things are under way: new session, one node each. */
static void
session_expires_in_the_middle(void)
{
	int			served;

	for (served = 0; served < 6; served++)
	{
		World	   *w = world_make();
		uint32_t	r[3];
		int			i;

		world_begin(w);
		world_connect(w);
		if (served < 3)
			world_run(w);
		for (i = 0; i < 3; i++)
			r[i] = world_submit(w, "/a", (uint64_t) i, ZKL_SHARED);
		world_serve(w, served);
		world_deliver(w, served - 1);
		world_expire_session(w);
		world_connect(w);
		world_run(w);
		for (i = 0; i < 3; i++)
			CHECK(world_holds(w, r[i]) || w->requests[r[i]].state == SLOT_LOST);
		CHECK_INT(world_nodes(w, "/a") + w->losses, 3);
		world_wind_up(w);
	}
}

/* After a reconnect old holds are watched again. */
static void
own_watch_after_reconnect(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	const Path *node;

	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	world_disconnect(w);
	world_connect(w);
	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	w->tampered = true;
	node = tree_newest();
	while (!strstr(node->text, "__WRIT__"))
		node = node->all;
	CHECK_INT(model_delete(&w->zk, node->text), ZKL_RC_OK);
	world_run(w);
	CHECK(w->requests[r].state == SLOT_LOST);
	world_wind_up(w);
}

/*
 * A server allows the session less time than the one before it did: a lease
 * from before must not outlast that.
 */
static void
timeout_shrinks(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	int64_t		lease;
	int64_t		begun;

	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	lease = zkl_manager_lease(w->worker.m);
	world_disconnect(w);
	w->timeout_ms = WORLD_TIMEOUT_MS / 3;
	begun = w->worker.now;
	world_connect(w);
	CHECK(lease > begun + WORLD_TIMEOUT_MS * 1000 / 3);
	CHECK(zkl_manager_lease(w->worker.m) < begun + WORLD_TIMEOUT_MS * 1000 / 3);
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(timeout_shrinks);
	RUN(unproved_connection);
	RUN(disconnected_within_the_lease);
	RUN(lease_and_beats);
	RUN(beats_of_many);
	RUN(lease_if_it_breaks);
	RUN(lease_if_asked);
	RUN(lease_after_idleness);
	RUN(lease_after_silence);
	RUN(ids_go_back);
	RUN(lost_writes);
	RUN(lost_delete);
	RUN(lost_delete_of_janitor);
	RUN(lost_delete_of_others);
	RUN(lost_delete_of_unsettled);
	RUN(heartbeat_of_others);
	RUN(nothing_past_the_lease);
	RUN(session_expires);
	RUN(session_expires_in_the_middle);
	RUN(own_watch_after_reconnect);
	return unit_finish();
}
