/*
 * test_manager_cache.c
 *	  Locks that stay on the server that uses them: when, what it costs, and who
 *	  ends that.
 */
#define _GNU_SOURCE				/* memmem */

#include "unit.h"
#include "world.h"

#define CACHE_TIME	(10 * 1000000LL)	/* µs */

/* What a session does in shared memory; false: it has to ask the worker. */
static bool
leave_cached(World *w, uint32_t request)
{
	Slot	   *s = &w->requests[request];

	s->taken = true;
	if (!slot_stays(s))
		return false;
	s->state = SLOT_CACHED;
	s->left_at = w->worker.now;
	return true;
}

static void
take(World *w, uint32_t request, uint64_t owner)
{
	Slot	   *s = &w->requests[request];

	CHECK_INT(s->state, SLOT_CACHED);
	s->state = SLOT_GRANTED;
	s->owner = owner;
	s->token++;
}

static bool
is_marked(const World *w, uint32_t request)
{
	char		path[ZKL_MAX_PATH + 1];
	const Node *node;

	world_path(w, request, path);
	node = tree_find(path);
	CHECK(node != NULL);
	return zkl_node_data_is_cached(node->data, node->length);
}

/* So often that /a is hot */
static void
use(World *w)
{
	int			i;

	for (i = 0; i < 2; i++)
	{
		uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);

		world_run(w);
		CHECK(!w->requests[r].cacheable);
		world_release(w, r);
		world_run(w);
	}
	world_count_anew(w);
}

static World *
used(int64_t cache_time, uint32_t *request)
{
	World	   *w = world_ready();

	world_warm_up(w, "/a");
	w->plain = true;
	worker_cache(&w->worker, cache_time);
	use(w);
	*request = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, *request));
	return w;
}

static World *
hot(uint32_t *request)
{
	World	   *w = used(CACHE_TIME, request);

	CHECK(w->requests[*request].cacheable);
	CHECK(is_marked(w, *request));
	return w;
}

static void
turned_off(void)
{
	uint32_t	r;
	World	   *w = used(0, &r);

	CHECK(!w->requests[r].cacheable);
	CHECK(!is_marked(w, r));
	CHECK_INT(w->zk.counts.lists, 0);
	CHECK(!leave_cached(w, r));
	world_wind_up(w);
}

/*
 * A second hold of the session shares the node when the first one is released, and
 * the mark that is being taken away stays, as ZooKeeper refuses that for now.
 */
static void
mark_of_two(void)
{
	uint32_t	r;
	World	   *w = hot(&r);
	uint32_t	second;

	world_sleep(w, WORLD_TIMEOUT_MS * 1000LL / 2);
	second = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	CHECK(world_holds(w, second));
	w->zk.multi_rc = MODEL_THROTTLED;
	world_release(w, r);
	world_run(w);
	world_sleep(w, WORLD_TIMEOUT_MS * 1000LL);
	CHECK(world_holds(w, second));
	CHECK(!is_marked(w, second));
	world_wind_up(w);
}

static void
bounded(void)
{
	World	   *w = world_ready();
	uint32_t	r;

	worker_cache(&w->worker, CACHE_TIME);
	world_warm_up(w, "/a");
	use(w);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(!w->requests[r].cacheable);
	CHECK(!is_marked(w, r));
	world_wind_up(w);
}

/* One listing makes it so; then there are no requests. */
static void
costs(void)
{
	uint32_t	r;
	World	   *w = hot(&r);
	int			i;

	CHECK_INT(w->zk.counts.lists, 1);
	world_count_anew(w);
	for (i = 0; i < 100; i++)
	{
		CHECK(leave_cached(w, r));
		take(w, r, (uint64_t) i + 1);
		world_flush(w);
	}
	CHECK_INT(w->zk.counts.lists + w->zk.counts.multis + w->zk.counts.gets, 0);
	world_wind_up(w);
}

