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
#define EVERY		INT64_C(1500000)
#define OTHER		77			/* the session of other clients */

typedef struct Pair
{
	World	   *w;
	char		held[ZKL_MAX_PATH + 1]; /* the other's */
	char		waits[ZKL_MAX_PATH + 1];
	int32_t		every_ms;		/* the other's looks at PostgreSQL's locks */
	char		published[ZKL_MAX_PATH + 1];	/* the last one */
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

/*
 * Says that the holder of "held" waits at "waits" for a lock; "behind": in
 * PostgreSQL, for the one that waits there.
 */
static void
publish(Pair *p, const char *held, const char *waits, const char *lock,
		bool behind)
{
	ZklWaitData data = {
		.server = "berlin",.behind = behind,.holder_pid = 815,
		.waiter_pid = 815 + behind,.every_ms = p->every_ms
	};
	ZklUuid		uuid = uuid_of(held);
	char		text[ZKL_MAX_WAIT_DATA + 1];

	strcpy(data.lock, lock);
	data.wait = uuid_of(waits);
	text[zkl_wait_data_format(&data, text)] = '\0';
	model_mkdir(&p->w->zk, WORLD_ROOT ZKL_WAITS_DIRECTORY);
	strcpy(p->published, WORLD_ROOT ZKL_WAITS_DIRECTORY "/");
	zkl_uuid_format(&uuid, p->published + strlen(p->published));
	CHECK_INT(model_create(&p->w->zk, p->published, false, OTHER, text, NULL),
			  ZKL_RC_OK);
}

/* The other session has a hold, and waits behind us. */
static void
publish_other(Pair *p)
{
	publish(p, p->held, p->waits, "/a", false);
}

/* The other session waits in PostgreSQL for one that waits behind us. */
static void
publish_other_behind(Pair *p)
{
	publish(p, p->held, p->waits, "/a", true);
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

/* The other session has its hold; ours has nothing yet. */
static Pair
begin(void)
{
	Pair		p;

	p.every_ms = EVERY / 1000;
	p.w = world_make();
	p.w->config.max_requests = 100;
	p.w->patience = PATIENCE;
	world_begin(p.w);
	world_connect(p.w);
	world_run(p.w);
	foreign_zklock(p.w, "/b", ZKL_EXCLUSIVE, "{\"zklock\":1}", p.held);
	return p;
}

static uint32_t
submit(Pair *p, const char *name, uint64_t owner, ZklLockMode mode)
{
	uint32_t	request = world_submit(p->w, name, owner, mode);

	world_run(p->w);
	return request;
}

/* Our session 1 holds /a, and our session "waiter" waits for /b. */
static Pair
make_pair_of(uint64_t waiter)
{
	Pair		p = begin();

	world_warm_up(p.w, "/a");
	p.a = submit(&p, "/a", 1, ZKL_EXCLUSIVE);
	foreign_zklock(p.w, "/a", ZKL_EXCLUSIVE, "{\"zklock\":1}", p.waits);
	p.b = submit(&p, "/b", waiter, ZKL_EXCLUSIVE);
	CHECK(world_holds(p.w, p.a));
	CHECK(world_waits(p.w, p.b));
	return p;
}

static uint64_t
checks(const Pair *p)
{
	ZklCounters counters;

	zkl_manager_counters(p->w->worker.m, &counters);
	return counters.checks;
}

static Pair
make_pair(void)
{
	return make_pair_of(1);
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
		{
			/* It can never be applied once the heartbeat is replaced. */
			CHECK(strstr(next->ops[0].path, "/.servers/") != NULL);
			return;
		}
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

/* One search finds two circles: one after the other is decided, at once. */
static void
two_victims(void)
{
	Pair		p = make_pair();
	char		held[ZKL_MAX_PATH + 1];
	char		waits[ZKL_MAX_PATH + 1];
	uint32_t	d;

	foreign_zklock(p.w, "/d", ZKL_EXCLUSIVE, "{\"zklock\":1}", held);
	(void) submit(&p, "/c", 2, ZKL_EXCLUSIVE);
	foreign_zklock(p.w, "/c", ZKL_EXCLUSIVE, "{\"zklock\":1}", waits);
	d = submit(&p, "/d", 2, ZKL_EXCLUSIVE);
	publish_other(&p);
	publish(&p, held, waits, "/c", false);
	p.w->worker.now += PATIENCE + 2000;
	world_flush(p.w);
	world_run(p.w);
	CHECK(is_victim(&p));
	CHECK_INT(p.w->requests[d].failure, ZKL_FAILURE_DEADLOCK);
	CHECK_INT(publications(), 0);
	CHECK_INT(checks(&p), 2);
	model_expire(&p.w->zk, OTHER);
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
	Pair		p = begin();
	char		other[ZKL_MAX_PATH + 1];
	int			i;

	p.a = submit(&p, "/a", 1, ZKL_EXCLUSIVE);
	for (i = 0; i < 150; i++)
	{
		foreign_zklock(p.w, "/a", ZKL_EXCLUSIVE, "{\"zklock\":1}", other);
		foreign_zklock(p.w, "/b", ZKL_EXCLUSIVE, "{\"zklock\":1}", other);
	}
	foreign_zklock(p.w, "/a", ZKL_SHARED, "{\"zklock\":1}", p.waits);
	p.b = submit(&p, "/b", 1, ZKL_SHARED);
	publish_other(&p);
	wait_long(&p);
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

	/* after 1, 2, 4, 8, 16 and 32 */
	CHECK_INT(checks(&p), 6);
	finish(&p);
}

/*
 * The circle is gone when the verdict comes: a contender, or a publication.  What
 * is left of it is looked at again at once.
 */
static void
too_late(void)
{
	int			published;

	for (published = 0; published < 2; published++)
	{
		Pair		p = make_pair();

		publish_other(&p);
		until_verdict(&p);
		CHECK_INT(model_delete(&p.w->zk, published ? p.published : p.waits),
				  ZKL_RC_OK);
		world_run(p.w);
		CHECK(world_waits(p.w, p.b));
		CHECK_INT(publications(), 1);
		CHECK_INT(checks(&p), 2);
		finish(&p);
	}
}

/*
 * So many more sessions of others on the circle: each holds a lock, and waits for
 * the next.
 */
static void
lengthen(Pair *p, int more)
{
	char		held[ZKL_MAX_PATH + 1];
	char		waits[ZKL_MAX_PATH + 1];
	char		next[ZKL_MAX_PATH + 1];
	char		name[24];
	int			i;

	strcpy(held, p->held);
	for (i = 0; i < more; i++)
	{
		snprintf(name, sizeof(name), "/more/%d", i);
		foreign_zklock(p->w, name, ZKL_EXCLUSIVE, "{\"zklock\":1}", next);
		foreign_zklock(p->w, name, ZKL_EXCLUSIVE, "{\"zklock\":1}", waits);
		publish(p, held, waits, name, false);
		strcpy(held, next);
	}
	publish(p, held, p->waits, "/a", false);
}

/* A circle of too many waits is given up, and counted. */
static void
too_long(void)
{
	const int	most = 50;
	int			n;

	for (n = most; n <= most + 1; n++)
	{
		Pair		p = make_pair();
		ZklCounters counters;

		lengthen(&p, n - 2);
		wait_long(&p);
		zkl_manager_counters(p.w->worker.m, &counters);
		CHECK(n > most ? world_waits(p.w, p.b) : is_victim(&p));
		CHECK_INT(counters.given_up, n > most);
		model_expire(&p.w->zk, OTHER);
		finish(&p);
	}
}

/* Another client deletes our publication: a look notices, the next one mends it. */
static void
deleted_by_others(void)
{
	Pair		p = make_pair();
	const Path *path;

	wait_long(&p);
	CHECK_INT(publications(), 1);
	path = tree_children(WORLD_ROOT ZKL_WAITS_DIRECTORY);
	while (path->node[HEAD].stat.ephemeral_owner == OTHER)
		path = path->sibling;
	CHECK_INT(model_delete(&p.w->zk, path->text), ZKL_RC_OK);
	wait_long(&p);
	CHECK_INT(publications(), 0);
	wait_long(&p);
	CHECK_INT(publications(), 1);
	finish(&p);
}

/* Another client has made a publication of that name, which may say anything. */
static void
made_by_others(void)
{
	Pair		p = make_pair();
	char		path[ZKL_MAX_PATH + 1];

	world_path(p.w, p.a, path);
	publish(&p, path, p.waits, "/b", false);
	world_sleep(p.w, 3 * PATIENCE);
	CHECK_INT(publications(), 1);
	publish_other(&p);
	finish(&p);
}

/* An operator breaks our hold: its znode goes without us. */
static void
broken(void)
{
	Pair		p = begin();
	char		path[ZKL_MAX_PATH + 1];

	p.a = submit(&p, "/a", 1, ZKL_EXCLUSIVE);
	world_sleep(p.w, 2 * WORLD_BEAT);
	p.b = submit(&p, "/b", 1, ZKL_EXCLUSIVE);
	world_path(p.w, p.a, path);
	CHECK_INT(model_set(&p.w->zk, path, "{\"breaking\":true,\"zklock\":1}"),
			  ZKL_RC_OK);
	world_run(p.w);
	CHECK_INT(p.w->requests[p.a].state, SLOT_LOST);
	wait_long(&p);
	CHECK_INT(publications(), 0);
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

	alone = submit(&p, "/b", 2, ZKL_EXCLUSIVE);
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
	wait_long(&p);
	CHECK_INT(p.w->zk.counts.creates, 1);
	CHECK_INT(p.w->zk.counts.containers, 1);
	CHECK_INT(p.w->zk.counts.lists, 2);
	CHECK(p.w->zk.counts.gets <= gets + 2);
	finish(&p);
}

/* A wait of a session that holds too much is counted once, and not published. */
static void
too_many(void)
{
	Pair		p = make_pair();
	ZklCounters counters;
	char		name[24];
	int			i;

	for (i = 0; i < 64; i++)
	{
		snprintf(name, sizeof(name), "/many/%d", i);
		(void) world_submit(p.w, name, 1, ZKL_SHARED);
	}
	world_run(p.w);
	world_sleep(p.w, 8 * PATIENCE);
	zkl_manager_counters(p.w->worker.m, &counters);
	CHECK_INT(counters.unpublished, 1);
	CHECK_INT(publications(), 0);
	finish(&p);
}

/* What is read before its publication is acknowledged may miss a later one. */
static void
search_behind_publication(void)
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

/* A wait that is published during a search for others has its own one next. */
static void
in_turn(void)
{
	Pair		p = make_pair();
	int			i;

	p.w->worker.now += 2000;
	(void) submit(&p, "/c", 2, ZKL_EXCLUSIVE);
	(void) submit(&p, "/b", 2, ZKL_EXCLUSIVE);
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

/*
 * Our session 1 and another one (n = 2), or none, wait in PostgreSQL for the one
 * at /b.
 */
static void
look(Pair *p, size_t n)
{
	const uint64_t owners[] = {3, 1};

	zkl_manager_behind(p->w->worker.m, p->w->worker.now, p->b,
					   p->w->worker.now, owners, n);
	world_flush(p->w);
	world_run(p->w);
}

/* A session of ours holds /a and waits in PostgreSQL for the one that wants /b. */
static void
through_postgres(void)
{
	Pair		p = make_pair_of(2);

	publish_other(&p);
	wait_long(&p);
	CHECK_INT(publications(), 0);
	look(&p, 2);
	CHECK(is_victim(&p));
	CHECK(world_holds(p.w, p.a));
	CHECK_INT(publications(), 0);
	finish(&p);
}

/* The same, but it was over before the search came to its end. */
static void
no_longer_through_postgres(void)
{
	Pair		p = make_pair_of(2);

	wait_long(&p);
	look(&p, 2);
	CHECK_INT(publications(), 1);
	look(&p, 0);
	CHECK_INT(publications(), 0);
	publish_other(&p);
	world_sleep(p.w, 20 * PATIENCE);
	CHECK(world_waits(p.w, p.b));
	finish(&p);
}

/* The circle is new: it ends behind one look of the other server, and a moment. */
static void
check_time(Pair *p)
{
	world_sleep(p->w, p->every_ms * 500);
	look(p, 2);
	world_sleep(p->w, p->every_ms * 500 + 90000);
	look(p, 2);
	CHECK(world_waits(p->w, p->b));
	CHECK_INT(publications(), 1);
	world_sleep(p->w, 20000);
	look(p, 2);
	CHECK(is_victim(p));
	CHECK_INT(publications(), 0);
}

/*
 * Each side waits through PostgreSQL. What the other server saw there may be over:
 * it has the time of one look, and a moment, to take it back.
 */
static void
confirmation(void)
{
	Pair		p = make_pair_of(2);

	publish_other_behind(&p);
	wait_long(&p);
	look(&p, 2);
	CHECK_INT(checks(&p), 1);
	check_time(&p);
	finish(&p);
}

/* The other server takes it back in time. */
static void
no_confirmation(void)
{
	Pair		p = make_pair_of(2);

	publish_other_behind(&p);
	wait_long(&p);
	look(&p, 2);
	CHECK_INT(model_delete(&p.w->zk, p.published), ZKL_RC_OK);
	world_sleep(p.w, EVERY + 110000);
	look(&p, 2);
	CHECK(world_waits(p.w, p.b));
	CHECK_INT(publications(), 1);
	finish(&p);
}

/* Both publish anew: that is another circle, which takes its own time. */
static void
confirmation_anew(void)
{
	Pair		p = make_pair_of(2);

	publish_other_behind(&p);
	wait_long(&p);
	look(&p, 2);
	world_sleep(p.w, EVERY);
	CHECK_INT(model_delete(&p.w->zk, p.published), ZKL_RC_OK);
	publish_other_behind(&p);
	look(&p, 0);
	CHECK_INT(publications(), 0);
	look(&p, 2);
	check_time(&p);
	finish(&p);
}

/*
 * A third session closes the circle, without PostgreSQL, and does so anew: what
 * the other server saw may have been over in between.
 */
static void
confirmation_of_others(void)
{
	Pair		p = make_pair_of(2);
	char		third_held[ZKL_MAX_PATH + 1];
	char		third_waits[ZKL_MAX_PATH + 1];

	foreign_zklock(p.w, "/c", ZKL_EXCLUSIVE, "{\"zklock\":1}", third_held);
	foreign_zklock(p.w, "/c", ZKL_EXCLUSIVE, "{\"zklock\":1}", third_waits);
	publish(&p, third_held, p.waits, "/a", true);
	publish(&p, p.held, third_waits, "/c", false);
	wait_long(&p);
	look(&p, 2);
	world_sleep(p.w, EVERY);
	CHECK_INT(model_delete(&p.w->zk, p.published), ZKL_RC_OK);
	publish(&p, p.held, third_waits, "/c", false);
	look(&p, 2);
	check_time(&p);
	foreign_leave_all(p.w, "/c");
	finish(&p);
}

/*
 * There are two circles, through two readers. The longer one shows when the other
 * ends, and goes through a server that looks less often.
 */
static void
confirmation_of_another(void)
{
	Pair		p = begin();
	char		readers[2][ZKL_MAX_PATH + 1];
	char		held[ZKL_MAX_PATH + 1];
	char		waits[ZKL_MAX_PATH + 1];
	char		shorter[ZKL_MAX_PATH + 1];
	int			i;

	foreign_leave_all(p.w, "/b");
	for (i = 0; i < 2; i++)
		foreign_zklock(p.w, "/b", ZKL_SHARED, "{\"zklock\":1}", readers[i]);
	foreign_zklock(p.w, "/c", ZKL_EXCLUSIVE, "{\"zklock\":1}", held);
	foreign_zklock(p.w, "/c", ZKL_EXCLUSIVE, "{\"zklock\":1}", waits);
	p.a = submit(&p, "/a", 1, ZKL_EXCLUSIVE);
	foreign_zklock(p.w, "/a", ZKL_EXCLUSIVE, "{\"zklock\":1}", p.waits);
	p.b = submit(&p, "/b", 2, ZKL_EXCLUSIVE);
	publish(&p, readers[0], p.waits, "/a", true);
	strcpy(shorter, p.published);
	p.every_ms *= 2;
	publish(&p, readers[1], waits, "/c", false);
	publish(&p, held, p.waits, "/a", true);
	wait_long(&p);
	look(&p, 2);
	CHECK_INT(model_delete(&p.w->zk, shorter), ZKL_RC_OK);
	check_time(&p);
	foreign_leave_all(p.w, "/c");
	finish(&p);
}

/* A lock that is kept goes by itself: a wait for it ends. */
static void
kept(void)
{
	Pair		p = make_pair_of(2);

	/* released by a session that waited in PostgreSQL for the one that waits */
	wait_long(&p);
	look(&p, 2);
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
 * The session that waits has kept the writer, and holds the reader.  Another reader
 * can go on once the writer goes.
 */
static void
kept_beside_a_hold(void)
{
	Pair		p = begin();
	uint32_t	reader = submit(&p, "/a", 1, ZKL_SHARED);

	p.a = submit(&p, "/a", 1, ZKL_EXCLUSIVE);
	CHECK(world_holds(p.w, p.a));
	world_keep(p.w, p.a, 20 * PATIENCE);
	foreign_zklock(p.w, "/a", ZKL_SHARED, "{\"zklock\":1}", p.waits);
	p.b = submit(&p, "/b", 1, ZKL_EXCLUSIVE);
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
	RUN(two_victims);
	RUN(no_victim);
	RUN(long_queue);
	RUN(chain);
	RUN(too_late);
	RUN(too_long);
	RUN(deleted_by_others);
	RUN(made_by_others);
	RUN(broken);
	RUN(lost_verdict);
	RUN(costs);
	RUN(too_many);
	RUN(search_behind_publication);
	RUN(in_turn);
	RUN(restart);
	RUN(session_lost);
	RUN(through_postgres);
	RUN(no_longer_through_postgres);
	RUN(confirmation);
	RUN(no_confirmation);
	RUN(confirmation_anew);
	RUN(confirmation_of_others);
	RUN(confirmation_of_another);
	RUN(kept);
	RUN(kept_beside_a_hold);
	return unit_finish();
}
