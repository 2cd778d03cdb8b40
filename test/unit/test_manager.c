/*
 * test_manager.c
 *	  The whole core through manager.h, against a tiny ZooKeeper: one scenario
 *	  per function.  That nothing is granted wrongly is checked by world.c all
 *	  the while.
 */
#include "unit.h"
#include "world.h"

static void
reset_counts(World *w)
{
	memset(&w->zk.counts, 0, sizeof(w->zk.counts));
}

/*
 * Holds and lets go a lock, so that its directory is known.  Twice, because
 * the first time there is no directory yet to be watched.
 */
static void
warm_up(World *w, const char *name)
{
	int			i;

	for (i = 0; i < 2; i++)
	{
		uint32_t	r = world_submit(w, name, 999, ZKL_EXCLUSIVE);

		world_run(w);
		CHECK(world_holds(w, r));
		world_release(w, r);
		world_run(w);
	}
}

/* All foreign contenders of a lock vanish. */
static void
clear_foreign(World *w, const char *name)
{
	char		path[ZKL_MAX_PATH + 1];
	ModelNode  *node = w->zk.root->next;
	ModelNode  *directory;

	snprintf(path, sizeof(path), WORLD_ROOT "%s", name);
	directory = model_find(&w->zk, path);
	while (node != w->zk.root)
	{
		ModelNode  *next = node->next;

		if (node->parent == directory &&
			node->stat.ephemeral_owner != w->session.id)
			(void) model_delete(&w->zk, node->path);
		node = next;
	}
}

/* Lets everybody go and checks that nothing stays. */
static void
wind_up(World *w)
{
	uint32_t	i;

	for (i = 0; i < w->nrequests; i++)
		world_leave(w, i);
	world_flush(w);
	if (w->connected)
	{
		world_run(w);
		world_sleep(w, 2 * WORLD_TIMEOUT_MS * 1000LL);
		world_check(w);
	}
	world_end(w);
}

/* ---- one server alone ---- */

/* The first acquire of a lock: parents are made, nothing needs a listing. */
static void
first_acquire(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/batch/nightly", 1, ZKL_EXCLUSIVE);

	world_run(w);
	CHECK(world_holds(w, r));
	CHECK_INT(w->requests[r].seq, 0);
	CHECK_INT(world_nodes(w, "/batch/nightly"), 1);
	world_release(w, r);
	world_run(w);
	CHECK(!w->requests[r].used);
	CHECK_INT(world_nodes(w, "/batch/nightly"), 0);
	wind_up(w);
}

/* In a known directory an acquire is one create: no read of any kind. */
static void
uncontended_in_known_directory(void)
{
	World	   *w = world_ready();
	int			i;

	warm_up(w, "/a");
	for (i = 0; i < 10; i++)
	{
		uint32_t	r;

		reset_counts(w);
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
	wind_up(w);
}

/* A directory that others have used is listed once, then known. */
static void
unknown_directory(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;

	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK_INT(w->zk.counts.lists, 1);
	world_release(w, r);
	world_run(w);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK_INT(w->zk.counts.lists, 1);
	wind_up(w);
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
	CHECK(w->zk.outbox == NULL);
	world_run(w);
	CHECK_INT(world_nodes(w, "/a"), 2);
	world_release(w, r[2]);
	CHECK(world_holds(w, r[3]));
	wind_up(w);
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
	wind_up(w);
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
		warm_up(w, name);
	}
	reset_counts(w);
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
	wind_up(w);
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
	zkl_manager_counters(w->m, &counters);
	operations = counters.operations;
	transaction = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	shared = world_submit(w, "/a", 1, ZKL_SHARED);
	CHECK(world_holds(w, transaction) && world_holds(w, shared));
	CHECK_INT(w->requests[shared].token, w->requests[session].token);
	zkl_manager_counters(w->m, &counters);
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
	CHECK(w->requests[shared].has_znode);
	CHECK(!world_holds(w, other));
	world_release(w, shared);
	world_run(w);
	CHECK(world_holds(w, other));
	CHECK_INT(world_nodes(w, "/a"), 1);
	wind_up(w);
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

		warm_up(w, "/a");
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
		CHECK(!w->requests[r].used);
		CHECK_INT(world_nodes(w, "/a"), 0);
		CHECK_INT(w->grants, 2 + (state >= 3));
		wind_up(w);
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
	CHECK(w->requests[r].denied);
	CHECK(w->zk.inbox == NULL);
	world_release(w, r);
	CHECK(!w->requests[r].used);
	r = world_try(w, "/a", 2, ZKL_SHARED);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK(world_holds(w, held));
	wind_up(w);
}