static void
idle(void)
{
	uint32_t	r;
	World	   *w = hot(&r);

	CHECK(leave_cached(w, r));
	world_sleep(w, CACHE_TIME / 2);
	CHECK_INT(w->requests[r].state, SLOT_CACHED);
	take(w, r, 2);
	CHECK(leave_cached(w, r));
	world_sleep(w, CACHE_TIME * 3 / 4);
	CHECK_INT(w->requests[r].state, SLOT_CACHED);
	world_sleep(w, CACHE_TIME / 2);
	world_run(w);
	CHECK_INT(w->requests[r].state, SLOT_FREE);
	world_wind_up(w);
}

/* While no session has it, its znode goes at once. */
static void
wanted_while_cached(void)
{
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;
	World	   *w = hot(&r);

	CHECK(leave_cached(w, r));
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	world_deliver(w, 10);
	world_flush(w);
	world_serve(w, 10);
	CHECK_INT(world_nodes(w, "/a"), 0);
	world_run(w);
	CHECK_INT(w->requests[r].state, SLOT_FREE);
	world_wind_up(w);
}

/* It does not keep a directory whose counter is at its end, whoever meets that. */
static void
counter_ends_while_cached(bool here)
{
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;
	World	   *w = hot(&r);

	CHECK(leave_cached(w, r));
	tree_find(WORLD_ROOT "/a")->counter = (int32_t) ZKL_SEQ_LIMIT;
	if (!here)
	{
		foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
		world_run(w);
		CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	}
	r = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK_INT(w->requests[r].state, SLOT_FAILED);
	CHECK_INT(w->requests[r].failure, ZKL_FAILURE_NO_NUMBER);
	CHECK(tree_find(WORLD_ROOT "/a") == NULL);
	world_release(w, r);
	r = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

static void
counter_ends_here(void)
{
	counter_ends_while_cached(true);
}

static void
counter_ends_elsewhere(void)
{
	counter_ends_while_cached(false);
}

/* A session that has it keeps it, and the mark goes. */
static void
wanted_while_held(void)
{
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;
	World	   *w = hot(&r);

	CHECK(leave_cached(w, r));
	take(w, r, 2);
	foreign_enter(w, "/a", ZKL_SHARED, other);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK(!is_marked(w, r));
	CHECK(!leave_cached(w, r));
	world_wind_up(w);
}

/* The session that takes it again may have changed what others see of it. */
static void
taken_again(void)
{
	char		other[ZKL_MAX_PATH + 1];
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	r;
	World	   *w = hot(&r);
	const Node *node;

	CHECK(leave_cached(w, r));
	take(w, r, w->requests[r].owner);
	w->requests[r].data = "{\"zklock\":1,\"server\":\"again\"}";
	foreign_enter(w, "/a", ZKL_SHARED, other);
	world_run(w);
	CHECK(!is_marked(w, r));
	world_path(w, r, path);
	node = tree_find(path);
	CHECK(memmem(node->data, node->length, "again", 5) != NULL);
	world_wind_up(w);
}

/* The write that takes the mark away is no question. */
static void
release_requested(void)
{
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	r;
	World	   *w = hot(&r);

	CHECK(leave_cached(w, r));
	take(w, r, 2);
	world_path(w, r, path);
	world_sleep(w, WORLD_TIMEOUT_MS * 1000LL / 2);
	CHECK_INT(model_set(&w->zk, path, "{\"revoke\":\"a\",\"zklock\":1,\"cached\":true}"),
			  ZKL_RC_OK);
	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	CHECK(!is_marked(w, r));
	CHECK_INT(w->requests[r].asked, 1);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

/* The worker takes in so many answers, and then acts. */
static void
take_in(World *w, int n)
{
	while (n-- > 0)
	{
		Frame	   *message = model_receive(&w->conn);

		CHECK(message != NULL);
		worker_deliver(&w->worker, message);
		message_free_frame(message);
	}
	world_flush(w);
}

/*
 * The answer to the create is lost, and somebody writes over the mark: what is read
 * before the grant shows that.
 */
static void
overwritten_before_grant(void)
{
	World	   *w = world_ready();
	uint32_t	r;

	world_warm_up(w, "/a");
	w->plain = true;
	worker_cache(&w->worker, CACHE_TIME);
	use(w);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	w->zk.multi_rc = -118;
	w->zk.multi_applied = true;
	world_serve(w, 1);
	world_deliver(w, 1);
	world_serve(w, 1);
	world_deliver(w, 1);
	CHECK(is_marked(w, r));
	world_write(w, r, "{}");
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK(!w->requests[r].cacheable);
	world_wind_up(w);
}

/*
 * The question comes while the request waits, and the connection ends.  On the next
 * one the request is granted while the write is under way that takes the mark away,
 * and puts the question again: the holder is asked once.
 */
static void
asked_while_unmarking(void)
{
	char		other[ZKL_MAX_PATH + 1];
	World	   *w = world_ready();
	uint32_t	r;

	world_warm_up(w, "/a");
	w->plain = true;
	worker_cache(&w->worker, CACHE_TIME);
	use(w);
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	while (world_nodes(w, "/a") == 0)
		world_serve(w, 1);
	world_deliver(w, INT32_MAX);
	world_disconnect(w);
	CHECK(is_marked(w, r));
	world_write(w, r, "{\"revoke\":\"a\",\"zklock\":1,\"cached\":true}");
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	w->worker.now += WORLD_BEAT;
	world_connect(w);

	/*
	 * The answers: the beat's; that the mark stays, and the listing; the
	 * look's
	 */
	world_serve(w, INT32_MAX);
	take_in(w, 1);
	world_serve(w, INT32_MAX);
	take_in(w, 2);
	take_in(w, 1);
	CHECK(world_waits(w, r));
	world_serve(w, INT32_MAX);
	take_in(w, 1);
	CHECK(world_holds(w, r));
	world_run(w);
	world_sleep(w, 3 * WORLD_BEAT);
	CHECK(!is_marked(w, r));
	CHECK_INT(w->requests[r].asked, 1);
	world_wind_up(w);
}

/* A shorter time counts for what is cached already. */
static void
shorter(void)
{
	uint32_t	r;
	World	   *w = hot(&r);

	CHECK(leave_cached(w, r));
	worker_cache(&w->worker, CACHE_TIME / 10);
	world_sleep(w, CACHE_TIME / 5);
	world_run(w);
	CHECK_INT(w->requests[r].state, SLOT_FREE);
	world_wind_up(w);
}

/* The answer to the write that takes the mark away is lost. */
static void
mark_in_doubt(void)
{
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	r;
	World	   *w = hot(&r);

	foreign_enter(w, "/a", ZKL_SHARED, other);
	world_serve(w, 10);
	world_deliver(w, 10);
	world_flush(w);
	world_disconnect(w);
	CHECK(is_marked(w, r));
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK(!is_marked(w, r));
	world_wind_up(w);
}

/* The owner's own next request leans on what it has taken; others wait. */
static void
demanded(void)
{
	uint32_t	r,
				own,
				stranger;
	World	   *w = hot(&r);

	CHECK(leave_cached(w, r));
	take(w, r, 2);
	own = world_submit(w, "/a", 2, ZKL_SHARED);
	CHECK(world_holds(w, own));
	CHECK(w->requests[own].token == w->requests[r].token);
	stranger = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, stranger));
	world_release(w, own);
	world_release(w, r);
	world_run(w);
	CHECK(world_holds(w, stranger));
	world_wind_up(w);
}

