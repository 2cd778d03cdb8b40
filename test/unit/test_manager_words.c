/*
 * test_manager_words.c
 *	  What servers tell each other: who is asked, what a word does, and when one is
 *	  said.
 */
#include "core/contenders.h"
#include "unit.h"
#include "world.h"

static World *
peers(void)
{
	World	   *w = world_ready();

	worker_peers(&w->worker, true);
	world_warm_up(w, "/a");
	world_count_anew(w);
	return w;
}

static ZklUuid
id_of(const char *path)
{
	ZklUuid		uuid;

	CHECK(zkl_uuid_parse_start(strstr(path, "_c_") + 3, true, &uuid));
	return uuid;
}

/* The server that made a znode says that it has departed. */
static void
hear_from(World *w, int64_t session, const char *path, uint32_t waiter)
{
	ZklPeerMessage word = {
		.session = session,.znode = id_of(path),.waiter = w->requests[waiter].record.uuid
	};

	w->departed = word.znode;
	worker_hear(&w->worker, ZKL_EVENT_WORD, &word);
	world_flush(w);
}

static void
hear(World *w, const char *path, uint32_t waiter)
{
	ZklUuid		uuid = id_of(path);

	hear_from(w, zkl_uuid_session(&uuid), path, waiter);
}

static bool
has_departed(const World *w, uint32_t waiter, const ZklUuid *znode)
{
	const ZklManager *m = w->worker.m;

	return zkl_departed_has(m, m->requests.all[waiter].lock, znode);
}

/* Another server asks for the znode of a request. */
static void
be_asked(World *w, int64_t session, uint32_t request)
{
	ZklPeerMessage ask = {
		.session = session,.znode = w->requests[request].record.uuid,
		.waiter = zkl_uuid_make(session, 1, 1)
	};

	worker_hear(&w->worker, ZKL_EVENT_ASK, &ask);
	world_flush(w);
}

/* A request of session 1, which holds the lock or waits now */
static uint32_t
ask_for(World *w)
{
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);

	world_run(w);
	return r;
}

/* The name of a znode, without its number, in the directory of another lock */
static void
copy_name(World *w, const char *path, const char *lock, ZklDialect dialect, char *copy)
{
	ZklUuid		uuid = id_of(path);
	char		prefix[ZKL_MAX_PATH + 1];
	char		made[2 * ZKL_MAX_PATH + 1];

	zkl_znode_prefix(dialect, &uuid, ZKL_EXCLUSIVE, prefix);
	snprintf(made, sizeof(made), WORLD_ROOT "%s/%s", lock, prefix);
	CHECK_INT(model_create(&w->zk, made, true, 78, "{\"zklock\":1}", copy), ZKL_RC_OK);
}

/* Another server takes the lock, or waits for it. */
static void
another_comes(World *w, char *path)
{
	foreign_zklock(w, "/a", ZKL_EXCLUSIVE, "{\"zklock\":1}", path);
}

static uint32_t
wait_behind(World *w, char *path)
{
	another_comes(w, path);
	return ask_for(w);
}

static uint32_t
ask_as_guard(World *w)
{
	uint32_t	r = (uint32_t) worker_find_free(&w->worker);

	world_fill(w, r, "/a", 1, ZKL_EXCLUSIVE)->guard = true;
	worker_look(&w->worker, (int) r);
	world_flush(w);
	world_run(w);
	return r;
}

/* The end of a request has brought so many words; and the end of all. */
static void
ends_with(World *w, uint32_t r, uint32_t words)
{
	world_release(w, r);
	CHECK_INT(w->words, words);
	world_run(w);
	world_wind_up(w);
}

/* No other server has anything there any more. */
static void
others_leave(World *w)
{
	foreign_leave_all(w, "/a");
	world_run(w);
	world_wind_up(w);
}

/* ---- what we ask, and hear ---- */

/* No request to ZooKeeper stands between a word and the grant. */
static void
handed_over(void)
{
	World	   *w = peers();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r = wait_behind(w, other);
	ZklUuid		uuid = id_of(other);

	CHECK_INT(w->asks, 1);
	CHECK(zkl_uuid_equal(&w->sent.znode, &uuid));
	CHECK(zkl_uuid_equal(&w->sent.waiter, &w->requests[r].record.uuid));
	CHECK(w->sent.session == zkl_uuid_session(&uuid));
	world_count_anew(w);
	hear(w, other, r);
	CHECK(world_holds(w, r));
	CHECK_INT(w->zk.counts.lists + w->zk.counts.gets + w->zk.counts.multis, 0);

	/* Its delete is no news, and neither is the word once more. */
	hear(w, other, r);
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	world_run(w);
	CHECK_INT(w->zk.counts.lists, 0);
	world_wind_up(w);
}