/* ---- with others ---- */

/* A try is denied only behind a contender that is seen to be alive. */
static void
try_behind_foreign_holder(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;

	warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_SHARED, other);
	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(w->requests[r].denied);
	world_release(w, r);
	world_run(w);
	CHECK(!w->requests[r].used);

	/* the answer comes when the time is over, not before */
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, r));
	world_expire(w, r);
	world_run(w);
	CHECK(w->requests[r].denied);
	CHECK_INT(world_nodes(w, "/a"), 0);
	wind_up(w);
}

/*
 * Others came in while our holder held: the listing that names them is made
 * once, when our next is first of ours, however often we look in between.
 */
static void
gap_means_one_listing(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	holder;
	uint32_t	next;
	uint32_t	last;

	warm_up(w, "/a");
	reset_counts(w);
	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	foreign_enter(w, "/a", ZKL_SHARED, other);
	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	last = world_submit(w, "/a", 3, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK_INT(w->zk.counts.lists, 0);
	world_release(w, holder);
	world_expire(w, last);
	CHECK(w->requests[last].denied);
	world_run(w);
	CHECK(!world_holds(w, next));
	CHECK_INT(w->zk.counts.lists, 1);
	CHECK_INT(w->zk.counts.gets, 1);
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, next));
	CHECK_INT(w->zk.counts.lists, 1);
	CHECK_INT(w->zk.counts.gets, 1);
	wind_up(w);
}

/* What parses as no contender counts for continuity and blocks nobody. */
static void
strange_children(void)
{
	World	   *w = world_ready();
	uint32_t	r;

	warm_up(w, "/a");
	CHECK_INT(model_create(&w->zk, WORLD_ROOT "/a/b", false, 0, "", NULL), 0);
	CHECK_INT(model_create(&w->zk, WORLD_ROOT "/a/x-lock-", true, 7, "", NULL),
			  0);
	reset_counts(w);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK_INT(w->zk.counts.lists, 1);
	wind_up(w);
}

/*
 * A foreign child came between two creates of ours, of which the second is
 * gone when the listing comes: what follows must not forget the child.
 */
static void
listing_behind_a_cancelled_create(void)
{
	World	   *w = world_ready();
	char		first[ZKL_MAX_PATH + 1];
	char		second[ZKL_MAX_PATH + 1];
	uint32_t	one;
	uint32_t	two;
	uint32_t	three;

	warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_SHARED, first);
	one = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_serve(w, 1);
	foreign_enter(w, "/a", ZKL_SHARED, second);
	two = world_enter(w, "/a", 2, ZKL_EXCLUSIVE, false);
	world_flush(w);
	world_serve(w, 1);

	/* both creates are answered, the listing is on its way */
	world_deliver(w, 2);
	world_release(w, two);
	world_run(w);
	CHECK(world_waits(w, one));
	three = world_submit(w, "/a", 3, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK_INT(model_delete(&w->zk, first), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, one));
	world_release(w, one);
	world_run(w);
	CHECK(!world_holds(w, three));
	CHECK_INT(model_delete(&w->zk, second), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, three));
	wind_up(w);
}

