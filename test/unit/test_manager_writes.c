/*
 * test_manager_writes.c
 *	  What writes cost and in which order they go: those of one batch, those of a
 *	  batch that ZooKeeper refused, and those whose answer is lost.
 */
#include <stdio.h>
#include <string.h>

#include "core/batch.h"
#include "core/state.h"
#include "pair.h"
#include "unit.h"

#define MANY	8

/* Holds of many locks, with names such as /x0 */
static void
hold_many(World *w, uint32_t *r)
{
	char		name[16];
	int			i;

	for (i = 0; i < MANY; i++)
	{
		snprintf(name, sizeof(name), "/x%d", i);
		r[i] = world_submit(w, name, 1, ZKL_EXCLUSIVE);
	}
	world_run(w);
}

static void
check_op(const Request *batch, size_t i, OpKind kind, const char *part)
{
	if (!CHECK(batch != NULL && i < batch->nops))
		return;
	CHECK_MSG(batch->ops[i].kind == kind &&
			  strstr(batch->ops[i].path, part) != NULL,
			  "operation %zu is of kind %d on %s", i,
			  (int) batch->ops[i].kind, batch->ops[i].path);
}

/* An owner holds /d shared on top of exclusive, and gives the latter back. */
static uint32_t
hold_both(World *w, uint32_t *writer)
{
	uint32_t	reader;

	*writer = world_submit(w, "/d", 1, ZKL_EXCLUSIVE);
	world_run(w);
	reader = world_submit(w, "/d", 1, ZKL_SHARED);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(world_holds(w, *writer) && world_holds(w, reader));
	return reader;
}

/*
 * Deletes that somebody waits for, other deletes, creates, downgrades.  All that
 * has come while the only batch was under way goes with the next one.
 */
static void
order_of_a_batch(void)
{
	World	   *w = world_make();
	const Request *batch;
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	late,
				now,
				writer,
				reader;

	w->config.batches_in_flight = 1;
	world_begin(w);
	world_connect(w);
	world_warm_up(w, "/late");
	world_warm_up(w, "/under-way");
	world_warm_up(w, "/new");
	late = world_submit(w, "/late", 1, ZKL_EXCLUSIVE);
	now = world_submit(w, "/now", 1, ZKL_EXCLUSIVE);
	reader = hold_both(w, &writer);
	foreign_enter(w, "/now", ZKL_EXCLUSIVE, other);
	(void) world_submit(w, "/under-way", 2, ZKL_EXCLUSIVE);
	world_release(w, writer);
	(void) world_submit(w, "/new", 2, ZKL_EXCLUSIVE);
	world_release(w, late);
	world_release(w, now);
	world_serve(w, INT32_MAX);
	world_deliver(w, INT32_MAX);
	for (batch = w->conn.inbox; batch != NULL && batch->nops < 2;)
		batch = batch->next;
	check_op(batch, 0, OP_SET, "/.servers/");
	check_op(batch, 1, OP_DELETE, "/now/");
	check_op(batch, 2, OP_DELETE, "/late/");
	check_op(batch, 3, OP_CREATE, "/new/");
	check_op(batch, 4, OP_SET, "/d/");
	check_op(batch, 5, OP_CREATE, "/d/");
	check_op(batch, 6, OP_DELETE, "/d/");
	CHECK(batch != NULL && batch->nops == 7);
	world_run(w);
	CHECK(world_holds(w, reader));
	world_wind_up(w);
}

/*
 * The nodes of many holds are gone.  The batch that was to delete them is refused
 * for the first of them: the others go alone and ahead of the next batch, or each
 * of them would have a batch refused.
 */
static void
deletes_of_a_refused_batch(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	r[MANY];
	uint32_t	next;
	const Request *request;
	int			alone = 0;
	int			i;

	world_warm_up(w, "/y");
	hold_many(w, r);
	w->tampered = true;
	for (i = 0; i < MANY; i++)
	{
		world_path(w, r[i], path);
		CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
		world_leave(w, r[i]);
	}
	world_count_anew(w);
	next = world_submit(w, "/y", 2, ZKL_EXCLUSIVE);
	world_serve(w, 1);
	world_deliver(w, 1);
	for (request = w->conn.inbox; request != NULL && request->nops < 2;
		 request = request->next)
		alone += request->kind == REQUEST_WRITE;
	CHECK_INT(alone, MANY - 1);
	world_run(w);
	for (i = 0; i < MANY; i++)
		CHECK(w->requests[r[i]].state == SLOT_FREE);
	CHECK(world_holds(w, next));
	CHECK_INT(w->zk.counts.failed_multis, 1);
	world_wind_up(w);
}

