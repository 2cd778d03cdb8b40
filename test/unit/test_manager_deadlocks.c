/*
 * test_manager_deadlocks.c
 *	  Scenarios of deadlocks with another server: what is published and when, who
 *	  ends, and what it costs.
 */
#include "pair.h"
#include "unit.h"

/* Until the verdict is the next to be executed */
static void
until_verdict(Pair *p)
{
	int			i;

	p->w->worker.now += PAIR_PATIENCE + 1000;
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

/* The last to publish is the victim, and takes its publication along. */
static void
victim(void)
{
	Pair		p = pair_make();
	ZklDeadlockCounters counters;

	pair_publish_other(&p);
	CHECK_INT(pair_publications(), 0);
	pair_wait_long(&p);
	CHECK(pair_is_victim(&p));
	CHECK(world_holds(p.w, p.a));
	CHECK_INT(pair_publications(), 0);
	zkl_deadlock_count(p.w->worker.m, &counters);
	CHECK_INT(counters.deadlocks, 1);
	CHECK_INT(counters.checks, 1);
	pair_finish(&p);
}

/* One search finds two cycles: one after the other is decided, at once. */
static void
two_victims(void)
{
	Pair		p = pair_make();
	char		held[ZKL_MAX_PATH + 1];
	char		waits[ZKL_MAX_PATH + 1];
	uint32_t	d;

	foreign_zklock(p.w, "/d", ZKL_EXCLUSIVE, "{\"zklock\":1}", held);
	(void) pair_submit(&p, "/c", 2, ZKL_EXCLUSIVE);
	foreign_zklock(p.w, "/c", ZKL_EXCLUSIVE, "{\"zklock\":1}", waits);
	d = pair_submit(&p, "/d", 2, ZKL_EXCLUSIVE);
	pair_publish_other(&p);
	pair_publish(&p, held, waits, "/c", false);
	p.w->worker.now += PAIR_PATIENCE + 2000;
	world_flush(p.w);
	world_run(p.w);
	CHECK(pair_is_victim(&p));
	CHECK_INT(p.w->requests[d].failure, ZKL_FAILURE_DEADLOCK);
	CHECK_INT(pair_publications(), 0);
	CHECK_INT(pair_checks(&p), 2);
	model_expire(&p.w->zk, PAIR_OTHER);
	pair_finish(&p);
}

/* The other one published later: it is the victim, and we wait on. */
static void
no_victim(void)
{
	Pair		p = pair_make();

	pair_wait_long(&p);
	CHECK_INT(pair_publications(), 1);
	pair_publish_other(&p);
	world_sleep(p.w, 20 * PAIR_PATIENCE);
	world_run(p.w);
	CHECK(world_waits(p.w, p.b));

	/* its end is ours */
	foreign_leave_all(p.w, "/b");
	world_run(p.w);
	CHECK(world_holds(p.w, p.b));
	CHECK_INT(pair_publications(), 0);
	pair_finish(&p);
}

/* However many wait in between, they are one step. */
static void
long_queue(void)
{
	Pair		p = pair_begin();
	char		other[ZKL_MAX_PATH + 1];
	int			i;

	p.a = pair_submit(&p, "/a", 1, ZKL_EXCLUSIVE);
	for (i = 0; i < 150; i++)
	{
		foreign_zklock(p.w, "/a", ZKL_EXCLUSIVE, "{\"zklock\":1}", other);
		foreign_zklock(p.w, "/b", ZKL_EXCLUSIVE, "{\"zklock\":1}", other);
	}
	foreign_zklock(p.w, "/a", ZKL_SHARED, "{\"zklock\":1}", p.waits);
	p.b = pair_submit(&p, "/b", 1, ZKL_SHARED);
	pair_publish_other(&p);
	pair_wait_long(&p);
	CHECK(pair_is_victim(&p));
	pair_finish(&p);
}

/* A holder that has published nothing can go on, and other clients always can. */
static void
chain(void)
{
	Pair		p = pair_make();

	world_sleep(p.w, 40 * PAIR_PATIENCE);
	world_run(p.w);
	CHECK(world_waits(p.w, p.b));
	CHECK_INT(pair_publications(), 1);

	/* after 1, 2, 4, 8, 16 and 32 */
	CHECK_INT(pair_checks(&p), 6);
	pair_finish(&p);
}

/*
 * The cycle is gone when the verdict comes: a contender, or a publication, even if
 * there is another one for the same znode.  What is left of it is looked at again at
 * once; the other one is newer than ours, so its own server decides.
 */
static void
too_late(void)
{
	enum
	{
		CONTENDER, PUBLICATION, MADE_AGAIN, CASES
	}			gone;

	for (gone = CONTENDER; gone < CASES; gone++)
	{
		Pair		p = pair_make();

		pair_publish_other(&p);
		until_verdict(&p);
		CHECK_INT(model_delete(&p.w->zk, gone == CONTENDER ? p.waits : p.published),
				  ZKL_RC_OK);
		if (gone == MADE_AGAIN)
			pair_publish_other(&p);
		world_run(p.w);
		CHECK(world_waits(p.w, p.b));
		CHECK_INT(pair_publications(), 1);
		CHECK_INT(pair_checks(&p), 2);
		pair_finish(&p);
	}
}

/*
 * So many more sessions of others on the cycle: each holds a lock, and waits for
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
		pair_publish(p, held, waits, name, false);
		strcpy(held, next);
	}
	pair_publish(p, held, p->waits, "/a", false);
}

/* A cycle of too many waits is given up, and counted. */
static void
too_long(void)
{
	const int	most = 50;
	int			n;

	for (n = most; n <= most + 1; n++)
	{
		Pair		p = pair_make();
		ZklDeadlockCounters counters;

		lengthen(&p, n - 2);
		pair_wait_long(&p);
		zkl_deadlock_count(p.w->worker.m, &counters);
		CHECK(n > most ? world_waits(p.w, p.b) : pair_is_victim(&p));
		CHECK_INT(counters.given_up, n > most);
		model_expire(&p.w->zk, PAIR_OTHER);
		pair_finish(&p);
	}
}

/* Another client deletes our publication: a look notices, the next one mends it. */
static void
deleted_by_others(void)
{
	Pair		p = pair_make();
	const Path *path;

	pair_wait_long(&p);
	CHECK_INT(pair_publications(), 1);
	path = tree_children(WORLD_ROOT ZKL_WAITS_DIRECTORY);
	while (path->node[HEAD].stat.ephemeral_owner == PAIR_OTHER)
		path = path->sibling;
	CHECK_INT(model_delete(&p.w->zk, path->text), ZKL_RC_OK);
	pair_wait_long(&p);
	CHECK_INT(pair_publications(), 0);
	pair_wait_long(&p);
	CHECK_INT(pair_publications(), 1);
	pair_finish(&p);
}

/* Another client has made a publication of our hold, which may say anything: it goes. */
static void
made_by_others(void)
{
	Pair		p = pair_make();
	char		path[ZKL_MAX_PATH + 1];

	world_path(p.w, p.a, path);
	pair_publish(&p, path, p.waits, "/b", false);
	world_sleep(p.w, 3 * PAIR_PATIENCE);
	CHECK_INT(pair_publications(), 1);
	CHECK_INT(model_delete(&p.w->zk, p.published), ZKL_RC_NONODE);
	pair_publish_other(&p);
	pair_finish(&p);
}

/* Another client has taken the next name: the one behind it does. */
static void
name_taken(void)
{
	Pair		p = pair_make();
	char		path[ZKL_MAX_PATH + 1] = WORLD_ROOT ZKL_WAITS_DIRECTORY "/";

	zkl_znode_wait_name(&p.w->requests[p.a].record.uuid, p.w->config.worker_start, 1,
						path + strlen(path));
	model_mkdir(&p.w->zk, WORLD_ROOT ZKL_WAITS_DIRECTORY);
	CHECK_INT(model_create(&p.w->zk, path, false, PAIR_OTHER, "", NULL), ZKL_RC_OK);
	pair_wait_long(&p);
	CHECK_INT(pair_publications(), 0);
	pair_wait_long(&p);
	CHECK_INT(pair_publications(), 1);
	pair_publish_other(&p);
	pair_finish(&p);
}

/*
 * A znode whose name is an id alone, and anything else, is no publication: it neither
 * counts, nor is it deleted.
 */
static void
other_names(void)
{
	static const char *const names[] = {"", "anything"};
	size_t		i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		Pair		p = pair_make();
		char		data[ZKL_MAX_WAIT_DATA + 1];
		const Node *node;
		char	   *end;

		pair_publish_other(&p);
		node = tree_find(p.published);
		snprintf(data, sizeof(data), "%.*s", (int) node->length, node->data);
		end = strrchr(p.published, '/') + 1;
		CHECK_INT(model_delete(&p.w->zk, p.published), ZKL_RC_OK);
		strcpy(names[i][0] == '\0' ? end + ZKL_UUID_TEXT : end, names[i]);
		CHECK_INT(model_create(&p.w->zk, p.published, false, PAIR_OTHER, data, NULL),
				  ZKL_RC_OK);
		world_sleep(p.w, 3 * PAIR_PATIENCE);
		CHECK(world_waits(p.w, p.b));
		CHECK_INT(pair_publications(), 1);
		CHECK_INT(model_delete(&p.w->zk, p.published), ZKL_RC_OK);
		pair_finish(&p);
	}
}