/* A thousand wait behind one foreign holder: one watch, one listing. */
static void
thousand_waiters(void)
{
	World	   *w = world_make();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r[1000];
	int			i;

	w->nrequests = 1100;
	world_begin(w);
	world_connect(w);
	world_run(w);
	warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	reset_counts(w);
	for (i = 0; i < 1000; i++)
		r[i] = world_enter(w, "/a", (uint64_t) i,
						   i < 500 ? ZKL_SHARED : ZKL_EXCLUSIVE, false);
	world_flush(w);
	world_run(w);
	CHECK_INT(w->zk.counts.creates, 1000);
	CHECK_INT(w->zk.counts.lists, 1);
	CHECK_INT(w->zk.counts.gets, 1);
	CHECK(w->zk.counts.multis <= 5);
	CHECK_INT(world_nodes(w, "/a"), 1000);
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	world_run(w);
	for (i = 0; i < 1000; i++)
	{
		CHECK_INT(world_holds(w, r[i]), i < 500);
		if (i < 500)
			world_leave(w, r[i]);
	}
	world_flush(w);
	world_run(w);

	/* one more listing, for the writer may have left a reader behind */
	CHECK(world_holds(w, r[500]));
	CHECK_INT(w->zk.counts.lists, 2);
	for (i = 500; i < 999; i++)
	{
		world_release(w, r[i]);
		CHECK(world_holds(w, r[i + 1]));
	}
	world_run(w);
	CHECK_INT(w->zk.counts.gets, 1);
	CHECK_INT(w->zk.counts.lists, 2);
	wind_up(w);
}

/* Who waits no longer watches no longer. */
static void
watch_given_up(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;

	warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(model_find(&w->zk, other)->data_watch);
	world_release(w, r);
	world_run(w);
	CHECK(!model_find(&w->zk, other)->data_watch);
	wind_up(w);
}

/* No more directories are remembered, and watched, than the host allows. */
static void
directories_forgotten(void)
{
	World	   *w = world_make();
	const ModelNode *node;
	int			watched = 0;
	int			i;

	w->max_directories = 5;
	world_begin(w);
	world_connect(w);
	world_run(w);
	for (i = 0; i < 20; i++)
	{
		char		name[16];

		snprintf(name, sizeof(name), "/%d", i);
		warm_up(w, name);
	}
	for (node = w->zk.root->next; node != w->zk.root; node = node->next)
		watched += node->data_watch;
	CHECK_INT(watched, 5);
	wind_up(w);
}

/*
 * A Curator writer that goes may leave a reader of its own number: nobody of
 * ours is exclusive before a listing has looked, hand-over included.
 */
static void
taint_after_foreign_writer(void)
{
	World	   *w = world_ready();
	char		writer[ZKL_MAX_PATH + 1];
	char		reader[ZKL_MAX_PATH + 1];
	uint32_t	shared;
	uint32_t	exclusive;

	warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, writer);
	shared = world_submit(w, "/a", 1, ZKL_SHARED);
	exclusive = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	foreign_downgrade(w, writer, reader);
	world_run(w);
	CHECK(world_holds(w, shared));
	reset_counts(w);
	world_release(w, shared);
	CHECK(!world_holds(w, exclusive));
	world_run(w);
	CHECK(!world_holds(w, exclusive));
	CHECK_INT(w->zk.counts.lists, 1);
	CHECK_INT(model_delete(&w->zk, reader), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, exclusive));
	CHECK_INT(w->zk.counts.lists, 1);
	wind_up(w);
}

/* Exempt is a zklock writer that was not marked as downgrading. */
static void
no_taint_after_zklock_writer(void)
{
	static const char *const data[] = {
		"{\"zklock\":1,\"server\":\"b\"}",
		"{\"zklock\":1,\"downgrading\":true}"
	};
	int			marked;

	for (marked = 0; marked < 2; marked++)
	{
		World	   *w = world_ready();
		char		writer[ZKL_MAX_PATH + 1];
		uint32_t	r;

		warm_up(w, "/a");
		foreign_zklock(w, "/a", ZKL_EXCLUSIVE, data[marked], writer);
		r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		reset_counts(w);
		CHECK_INT(model_delete(&w->zk, writer), ZKL_RC_OK);
		world_run(w);
		CHECK(world_holds(w, r));
		CHECK_INT(w->zk.counts.lists, marked);
		wind_up(w);
	}
}