static void
not_by_another_server(void)
{
	World	   *w = peers();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r = wait_behind(w, other);

	hear_from(w, 4711, other, r);
	CHECK(world_waits(w, r));
	others_leave(w);
}

/* A word takes its znode away, and no other; whoever else is ahead was asked, too. */
static void
one_at_a_time(void)
{
	World	   *w = peers();
	char		first[ZKL_MAX_PATH + 1];
	char		second[ZKL_MAX_PATH + 1];
	uint32_t	r;

	another_comes(w, first);
	another_comes(w, second);
	r = ask_for(w);
	CHECK_INT(w->asks, 2);
	hear(w, second, r);
	world_run(w);
	CHECK(world_waits(w, r));
	CHECK_INT(model_delete(&w->zk, second), ZKL_RC_OK);
	hear(w, first, r);
	world_run(w);
	CHECK(world_holds(w, r));
	others_leave(w);
}

/* Eight are enough; those of other clients cannot be asked. */
static void
nearest_eight(void)
{
	World	   *w = peers();
	char		other[ZKL_MAX_PATH + 1];
	int			i;

	for (i = 0; i < 10; i++)
		another_comes(w, other);
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	(void) ask_for(w);
	CHECK_INT(w->asks, 8);
	others_leave(w);
}

/* It stays departed when the lock has forgotten everything. */
static void
tries_behind_a_word(void)
{
	World	   *w = peers();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r = wait_behind(w, other);

	hear(w, other, r);
	CHECK(world_holds(w, r));

	/* The watch on it ends by itself. */
	world_release(w, r);
	world_run(w);
	CHECK_INT(w->zk.counts.unwatches, 0);
	r = world_try(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	world_disconnect(w);
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, r));
	others_leave(w);
}

/*
 * Our session may have ended, and ZooKeeper has forgotten that: who said a word from
 * behind has perhaps had the lock.  So a hold is lost, and one that waits begins again.
 */
static void
overtaken(void)
{
	int			i;

	for (i = 0; i < 4; i++)
	{
		bool		waits = i & 1;
		bool		lapses = i & 2;
		World	   *w = peers();
		char		ahead[ZKL_MAX_PATH + 1];
		char		other[ZKL_MAX_PATH + 1];
		uint32_t	first,
					behind;
		ZklSeq		seq;

		if (waits)
			foreign_enter(w, "/a", ZKL_EXCLUSIVE, ahead);
		first = ask_for(w);
		seq = w->requests[first].record.seq;
		another_comes(w, other);
		behind = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
		world_run(w);
		hear(w, other, behind);
		CHECK(has_departed(w, behind, &w->departed));
		world_disconnect(w);
		if (lapses)
			w->worker.now = zkl_manager_lease(w->worker.m);
		w->zk.zxid += INT64_C(1) << 32; /* an election */
		if (waits)
			CHECK_INT(model_delete(&w->zk, ahead), ZKL_RC_OK);
		world_connect(w);
		world_run(w);
		if (waits)
			CHECK_INT(w->requests[first].record.seq > seq, lapses);
		else
			CHECK_INT(w->requests[first].state, lapses ? SLOT_LOST : SLOT_GRANTED);
		CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
		world_run(w);
		world_wind_up(w);
	}
}

/* The end of one znode is no end of another one, whose word has come and which still exists. */
static void
one_of_two(void)
{
	World	   *w = peers();
	char		stays[ZKL_MAX_PATH + 1];
	char		goes[ZKL_MAX_PATH + 1];
	uint32_t	r;

	another_comes(w, stays);
	another_comes(w, goes);
	r = ask_for(w);
	hear(w, stays, r);
	CHECK(world_waits(w, r));
	CHECK_INT(model_delete(&w->zk, goes), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, r));
	others_leave(w);
}

/* Somebody copies a name for another lock: it stands for another znode. */
static void
is_copied(const char *lock, ZklDialect dialect)
{
	World	   *w = peers();
	ZklDialect	usual = w->dialect;
	char		other[ZKL_MAX_PATH + 1];
	char		copy[ZKL_MAX_PATH + 1];
	uint32_t	first,
				second;

	world_warm_up(w, "/b");
	another_comes(w, other);
	first = ask_for(w);
	copy_name(w, other, lock, dialect, copy);
	w->dialect = dialect;
	second = world_submit(w, lock, 2, ZKL_EXCLUSIVE);
	world_run(w);
	w->dialect = usual;
	hear(w, other, first);
	CHECK(world_holds(w, first) && world_waits(w, second));
	world_release(w, first);
	world_run(w);
	w->dialect = dialect;
	CHECK_INT(model_delete(&w->zk, copy), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, second));
	world_release(w, second);
	world_run(w);
	w->dialect = usual;
	others_leave(w);
}

