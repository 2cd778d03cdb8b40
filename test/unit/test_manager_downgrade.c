/*
 * test_manager_downgrade.c
 *	  An exclusive node is to become a shared one, and an operator or another
 *	  client writes to it, or takes the right to do so away.
 */
#include <stdio.h>
#include <string.h>

#include "unit.h"
#include "world.h"

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
	world_path(w, holder, path);
	for (i = 0; i < 20; i++)
	{
		snprintf(name, sizeof(name), "/b%d", i);
		world_enter(w, name, 3, ZKL_EXCLUSIVE, false);
	}
	world_release(w, holder);
	CHECK_INT(model_set(&w->zk, path, WORLD_BREAK), ZKL_RC_OK);
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
 * ZooKeeper loses a downgrade that it had acknowledged: the writer's znode is
 * back, with the unique id of the reader's, which is gone.
 */
static void
lost_downgrade(void)
{
	World	   *w = world_ready();
	uint32_t	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	sharer;
	char		writer[ZKL_MAX_PATH + 1];
	char		reader[ZKL_MAX_PATH + 1];
	char		heartbeat[ZKL_MAX_PATH + 1];

	world_run(w);
	sharer = world_submit(w, "/a", 1, ZKL_SHARED);
	world_path(w, holder, writer);
	world_sleep(w, 2 * WORLD_BEAT);
	world_release(w, holder);
	world_run(w);
	world_path(w, sharer, reader);
	CHECK(tree_find(writer) == NULL && tree_find(reader) != NULL);
	world_disconnect(w);
	w->tampered = true;
	CHECK_INT(model_delete(&w->zk, reader), ZKL_RC_OK);
	CHECK_INT(model_create(&w->zk, writer, false, w->worker.session.id, "", NULL),
			  ZKL_RC_OK);
	world_heartbeat(w, world_chain(w), heartbeat);
	tree_find(heartbeat)->stat.version--;

	/* The server looks through all directories before it sees its own node. */
	w->zk.single_kind = ZKL_SEND_GET;
	w->zk.single_path = "__READ__";
	w->zk.single_rc = MODEL_THROTTLED;
	w->zk.singles = 1;
	world_connect(w);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK_INT(w->lost_writes, 1);
	CHECK(tree_find(writer) == NULL);
	CHECK_INT(w->losses, 1);
	world_wind_up(w);
}

/*
 * A downgrade waits for a batch.  Another client writes to the node, and the
 * look at it is still under way when the downgrade goes out with the old
 * version, and is refused.
 */
static World *
write_ahead(const char *data, uint32_t *sharer, uint32_t *next, char *path)
{
	World	   *w = world_make();
	uint32_t	holder;

	w->config.batches_in_flight = 1;
	world_begin(w);
	world_connect(w);
	world_warm_up(w, "/b");
	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	*sharer = world_submit(w, "/a", 1, ZKL_SHARED);
	*next = world_submit(w, "/a", 2, ZKL_SHARED);
	world_sleep(w, 2 * WORLD_BEAT);
	w->tampered = true;
	world_path(w, holder, path);
	world_submit(w, "/b", 3, ZKL_EXCLUSIVE);
	world_release(w, holder);
	CHECK_INT(model_set(&w->zk, path, data), ZKL_RC_OK);
	world_deliver(w, INT32_MAX);
	world_flush(w);
	world_serve(w, 1);
	world_deliver(w, 1);
	world_flush(w);
	world_run(w);
	return w;
}

/* It is tried again with the new version. */
static void
downgrade_of_an_old_version(void)
{
	uint32_t	sharer,
				next;
	char		path[ZKL_MAX_PATH + 1];
	World	   *w = write_ahead("written", &sharer, &next, path);

	world_sleep(w, 3 * WORLD_BEAT);
	CHECK(tree_find(path) == NULL);
	CHECK(world_holds(w, sharer) && world_holds(w, next));
	world_wind_up(w);
}

/* An operator has marked the node: it stays as it is until the holder ends. */
static void
downgrade_of_a_marked_node(void)
{
	uint32_t	sharer,
				next;
	char		path[ZKL_MAX_PATH + 1];
	World	   *w = write_ahead(WORLD_BREAK, &sharer, &next, path);

	CHECK_INT(w->requests[sharer].state, SLOT_LOST);
	CHECK_INT(w->requests[sharer].failure, ZKL_FAILURE_BROKEN);
	world_sleep(w, 3 * WORLD_BEAT);
	CHECK(tree_find(path) != NULL);
	CHECK(world_waits(w, next));
	world_release(w, sharer);
	world_run(w);
	CHECK(tree_find(path) == NULL);
	CHECK(world_holds(w, next));
	world_wind_up(w);
}

/*
 * ZooKeeper loses the write that tells how long the hold has waited, and an operator's
 * mark gets the same version: the downgrade does not go over it.
 */
