/*
 * test_manager_deadlocks.c
 *	  Scenarios of deadlocks with another server: what is published and when, who
 *	  ends, and what it costs.
 *
 * The other server's session holds /b, and waits for /a, which ours holds.
 */
#include "unit.h"
#include "world.h"
#include "znode/wait_data.h"

#define PATIENCE	INT64_C(1000000)
#define OTHER		77			/* the session of other clients */

typedef struct Pair
{
	World	   *w;
	char		held[ZKL_MAX_PATH + 1]; /* the other's */
	char		waits[ZKL_MAX_PATH + 1];
	uint32_t	a;				/* ours: held */
	uint32_t	b;				/* waits */
} Pair;

static ZklUuid
uuid_of(const char *path)
{
	ZklUuid		uuid;
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;

	CHECK(zkl_znode_parse(ZKL_DIALECT_CURATOR_RW, strrchr(path, '/') + 1,
						  &mode, &seq, &has_uuid, &uuid));
	return uuid;
}

/* The other session has a hold, and waits behind us. */
static void
publish_other(Pair *p)
{
	ZklWaitData data = {
		.lock = "/a",.server = "berlin",.holder_pid = 815,.waiter_pid = 815,
		.every_ms = 1000
	};
	ZklUuid		held = uuid_of(p->held);
	char		path[ZKL_MAX_PATH + 1] = WORLD_ROOT ZKL_WAITS_DIRECTORY "/";
	char		text[ZKL_MAX_WAIT_DATA + 1];

	data.wait = uuid_of(p->waits);
	text[zkl_wait_data_format(&data, text)] = '\0';
	model_mkdir(&p->w->zk, WORLD_ROOT ZKL_WAITS_DIRECTORY);
	zkl_uuid_format(&held, path + strlen(path));
	CHECK_INT(model_create(&p->w->zk, path, false, OTHER, text, NULL),
			  ZKL_RC_OK);
}

static uint32_t
publications(void)
{
	const Path *path = tree_children(WORLD_ROOT ZKL_WAITS_DIRECTORY);
	uint32_t	n = 0;

	for (; path != NULL; path = path->sibling)
		n += path->node[HEAD].exists &&
			path->node[HEAD].stat.ephemeral_owner != OTHER;
	return n;
}