static void
copied(void)
{
	is_copied("/b", ZKL_DIALECT_CURATOR_RW);
	is_copied("/a", ZKL_DIALECT_LATCH);
}

/* The latest 1024 are known. */
static void
bounded(void)
{
	World	   *w = peers();
	char		other[ZKL_MAX_PATH + 1];
	ZklPeerMessage word = {.session = 9};
	uint32_t	r = wait_behind(w, other);
	int			i;

	word.waiter = w->requests[r].record.uuid;
	for (i = 0; i < ZKL_MAX_DEPARTED + 10; i++)
	{
		word.znode = zkl_uuid_make(9, 1, (uint64_t) i);
		worker_hear(&w->worker, ZKL_EVENT_WORD, &word);
	}
	for (i = 0; i < ZKL_MAX_DEPARTED + 10; i++)
	{
		word.znode = zkl_uuid_make(9, 1, (uint64_t) i);
		CHECK_INT(has_departed(w, r, &word.znode), i >= 10);
	}
	others_leave(w);
}

/* After a new session, say: messages become possible while requests wait. */
static void
peers_come_late(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r = wait_behind(w, other);

	worker_peers(&w->worker, true);
	world_flush(w);
	CHECK_INT(w->asks, 1);
	hear(w, other, r);
	CHECK(world_holds(w, r));
	others_leave(w);
}

static void
without_peers(void)
{
	World	   *w = world_ready();
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r = ask_for(w);

	be_asked(w, 5, r);
	CHECK_INT(w->asked, 0);
	world_release(w, r);
	CHECK_INT(w->words, 0);
	another_comes(w, other);
	(void) ask_for(w);
	CHECK_INT(w->asks, 0);
	others_leave(w);
}

/* ---- what others ask, and we say ---- */

/* A holder is solitary no longer, and its delete does not wait for others. */
static void
said_at_the_release(void)
{
	World	   *w = peers();
	uint32_t	r = ask_for(w);

	be_asked(w, 5, r);
	CHECK_INT(w->asked, 1);
	be_asked(w, 6, r);
	be_asked(w, 6, r);
	CHECK_INT(w->words, 0);
	world_count_anew(w);
	world_release(w, r);
	CHECK_INT(w->words, 2);
	CHECK_INT(w->sent.session, 6);

	/* On its way out it has the same word for whoever asks now. */
	be_asked(w, 7, r);
	CHECK_INT(w->words, 3);
	world_serve(w, 1);
	CHECK_INT(w->zk.counts.deletes, 1);
	world_run(w);
	world_wind_up(w);
}

/* An ask that comes behind the release finds a delete that waits for others. */
static void
late_ask(void)
{
	World	   *w = peers();
	uint32_t	r = ask_for(w);

	world_count_anew(w);
	world_release(w, r);
	world_serve(w, 1);
	CHECK_INT(w->zk.counts.deletes, 0);
	be_asked(w, 5, r);
	CHECK_INT(w->words, 1);
	world_serve(w, 1);
	CHECK_INT(w->zk.counts.deletes, 1);
	world_run(w);
	world_wind_up(w);
}

static void
not_said_of_a_cancelled_wait(void)
{
	World	   *w = peers();
	uint32_t	r = ask_for(w);
	uint32_t	waits;

	waits = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, waits));
	be_asked(w, 5, waits);
	world_release(w, waits);
	CHECK_INT(w->words, 0);
	world_release(w, r);
	world_run(w);
	world_wind_up(w);
}

/* The ninth takes the place of the first. */
static void
latest_eight(void)
{
	World	   *w = peers();
	uint32_t	r = ask_for(w);
	int64_t		i;

	for (i = 0; i <= ZKL_MAX_ASKERS; i++)
		be_asked(w, 100 + i, r);
	world_release(w, r);
	CHECK_INT(w->words, ZKL_MAX_ASKERS);
	CHECK_INT(w->sent.session, 100 + ZKL_MAX_ASKERS);
	world_run(w);
	world_wind_up(w);
}

/* The node of two holds departs with the second one. */
static void
said_when_the_last_ends(void)
{
	World	   *w = peers();
	uint32_t	r = ask_for(w);
	uint32_t	other = ask_for(w);

	be_asked(w, 5, r);
	world_release(w, r);
	world_run(w);
	CHECK_INT(w->words, 0);
	ends_with(w, other, 1);
}