static void
mark_of_the_version_of_a_lost_write(void)
{
	World	   *w = world_ready();
	uint32_t	first = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	uint32_t	holder,
				sharer;
	char		path[ZKL_MAX_PATH + 1];

	world_run(w);
	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_sleep(w, 2 * WORLD_BEAT);
	world_release(w, first);
	world_sleep(w, 2 * WORLD_BEAT);
	sharer = world_submit(w, "/a", 1, ZKL_SHARED);
	world_path(w, holder, path);
	CHECK_INT(tree_find(path)->stat.version, 1);
	world_disconnect(w);
	w->tampered = true;
	tree_find(path)->stat.version = 0;
	CHECK_INT(model_set(&w->zk, path, WORLD_BREAK), ZKL_RC_OK);
	world_release(w, holder);
	world_connect(w);
	world_run(w);
	CHECK(tree_find(path) != NULL);
	CHECK_INT(w->requests[sharer].state, SLOT_LOST);
	CHECK_INT(w->requests[sharer].failure, ZKL_FAILURE_BROKEN);
	world_wind_up(w);
}

/*
 * It is unknown whether a hold was downgraded, and the directory may not be listed any
 * more: that hold is lost, and no other one with it.  Its znode goes all the same.
 */
static void
unlisted_downgrade(void)
{
	enum
	{
		NOT_SENT, APPLIED
	}			what;

	for (what = NOT_SENT; what <= APPLIED; what++)
	{
		World	   *w = world_ready();
		uint32_t	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		uint32_t	other = world_submit(w, "/c", 5, ZKL_EXCLUSIVE);
		uint32_t	sharer;
		char		writer[ZKL_MAX_PATH + 1];

		world_run(w);
		sharer = world_submit(w, "/a", 1, ZKL_SHARED);
		world_path(w, holder, writer);
		world_sleep(w, 2 * WORLD_BEAT);
		world_release(w, holder);
		world_serve(w, what == APPLIED ? INT32_MAX : 0);
		world_disconnect(w);
		CHECK((tree_find(writer) == NULL) == (what == APPLIED));
		CHECK_INT(world_nodes(w, "/a"), 1);
		w->zk.single_kind = ZKL_SEND_LIST;
		w->zk.single_path = WORLD_ROOT "/a";
		w->zk.single_rc = ZKL_RC_NOAUTH;
		w->zk.singles = UINT32_MAX;
		world_connect(w);
		world_run(w);
		world_sleep(w, 2 * WORLD_TIMEOUT_MS * 1000LL);
		CHECK_MSG(zkl_manager_lease(w->worker.m) > w->worker.now, "case %d", what);
		CHECK(world_holds(w, other));
		CHECK_INT(w->requests[sharer].state, SLOT_LOST);
		CHECK_INT(w->requests[sharer].failure, ZKL_FAILURE_UNREADABLE);
		world_release(w, sharer);
		world_sleep(w, 2 * WORLD_TIMEOUT_MS * 1000LL);
		CHECK_INT(world_nodes(w, "/a"), 0);
		w->zk.single_rc = 0;
		world_wind_up(w);
	}
}

/*
 * It is unknown on a connection that lives on whether a hold was downgraded, and no
 * listing tells.  The change of the znode that is seen meanwhile may be an operator's
 * mark, so the lease ends before the operator deletes the znode.
 */
static void
mark_behind_a_downgrade(void)
{
	World	   *w = world_ready();
	uint32_t	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	sharer;
	char		path[ZKL_MAX_PATH + 1];
	int64_t		marked_at;

	world_run(w);
	sharer = world_submit(w, "/a", 1, ZKL_SHARED);
	world_path(w, holder, path);
	world_sleep(w, 2 * WORLD_BEAT);
	w->tampered = true;
	w->zk.multi_rc = MODEL_THROTTLED;
	w->zk.single_kind = ZKL_SEND_LIST;
	w->zk.single_path = WORLD_ROOT "/a";
	w->zk.single_rc = MODEL_THROTTLED;
	w->zk.singles = UINT32_MAX;
	world_release(w, holder);
	world_run(w);
	CHECK(tree_find(path) != NULL);
	CHECK_INT(model_set(&w->zk, path, WORLD_BREAK), ZKL_RC_OK);
	marked_at = w->worker.now;
	world_sleep(w, 2 * WORLD_TIMEOUT_MS * 1000LL);
	CHECK(zkl_manager_lease(w->worker.m) < marked_at + WORLD_TIMEOUT_MS * 1000LL);
	CHECK(world_holds(w, sharer));
	w->zk.single_rc = 0;
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK_INT(w->requests[sharer].state, SLOT_LOST);
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(operator_breaks_a_downgrade);
	RUN(refused_downgrade);
	RUN(lost_downgrade);
	RUN(downgrade_of_an_old_version);
	RUN(downgrade_of_a_marked_node);
	RUN(mark_of_the_version_of_a_lost_write);
	RUN(unlisted_downgrade);
	RUN(mark_behind_a_downgrade);
	return unit_finish();
}
