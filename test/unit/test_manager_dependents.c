/*
 * test_manager_dependents.c
 *	  Scenarios of deadlocks with another server that go through PostgreSQL's own
 *	  locks, and of locks that are kept: what looks like one, and is none.
 */
#include "pair.h"
#include "unit.h"

/* The other session waits in PostgreSQL for one that waits behind us. */
static void
publish_other_behind(Pair *p)
{
	pair_publish(p, p->held, p->waits, "/a", true);
}

/*
 * Our session 1 and another one (n = 2), or none, wait in PostgreSQL for the one
 * at /b.
 */
static void
tell(Pair *p, size_t n)
{
	const uint64_t owners[] = {3, 1};
	const ZklDependents dependents = {p->w->worker.now, owners, n};

	worker_tell(&p->w->worker, ZKL_EVENT(NEWS,.request = p->b,
										 .news = &dependents));
	world_flush(p->w);
}

/* The same, and what follows */
static void
look(Pair *p, size_t n)
{
	tell(p, n);
	world_run(p->w);
}

/* The host may tell of a request that has not come to the core, or has left it. */
static void
of_no_request(void)
{
	const uint64_t owner = 1;
	World	   *w = world_ready();
	const ZklDependents dependents = {w->worker.now, &owner, 1};

	worker_tell(&w->worker, ZKL_EVENT(NEWS,.request = 3,.news = &dependents));
	world_flush(w);
	world_wind_up(w);
}

/* A session of ours holds /a and waits in PostgreSQL for the one that wants /b. */
static void
through_postgres(void)
{
	Pair		p = pair_make_of(2);

	pair_publish_other(&p);
	pair_wait_long(&p);
	CHECK_INT(pair_publications(), 0);
	look(&p, 2);
	CHECK(pair_is_victim(&p));
	CHECK(world_holds(p.w, p.a));
	CHECK_INT(pair_publications(), 0);
	pair_finish(&p);
}

/* The same, but it was over before the search came to its end. */
static void
no_longer_through_postgres(void)
{
	Pair		p = pair_make_of(2);

	pair_wait_long(&p);
	look(&p, 2);
	CHECK_INT(pair_publications(), 1);
	look(&p, 0);
	CHECK_INT(pair_publications(), 0);
	pair_publish_other(&p);
	world_sleep(p.w, 20 * PAIR_PATIENCE);
	CHECK(world_waits(p.w, p.b));
	pair_finish(&p);
}

/* Ours: the one publication, whose name comes into "name", is not called "before". */
static void
check_new_name(const char *before, char *name)
{
	const Path *path = tree_children(WORLD_ROOT ZKL_WAITS_DIRECTORY);
	ZklUuid		held;

	CHECK_INT(pair_publications(), 1);
	while (!path->node[HEAD].exists)
		path = path->sibling;
	CHECK(zkl_znode_parse_wait(path->name, &held));
	CHECK_MSG(strcmp(before, path->name) != 0, "%s again", before);
	strcpy(name, path->name);
}

/*
 * A publication that is made again has another name: who has read the one before cannot
 * take it for that.
 */
static void
never_the_same_name(void)
{
	Pair		p = pair_make_of(2);
	char		names[2][ZKL_MAX_WAIT_NAME + 1];

	pair_wait_long(&p);
	look(&p, 2);
	check_new_name("", names[0]);
	look(&p, 0);
	CHECK_INT(pair_publications(), 0);
	look(&p, 2);
	check_new_name(names[0], names[1]);
	pair_finish(&p);
}

/* Until the last publication of the other server is the next to be read */
static void
until_read(Pair *p)
{
	int			i;

	for (i = 0; i < 100; i++)
	{
		const Request *next = p->w->conn.inbox;

		if (next != NULL && next->path != NULL && strcmp(next->path, p->published) == 0)
			return;
		world_serve(p->w, 1);
		world_deliver(p->w, 1);
		world_flush(p->w);
	}
	CHECK_MSG(false, "%s is not read", p->published);
}

/*
 * A reader of ours waits in PostgreSQL for our session at /b, but no longer when the
 * search, which has still to read of another reader, comes to its end.  Something is
 * still published of that session: it holds /own.
 */