/* A zklock writer that is marked later changes its data first: look again. */
static void
taint_after_late_mark(void)
{
	World	   *w = world_ready();
	char		writer[ZKL_MAX_PATH + 1];
	char		reader[ZKL_MAX_PATH + 1];
	uint32_t	r;

	warm_up(w, "/a");
	foreign_zklock(w, "/a", ZKL_EXCLUSIVE, "{\"zklock\":1}", writer);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK_INT(model_set(&w->zk, writer, "{\"zklock\":1,\"downgrading\":true}"),
			  ZKL_RC_OK);
	foreign_downgrade(w, writer, reader);
	world_run(w);
	CHECK(!world_holds(w, r));
	CHECK_INT(model_delete(&w->zk, reader), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, r));
	wind_up(w);
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
	wind_up(w);
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
		CHECK(w->requests[exclusive].failed);
		CHECK_INT(w->requests[exclusive].failure, ZKL_FAILURE_DEADLOCK);
		CHECK(world_holds(w, shared));
		CHECK_INT(world_nodes(w, "/a"), foreign ? 1 : 2);
		world_release(w, exclusive);
		world_release(w, shared);
		world_run(w);
		CHECK(foreign || world_holds(w, local));
		wind_up(w);
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
	CHECK(w->requests[exclusive[1]].failed);
	world_leave(w, exclusive[1]);
	world_release(w, shared[1]);
	world_run(w);
	CHECK(world_holds(w, exclusive[0]) && world_holds(w, shared[0]));
	wind_up(w);
}

/* ---- missing parents, failing operations ---- */

/* 256 names at once, no directory there: few rounds, never one per name. */
static void
parents_of_256_names(void)
{
	World	   *w = world_make();
	uint32_t	r[256];
	int			i;

	w->nrequests = 300;
	world_begin(w);
	world_connect(w);
	world_run(w);
	warm_up(w, "/known");
	reset_counts(w);
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
	wind_up(w);
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
		warm_up(w, "/a/b");
		CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a/b"), ZKL_RC_OK);
		if (i == 1)
			CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a"), ZKL_RC_OK);
		if (i == 2)
			world_run(w);
		r = world_submit(w, "/a/b", 1, ZKL_EXCLUSIVE);
		world_run(w);
		CHECK(world_holds(w, r));
		CHECK_INT(w->requests[r].seq, 0);
		world_release(w, r);
		world_run(w);
	}
	wind_up(w);
}

/* It was reaped and made again by others, who hold: nothing is continuous. */
static void
recreated_directory(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;

	warm_up(w, "/a");
	CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a"), ZKL_RC_OK);
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, r));
	CHECK_INT(w->requests[r].seq, 1);
	clear_foreign(w, "/a");
	world_run(w);
	CHECK(world_holds(w, r));
	wind_up(w);
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
	CHECK(w->requests[r].failed);
	CHECK_INT(w->requests[r].failure, ZKL_FAILURE_PARENTS);
	CHECK_INT(w->requests[r].rc, MODEL_NO_AUTH);
	CHECK(w->zk.counts.containers < 20);
	use_number_again(w, r);
	wind_up(w);
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

	warm_up(w, "/a");
	r[0] = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
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
			CHECK_INT(w->requests[r[i]].seq - w->requests[r[0]].seq,
					  i == 0 ? 0 : i - 1);
	}
	CHECK(world_holds(w, r[0]) && world_holds(w, r[1]));
	CHECK_INT(world_nodes(w, "/a"), 5);
	wind_up(w);
}

/* A create that ZooKeeper refuses fails alone. */
static void
create_refused(void)
{
	World	   *w = world_ready();
	uint32_t	refused;
	uint32_t	good;

	warm_up(w, "/a");
	w->zk.no_write = "/b/";
	(void) model_mkdir(&w->zk, WORLD_ROOT "/b");
	refused = world_enter(w, "/b", 1, ZKL_EXCLUSIVE, false);
	good = world_enter(w, "/a", 1, ZKL_EXCLUSIVE, false);
	world_flush(w);
	world_run(w);
	CHECK(world_holds(w, good));
	CHECK(w->requests[refused].failed);
	CHECK_INT(w->requests[refused].failure, ZKL_FAILURE_ZOOKEEPER);
	CHECK_INT(w->requests[refused].rc, MODEL_NO_AUTH);
	use_number_again(w, refused);
	wind_up(w);
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
	CHECK(world_holds(w, next));
	world_run(w);
	CHECK(w->requests[first].used);
	CHECK(!w->requests[other].used);
	reset_counts(w);
	world_sleep(w, 3000000);
	CHECK(w->zk.counts.failed_multis + w->zk.counts.multis < 10);
	w->zk.no_write = NULL;
	world_sleep(w, 3000000);
	CHECK(!w->requests[first].used);
	CHECK_INT(world_nodes(w, "/a"), 1);
	wind_up(w);
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
		CHECK(w->requests[r].failed);
		CHECK_INT(w->requests[r].failure, ZKL_FAILURE_ZOOKEEPER);
		CHECK_INT(w->requests[r].rc, MODEL_NO_AUTH);
		use_number_again(w, r);
		wind_up(w);
	}
}