/* ZooKeeper does not delete a publication: that is tried again after a while. */
static void
retraction_refused(void)
{
	Pair		p = pair_make();

	pair_wait_long(&p);
	p.w->zk.no_write = ZKL_WAITS_DIRECTORY "/";
	world_release(p.w, p.b);
	world_sleep(p.w, 10 * PAIR_PATIENCE);
	CHECK_INT(pair_publications(), 1);
	p.w->zk.no_write = NULL;
	world_sleep(p.w, 10 * PAIR_PATIENCE);
	CHECK_INT(pair_publications(), 0);
	pair_finish(&p);
}

/* An operator breaks our hold: its znode goes without us. */
static void
broken(void)
{
	Pair		p = pair_begin();
	char		path[ZKL_MAX_PATH + 1];

	p.a = pair_submit(&p, "/a", 1, ZKL_EXCLUSIVE);
	world_sleep(p.w, 2 * WORLD_BEAT);
	p.b = pair_submit(&p, "/b", 1, ZKL_EXCLUSIVE);
	world_path(p.w, p.a, path);
	CHECK_INT(model_set(&p.w->zk, path, "{\"breaking\":true,\"zklock\":1}"),
			  ZKL_RC_OK);
	world_run(p.w);
	CHECK_INT(p.w->requests[p.a].state, SLOT_LOST);
	pair_wait_long(&p);
	CHECK_INT(pair_publications(), 0);
	pair_finish(&p);
}

