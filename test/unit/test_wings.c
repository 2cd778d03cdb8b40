/*
 * test_wings.c
 *	  The core without a wing, and what it tells one: in which order, and of what.
 */
#include "core/wing.h"
#include "unit.h"
#include "world.h"

#define MOST	64

/* ---- without any ---- */

static World *
plain_world(void)
{
	World	   *w = world_make();

	w->config.wings = NULL;
	world_begin(w);
	world_connect(w);
	world_run(w);
	return w;
}

/* Holds, waits, hand-overs, and the end of a session */
static void
no_wing(void)
{
	World	   *w = plain_world();
	ZklDeadlockCounters counters;
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	holder;
	uint32_t	waiter;
	uint32_t	third;

	w->patience = ZKL_MIN_PATIENCE;
	world_warm_up(w, "/a");
	holder = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	waiter = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	foreign_enter(w, "/b", ZKL_EXCLUSIVE, other);
	third = world_submit(w, "/b", 1, ZKL_SHARED);
	world_sleep(w, 20 * ZKL_MIN_PATIENCE);
	world_run(w);
	CHECK(world_holds(w, holder));
	CHECK(world_waits(w, waiter));
	CHECK(world_waits(w, third));
	world_release(w, holder);
	world_run(w);
	CHECK(world_holds(w, waiter));
	foreign_leave_all(w, "/b");
	world_run(w);
	CHECK(world_holds(w, third));
	zkl_deadlock_count(w->worker.m, &counters);
	CHECK_INT(counters.checks + counters.deadlocks, 0);
	world_wind_up(w);
}

/* Nobody hears the news. */
static void
unheard(void)
{
	World	   *w = plain_world();
	uint64_t	owners[] = {1};
	ZklDependents news = {w->worker.now, owners, 1};
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	waiter;

	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	waiter = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	worker_tell(&w->worker, ZKL_EVENT(NEWS,.request = waiter,.news = &news));
	world_run(w);
	CHECK(world_waits(w, waiter));
	foreign_leave_all(w, "/a");
	world_run(w);
	world_wind_up(w);
}

/* ---- one that notes what it is told ---- */

static struct
{
	ZklManager *m;
	char		told[MOST + 1]; /* a letter each */
	int64_t		due;
	bool		asks;			/* sends a read in the next flush */
	bool		disowns;
	int			flushes;
	int			answers;
	int			found;
}			noted;

static void
note(char what)
{
	size_t		n = strlen(noted.told);

	if (n < MOST)
		noted.told[n] = what;
}

static void *
begin_noting(ZklManager *m)
{
	memset(&noted, 0, sizeof(noted));
	noted.m = m;
	noted.due = -1;
	return &noted;
}

static void
end_noting(void *wing)
{
	CHECK(wing == &noted);
	noted.m = NULL;
}

static void
note_began(void *wing, ZklRequest *r, const ZklDemand *demand)
{
	(void) wing;
	CHECK(r->ring.owner == demand->owner && r->lock != NULL);
	note('b');
}

static void
note_queued(void *wing, ZklRequest *r)
{
	(void) wing;
	CHECK_INT(r->node.state, ZKL_NODE_EXISTS);
	note('q');
}

static void
note_waited(void *wing, ZklRequest *r)
{
	(void) wing;
	CHECK(r->lock != NULL);
	note('w');
}

static void
note_hold_ended(void *wing, const ZklRequest *r)
{
	(void) wing;
	CHECK(r->lock != NULL);
	note('u');
}

static void
note_disconnected(void *wing)
{
	(void) wing;
	note('D');
}

static void
note_session_lost(void *wing)
{
	(void) wing;
	note('L');
}

static void
note_writes_lost(void *wing)
{
	(void) wing;
	note('W');
}

static void
ask(void *wing)
{
	(void) wing;
	noted.flushes++;
	if (!noted.asks)
		return;
	noted.asks = false;
	zkl_operations_read(noted.m, ZKL_OP_WING, NULL, NULL, ZKL_SEND_LIST,
						zkl_actions_join(noted.m, noted.m->root, "", ""), false);
}

static void
note_answer(void *wing, const ZklOp *op, const ZklReply *reply)
{
	(void) wing;
	CHECK_INT(op->kind, ZKL_OP_WING);
	noted.answers += reply->rc == ZKL_RC_OK;
}

static int64_t
tell_due(const void *wing)
{
	(void) wing;
	return noted.due;
}

static void
note_found(void *wing, const char *path)
{
	(void) wing;
	noted.found += strcmp(path, WORLD_ROOT "/.mine") == 0;
}

static bool
disown(const void *wing, const char *name)
{
	(void) wing;
	return noted.disowns && strcmp(name, "his") == 0;
}

static const char *const names[] = {"noted"};

static const ZklWing noting = {
	.operations = names,.begin = begin_noting,.end = end_noting,
	.began = note_began,.queued = note_queued,.waited = note_waited,
	.hold_ended = note_hold_ended,
	.disconnected = note_disconnected,.session_lost = note_session_lost,
	.writes_lost = note_writes_lost,.send = ask,.reply = note_answer,.timer = tell_due,.found = note_found,
	.disowns = disown
};