/* A delete of a node that is gone does not take the batch's rest with it. */
static void
delete_of_a_missing_node(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	char		name[ZKL_MAX_ZNODE_NAME + 1];
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
	zkl_znode_name(&w->requests[r[1]].uuid, ZKL_EXCLUSIVE,
				   w->requests[r[1]].seq, name);
	snprintf(path, sizeof(path), WORLD_ROOT "/1/%s", name);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	for (i = 0; i < 3; i++)
		world_leave(w, r[i]);
	world_flush(w);
	world_run(w);
	for (i = 0; i < 3; i++)
		CHECK(!w->requests[r[i]].used);
	wind_up(w);
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

		warm_up(w, "/a");
		foreign_enter(w, "/a", ZKL_SHARED, other);
		for (i = 0; i < 4; i++)
			r[i] = world_submit(w, "/a", (uint64_t) i, ZKL_EXCLUSIVE);
		world_serve(w, served);
		applied = (int) world_nodes(w, "/a");
		world_disconnect(w);
		CHECK(!zkl_manager_ready(w->m));
		CHECK_INT(w->grants, 2);
		world_connect(w);
		world_run(w);
		CHECK_INT(world_nodes(w, "/a"), 4);
		CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
		world_run(w);
		CHECK_INT(w->grants, 3);

		/* what was applied stays as it is, the rest has new names */
		for (i = 0; i < 4; i++)
			CHECK(w->requests[r[i]].znodes == 1 || i >= applied);
		world_check(w);
		wind_up(w);
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

		warm_up(w, "/a");
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
		wind_up(w);
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

			warm_up(w, "/a");
			w->zk.multi_rc = rcs[i];
			w->zk.multi_applied = applied;
			r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
			world_run(w);
			CHECK_MSG(world_holds(w, r), "rc %d", (int) rcs[i]);
			CHECK_INT(world_nodes(w, "/a"), 1);
			wind_up(w);
		}
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
		CHECK(w->requests[r].used);
		world_connect(w);
		world_run(w);
		CHECK(!w->requests[r].used);
		CHECK_INT(world_nodes(w, "/a"), 0);
		wind_up(w);
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
	chain = w->chain;
	snprintf(path, sizeof(path), WORLD_ROOT "/.servers/%016llx.%u",
			 (unsigned long long) w->session.id, chain);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	world_release(w, r);
	r = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(w->chain > chain);
	CHECK(world_holds(w, r));
	CHECK_INT(w->losses, 0);
	CHECK_INT(world_nodes(w, "/a"), 1);
	CHECK_INT(world_nodes(w, "/.servers"), 1);
	wind_up(w);
}

/* ---- connection, session, lease ---- */

/* Nothing that a new connection answers counts before its first beat. */
static void
unproved_connection(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;

	warm_up(w, "/a");
	foreign_enter(w, "/a", ZKL_SHARED, other);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	world_disconnect(w);
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	w->now += 1000;
	world_connect(w);
	CHECK(!zkl_manager_ready(w->m));
	CHECK(!world_holds(w, r));
	CHECK(w->zk.inbox != NULL && w->zk.inbox->kind == ZKL_SEND_MULTI);
	CHECK(w->zk.inbox != NULL && w->zk.inbox->next == NULL);
	world_run(w);
	CHECK(world_holds(w, r));
	wind_up(w);
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
	lease = zkl_manager_lease(w->m);
	world_disconnect(w);
	CHECK_INT(zkl_manager_lease(w->m), lease);
	CHECK(world_holds(w, holder));
	world_release(w, holder);
	CHECK(!world_holds(w, next));
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, next));
	CHECK_INT(w->losses, 0);
	CHECK(zkl_manager_lease(w->m) > lease);
	wind_up(w);
}