/* Others have come before it can be cached. */
static void
company(void)
{
	char		other[ZKL_MAX_PATH + 1];
	World	   *w = world_ready();
	uint32_t	r;

	world_warm_up(w, "/a");
	w->plain = true;
	worker_cache(&w->worker, CACHE_TIME);
	use(w);
	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_serve(w, 1);
	foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	world_run(w);
	CHECK(world_holds(w, r));
	CHECK(!w->requests[r].cacheable);
	CHECK(!is_marked(w, r));
	world_wind_up(w);
}

static void
operator_breaks(void)
{
	char		path[ZKL_MAX_PATH + 1];
	uint32_t	r;
	World	   *w = hot(&r);

	CHECK(leave_cached(w, r));
	world_path(w, r, path);
	world_sleep(w, WORLD_TIMEOUT_MS * 1000LL / 2);
	CHECK_INT(w->requests[r].state, SLOT_CACHED);
	CHECK_INT(model_set(&w->zk, path, "{\"breaking\":true}"), ZKL_RC_OK);
	world_run(w);
	CHECK_INT(w->requests[r].state, SLOT_FREE);
	world_wind_up(w);
}

/* A lock that servers use in turn is cached on none of them. */
static void
turns(void)
{
	char		other[ZKL_MAX_PATH + 1];
	World	   *w = world_ready();
	int			i;

	world_warm_up(w, "/a");
	w->plain = true;
	worker_cache(&w->worker, CACHE_TIME);
	for (i = 0; i < 8; i++)
	{
		uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);

		world_run(w);
		CHECK(!w->requests[r].cacheable);
		CHECK(!is_marked(w, r));
		world_release(w, r);
		world_run(w);
		foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
		CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	}
	world_wind_up(w);
}