static void
not_said_of_a_guard(void)
{
	World	   *w = peers();
	uint32_t	r = ask_as_guard(w);

	CHECK(world_holds(w, r));
	be_asked(w, 5, r);
	ends_with(w, r, 0);
}

/* What a guard read while it leaned on the node of another hold, a word would overtake. */
static void
not_said_where_a_guard_leaned(void)
{
	int			first;

	for (first = 0; first < 2; first++)
	{
		World	   *w = peers();
		uint32_t	r[2];

		r[0] = ask_for(w);
		r[1] = ask_as_guard(w);
		CHECK(world_holds(w, r[1]));
		be_asked(w, 5, r[0]);
		world_release(w, r[first]);
		world_run(w);
		CHECK_INT(w->words, 0);
		ends_with(w, r[1 - first], 0);
	}
}

/* Where there are no words, nobody is asked. */
static void
not_asked_by_a_guard(void)
{
	World	   *w = peers();
	char		other[ZKL_MAX_PATH + 1];

	another_comes(w, other);
	CHECK(world_waits(w, ask_as_guard(w)));
	CHECK_INT(w->asks, 0);
	others_leave(w);
}

static void
not_said_of_a_permit(void)
{
	World	   *w = world_make();
	uint32_t	r;

	w->dialect = ZKL_DIALECT_PERMIT;
	w->max = 2;
	world_begin(w);
	world_connect(w);
	worker_peers(&w->worker, true);
	r = ask_for(w);
	CHECK(world_holds(w, r));
	be_asked(w, 5, r);
	ends_with(w, r, 0);
}

/* Nor if an operator breaks the lock: who waits sees that from ZooKeeper. */
static void
not_said_of_a_broken_hold(void)
{
	World	   *w = peers();
	uint32_t	r = ask_for(w);

	world_sleep(w, WORLD_TIMEOUT_MS * 1000LL);
	be_asked(w, 5, r);
	world_write(w, r, WORLD_BREAK);
	world_run(w);
	CHECK_INT(w->losses, 1);
	ends_with(w, r, 0);
}

/* An ask is a reason to recall: a lock that no session has goes at once. */
static void
said_of_a_cached_lock(void)
{
	World	   *w = peers();
	uint32_t	r;
	int			i;

	w->plain = true;
	worker_cache(&w->worker, 10000000);
	for (i = 0; i < 2; i++)
	{
		r = ask_for(w);
		world_release(w, r);
		world_run(w);
	}
	r = ask_for(w);
	CHECK(w->requests[r].cacheable);
	w->requests[r].state = SLOT_CACHED;
	w->requests[r].taken = true;
	w->requests[r].left_at = w->worker.now;
	be_asked(w, 5, r);
	CHECK_INT(w->words, 1);
	CHECK(w->requests[r].state != SLOT_CACHED);
	world_run(w);
	world_wind_up(w);
}

/* world.c sees to it that the slot says so before. */
static void
said_when_overdue(void)
{
	World	   *w = peers();
	uint32_t	r = ask_for(w);

	be_asked(w, 5, r);
	world_overdue(w, r);
	CHECK_INT(w->words, 1);
	ends_with(w, r, 1);
}

/* A kept lock has its word when its time is over. */
static void
said_after_at_least(void)
{
	World	   *w = peers();
	uint32_t	r = ask_for(w);

	be_asked(w, 5, r);
	world_keep(w, r, 2000000);
	world_run(w);
	CHECK_INT(w->words, 0);
	world_sleep(w, 2500000);
	CHECK_INT(w->words, 1);
	world_run(w);
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(handed_over);
	RUN(not_by_another_server);
	RUN(one_at_a_time);
	RUN(nearest_eight);
	RUN(tries_behind_a_word);
	RUN(overtaken);
	RUN(one_of_two);
	RUN(copied);
	RUN(bounded);
	RUN(peers_come_late);
	RUN(without_peers);
	RUN(said_at_the_release);
	RUN(late_ask);
	RUN(not_said_of_a_cancelled_wait);
	RUN(latest_eight);
	RUN(said_when_the_last_ends);
	RUN(not_said_of_a_guard);
	RUN(not_said_where_a_guard_leaned);
	RUN(not_asked_by_a_guard);
	RUN(not_said_of_a_permit);
	RUN(not_said_of_a_broken_hold);
	RUN(said_of_a_cached_lock);
	RUN(said_after_at_least);
	RUN(said_when_overdue);
	return unit_finish();
}
