/*
 * test_manager_operator.c
 *	  What operators, and others with access to ZooKeeper, do to the nodes of
 *	  requests: delete, overwrite and mark them.
 */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "world.h"

static const int64_t T = WORLD_TIMEOUT_MS * 1000LL;
static const char mark[] = "{\"breaking\":true,\"zklock\":1}";

static void
own_path(const World *w, uint32_t r, char *path)
{
	char		name[ZKL_MAX_ZNODE_NAME + 1];

	zkl_znode_name(ZKL_DIALECT_CURATOR_RW,
				   &w->requests[r].uuid, ZKL_EXCLUSIVE, w->requests[r].seq,
				   name);
	snprintf(path, ZKL_MAX_PATH + 1, WORLD_ROOT "/a/%s", name);
}

/* A hold grows old and its node is deleted by somebody: it is lost. */
static void
own_node_deleted(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);

	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	w->tampered = true;
	own_path(w, r, path);

	/* a change of the data alone costs nothing, and is watched on */
	CHECK_INT(model_set(&w->zk, path, "__REVOKE__"), ZKL_RC_OK);
	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(world_holds(w, r));
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	world_run(w);
	CHECK(w->requests[r].state == SLOT_LOST);
	CHECK_INT(w->requests[r].failure, ZKL_FAILURE_NODE_DELETED);
	CHECK(world_holds(w, next));
	world_wind_up(w);
}

/* The node of one that waits: it asks again, and does not hold up others. */
static void
waiting_node_deleted(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	holder = world_submit(w, "/a", 1, ZKL_SHARED);
	uint32_t	r = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	uint32_t	reader = world_submit(w, "/a", 3, ZKL_SHARED);
	ZklSeq		seq;

	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(world_holds(w, holder) && world_waits(w, r) &&
		  world_waits(w, reader));
	w->tampered = true;
	seq = w->requests[r].seq;
	own_path(w, r, path);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, reader) && world_waits(w, r));
	CHECK(w->requests[r].seq > seq);
	CHECK_INT(world_nodes(w, "/a"), 3);
	world_release(w, holder);
	world_release(w, reader);
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/* The same of a node that another hold of the owner has taken over. */
static void
inherited_node_deleted(void)
{
	int			moment;

	for (moment = 0; moment < 3; moment++)
	{
		World	   *w = world_ready();
		uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		uint32_t	heir;

		world_run(w);
		heir = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		w->tampered = true;
		if (moment == 1)
		{
			world_sleep(w, WORLD_BEAT - 1000);
			w->worker.now += 2000;
			world_flush(w);
		}
		else if (moment == 2)
			world_sleep(w, 2 * WORLD_BEAT);
		world_release(w, r);
		CHECK(world_holds(w, heir));
		model_expire(&w->zk, w->worker.session.id);
		world_run(w);
		world_sleep(w, 3 * WORLD_BEAT);
		CHECK_MSG(w->requests[heir].state == SLOT_LOST, "moment %d", moment);
		world_wind_up(w);
	}
}

/* Nodes of our session that nobody claims go: others could wait for ever. */
static void
unclaimed_nodes(void)
{
	static const char uuid[] = "00000000-0000-8000-8000-000000000000";
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	char		orphan[ZKL_MAX_PATH + 1];
	char		foreign[ZKL_MAX_PATH + 1];
	uint32_t	r;

	/* in the way of one who waits */
	model_mkdir(&w->zk, WORLD_ROOT "/a");
	snprintf(path, sizeof(path), WORLD_ROOT "/a/_c_%s-__WRIT__", uuid);
	CHECK_INT(model_create(&w->zk, path, true, w->worker.session.id, "", orphan), 0);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK(tree_find(orphan) == NULL);

	/* somewhere: a restarted worker looks for them */
	model_mkdir(&w->zk, WORLD_ROOT "/b/c");
	snprintf(path, sizeof(path), WORLD_ROOT "/b/c/_c_%s-__READ__", uuid);
	CHECK_INT(model_create(&w->zk, path, true, w->worker.session.id, "", orphan), 0);
	CHECK_INT(model_create(&w->zk, path, true, 4711, "", foreign), 0);
	world_disconnect(w);
	world_restart(w);
	world_connect(w);
	world_run(w);
	CHECK(tree_find(orphan) == NULL);
	CHECK(tree_find(foreign) != NULL);
	CHECK(world_holds(w, r));
	foreign_leave_all(w, "/b/c");
	world_wind_up(w);
}