/* The lease counts from when the beat was sent, two thirds of the timeout. */
static void
lease_and_beats(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	int64_t		sent;

	world_run(w);
	reset_counts(w);
	sent = zkl_manager_timer(w->m);
	CHECK(sent > w->now && sent <= w->now + WORLD_BEAT);
	w->now = sent;
	world_flush(w);
	CHECK(w->zk.inbox != NULL);
	w->now += 500000;
	world_serve(w, 1);
	world_deliver(w, 1);
	CHECK_INT(zkl_manager_lease(w->m), sent + WORLD_LEASE);
	world_sleep(w, 10 * WORLD_BEAT);
	CHECK(w->zk.counts.multis >= 9 && w->zk.counts.multis <= 13);
	CHECK(zkl_manager_lease(w->m) > w->now + WORLD_LEASE / 2);

	/* no hold, no beats */
	world_release(w, r);
	world_run(w);
	reset_counts(w);
	world_sleep(w, 10 * WORLD_BEAT);
	CHECK_INT(w->zk.counts.multis, 0);
	CHECK_INT(zkl_manager_timer(w->m), -1);
	wind_up(w);
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
	w->now = zkl_manager_lease(w->m);
	impatient = world_try(w, "/a", 3, ZKL_EXCLUSIVE);
	CHECK(!w->requests[impatient].denied);
	world_release(w, holder);
	CHECK(!world_holds(w, next));
	world_run(w);
	CHECK(world_holds(w, next));
	CHECK(w->requests[impatient].denied);
	wind_up(w);
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
	uuid = w->requests[next].uuid;
	world_expire_session(w);
	CHECK(w->requests[holder].lost && w->requests[covered].lost);
	CHECK_INT(w->requests[holder].failure, ZKL_FAILURE_SESSION_EXPIRED);
	CHECK(world_waits(w, next) && world_waits(w, last));
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, next));
	CHECK(memcmp(&uuid, &w->requests[next].uuid, sizeof(uuid)) != 0);
	CHECK(w->requests[next].seq < w->requests[last].seq);
	world_release(w, holder);
	world_release(w, covered);
	CHECK(!w->requests[holder].used && !w->requests[covered].used);
	wind_up(w);
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
			CHECK(world_holds(w, r[i]) || w->requests[r[i]].lost);
		CHECK_INT(world_nodes(w, "/a") + w->losses, 3);
		wind_up(w);
	}
}

/* A hold grows old and its node is deleted by somebody: it is lost. */
static void
own_node_deleted(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	char		name[ZKL_MAX_ZNODE_NAME + 1];
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);

	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	w->tampered = true;
	zkl_znode_name(&w->requests[r].uuid, ZKL_EXCLUSIVE, w->requests[r].seq,
				   name);
	snprintf(path, sizeof(path), WORLD_ROOT "/a/%s", name);

	/* a change of the data alone costs nothing, and is watched on */
	CHECK_INT(model_set(&w->zk, path, "__REVOKE__"), ZKL_RC_OK);
	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(world_holds(w, r));
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	world_run(w);
	CHECK(w->requests[r].lost);
	CHECK_INT(w->requests[r].failure, ZKL_FAILURE_NODE_DELETED);
	CHECK(world_holds(w, next));
	wind_up(w);
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
			w->now += 2000;
			world_flush(w);
		}
		else if (moment == 2)
			world_sleep(w, 2 * WORLD_BEAT);
		world_release(w, r);
		CHECK(world_holds(w, heir));
		model_expire(&w->zk, w->session.id);
		world_run(w);
		world_sleep(w, 3 * WORLD_BEAT);
		CHECK_MSG(w->requests[heir].lost, "moment %d", moment);
		wind_up(w);
	}
}

/*
 * The directory was deleted with our holder's node in it, before anything was
 * watched, and made again: our next create tells by its number.
 */
