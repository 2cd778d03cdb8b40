/*
 * test_manager_operator.c
 *	  What operators, and others with access to ZooKeeper, do to the nodes of
 *	  requests: delete, overwrite and mark them.
 */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "world.h"

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
	world_path(w, r, path);

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
	seq = w->requests[r].record.seq;
	world_path(w, r, path);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, reader) && world_waits(w, r));
	CHECK(w->requests[r].record.seq > seq);
	CHECK_INT(world_nodes(w, "/a"), 3);
	world_release(w, holder);
	world_release(w, reader);
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/* The same of a node that another hold of the owner has taken over. */
static void
shared_node_deleted(void)
{
	int			moment;

	for (moment = 0; moment < 3; moment++)
	{
		World	   *w = world_ready();
		uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		uint32_t	second;

		world_run(w);
		second = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
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
		CHECK(world_holds(w, second));
		model_expire(&w->zk, w->worker.session.id);
		world_run(w);
		world_sleep(w, 3 * WORLD_BEAT);
		CHECK_MSG(w->requests[second].state == SLOT_LOST, "moment %d", moment);
		world_wind_up(w);
	}
}

static bool
is_loss_untold(const World *w)
{
	size_t		n;
	const ZklAction *actions = zkl_manager_actions(w->worker.m, &n);

	while (n > 0)
		if (actions[--n].kind == ZKL_ACTION_LOSE)
			return true;
	return false;
}

/*
 * The look that finds the mark is answered together with a later batch.  The lease is
 * published before the session is told, so this batch does not extend it.  That is so of
 * a lock that is kept, too: somebody may ask for how long it is sure.
 */
static void
check_lease_before_loss(bool kept)
{
	World	   *w = world_ready();
	int64_t		lease = 0;
	uint32_t	r,
				other;
	int			late = 0;		/* answers behind the loss */
	Frame	   *message;

	world_sleep(w, 3 * WORLD_BEAT);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	if (kept)
		world_keep(w, r, 100 * WORLD_BEAT);
	world_write(w, r, WORLD_BREAK);
	w->worker.now += WORLD_BEAT + 1000;
	world_flush(w);
	w->worker.now += WORLD_BEAT;
	other = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_serve(w, INT32_MAX);
	while ((message = model_receive(&w->conn)) != NULL)
	{
		bool		untold = is_loss_untold(w);

		worker_deliver(&w->worker, message);
		message_free_frame(message);
		if (untold)
			CHECK_INT(zkl_manager_lease(w->worker.m), lease);
		late += untold;
		lease = zkl_manager_lease(w->worker.m);
	}
	CHECK(late > 0);
	world_flush(w);
	CHECK(kept ? w->requests[r].kept_lost : w->requests[r].state == SLOT_LOST);
	world_sleep(w, WORLD_BEAT);
	CHECK(zkl_manager_lease(w->worker.m) > lease);
	world_release(w, r);
	world_release(w, other);
	world_wind_up(w);
}

static void
lease_before_loss(void)
{
	check_lease_before_loss(false);
	check_lease_before_loss(true);
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

	/* somewhere: if ZooKeeper has lost writes, it is looked for */
	model_mkdir(&w->zk, WORLD_ROOT "/b/c");
	snprintf(path, sizeof(path), WORLD_ROOT "/b/c/_c_%s-__READ__", uuid);
	CHECK_INT(model_create(&w->zk, path, true, w->worker.session.id, "", orphan), 0);
	CHECK_INT(model_create(&w->zk, path, true, 4711, "", foreign), 0);
	world_disconnect(w);
	world_lose_a_beat(w);
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
 * The janitor's questions get errors for answers, on a connection that goes on or one
 * that ends then, at whatever step and however often: what it is to delete is gone in
 * the end.  Guards of zk_once(), below /.once, are no exception.
 */
static void
janitor_is_refused(void)
{
	static const char uuid[] = "00000000-0000-8000-8000-000000000000";
	static const ZklSendKind kinds[] = {ZKL_SEND_LIST, ZKL_SEND_GET,
	ZKL_SEND_DELETE};
	size_t		i;

	for (i = 0; i < 3 * 4 * 2; i++)
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
		world_lose_a_beat(w);
		w->zk.single_kind = kinds[i / 8];
		w->zk.single_rc = errors[i / 2 % 4];
		w->zk.single_path = "/";
		w->zk.singles = i / 8 == 2 || w->zk.single_rc == -102 ? 3 : 9;
		world_connect(w);
		world_run(w);
		if (i % 2)
		{
			world_disconnect(w);
			world_connect(w);
		}
		world_sleep(w, 20000000);
		CHECK_MSG(w->zk.singles == 0, "refused, case %zu", i);
		CHECK_MSG(tree_find(orphan) == NULL, "gone, case %zu", i);
		CHECK_MSG(tree_find(guard) == NULL, "guard, case %zu", i);
		world_wind_up(w);
	}
}