static const int32_t errors[] = {-102, -5, -1, -4};

/*
 * The janitor's questions get errors for answers, on a connection that goes on,
 * at whatever step: what it is to delete is gone in the end.  Guards of
 * zk_once(), below /.once, are no exception.
 */
static void
janitor_is_refused(void)
{
	static const char uuid[] = "00000000-0000-8000-8000-000000000000";
	static const ZklSendKind kinds[] = {ZKL_SEND_LIST, ZKL_SEND_GET,
	ZKL_SEND_DELETE};
	size_t		i;

	for (i = 0; i < 3 * 4; i++)
	{
		World	   *w = world_ready();
		char		path[ZKL_MAX_PATH + 1];
		char		orphan[ZKL_MAX_PATH + 1];
		char		guard[ZKL_MAX_PATH + 1];

		model_mkdir(&w->zk, WORLD_ROOT "/b/c");
		snprintf(path, sizeof(path), WORLD_ROOT "/b/c/_c_%s-__READ__", uuid);
		CHECK_INT(model_create(&w->zk, path, true, w->worker.session.id, "", orphan),
				  0);
		model_mkdir(&w->zk, WORLD_ROOT "/.once/job");
		snprintf(path, sizeof(path), WORLD_ROOT "/.once/job/_c_%s-__WRIT__",
				 uuid);
		CHECK_INT(model_create(&w->zk, path, true, w->worker.session.id, "", guard),
				  0);
		world_disconnect(w);
		world_restart(w);
		w->zk.single_kind = kinds[i / 4];
		w->zk.single_rc = errors[i % 4];
		w->zk.single_path = "/";
		w->zk.singles = 3;
		world_connect(w);
		world_run(w);
		world_sleep(w, 20000000);
		CHECK_MSG(w->zk.singles == 0, "refused, case %zu", i);
		CHECK_MSG(tree_find(orphan) == NULL, "gone, case %zu", i);
		CHECK_MSG(tree_find(guard) == NULL, "guard, case %zu", i);
		world_wind_up(w);
	}
}

/*
 * The same for a node of ours that nobody claims and that somebody waits
 * behind, and for the delete of a request's node.
 */
static void
deletes_are_refused(void)
{
	static const char uuid[] = "00000000-0000-8000-8000-000000000000";
	size_t		i;

	for (i = 0; i < 4; i++)
	{
		World	   *w = world_ready();
		char		path[ZKL_MAX_PATH + 1];
		char		orphan[ZKL_MAX_PATH + 1];
		uint32_t	r;
		uint32_t	deletes;

		model_mkdir(&w->zk, WORLD_ROOT "/a");
		snprintf(path, sizeof(path), WORLD_ROOT "/a/_c_%s-__WRIT__", uuid);
		CHECK_INT(model_create(&w->zk, path, true, w->worker.session.id, "", orphan),
				  0);
		w->zk.single_kind = ZKL_SEND_DELETE;
		w->zk.single_rc = errors[i];
		w->zk.single_path = "/a/";
		w->zk.singles = 3;
		deletes = w->zk.counts.deletes;
		r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		CHECK_MSG(w->zk.singles == 2, "one at a time, case %zu", i);
		world_sleep(w, 10000000);
		CHECK_MSG(world_holds(w, r), "held, case %zu", i);
		CHECK_INT(w->zk.counts.deletes, deletes + 1);

		/* A batch that fails has its deletes go on by single operations. */
		w->zk.singles = 3;
		w->zk.multi_rc = -4;
		world_release(w, r);
		world_run(w);
		world_sleep(w, 10000000);
		CHECK_INT(world_nodes(w, "/a"), 0);
		world_wind_up(w);
	}
}

/* Without the sync a try's listing may be old: it takes the long way. */
static void
sync_is_refused(void)
{
	size_t		i;

	for (i = 0; i < 4; i++)
	{
		World	   *w = world_ready();
		char		other[ZKL_MAX_PATH + 1];
		uint32_t	creates,
					r;

		foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
		w->zk.single_kind = ZKL_SEND_SYNC;
		w->zk.single_rc = errors[i];
		w->zk.single_path = "/a";
		w->zk.singles = 1;
		creates = w->zk.counts.creates;
		r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		if (w->gave_up)
		{
			world_disconnect(w);
			world_connect(w);
			world_run(w);
		}
		CHECK_INT(w->zk.singles, 0);
		CHECK_MSG(w->requests[r].state == SLOT_DENIED, "denied, case %zu", i);
		CHECK_INT(w->zk.counts.creates, creates + 1);
		world_release(w, r);
		world_run(w);
		foreign_leave_all(w, "/a");
		world_wind_up(w);
	}
}