/* Many creates in a directory where none is allowed: they fail by one answer. */
static void
creates_share_a_fate(void)
{
	World	   *w = world_ready();
	uint32_t	r[MANY];
	int			i;

	w->zk.no_write = "/b/";
	model_mkdir(&w->zk, WORLD_ROOT "/b");
	world_count_anew(w);
	for (i = 0; i < MANY; i++)
		r[i] = world_enter(w, "/b", (uint64_t) i + 1, ZKL_EXCLUSIVE, false);
	world_flush(w);
	world_run(w);
	for (i = 0; i < MANY; i++)
		CHECK(w->requests[r[i]].state == SLOT_FAILED);
	CHECK_INT(w->zk.counts.failed_multis, 1);
	world_wind_up(w);
}

/* The same, if their directories cannot be made */
static void
directories_share_a_fate(void)
{
	World	   *w = world_ready();
	uint32_t	r[MANY];
	char		name[16];
	int			i;

	w->zk.no_write = "/b/";
	model_mkdir(&w->zk, WORLD_ROOT "/b");
	world_count_anew(w);
	for (i = 0; i < MANY; i++)
	{
		snprintf(name, sizeof(name), "/b/%d", i);
		r[i] = world_enter(w, name, 1, ZKL_EXCLUSIVE, false);
	}
	world_flush(w);
	world_run(w);
	for (i = 0; i < MANY; i++)
		CHECK_INT(w->requests[r[i]].failure, ZKL_FAILURE_PARENTS);
	CHECK_MSG(w->zk.counts.failed_multis <= 2, "%u batches failed",
			  w->zk.counts.failed_multis);
	world_wind_up(w);
}

/*
 * The answer to a downgrade is lost, whether or not it is applied.  It is not sent
 * again before a listing has told which of the two nodes there is: the second one
 * would find none, and the hold would be lost.
 */
static void
unanswered_downgrade(void)
{
	int			applied;

	for (applied = 0; applied < 2; applied++)
	{
		World	   *w = world_ready();
		uint32_t	writer;
		uint32_t	reader = hold_both(w, &writer);
		uint32_t	other = world_submit(w, "/d", 2, ZKL_SHARED);

		world_run(w);
		world_count_anew(w);
		w->zk.multi_rc = ZKL_RC_UNKNOWN;
		w->zk.multi_applied = applied == 1;
		world_release(w, writer);
		world_run(w);
		w->zk.multi_applied = false;
		CHECK(world_holds(w, reader) && world_holds(w, other));
		CHECK_INT(w->losses, 0);
		CHECK_MSG(w->zk.counts.lists > 0, "no listing, case %d", applied);
		world_wind_up(w);
	}
}

/* A downgrade is under way when one of the holds ends that it is for. */
static void
downgrade_for_two(void)
{
	World	   *w = world_ready();
	uint32_t	writer;
	uint32_t	reader = hold_both(w, &writer);
	uint32_t	second = world_submit(w, "/d", 1, ZKL_SHARED);
	uint32_t	other;

	CHECK(world_holds(w, second));
	other = world_submit(w, "/d", 2, ZKL_SHARED);
	world_run(w);
	CHECK(world_waits(w, other));
	world_release(w, writer);
	CHECK_INT(w->conn.inbox->nops, 4);
	world_release(w, reader);
	world_run(w);
	CHECK(world_holds(w, second) && world_holds(w, other));
	CHECK_INT(w->requests[second].record.mode, ZKL_SHARED);
	CHECK_INT(w->losses, 0);
	world_wind_up(w);
}

/* ---- publications ---- */

/*
 * The answer to a publication is lost.  It is not sent again before a listing has
 * told whether it exists.
 */
static void
unanswered_publication(void)
{
	int			applied;

	for (applied = 0; applied < 2; applied++)
	{
		Pair		p = pair_make();

		world_count_anew(p.w);
		p.w->zk.multi_rc = ZKL_RC_UNKNOWN;
		p.w->zk.multi_applied = applied == 1;
		p.w->worker.now += PAIR_PATIENCE + 1000;
		world_flush(p.w);
		CHECK_INT(p.w->conn.inbox->next->nops, 2);
		world_run(p.w);
		p.w->zk.multi_applied = false;
		world_sleep(p.w, 3 * PAIR_PATIENCE);
		CHECK_INT(pair_publications(), 1);
		CHECK_INT(p.w->zk.counts.failed_multis, applied == 0);
		pair_finish(&p);
	}
}