/*
 * ZooKeeper does not delete the znode of a wait that was given up.  It stands between
 * its session's hold and next wait: that is no cycle.
 */
static void
given_up(void)
{
	Pair		p = pair_begin();
	uint32_t	hold = pair_submit(&p, "/b", 1, ZKL_SHARED);
	uint32_t	given_up;

	CHECK(!world_holds(p.w, hold));
	foreign_leave_all(p.w, "/b");
	world_run(p.w);
	CHECK(world_holds(p.w, hold));
	foreign_zklock(p.w, "/b", ZKL_SHARED, "{\"zklock\":1}", p.held);
	given_up = pair_submit(&p, "/b", 1, ZKL_EXCLUSIVE);
	p.w->zk.no_write = "-__WRIT__0000";
	world_release(p.w, given_up);
	world_run(p.w);
	CHECK_INT(world_nodes(p.w, "/b"), 2);
	p.b = pair_submit(&p, "/b", 1, ZKL_EXCLUSIVE);
	CHECK_INT(world_nodes(p.w, "/b"), 3);
	pair_wait_long(&p);
	CHECK(world_waits(p.w, p.b));
	p.w->zk.no_write = NULL;
	foreign_leave_all(p.w, "/b");
	world_run(p.w);
	CHECK(world_holds(p.w, p.b));
	pair_finish(&p);
}