/*
 * A read that is not answered has the connection given up: once, and if the
 * next one does not tell either, the request is.  Others go on.
 */
static void
reads_are_not_answered(void)
{
	static const ZklSendKind kinds[] = {ZKL_SEND_LIST, ZKL_SEND_GET};
	size_t		i;

	for (i = 0; i < 2; i++)
	{
		World	   *w = world_ready();
		char		other[ZKL_MAX_PATH + 1];
		uint32_t	held = world_submit(w, "/b", 1, ZKL_EXCLUSIVE);
		uint32_t	r;

		world_run(w);
		foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
		w->zk.single_kind = kinds[i];
		w->zk.single_rc = ZKL_RC_UNKNOWN;
		w->zk.single_path = "/a";
		w->zk.singles = 1000;
		r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		CHECK(w->zk.singles >= 990);
		CHECK(w->requests[r].state == SLOT_FAILED);
		CHECK(world_holds(w, held));
		w->zk.single_rc = 0;
		world_release(w, r);
		world_run(w);
		CHECK_INT(world_nodes(w, "/a"), 0);
		foreign_leave_all(w, "/a");
		world_release(w, held);
		world_wind_up(w);
	}
}

/*
 * A mark on the node of a hold: it is lost at once, and its node stays, ahead
 * of all others, until the holder lets go.
 */
static void
operator_breaks(void)
{
	World	   *w = world_ready();
	uint32_t	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	sharer,
				next;
	char		path[ZKL_MAX_PATH + 1];

	world_run(w);
	sharer = world_submit(w, "/a", 1, ZKL_SHARED);
	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	own_path(w, holder, path);
	CHECK_INT(model_set(&w->zk, path, "{\"breaking\":true,\"zklock\":1}"), 0);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(w->requests[holder].state == SLOT_LOST && w->requests[sharer].state == SLOT_LOST);
	CHECK_INT(w->requests[holder].failure, ZKL_FAILURE_BROKEN);
	CHECK(tree_find(path) != NULL);
	CHECK(world_waits(w, next));
	world_release(w, sharer);
	world_run(w);
	CHECK(world_waits(w, next));
	world_release(w, holder);
	world_run(w);
	CHECK(tree_find(path) == NULL);
	CHECK(world_holds(w, next));
	world_wind_up(w);
}

/*
 * The mark comes while the node is to become a reader's, and the batches are
 * full of other writes: the node stays, and the mark on it.
 */
static void
operator_breaks_a_downgrade(void)
{
	World	   *w = world_make();
	char		name[16];
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	holder,
				sharer,
				next;
	int			i;

	w->config.batch_operations = 3;
	w->config.batches_in_flight = 1;
	world_begin(w);
	world_connect(w);
	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	sharer = world_submit(w, "/a", 1, ZKL_SHARED);
	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_sleep(w, 2 * WORLD_BEAT);
	own_path(w, holder, path);
	for (i = 0; i < 20; i++)
	{
		snprintf(name, sizeof(name), "/b%d", i);
		world_enter(w, name, 3, ZKL_EXCLUSIVE, false);
	}
	world_release(w, holder);
	CHECK_INT(model_set(&w->zk, path, mark), ZKL_RC_OK);
	world_run(w);
	CHECK(w->requests[sharer].state == SLOT_LOST);
	CHECK_INT(w->requests[sharer].failure, ZKL_FAILURE_BROKEN);
	CHECK(tree_find(path) != NULL);
	CHECK(world_waits(w, next));
	world_release(w, sharer);
	world_run(w);
	CHECK(world_holds(w, next));
	world_wind_up(w);
}

/*
 * Goes on, answer by answer, until r has lost its node.  Returns the greatest
 * lease that was published while it held: it may be stopped at any moment.
 */