/* ---- which locks are hot ---- */

/* How many demands, each after so many µs, come before one that can be cached; -1: 100 */
static int
demands_until_hot(World *w, int64_t pause, uint32_t *request)
{
	int			i;

	for (i = 0; i < 100; i++)
	{
		*request = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
		world_run(w);
		if (w->requests[*request].cacheable)
			return i;
		world_release(w, *request);
		world_run(w);
		w->worker.now += pause;
	}
	return -1;
}

/* Takes and releases it so often; then somebody wants it, here or elsewhere. */
static void
end_episode(World *w, uint32_t r, int takes, bool here)
{
	char		other[ZKL_MAX_PATH + 1];
	uint32_t	next;
	int			i;

	for (i = 0; i < takes; i++)
	{
		CHECK(leave_cached(w, r));
		take(w, r, 1);
	}
	if (here)
		next = world_submit(w, "/a", 2, ZKL_EXCLUSIVE);
	else
		foreign_enter(w, "/a", ZKL_EXCLUSIVE, other);
	world_run(w);
	CHECK(!w->requests[r].cacheable);
	world_release(w, r);
	world_run(w);
	if (here)
		world_release(w, next);
	else
		CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	world_run(w);
}

static World *
ready_to_cache(void)
{
	World	   *w = world_ready();

	world_warm_up(w, "/a");
	w->plain = true;
	worker_cache(&w->worker, CACHE_TIME);
	return w;
}

/* What was released for longer than locks are cached is not used again and again. */
static void
used_seldom(void)
{
	World	   *w = ready_to_cache();
	uint32_t	r;

	CHECK_INT(demands_until_hot(w, CACHE_TIME + 2000, &r), -1);
	CHECK_INT(demands_until_hot(w, CACHE_TIME / 2, &r), 2);
	world_wind_up(w);
}

/* In vain: twice as many each time, up to 64; and half as many after it paid. */
static void
learns(void)
{
	int			i;

	for (i = 0; i < 2; i++)
	{
		bool		here = i == 1;
		World	   *w = ready_to_cache();
		uint32_t	r;
		int			needed = demands_until_hot(w, 0, &r);
		int			n;

		CHECK_INT(needed, 2);
		do
		{
			end_episode(w, r, 0, here);
			n = demands_until_hot(w, 0, &r);
			CHECK_MSG(n >= 2 * needed - 1 && n <= 2 * needed + 1,
					  "here: %d, %d after %d", here, n, needed);
			needed *= 2;
		} while (needed < 64 && n > 0);
		end_episode(w, r, 0, here);
		n = demands_until_hot(w, 0, &r);
		CHECK_MSG(n >= 63 && n <= 65, "here: %d, %d after 64", here, n);
		end_episode(w, r, 65, here);
		n = demands_until_hot(w, 0, &r);
		CHECK_MSG(n >= 31 && n <= 33, "here: %d, %d after 64 that paid", here, n);
		world_wind_up(w);
	}
}