/* The answer to the verdict is lost: its publication tells what became of it. */
static void
lost_verdict(void)
{
	int			applied;

	for (applied = 0; applied < 2; applied++)
	{
		Pair		p = pair_make();

		pair_publish_other(&p);
		until_verdict(&p);
		p.w->zk.multi_rc = ZKL_RC_UNKNOWN;
		p.w->zk.multi_applied = applied == 1;
		world_serve(p.w, 1);
		p.w->zk.multi_applied = false;
		world_deliver(p.w, 1);
		CHECK(world_waits(p.w, p.b));
		world_run(p.w);
		CHECK(pair_is_victim(&p));
		CHECK_INT(pair_publications(), 0);
		pair_finish(&p);
	}
}

/* A wait that holds nothing, and one that is not patient, cost nothing. */
static void
costs(void)
{
	Pair		p = pair_make();
	uint32_t	alone;
	uint32_t	gets;

	alone = pair_submit(&p, "/b", 2, ZKL_EXCLUSIVE);
	world_release(p.w, p.a);
	world_run(p.w);
	world_count_anew(p.w);
	world_sleep(p.w, 16 * PAIR_PATIENCE);
	CHECK(world_waits(p.w, alone));
	CHECK_INT(p.w->zk.counts.lists, 0);
	CHECK_INT(p.w->zk.counts.creates, 0);
	CHECK_INT(pair_publications(), 0);
	pair_finish(&p);

	/* with a hold: one znode, and two listings for each look */
	p = pair_make();
	gets = p.w->zk.counts.gets;
	world_count_anew(p.w);
	pair_wait_long(&p);
	CHECK_INT(p.w->zk.counts.creates, 1);
	CHECK_INT(p.w->zk.counts.containers, 1);
	CHECK_INT(p.w->zk.counts.lists, 2);
	CHECK(p.w->zk.counts.gets <= gets + 2);
	pair_finish(&p);
}

/* A wait of a session that holds too much is counted once, and not published. */
static void
too_many(void)
{
	Pair		p = pair_make();
	ZklDeadlockCounters counters;
	char		name[24];
	int			i;

	for (i = 0; i < 64; i++)
	{
		snprintf(name, sizeof(name), "/many/%d", i);
		(void) world_submit(p.w, name, 1, ZKL_SHARED);
	}
	world_run(p.w);
	world_sleep(p.w, 8 * PAIR_PATIENCE);
	zkl_deadlock_count(p.w->worker.m, &counters);
	CHECK_INT(counters.unpublished, 1);
	CHECK_INT(pair_publications(), 0);
	pair_finish(&p);
}

/* What is read before its publication is acknowledged may miss a later one. */
static void
search_behind_publication(void)
{
	Pair		p = pair_make();

	p.w->worker.now += PAIR_PATIENCE + 1000;
	world_flush(p.w);
	p.w->worker.now += 1000;
	world_flush(p.w);
	CHECK_INT(pair_checks(&p), 0);
	world_run(p.w);
	CHECK_INT(pair_checks(&p), 1);
	pair_finish(&p);
}

/* A wait that is published during a search for others has its own one next. */
static void
in_turn(void)
{
	Pair		p = pair_make();
	int			i;

	p.w->worker.now += 2000;
	(void) pair_submit(&p, "/c", 2, ZKL_EXCLUSIVE);
	(void) pair_submit(&p, "/b", 2, ZKL_EXCLUSIVE);
	p.w->worker.now += PAIR_PATIENCE - 1000;
	world_flush(p.w);
	for (i = 0; i < 100 && pair_checks(&p) == 0; i++)
	{
		world_serve(p.w, 1);
		world_deliver(p.w, 1);
		world_flush(p.w);
	}
	CHECK_INT(pair_publications(), 1);
	p.w->worker.now += 2000;
	world_flush(p.w);
	world_run(p.w);
	CHECK_INT(pair_publications(), 2);
	CHECK_INT(pair_checks(&p), 2);
	pair_finish(&p);
}