static int64_t
lease_until_loss(World *w, uint32_t r)
{
	int64_t		until = w->worker.now + 2 * T;
	int64_t		most = 0;
	uint32_t	nodes = w->requests[r].znodes;

	for (;;)
	{
		int64_t		due;

		while (w->conn.inbox != NULL || w->conn.outbox != NULL)
		{
			w->worker.now += 100;
			world_serve(w, INT32_MAX);
			world_deliver(w, 1);
			if (w->requests[r].state == SLOT_LOST || w->requests[r].znodes != nodes)
				return most;
			if (world_holds(w, r) && zkl_manager_lease(w->worker.m) > most)
				most = zkl_manager_lease(w->worker.m);
		}
		due = zkl_manager_timer(w->worker.m);
		CHECK(due >= 0 && due < until);
		if (due < 0 || due >= until)
			return most;
		w->worker.now = due > w->worker.now ? due : w->worker.now + 1;
		world_flush(w);
	}
}

/* A node is marked that waits behind nobody, but its server hears nothing. */
static void
marked_in_silence(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	r;
	int64_t		marked_at;

	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_sleep(w, 4 * WORLD_BEAT + WORLD_BEAT / 100);
	CHECK(world_waits(w, r));
	own_path(w, r, path);
	marked_at = w->worker.now;
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	CHECK_INT(model_set(&w->zk, path, mark), ZKL_RC_OK);
	w->worker.now += T / 3;
	world_disconnect(w);
	world_connect(w);
	CHECK(lease_until_loss(w, r) <= marked_at + T);
	world_run(w);
	world_wind_up(w);
}

/* A node is marked before its server knows that it has made it. */
static void
marked_before_the_reply(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1] = "";
	uint32_t	r;
	int64_t		marked_at;

	world_sleep(w, 10 * WORLD_BEAT);
	world_warm_up(w, "/a");
	world_run(w);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_serve(w, INT32_MAX);
	snprintf(path, sizeof(path), "%s", tree_newest()->text);
	marked_at = w->worker.now;
	CHECK_INT(model_set(&w->zk, path, mark), ZKL_RC_OK);
	w->worker.now += T / 3 - 1000;
	CHECK(lease_until_loss(w, r) <= marked_at + T);
	world_run(w);
	world_wind_up(w);
}

/*
 * Our own node cannot be read on a new connection.  Somebody may have marked
 * it, so no beat renews the lease before it has been read.
 */
static void
own_node_not_read(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	int64_t		lease;

	world_sleep(w, 2 * WORLD_BEAT);
	world_disconnect(w);
	lease = zkl_manager_lease(w->worker.m);
	w->zk.single_rc = MODEL_THROTTLED;
	w->zk.single_kind = ZKL_SEND_GET;
	w->zk.single_path = "/a/";
	world_connect(w);
	world_run(w);
	CHECK_INT(w->zk.single_rc, 0);
	CHECK_INT(zkl_manager_lease(w->worker.m), lease);
	world_sleep(w, WORLD_BEAT + WORLD_BEAT / 2);
	CHECK(world_holds(w, r) && zkl_manager_lease(w->worker.m) > lease);
	world_wind_up(w);
}

/*
 * Or never again: its ACL was changed.  Nobody can rely on that hold, but on
 * the others of this server.
 */
static void
own_node_unreadable(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	other = world_submit(w, "/b", 1, ZKL_EXCLUSIVE);

	world_run(w);
	world_disconnect(w);
	w->zk.no_read = "/a/";
	world_connect(w);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(w->requests[r].state == SLOT_LOST);
	CHECK_INT(w->requests[r].failure, ZKL_FAILURE_UNREADABLE);
	CHECK(world_holds(w, other));
	CHECK(zkl_manager_lease(w->worker.m) > w->worker.now);
	CHECK_INT(world_nodes(w, "/a"), 1);
	world_release(w, r);
	world_run(w);
	CHECK_INT(world_nodes(w, "/a"), 0);
	w->zk.no_read = NULL;
	world_wind_up(w);
}

/*
 * A young hold's node is marked, then ZooKeeper answers something else, and
 * then the worker is held up, within the lease.  A beat that is acknowledged
 * before the first look at the node must not prolong the lease past the time at
 * which the operator deletes it.
 */