static void
restarted(void)
{
	uint32_t	r,
				held;
	World	   *w = hot(&r);

	CHECK(leave_cached(w, r));
	world_restart(w);
	world_connect(w);
	world_run(w);
	CHECK_INT(w->requests[r].state, SLOT_FREE);
	world_warm_up(w, "/a");
	worker_cache(&w->worker, CACHE_TIME);
	use(w);
	held = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(leave_cached(w, held));
	take(w, held, 5);
	world_restart(w);
	world_connect(w);
	world_run(w);
	CHECK_INT(w->requests[held].state, SLOT_LOST);
	world_wind_up(w);
}

/* A try does not take a mark for a holder; without the mark it does. */
static void
tries(void)
{
	static const char marked[] = "{\"zklock\":1,\"server\":\"berlin\",\"cached\":true}";
	char		other[ZKL_MAX_PATH + 1];
	World	   *w = world_ready();
	uint32_t	r;

	foreign_zklock(w, "/a", ZKL_EXCLUSIVE, marked, other);
	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, r));
	CHECK_STR(w->requests[r].behind_cached, "berlin");
	CHECK_INT(world_nodes(w, "/a"), 1);
	CHECK_INT(model_set(&w->zk, other, "{\"zklock\":1}"), ZKL_RC_OK);
	world_run(w);
	CHECK_INT(w->requests[r].state, SLOT_DENIED);
	world_release(w, r);
	world_run(w);

	world_count_anew(w);
	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK_INT(w->requests[r].state, SLOT_DENIED);
	CHECK_STR(w->requests[r].behind_cached, "");
	CHECK_INT(w->zk.counts.creates, 0);
	world_release(w, r);

	CHECK_INT(model_set(&w->zk, other, marked), ZKL_RC_OK);
	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(world_waits(w, r));
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

static bool
is_behind_berlin(const World *w, uint32_t r)
{
	return world_waits(w, r) && strcmp(w->requests[r].behind_cached, "berlin") == 0;
}

/* What a try is told of the lock that it waits for holds for its znode alone. */
static void
told_for_a_znode(void)
{
	static const char marked[] = "{\"zklock\":1,\"server\":\"berlin\",\"cached\":true}";
	char		other[ZKL_MAX_PATH + 1];
	World	   *w = world_ready();
	uint32_t	r;

	foreign_zklock(w, "/a", ZKL_EXCLUSIVE, marked, other);
	r = world_try(w, "/a", 1, ZKL_EXCLUSIVE);
	world_run(w);
	CHECK(is_behind_berlin(w, r));
	world_restart(w);
	CHECK(world_waits(w, r));
	CHECK_STR(w->requests[r].behind_cached, "");
	world_connect(w);
	world_run(w);
	CHECK(is_behind_berlin(w, r));
	world_expire_session(w);
	CHECK(world_waits(w, r));
	CHECK_STR(w->requests[r].behind_cached, "");
	CHECK_INT(model_delete(&w->zk, other), ZKL_RC_OK);
	world_connect(w);
	world_run(w);
	CHECK(world_holds(w, r));
	world_wind_up(w);
}

int
main(void)
{
	unit_start();
	RUN(turned_off);
	RUN(mark_of_two);
	RUN(bounded);
	RUN(costs);
	RUN(idle);
	RUN(wanted_while_cached);
	RUN(counter_ends_here);
	RUN(counter_ends_elsewhere);
	RUN(wanted_while_held);
	RUN(taken_again);
	RUN(release_requested);
	RUN(overwritten_before_grant);
	RUN(asked_while_unmarking);
	RUN(shorter);
	RUN(mark_in_doubt);
	RUN(demanded);
	RUN(company);
	RUN(operator_breaks);
	RUN(turns);
	RUN(used_seldom);
	RUN(learns);
	RUN(restarted);
	RUN(tries);
	RUN(told_for_a_znode);
	return unit_finish();
}