static void
directory_deleted_with_a_holder(void)
{
	World	   *w = world_ready();
	char		path[ZKL_MAX_PATH + 1];
	char		name[ZKL_MAX_ZNODE_NAME + 1];
	uint32_t	holder;
	uint32_t	next;

	warm_up(w, "/a");
	holder = world_submit(w, "/a", 1, ZKL_SHARED);
	world_run(w);
	w->tampered = true;
	zkl_znode_name(&w->requests[holder].uuid, ZKL_SHARED,
				   w->requests[holder].seq, name);
	snprintf(path, sizeof(path), WORLD_ROOT "/a/%s", name);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a"), ZKL_RC_OK);
	(void) model_mkdir(&w->zk, WORLD_ROOT "/a");
	next = world_submit(w, "/a", 2, ZKL_SHARED);
	world_run(w);
	CHECK(w->requests[holder].lost);
	CHECK(world_holds(w, next));
	wind_up(w);
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
	ModelNode  *node;
	uint32_t	first;
	uint32_t	next;

	foreign_enter(w, "/a", ZKL_SHARED, other);
	first = world_submit(w, "/a", 1, ZKL_SHARED);
	world_serve(w, 1);
	CHECK_INT(world_nodes(w, "/a"), 1);
	node = w->zk.root->prev;
	CHECK_INT(model_delete(&w->zk, node->path), ZKL_RC_OK);
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	CHECK_INT(model_delete(&w->zk, WORLD_ROOT "/a"), ZKL_RC_OK);
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	world_serve(w, INT32_MAX);
	next = world_enter(w, "/a", 2, ZKL_SHARED, false);
	world_release(w, first);
	world_run(w);
	CHECK_INT(world_holds(w, next), false);
	CHECK_INT(w->requests[next].seq, 2);
	clear_foreign(w, "/a");
	world_run(w);
	CHECK(world_holds(w, next));
	wind_up(w);
}

/* After a reconnect old holds are watched again. */
static void
own_watch_after_reconnect(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	ModelNode  *node;

	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	world_disconnect(w);
	world_connect(w);
	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	w->tampered = true;
	node = w->zk.root->prev;
	while (!strstr(node->path, "__WRIT__"))
		node = node->prev;
	CHECK_INT(model_delete(&w->zk, node->path), ZKL_RC_OK);
	world_run(w);
	CHECK(w->requests[r].lost);
	wind_up(w);
}

/* ---- the end of the counter ---- */

static void
sequence_limit(void)
{
	World	   *w = world_ready();
	uint32_t	r[3];
	uint32_t	i;

	warm_up(w, "/a");
	model_find(&w->zk, WORLD_ROOT "/a")->counter = (uint32_t) ZKL_SEQ_LIMIT - 1;
	for (i = 0; i < 3; i++)
		r[i] = world_submit(w, "/a", i, ZKL_EXCLUSIVE);
	world_run(w);

	/* the first has the last good number; the others wait for a new start */
	CHECK(world_holds(w, r[0]));
	CHECK_INT(w->requests[r[0]].seq, ZKL_SEQ_LIMIT - 1);
	CHECK_INT(world_nodes(w, "/a"), 1);
	CHECK(world_waits(w, r[1]) && world_waits(w, r[2]));
	world_release(w, r[0]);
	world_run(w);
	CHECK(world_holds(w, r[1]));
	CHECK_INT(w->requests[r[1]].seq, 0);
	world_release(w, r[1]);
	world_run(w);
	CHECK(world_holds(w, r[2]));
	wind_up(w);
}

/* The counter is past its end, with strangers inside: they drain first. */
static void
sequence_past_its_end(void)
{
	static const uint32_t counters[] = {
		0x7FFFFFFF, 0x80000000, 0xFFFFFFFF
	};
	size_t		i;

	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
	{
		World	   *w = world_ready();
		char		other[ZKL_MAX_PATH + 1];
		uint32_t	r;

		foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
		model_find(&w->zk, WORLD_ROOT "/a")->counter = counters[i];
		r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		CHECK(world_waits(w, r));
		CHECK_INT(world_nodes(w, "/a"), 0);
		CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
		world_run(w);
		CHECK(world_holds(w, r));
		CHECK_INT(w->requests[r].seq, 0);
		wind_up(w);
	}
}

/* ---- a restart of the worker ---- */