static void
marked_while_held_up(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	r;
	int64_t		marked_at;

	world_sleep(w, 10 * WORLD_BEAT);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	own_path(w, r, path);
	marked_at = w->worker.now;
	CHECK_INT(model_set(&w->zk, path, mark), ZKL_RC_OK);
	w->worker.now += T / 20;
	(void) world_submit(w, "/b", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	w->worker.now += T / 2;
	world_flush(w);
	CHECK(lease_until_loss(w, r) <= marked_at + T);
	CHECK(w->requests[r].state == SLOT_LOST);
	world_run(w);
	world_wind_up(w);
}

/*
 * A waiter's node is marked, and cannot be read; then it is its turn.  The
 * operator deletes the node a session timeout after the mark.
 */
static void
marked_waiter_not_read(void)
{
	static const int32_t rcs[] = {-1, ZKL_RC_NOAUTH, MODEL_THROTTLED};
	size_t		i;

	for (i = 0; i < sizeof(rcs) / sizeof(rcs[0]); i++)
	{
		World	   *w = world_ready();
		char		other[ZKL_MAX_PATH + 1];
		char		path[ZKL_MAX_PATH + 1];
		uint32_t	r;
		int64_t		marked_at;

		world_warm_up(w, "/a");
		foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
		r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		world_sleep(w, 3 * WORLD_BEAT);
		own_path(w, r, path);
		w->zk.single_rc = rcs[i];
		w->zk.single_kind = ZKL_SEND_GET;
		w->zk.single_path = strrchr(path, '/');
		w->zk.singles = 1000000;
		marked_at = w->worker.now;
		CHECK_INT(model_set(&w->zk, path, mark), ZKL_RC_OK);
		world_run(w);
		world_sleep(w, marked_at + T * 9 / 10 - w->worker.now);
		CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
		world_run(w);
		world_sleep(w, marked_at + T - w->worker.now);
		CHECK_MSG(!world_holds(w, r) || zkl_manager_lease(w->worker.m) <= w->worker.now,
				  "rc %d", (int) rcs[i]);
		w->zk.single_rc = 0;
		world_run(w);
		world_sleep(w, 3 * WORLD_BEAT);
		world_wind_up(w);
	}
}

/*
 * Those ahead are deleted and the next one's node is marked, while the worker is
 * held up.  It grants the lock, is held up again, and stops when a beat is
 * acknowledged that went ahead of its look at the node.
 */
static void
marked_before_its_turn(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	char		path_now[ZKL_MAX_PATH + 1];
	uint32_t	holder,
				next,
				r;
	int64_t		marked_at;
	int			rounds = 0;

	world_warm_up(w, "/a");
	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	r = world_submit(w, "/a", 3, ZKL_EXCLUSIVE);
	world_sleep(w, 4 * WORLD_BEAT);
	w->tampered = true;
	own_path(w, holder, path);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	own_path(w, next, path);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	own_path(w, r, path);
	CHECK_INT(model_set(&w->zk, path, mark), ZKL_RC_OK);
	marked_at = w->worker.now;
	w->worker.now = zkl_manager_lease(w->worker.m) - 2000;
	world_deliver(w, INT32_MAX);
	world_flush(w);
	while (w->conn.inbox != NULL && CHECK(++rounds < 50))
	{
		w->worker.now += 100;
		world_serve(w, 1);
		world_deliver(w, 1);
	}
	w->worker.now += T * 7 / 24 + 1000;
	world_flush(w);
	world_serve(w, 1);
	world_deliver(w, 1);
	own_path(w, r, path_now);
	CHECK(!world_holds(w, r) || strcmp(path, path_now) != 0 ||
		  zkl_manager_lease(w->worker.m) <= marked_at + T);
	world_run(w);
	world_wind_up(w);
}

/*
 * A node is marked while two are ahead of it, so that nothing watches it.  Both
 * leave at once: the lease that is good by then is too long for this node.
 */
static void
marked_in_the_middle(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	char		path_now[ZKL_MAX_PATH + 1];
	uint32_t	holder,
				next,
				r;
	int64_t		marked_at;

	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	r = world_submit(w, "/a", 3, ZKL_EXCLUSIVE);
	world_run(w);
	own_path(w, r, path);
	CHECK_INT(model_set(&w->zk, path, mark), ZKL_RC_OK);
	marked_at = w->worker.now;
	world_sleep(w, T * 3 / 4);
	CHECK(zkl_manager_lease(w->worker.m) > marked_at + T);
	world_leave(w, next);
	world_leave(w, holder);
	world_flush(w);
	CHECK(!world_holds(w, r));
	world_run(w);
	own_path(w, r, path_now);
	CHECK(world_holds(w, r) && strcmp(path, path_now) != 0);
	world_wind_up(w);
}

/*
 * The downgrade of a node is refused, and its own watch has nothing to tell: it
 * is tried again, for those who wait for it.
 */
static void
refused_downgrade(void)
{
	World	   *w = world_ready();
	uint32_t	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	sharer,
				next;

	world_run(w);
	sharer = world_submit(w, "/a", 1, ZKL_SHARED);
	next = world_submit(w, "/a", 2, ZKL_SHARED);
	world_sleep(w, 2 * WORLD_BEAT);
	w->zk.no_write = "__WRIT__";
	world_release(w, holder);
	world_run(w);
	CHECK(world_waits(w, next));
	w->zk.no_write = NULL;
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(world_holds(w, sharer) && world_holds(w, next));
	world_wind_up(w);
}

/*
 * A downgrade waits for a batch.  Another client writes to the node, and the
 * look at it is still under way when the downgrade goes out with the old
 * version: the downgrade is tried again with the new one.
 */
static void
downgrade_of_an_old_version(void)
{
	World	   *w = world_make();
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	holder,
				sharer,
				next;

	w->config.batches_in_flight = 1;
	world_begin(w);
	world_connect(w);
	world_warm_up(w, "/b");
	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	sharer = world_submit(w, "/a", 1, ZKL_SHARED);
	next = world_submit(w, "/a", 2, ZKL_SHARED);
	world_sleep(w, 2 * WORLD_BEAT);
	w->tampered = true;
	own_path(w, holder, path);
	world_submit(w, "/b", 3, ZKL_EXCLUSIVE);
	world_release(w, holder);
	CHECK_INT(model_set(&w->zk, path, "written"), ZKL_RC_OK);
	world_deliver(w, INT32_MAX);
	world_flush(w);
	world_serve(w, 1);
	world_deliver(w, 1);
	world_flush(w);
	world_run(w);
	world_sleep(w, 3 * WORLD_BEAT);
	CHECK(world_holds(w, sharer) && world_holds(w, next));
	world_wind_up(w);
}

/* A delete of an unclaimed node is refused: one is enough to remember. */
static void
unclaimed_node_refused(void)
{
	static const char uuid[] = "00000000-0000-8000-8000-000000000000";
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	char		orphan[ZKL_MAX_PATH + 1];
	int64_t		before = 0;
	int			i;

	model_mkdir(&w->zk, WORLD_ROOT "/a");
	snprintf(path, sizeof(path), WORLD_ROOT "/a/_c_%s-__WRIT__", uuid);
	CHECK_INT(model_create(&w->zk, path, true, w->worker.session.id, "", orphan), 0);
	w->zk.single_rc = ZKL_RC_NOAUTH;
	w->zk.single_kind = ZKL_SEND_DELETE;
	w->zk.single_path = uuid;
	w->zk.singles = 1000000;
	for (i = 0; i < 100; i++)
	{
		uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);

		world_run(w);
		world_release(w, r);
		world_run(w);
		if (i == 20)
			before = w->worker.memory;
	}
	CHECK(w->worker.memory < before + 20);
	w->zk.single_rc = 0;
	world_sleep(w, 10 * WORLD_BEAT);
	CHECK(tree_find(orphan) == NULL);
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(own_node_deleted);
	RUN(waiting_node_deleted);
	RUN(inherited_node_deleted);
	RUN(unclaimed_nodes);
	RUN(janitor_is_refused);
	RUN(deletes_are_refused);
	RUN(sync_is_refused);
	RUN(reads_are_not_answered);
	RUN(operator_breaks);
	RUN(operator_breaks_a_downgrade);
	RUN(marked_while_held_up);
	RUN(marked_waiter_not_read);
	RUN(marked_before_its_turn);
	RUN(marked_in_the_middle);
	RUN(refused_downgrade);
	RUN(downgrade_of_an_old_version);
	RUN(unclaimed_node_refused);
	RUN(own_node_not_read);
	RUN(own_node_unreadable);
	RUN(marked_in_silence);
	RUN(marked_before_the_reply);
	return unit_finish();
}