/* And one that has a time of its own */
static int64_t other_due = -1;

static void *
begin_other(ZklManager *m)
{
	return m;
}

static int64_t
tell_other_due(const void *wing)
{
	(void) wing;
	return other_due;
}

static const ZklWing other = {.begin = begin_other,.timer = tell_other_due};

static World *
noting_world(void)
{
	static const ZklWing *const all[] = {&other, &noting, &zkl_deadlock_wing, NULL};
	World	   *w = world_make();

	w->config.wings = all;
	world_begin(w);
	world_connect(w);
	world_run(w);
	return w;
}

static void
check_told(const char *expected)
{
	CHECK_STR(noted.told, expected);
	memset(noted.told, 0, sizeof(noted.told));
}

/* The life of two requests, one behind the other */
static void
requests(void)
{
	World	   *w = noting_world();
	uint32_t	a;
	uint32_t	b;

	check_told("");
	world_warm_up(w, "/a");
	memset(noted.told, 0, sizeof(noted.told));
	a = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	check_told("b");
	world_run(w);
	check_told("qw");
	b = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	check_told("bq");
	world_release(w, a);
	check_told("wuw");
	world_run(w);
	check_told("");

	/* Kept without a holder, nobody waits for him; then it leaves the queue. */
	world_keep(w, b, 1000000);
	check_told("u");
	world_sleep(w, 1000000);
	world_run(w);
	check_told("wu");
	world_wind_up(w);
	CHECK(noted.m == NULL);
}

/* A lost connection, a lost session */
static void
connections(void)
{
	World	   *w = noting_world();
	uint32_t	a = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);

	world_run(w);
	CHECK(world_holds(w, a));
	check_told("bqw");
	world_disconnect(w);
	check_told("D");
	world_connect(w);
	world_run(w);
	check_told("");
	world_expire_session(w);
	check_told("DLwu");
	world_wind_up(w);
}

/* ZooKeeper has lost beats that it had acknowledged. */
static void
lost_writes(void)
{
	World	   *w = noting_world();
	char		heartbeat[ZKL_MAX_PATH + 1];

	world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	world_sleep(w, WORLD_BEAT);
	world_disconnect(w);
	world_heartbeat(w, world_chain(w), heartbeat);
	CHECK_INT(model_delete(&w->zk, heartbeat), ZKL_RC_OK);
	check_told("bqwD");
	world_connect(w);
	world_run(w);
	check_told("W");
	world_wind_up(w);
}

/* An operator breaks a hold: nobody waits for its holder from then on. */
static void
broken(void)
{
	World	   *w = noting_world();
	uint32_t	a = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);

	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	check_told("bqw");
	world_write(w, a, WORLD_BREAK);
	world_run(w);
	check_told("u");
	world_wind_up(w);
}

/* The nearest of their times counts. */
static void
timers(void)
{
	static const int64_t cases[][3] = {
		{-1, -1, -1}, {50, -1, 50}, {-1, 50, 50}, {40, 50, 40}, {50, 40, 40}, {0, 50, 0}
	};
	World	   *w = noting_world();
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		other_due = cases[i][0];
		noted.due = cases[i][1];
		CHECK_INT(zkl_hooks_timer(w->worker.m), cases[i][2]);
	}
	other_due = noted.due = -1;
	world_wind_up(w);
}

/* Its timer brings a flush, in which it reads; the answer comes to it. */
static void
operations(void)
{
	World	   *w = noting_world();

	noted.due = w->worker.now + 50000;
	CHECK_INT(zkl_manager_timer(w->worker.m), noted.due);
	noted.due = -1;
	noted.flushes = 0;
	noted.asks = true;
	world_flush(w);
	CHECK_INT(noted.flushes, 1);
	world_run(w);
	CHECK_INT(noted.answers, 1);
	world_wind_up(w);
}

/*
 * The janitor tells of names that begin with a dot, and deletes what a wing disowns,
 * if it is of this session.
 */
static void
janitor(void)
{
	static const struct
	{
		bool		disowned;
		bool		ours;
	}			cases[] = {{true, true}, {false, true}, {true, false}};
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		World	   *w = noting_world();
		const char *path = WORLD_ROOT "/.mine/his";

		(void) world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		model_mkdir(&w->zk, WORLD_ROOT "/.mine");
		CHECK_INT(model_create(&w->zk, path, false,
							   cases[i].ours ? w->conn.session : 77, "", NULL),
				  ZKL_RC_OK);
		world_disconnect(w);
		world_lose_a_beat(w);
		noted.disowns = cases[i].disowned;
		world_connect(w);
		world_run(w);
		CHECK(noted.found > 0);
		zkl_janitor_ask(w->worker.m, path);
		world_flush(w);
		world_run(w);
		CHECK_INT(model_delete(&w->zk, path), cases[i].disowned && cases[i].ours ?
				  ZKL_RC_NONODE : ZKL_RC_OK);
		world_wind_up(w);
	}
}

int
main(void)
{
	unit_start();
	RUN(no_wing);
	RUN(unheard);
	RUN(requests);
	RUN(connections);
	RUN(lost_writes);
	RUN(broken);
	RUN(timers);
	RUN(operations);
	RUN(janitor);
	return unit_finish();
}