static void
taken_back_meanwhile(void)
{
	Pair		p = pair_begin();
	char		reader[ZKL_MAX_PATH + 1];
	char		held[ZKL_MAX_PATH + 1];
	char		waits[ZKL_MAX_PATH + 1];

	p.a = pair_submit(&p, "/a", 1, ZKL_SHARED);
	foreign_zklock(p.w, "/a", ZKL_SHARED, "{\"zklock\":1}", reader);
	foreign_zklock(p.w, "/a", ZKL_EXCLUSIVE, "{\"zklock\":1}", p.waits);
	foreign_zklock(p.w, "/c", ZKL_EXCLUSIVE, "{\"zklock\":1}", held);
	foreign_zklock(p.w, "/c", ZKL_EXCLUSIVE, "{\"zklock\":1}", waits);
	(void) pair_submit(&p, "/own", 2, ZKL_EXCLUSIVE);
	p.b = pair_submit(&p, "/b", 2, ZKL_EXCLUSIVE);
	pair_publish_other(&p);
	pair_publish(&p, reader, waits, "/c", false);
	pair_wait_long(&p);
	CHECK_INT(pair_publications(), 1);
	tell(&p, 2);
	until_read(&p);
	CHECK_INT(pair_publications(), 2);
	look(&p, 0);
	CHECK(world_waits(p.w, p.b));
	CHECK_INT(pair_publications(), 1);
	foreign_leave_all(p.w, "/c");
	pair_finish(&p);
}

/* The cycle is new: it ends behind one look of the other server, and a moment. */
static void
check_time(Pair *p)
{
	world_sleep(p->w, p->every_ms * 500);
	look(p, 2);
	world_sleep(p->w, p->every_ms * 500 + 90000);
	look(p, 2);
	CHECK(world_waits(p->w, p->b));
	CHECK_INT(pair_publications(), 1);
	world_sleep(p->w, 20000);
	look(p, 2);
	CHECK(pair_is_victim(p));
	CHECK_INT(pair_publications(), 0);
}

/*
 * Each side waits through PostgreSQL. What the other server saw there may be over:
 * it has the time of one look, and a moment, to take it back.
 */
static void
confirmation(void)
{
	Pair		p = pair_make_of(2);

	publish_other_behind(&p);
	pair_wait_long(&p);
	look(&p, 2);
	CHECK_INT(pair_checks(&p), 1);
	check_time(&p);
	pair_finish(&p);
}

/* The other server takes it back in time. */
static void
no_confirmation(void)
{
	Pair		p = pair_make_of(2);

	publish_other_behind(&p);
	pair_wait_long(&p);
	look(&p, 2);
	CHECK_INT(model_delete(&p.w->zk, p.published), ZKL_RC_OK);
	world_sleep(p.w, PAIR_EVERY + 110000);
	look(&p, 2);
	CHECK(world_waits(p.w, p.b));
	CHECK_INT(pair_publications(), 1);
	pair_finish(&p);
}

/* Both publish anew: that is another cycle, which takes its own time. */
static void
confirmation_anew(void)
{
	Pair		p = pair_make_of(2);

	publish_other_behind(&p);
	pair_wait_long(&p);
	look(&p, 2);
	world_sleep(p.w, PAIR_EVERY);
	CHECK_INT(model_delete(&p.w->zk, p.published), ZKL_RC_OK);
	publish_other_behind(&p);
	look(&p, 0);
	CHECK_INT(pair_publications(), 0);
	look(&p, 2);
	check_time(&p);
	pair_finish(&p);
}

/*
 * A third session closes the cycle, without PostgreSQL, and does so anew: what
 * the other server saw may have been over in between.
 */
static void
confirmation_of_others(void)
{
	Pair		p = pair_make_of(2);
	char		third_held[ZKL_MAX_PATH + 1];
	char		third_waits[ZKL_MAX_PATH + 1];

	foreign_zklock(p.w, "/c", ZKL_EXCLUSIVE, "{\"zklock\":1}", third_held);
	foreign_zklock(p.w, "/c", ZKL_EXCLUSIVE, "{\"zklock\":1}", third_waits);
	pair_publish(&p, third_held, p.waits, "/a", true);
	pair_publish(&p, p.held, third_waits, "/c", false);
	pair_wait_long(&p);
	look(&p, 2);
	world_sleep(p.w, PAIR_EVERY);
	CHECK_INT(model_delete(&p.w->zk, p.published), ZKL_RC_OK);
	pair_publish(&p, p.held, third_waits, "/c", false);
	look(&p, 2);
	check_time(&p);
	foreign_leave_all(p.w, "/c");
	pair_finish(&p);
}