static void
restart(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	covered;
	uint32_t	released;
	uint32_t	waits;
	uint32_t	sent;
	uint32_t	fresh;
	int64_t		token;

	world_run(w);
	covered = world_submit(w, "/a", 1, ZKL_SHARED);
	waits = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	released = world_submit(w, "/b", 1, ZKL_EXCLUSIVE);
	foreign_enter(w, "/c", ZKL_EXCLUSIVE, other);
	world_run(w);
	world_release(w, released);
	sent = world_submit(w, "/c", 3, ZKL_EXCLUSIVE);
	fresh = world_enter(w, "/c", 4, ZKL_EXCLUSIVE, false);
	world_serve(w, 2);
	token = w->requests[held].token;
	world_restart(w);
	CHECK_INT(zkl_manager_lease(w->m), 0);
	CHECK_INT(zkl_manager_live(w->m), 5);
	CHECK(!zkl_manager_ready(w->m));
	world_connect(w);
	world_run(w);
	CHECK(zkl_manager_ready(w->m));
	CHECK(world_holds(w, held) && world_holds(w, covered));
	CHECK_INT(w->requests[held].token, token);
	CHECK(world_waits(w, waits) && world_waits(w, sent) &&
		  world_waits(w, fresh));
	CHECK(!w->requests[released].used);
	CHECK_INT(world_nodes(w, "/a"), 2);
	CHECK_INT(world_nodes(w, "/b"), 0);
	CHECK_INT(world_nodes(w, "/c"), 2);
	CHECK_INT(w->losses, 0);

	world_release(w, held);
	world_run(w);
	CHECK(world_waits(w, waits));
	world_release(w, covered);
	world_run(w);
	CHECK(world_holds(w, waits));
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, sent));
	wind_up(w);
}

/* The session expired while no worker ran. */
static void
restart_without_session(void)
{
	World	   *w = world_ready();
	uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	waits = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);

	world_run(w);
	world_restart(w);
	world_expire_session(w);
	CHECK(w->requests[held].lost);
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, waits));
	wind_up(w);
}

/* A hold's node was deleted while no worker ran. */
static void
restart_without_the_node(void)
{
	World	   *w = world_ready();
	uint32_t	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	uint32_t	waits = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	char		path[ZKL_MAX_PATH + 1];
	char		name[ZKL_MAX_ZNODE_NAME + 1];

	world_run(w);
	w->tampered = true;
	zkl_znode_name(&w->requests[held].uuid, ZKL_EXCLUSIVE,
				   w->requests[held].seq, name);
	snprintf(path, sizeof(path), WORLD_ROOT "/a/%s", name);
	world_restart(w);
	CHECK_INT(model_delete(&w->zk, path), ZKL_RC_OK);
	world_connect(w);
	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(w->requests[held].lost);
	CHECK(world_holds(w, waits));
	wind_up(w);
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
	RUN(cancel_anywhere);
	RUN(try_behind_local_holder);
	RUN(try_behind_foreign_holder);
	RUN(gap_means_one_listing);
	RUN(strange_children);
	RUN(listing_behind_a_cancelled_create);
	RUN(thousand_waiters);
	RUN(watch_given_up);
	RUN(directories_forgotten);
	RUN(taint_after_foreign_writer);
	RUN(no_taint_after_zklock_writer);
	RUN(taint_after_late_mark);
	RUN(upgrade_alone);
	RUN(upgrade_refused);
	RUN(upgrades_meet);
	RUN(parents_of_256_names);
	RUN(reaped_directory);
	RUN(recreated_directory);
	RUN(parents_refused);
	RUN(refused_batches_keep_their_order);
	RUN(create_refused);
	RUN(delete_refused);
	RUN(read_refused);
	RUN(delete_of_a_missing_node);
	RUN(lost_replies);
	RUN(lost_replies_and_cancels);
	RUN(unknown_results);
	RUN(lost_deletes);
	RUN(heartbeat_node_deleted);
	RUN(unproved_connection);
	RUN(disconnected_within_the_lease);
	RUN(lease_and_beats);
	RUN(nothing_past_the_lease);
	RUN(session_expires);
	RUN(session_expires_in_the_middle);
	RUN(own_node_deleted);
	RUN(inherited_node_deleted);
	RUN(directory_deleted_with_a_holder);
	RUN(directory_made_again_before_the_watch);
	RUN(own_watch_after_reconnect);
	RUN(sequence_limit);
	RUN(sequence_past_its_end);
	RUN(restart);
	RUN(restart_without_session);
	RUN(restart_without_the_node);
	return unit_finish();
}