/* The session is gone, and with it what was held: no deadlock is left. */
static void
session_lost(void)
{
	Pair		p = pair_make();

	pair_wait_long(&p);
	world_expire_session(p.w);
	world_connect(p.w);
	world_run(p.w);
	pair_publish_other(&p);
	world_sleep(p.w, 20 * PAIR_PATIENCE);
	CHECK(world_waits(p.w, p.b));
	CHECK_INT(pair_publications(), 0);
	pair_finish(&p);
}

/* An operator breaks the hold for which another session waits. */
static void
broken_hold(void)
{
	Pair		p = pair_make();
	char		path[ZKL_MAX_PATH + 1];

	pair_wait_long(&p);
	CHECK_INT(pair_publications(), 1);
	world_path(p.w, p.a, path);
	CHECK_INT(model_set(&p.w->zk, path, "{\"breaking\":true}"), ZKL_RC_OK);
	world_run(p.w);
	CHECK_INT(p.w->requests[p.a].state, SLOT_LOST);
	CHECK(world_waits(p.w, p.b));
	CHECK_INT(pair_publications(), 0);
	pair_finish(&p);
}

/*
 * Something is written before the lock is released: whoever waits for it does not wait
 * for its former holder, which may wait for others by now.
 */
static void
epilogue_is_no_obstacle(void)
{
	Pair		p = pair_make();

	pair_wait_long(&p);
	CHECK_INT(pair_publications(), 1);
	p.w->requests[p.a].state = SLOT_RELEASED;
	p.w->requests[p.a].epilogue_until = p.w->worker.now + 60 * PAIR_PATIENCE;
	p.w->requests[p.a].left = true;
	worker_look(&p.w->worker, (int) p.a);
	world_flush(p.w);
	world_run(p.w);
	CHECK_INT(pair_publications(), 0);
	CHECK_INT(world_nodes(p.w, "/a"), 1);
	p.w->requests[p.a].epilogue_until = 0;
	worker_look(&p.w->worker, (int) p.a);
	world_flush(p.w);
	pair_finish(&p);
}

/*
 * A session has given up a wait, whose create was unknown then, and waits there anew.
 * Until the first znode is gone, others would take it for one that waits.
 */
static void
behind_its_own(void)
{
	Pair		p = pair_begin();
	World	   *w = p.w;
	uint32_t	first,
				second;

	p.a = pair_submit(&p, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	first = world_submit(w, "/b", 1, ZKL_EXCLUSIVE);
	world_serve(w, INT32_MAX);
	world_disconnect(w);
	world_release(w, first);
	second = world_submit(w, "/b", 1, ZKL_SHARED);
	w->worker.now += 2 * PAIR_PATIENCE;
	world_connect(w);
	while (w->requests[second].record.seq <= 0)
	{
		world_serve(w, 1);
		world_deliver(w, 1);
	}
	world_serve(w, INT32_MAX);
	CHECK_INT(world_nodes(w, "/b"), 2);
	CHECK_INT(pair_publications(), 0);
	world_run(w);
	CHECK_INT(world_nodes(w, "/b"), 1);
	p.b = second;
	pair_wait_long(&p);
	CHECK_INT(pair_publications(), 1);
	pair_finish(&p);
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
	RUN(name_taken);
	RUN(other_names);
	RUN(retraction_refused);
	RUN(broken);
	RUN(given_up);
	RUN(lost_verdict);
	RUN(costs);
	RUN(too_many);
	RUN(search_behind_publication);
	RUN(in_turn);
	RUN(session_lost);
	RUN(broken_hold);
	RUN(epilogue_is_no_obstacle);
	RUN(behind_its_own);
	return unit_finish();
}