static Pair
make_pair(void)
{
	Pair		p;

	p.w = world_make();
	p.w->config.max_requests = 100;
	p.w->patience = PATIENCE;
	world_begin(p.w);
	world_connect(p.w);
	world_run(p.w);
	world_warm_up(p.w, "/a");
	foreign_zklock(p.w, "/b", ZKL_EXCLUSIVE, "{\"zklock\":1}", p.held);
	p.a = world_submit(p.w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(p.w);
	foreign_zklock(p.w, "/a", ZKL_EXCLUSIVE, "{\"zklock\":1}", p.waits);
	p.b = world_submit(p.w, "/b", 1, ZKL_EXCLUSIVE);
	world_run(p.w);
	CHECK(world_holds(p.w, p.a));
	CHECK(world_waits(p.w, p.b));
	return p;
}

static void
wait_long(Pair *p)
{
	world_sleep(p->w, PATIENCE + 1000);
	world_run(p->w);
}

/* Until the verdict is the next to be executed */
static void
until_verdict(Pair *p)
{
	int			i;

	p->w->worker.now += PATIENCE + 1000;
	world_flush(p->w);
	for (i = 0; i < 100; i++)
	{
		const Request *next = p->w->conn.inbox;

		if (next != NULL && next->nops > 0 && next->ops[0].kind == OP_CHECK)
			return;
		world_serve(p->w, 1);
		world_deliver(p->w, 1);
		world_flush(p->w);
	}
	CHECK_MSG(false, "there is no verdict");
}

static void
finish(Pair *p)
{
	foreign_leave_all(p->w, "/a");
	foreign_leave_all(p->w, "/b");
	world_run(p->w);
	world_wind_up(p->w);
}

static bool
is_victim(const Pair *p)
{
	const Slot *s = &p->w->requests[p->b];

	return s->state == SLOT_FAILED && s->failure == ZKL_FAILURE_DEADLOCK;
}

/* The last to publish is the victim, and takes its publication along. */
static void
victim(void)
{
	Pair		p = make_pair();
	ZklCounters counters;

	publish_other(&p);
	CHECK_INT(publications(), 0);
	wait_long(&p);
	CHECK(is_victim(&p));
	CHECK(world_holds(p.w, p.a));
	CHECK_INT(publications(), 0);
	zkl_manager_counters(p.w->worker.m, &counters);
	CHECK_INT(counters.deadlocks, 1);
	CHECK_INT(counters.checks, 1);
	finish(&p);
}

/* The other one published later: it is the victim, and we wait on. */
static void
no_victim(void)
{
	Pair		p = make_pair();

	wait_long(&p);
	CHECK_INT(publications(), 1);
	publish_other(&p);
	world_sleep(p.w, 20 * PATIENCE);
	world_run(p.w);
	CHECK(world_waits(p.w, p.b));

	/* its end is ours */
	foreign_leave_all(p.w, "/b");
	world_run(p.w);
	CHECK(world_holds(p.w, p.b));
	CHECK_INT(publications(), 0);
	finish(&p);
}

/* However many wait in between, they are one step. */
static void
long_queue(void)
{
	Pair		p;
	char		other[ZKL_MAX_PATH + 1];
	int			i;

	p.w = world_make();
	p.w->config.max_requests = 100;
	p.w->patience = PATIENCE;
	world_begin(p.w);
	world_connect(p.w);
	world_run(p.w);
	foreign_zklock(p.w, "/b", ZKL_EXCLUSIVE, "{\"zklock\":1}", p.held);
	p.a = world_submit(p.w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(p.w);
	for (i = 0; i < 150; i++)
	{
		foreign_zklock(p.w, "/a", ZKL_EXCLUSIVE, "{\"zklock\":1}", other);
		foreign_zklock(p.w, "/b", ZKL_EXCLUSIVE, "{\"zklock\":1}", other);
	}
	foreign_zklock(p.w, "/a", ZKL_SHARED, "{\"zklock\":1}", p.waits);
	p.b = world_submit(p.w, "/b", 1, ZKL_SHARED);
	world_run(p.w);
	publish_other(&p);
	world_sleep(p.w, PATIENCE + 1000);
	world_run(p.w);
	CHECK(is_victim(&p));
	finish(&p);
}

/* A holder that has published nothing can go on, and other clients always can. */
static void
chain(void)
{
	Pair		p = make_pair();

	world_sleep(p.w, 40 * PATIENCE);
	world_run(p.w);
	CHECK(world_waits(p.w, p.b));
	CHECK_INT(publications(), 1);
	finish(&p);
}

/* The circle is gone when the verdict comes. */
static void
too_late(void)
{
	Pair		p = make_pair();

	publish_other(&p);
	until_verdict(&p);
	CHECK_INT(model_delete(&p.w->zk, p.waits), ZKL_RC_OK);
	world_run(p.w);
	CHECK(world_waits(p.w, p.b));
	CHECK_INT(publications(), 1);
	finish(&p);
}

/* The answer to the verdict is lost: its publication tells what became of it. */
static void
lost_verdict(void)
{
	int			applied;

	for (applied = 0; applied < 2; applied++)
	{
		Pair		p = make_pair();

		publish_other(&p);
		until_verdict(&p);
		p.w->zk.multi_rc = ZKL_RC_UNKNOWN;
		p.w->zk.multi_applied = applied == 1;
		world_serve(p.w, 1);
		p.w->zk.multi_applied = false;
		world_deliver(p.w, 1);
		CHECK(world_waits(p.w, p.b));
		world_run(p.w);
		CHECK(is_victim(&p));
		CHECK_INT(publications(), 0);
		finish(&p);
	}
}

/* A wait that holds nothing, and one that is not patient, cost nothing. */
static void
costs(void)
{
	Pair		p = make_pair();
	uint32_t	alone;
	uint32_t	gets;

	alone = world_submit(p.w, "/b", 2, ZKL_EXCLUSIVE);
	world_run(p.w);
	world_release(p.w, p.a);
	world_run(p.w);
	world_count_anew(p.w);
	world_sleep(p.w, 16 * PATIENCE);
	CHECK(world_waits(p.w, alone));
	CHECK_INT(p.w->zk.counts.lists, 0);
	CHECK_INT(p.w->zk.counts.creates, 0);
	CHECK_INT(publications(), 0);
	finish(&p);

	/* with a hold: one znode, and two listings for each look */
	p = make_pair();
	gets = p.w->zk.counts.gets;
	world_count_anew(p.w);
	world_sleep(p.w, PATIENCE + 1000);
	world_run(p.w);
	CHECK_INT(p.w->zk.counts.creates, 1);
	CHECK_INT(p.w->zk.counts.containers, 1);
	CHECK_INT(p.w->zk.counts.lists, 2);
	CHECK(p.w->zk.counts.gets <= gets + 2);
	finish(&p);
}

/* Who holds too much is not published, and counted once. */
static void
too_many(void)
{
	Pair		p = make_pair();
	ZklCounters counters;
	char		name[24];
	int			i;

	world_release(p.w, p.b);
	world_run(p.w);
	for (i = 0; i < 64; i++)
	{
		snprintf(name, sizeof(name), "/many/%d", i);
		(void) world_submit(p.w, name, 1, ZKL_SHARED);
	}
	world_run(p.w);
	p.b = world_submit(p.w, "/b", 1, ZKL_EXCLUSIVE);
	world_run(p.w);
	world_sleep(p.w, 8 * PATIENCE);
	zkl_manager_counters(p.w->worker.m, &counters);
	CHECK_INT(counters.unpublished, 1);
	CHECK_INT(publications(), 0);
	finish(&p);
}

static uint64_t
checks(const Pair *p)
{
	ZklCounters counters;

	zkl_manager_counters(p->w->worker.m, &counters);
	return counters.checks;
}

/* What is read before its publication is acknowledged may miss a later one. */
static void
survey_behind_publication(void)
{
	Pair		p = make_pair();

	p.w->worker.now += PATIENCE + 1000;
	world_flush(p.w);
	p.w->worker.now += 1000;
	world_flush(p.w);
	CHECK_INT(checks(&p), 0);
	world_run(p.w);
	CHECK_INT(checks(&p), 1);
	finish(&p);
}

/* A wait that is published while others are surveyed has its own survey next. */
static void
in_turn(void)
{
	Pair		p = make_pair();
	int			i;

	p.w->worker.now += 2000;
	(void) world_submit(p.w, "/c", 2, ZKL_EXCLUSIVE);
	world_run(p.w);
	(void) world_submit(p.w, "/b", 2, ZKL_EXCLUSIVE);
	world_run(p.w);
	p.w->worker.now += PATIENCE - 1000;
	world_flush(p.w);
	for (i = 0; i < 100 && checks(&p) == 0; i++)
	{
		world_serve(p.w, 1);
		world_deliver(p.w, 1);
		world_flush(p.w);
	}
	CHECK_INT(publications(), 1);
	p.w->worker.now += 2000;
	world_flush(p.w);
	world_run(p.w);
	CHECK_INT(publications(), 2);
	CHECK_INT(checks(&p), 2);
	finish(&p);
}

/* A restarted worker deletes what the one before it left, and publishes anew. */
static void
restart(void)
{
	Pair		p = make_pair();

	wait_long(&p);
	CHECK_INT(publications(), 1);
	world_restart(p.w);
	world_connect(p.w);
	world_run(p.w);
	CHECK_INT(publications(), 0);
	publish_other(&p);
	wait_long(&p);
	CHECK(is_victim(&p));
	finish(&p);
}

/* The session is gone, and with it what was held: no deadlock is left. */
static void
session_lost(void)
{
	Pair		p = make_pair();

	wait_long(&p);
	world_expire_session(p.w);
	world_connect(p.w);
	world_run(p.w);
	publish_other(&p);
	world_sleep(p.w, 20 * PATIENCE);
	CHECK(world_waits(p.w, p.b));
	CHECK_INT(publications(), 0);
	finish(&p);
}

static void
look(Pair *p, const uint64_t *owners, size_t n)
{
	zkl_manager_behind(p->w->worker.m, p->w->worker.now, p->b,
					   p->w->worker.now, owners, n);
	world_flush(p->w);
	world_run(p->w);
}

/* A session of ours holds /a and waits in PostgreSQL for the one that wants /b. */
static void
through_postgres(void)
{
	Pair		p = make_pair();
	const uint64_t owners[] = {1};

	world_release(p.w, p.b);
	world_run(p.w);
	p.b = world_submit(p.w, "/b", 2, ZKL_EXCLUSIVE);
	world_run(p.w);
	publish_other(&p);
	wait_long(&p);
	CHECK_INT(publications(), 0);
	look(&p, owners, 1);
	CHECK(is_victim(&p));
	CHECK(world_holds(p.w, p.a));
	CHECK_INT(publications(), 0);
	finish(&p);
}

/* The same, but it was over before the survey came to its end. */
static void
no_longer_through_postgres(void)
{
	Pair		p = make_pair();
	const uint64_t owners[] = {1};

	world_release(p.w, p.b);
	world_run(p.w);
	p.b = world_submit(p.w, "/b", 2, ZKL_EXCLUSIVE);
	world_run(p.w);
	wait_long(&p);
	look(&p, owners, 1);
	CHECK_INT(publications(), 1);
	look(&p, owners, 0);
	CHECK_INT(publications(), 0);
	publish_other(&p);
	world_sleep(p.w, 20 * PATIENCE);
	CHECK(world_waits(p.w, p.b));
	finish(&p);
}

/* A lock that is kept goes by itself: who waits for it can go on. */
static void
kept(void)
{
	Pair		p = make_pair();
	const uint64_t owners[] = {1};

	/* released by a session that waited in PostgreSQL for the one that waits */
	world_release(p.w, p.b);
	world_run(p.w);
	p.b = world_submit(p.w, "/b", 2, ZKL_EXCLUSIVE);
	world_run(p.w);
	wait_long(&p);
	look(&p, owners, 1);
	CHECK_INT(publications(), 1);
	world_keep(p.w, p.a, 20 * PATIENCE);
	world_run(p.w);
	CHECK_INT(publications(), 0);
	publish_other(&p);
	world_sleep(p.w, PATIENCE);
	CHECK(world_waits(p.w, p.b));
	finish(&p);
}

/*
 * The session that waits has kept the writer, and holds the reader.  Who reads can
 * go on once the writer goes.
 */
static void
kept_beside_a_hold(void)
{
	Pair		p;
	uint32_t	reader;

	p.w = world_make();
	p.w->config.max_requests = 100;
	p.w->patience = PATIENCE;
	world_begin(p.w);
	world_connect(p.w);
	world_run(p.w);
	foreign_zklock(p.w, "/b", ZKL_EXCLUSIVE, "{\"zklock\":1}", p.held);
	reader = world_submit(p.w, "/a", 1, ZKL_SHARED);
	world_run(p.w);
	p.a = world_submit(p.w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(p.w);
	CHECK(world_holds(p.w, p.a));
	world_keep(p.w, p.a, 20 * PATIENCE);
	foreign_zklock(p.w, "/a", ZKL_SHARED, "{\"zklock\":1}", p.waits);
	p.b = world_submit(p.w, "/b", 1, ZKL_EXCLUSIVE);
	world_run(p.w);
	publish_other(&p);
	wait_long(&p);
	CHECK(world_holds(p.w, reader));
	CHECK(world_waits(p.w, p.b));
	CHECK_INT(publications(), 0);
	world_sleep(p.w, 40 * PATIENCE);
	world_run(p.w);
	CHECK(!world_keeps(p.w, p.a));
	CHECK(world_waits(p.w, p.b));
	CHECK_INT(publications(), 1);
	finish(&p);
}

int
main(void)
{
	unit_start();
	RUN(victim);
	RUN(no_victim);
	RUN(long_queue);
	RUN(chain);
	RUN(too_late);
	RUN(lost_verdict);
	RUN(costs);
	RUN(too_many);
	RUN(survey_behind_publication);
	RUN(in_turn);
	RUN(restart);
	RUN(session_lost);
	RUN(through_postgres);
	RUN(no_longer_through_postgres);
	RUN(kept);
	RUN(kept_beside_a_hold);
	return unit_finish();
}