/*
 * A publication goes in a batch, behind all else and ahead of those that come: alone,
 * its delete could come behind the listing that is to tell what became of it.
 */
static void
order_of_publications(void)
{
	Pair		p = pair_make();
	uint32_t	c;
	const Request *batch;

	pair_wait_long(&p);
	CHECK_INT(pair_publications(), 1);
	(void) pair_submit(&p, "/c", 2, ZKL_EXCLUSIVE);
	c = pair_submit(&p, "/b", 2, ZKL_EXCLUSIVE);
	CHECK(world_waits(p.w, c));
	world_leave(p.w, p.b);
	(void) world_enter(p.w, "/new", 3, ZKL_EXCLUSIVE, false);
	p.w->worker.now += PAIR_PATIENCE + 1000;
	world_flush(p.w);
	for (batch = p.w->conn.inbox; batch != NULL && batch->nops < 2;
		 batch = batch->next)
		CHECK(batch->kind != REQUEST_WRITE || batch->ops[0].kind != OP_DELETE);
	check_op(batch, 1, OP_DELETE, "/b/");
	check_op(batch, 2, OP_CREATE, "/new/");
	check_op(batch, 3, OP_DELETE, ZKL_WAITS_DIRECTORY "/");
	check_op(batch, 4, OP_CREATE, ZKL_WAITS_DIRECTORY "/");
	world_run(p.w);
	CHECK_INT(pair_publications(), 1);
	pair_finish(&p);
}

/* How many batches it takes to create MANY znodes, if so many bytes fit in one */
static uint32_t
batches_for_many(uint32_t bytes)
{
	World	   *w = world_make();
	char		name[16];
	uint32_t	n;
	int			i;

	w->config.batch_bytes = bytes;
	w->config.batches_in_flight = 1;
	world_begin(w);
	world_connect(w);
	for (i = 0; i < MANY; i++)
	{
		snprintf(name, sizeof(name), "/x%d", i);
		world_warm_up(w, name);
	}
	world_count_anew(w);
	for (i = 0; i < MANY; i++)
	{
		snprintf(name, sizeof(name), "/x%d", i);
		world_enter(w, name, (uint64_t) i + 1, ZKL_EXCLUSIVE, false);
	}
	world_flush(w);
	world_run(w);
	n = w->zk.counts.multis;
	world_wind_up(w);
	return n;
}

/* A batch takes what fits, and one write however long that is. */
static void
bytes_of_a_batch(void)
{
	CHECK_INT(batches_for_many(256 * 1024), 1);
	CHECK_INT(batches_for_many(1), MANY);
	CHECK_INT(batches_for_many(2 * 200), MANY / 2);
}

/* Before the version of a heartbeat node overflows, there is another node. */
static void
last_version(void)
{
	World	   *w = world_ready();
	uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	char		heartbeat[ZKL_MAX_PATH + 1];
	uint32_t	chain = world_chain(w);
	uint32_t	r;

	world_run(w);
	world_heartbeat(w, chain, heartbeat);
	tree_find(heartbeat)->stat.version = (1 << 30) + 1;
	((ZklManager *) w->worker.m)->chain.version = (1 << 30) + 1;
	r = world_submit(w, "/b", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, held) && world_holds(w, r));
	CHECK_INT(world_chain(w), chain + 1);
	CHECK(tree_find(heartbeat) == NULL);
	world_wind_up(w);
}

/*
 * While a new chain is awaited no batch can go, so no timer is due: the worker would
 * wake up again and again.
 */
static void
no_timer_without_a_chain(void)
{
	World	   *w = world_ready();
	ZklManager *m = w->worker.m;

	(void) world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	w->worker.now += 2 * WORLD_BEAT;
	CHECK(zkl_batch_timer(m) >= 0);
	m->chain.needed = true;
	CHECK_INT(zkl_batch_timer(m), -1);
	m->chain.needed = false;
	world_run(w);
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(order_of_a_batch);
	RUN(deletes_of_a_refused_batch);
	RUN(creates_share_a_fate);
	RUN(directories_share_a_fate);
	RUN(unanswered_downgrade);
	RUN(downgrade_for_two);
	RUN(unanswered_publication);
	RUN(order_of_publications);
	RUN(bytes_of_a_batch);
	RUN(last_version);
	RUN(no_timer_without_a_chain);
	return unit_finish();
}