/*
 * There are two cycles, through two readers. The longer one shows when the other
 * ends, and goes through a server that looks less often.
 */
static void
confirmation_of_another(void)
{
	Pair		p = pair_begin();
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
	p.a = pair_submit(&p, "/a", 1, ZKL_EXCLUSIVE);
	foreign_zklock(p.w, "/a", ZKL_EXCLUSIVE, "{\"zklock\":1}", p.waits);
	p.b = pair_submit(&p, "/b", 2, ZKL_EXCLUSIVE);
	pair_publish(&p, readers[0], p.waits, "/a", true);
	strcpy(shorter, p.published);
	p.every_ms *= 2;
	pair_publish(&p, readers[1], waits, "/c", false);
	pair_publish(&p, held, p.waits, "/a", true);
	pair_wait_long(&p);
	look(&p, 2);
	CHECK_INT(model_delete(&p.w->zk, shorter), ZKL_RC_OK);
	check_time(&p);
	foreign_leave_all(p.w, "/c");
	pair_finish(&p);
}

/* A lock that is kept goes by itself: a wait for it ends. */
static void
kept(void)
{
	Pair		p = pair_make_of(2);

	/* released by a session that waited in PostgreSQL for the one that waits */
	pair_wait_long(&p);
	look(&p, 2);
	CHECK_INT(pair_publications(), 1);
	world_keep(p.w, p.a, 20 * PAIR_PATIENCE);
	world_run(p.w);
	CHECK_INT(pair_publications(), 0);
	pair_publish_other(&p);
	world_sleep(p.w, PAIR_PATIENCE);
	CHECK(world_waits(p.w, p.b));
	pair_finish(&p);
}

/*
 * Of two holds that share a znode one is kept, and the other one released, while the
 * publication of that znode is under way.
 */
static void
kept_instead(void)
{
	Pair		p = pair_make_of(2);
	uint32_t	again = pair_submit(&p, "/a", 1, ZKL_EXCLUSIVE);

	pair_publish_other(&p);
	pair_wait_long(&p);
	tell(&p, 2);
	world_keep(p.w, again, 20 * PAIR_PATIENCE);
	world_release(p.w, p.a);
	world_run(p.w);
	CHECK(world_keeps(p.w, again));
	CHECK(world_waits(p.w, p.b));
	CHECK_INT(pair_publications(), 0);
	pair_finish(&p);
}

/*
 * The session that waits has kept the writer, and holds the reader.  Another reader
 * can go on once the writer goes.
 */
static void
kept_beside_a_hold(void)
{
	Pair		p = pair_begin();
	uint32_t	reader = pair_submit(&p, "/a", 1, ZKL_SHARED);

	p.a = pair_submit(&p, "/a", 1, ZKL_EXCLUSIVE);
	CHECK(world_holds(p.w, p.a));
	world_keep(p.w, p.a, 20 * PAIR_PATIENCE);
	foreign_zklock(p.w, "/a", ZKL_SHARED, "{\"zklock\":1}", p.waits);
	p.b = pair_submit(&p, "/b", 1, ZKL_EXCLUSIVE);
	pair_publish_other(&p);
	pair_wait_long(&p);
	CHECK(world_holds(p.w, reader));
	CHECK(world_waits(p.w, p.b));
	CHECK_INT(pair_publications(), 0);
	world_sleep(p.w, 40 * PAIR_PATIENCE);
	world_run(p.w);
	CHECK(!world_keeps(p.w, p.a));
	CHECK(world_waits(p.w, p.b));
	CHECK_INT(pair_publications(), 1);
	pair_finish(&p);
}

int
main(void)
{
	unit_start();
	RUN(of_no_request);
	RUN(through_postgres);
	RUN(no_longer_through_postgres);
	RUN(never_the_same_name);
	RUN(taken_back_meanwhile);
	RUN(confirmation);
	RUN(no_confirmation);
	RUN(confirmation_anew);
	RUN(confirmation_of_others);
	RUN(confirmation_of_another);
	RUN(kept);
	RUN(kept_instead);
	RUN(kept_beside_a_hold);
	return unit_finish();
}