/* A directory that we may not list is left out in the end, and the others are not. */
static void
janitor_may_not_list(void)
{
	static const char uuid[] = "00000000-0000-8000-8000-000000000000";
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	char		orphan[ZKL_MAX_PATH + 1];

	model_mkdir(&w->zk, WORLD_ROOT "/a");
	model_mkdir(&w->zk, WORLD_ROOT "/b");
	snprintf(path, sizeof(path), WORLD_ROOT "/a/_c_%s-__READ__", uuid);
	CHECK_INT(model_create(&w->zk, path, true, w->worker.session.id, "", orphan), 0);
	world_disconnect(w);
	world_lose_a_beat(w);
	w->zk.single_kind = ZKL_SEND_LIST;
	w->zk.single_rc = ZKL_RC_NOAUTH;
	w->zk.single_path = WORLD_ROOT "/b";
	w->zk.singles = 1000;
	world_connect(w);
	world_sleep(w, 60000000);
	CHECK(w->zk.singles < 1000 && w->zk.singles > 990);
	CHECK(tree_find(orphan) == NULL);
	world_wind_up(w);
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
	world_path(w, holder, path);
	world_write(w, holder, WORLD_BREAK);
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

/* What the janitor asks of an unclaimed node is refused: once is enough to remember. */
static void
unclaimed_node_refused(ZklSendKind kind, int32_t rc)
{
	World	   *w = world_ready();
	ZklUuid		id = world_leftover(w);
	char		uuid[ZKL_UUID_TEXT + 1];
	char		path[ZKL_MAX_PATH + 1];
	char		orphan[ZKL_MAX_PATH + 1];
	int64_t		before = 0;
	int			i;

	zkl_uuid_format(&id, uuid);
	model_mkdir(&w->zk, WORLD_ROOT "/a");
	snprintf(path, sizeof(path), WORLD_ROOT "/a/_c_%s-__WRIT__", uuid);
	CHECK_INT(model_create(&w->zk, path, true, w->worker.session.id, "", orphan), 0);
	w->zk.single_rc = rc;
	w->zk.single_kind = kind;
	w->zk.single_path = uuid;
	w->zk.singles = 1000000;
	for (i = 0; i < 100; i++)
	{
		uint32_t	r = kind == ZKL_SEND_GET ? world_try(w, "/a", 1, ZKL_EXCLUSIVE) :
		world_submit(w, "/a", 1, ZKL_EXCLUSIVE);

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

static void
unclaimed_node_not_deleted(void)
{
	unclaimed_node_refused(ZKL_SEND_DELETE, ZKL_RC_NOAUTH);
}

static void
unclaimed_node_not_read(void)
{
	unclaimed_node_refused(ZKL_SEND_GET, -1);
}

/* A hold that was broken, and not yet released, is not in the way of its own session. */
static void
own_broken_hold(void)
{
	World	   *w = world_ready();
	uint32_t	held = world_submit(w, "/a", 1, ZKL_SHARED);
	uint32_t	r;

	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	w->tampered = true;
	world_write(w, held, WORLD_BREAK);
	world_run(w);
	CHECK(w->requests[held].state == SLOT_LOST);
	r = world_try(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK_INT(w->requests[r].state, SLOT_DENIED);
	world_release(w, r);
	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	world_release(w, r);
	world_run(w);
	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(own_node_deleted);
	RUN(waiting_node_deleted);
	RUN(shared_node_deleted);
	RUN(lease_before_loss);
	RUN(unclaimed_nodes);
	RUN(janitor_is_refused);
	RUN(janitor_may_not_list);
	RUN(deletes_are_refused);
	RUN(sync_is_refused);
	RUN(reads_are_not_answered);
	RUN(operator_breaks);
	RUN(own_broken_hold);
	RUN(unclaimed_node_not_deleted);
	RUN(unclaimed_node_not_read);
	return unit_finish();
}
