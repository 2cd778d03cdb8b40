/*
 * world.c
 *	  The host of a manager in tests.
 *
 * Owns the slots of requests and the clock.  Single-threaded.  Knows of the core
 * what manager.h says, and of ZooKeeper all that the model knows.
 */
#include "../model/memory.h"
#include "observe/inspect.h"
#include "unit.h"
#include "world.h"

#define A_MOMENT	1000		/* µs: a beat is always further off */

/* ---- actions ---- */

static void
check_record(const Slot *r, const ZklRecord *record)
{
	CHECK(r->state != SLOT_FREE);
	CHECK(!record->disowned || r->state == SLOT_LOST || r->left || r->record.disowned ||
		  record->stays ||
		  (r->state == SLOT_RELEASED && (r->keep_until != 0 || r->kept_lost)));
}

/* No slot holds by the znode. */
static void
check_word(const World *w, const ZklUuid *znode)
{
	int			i;

	for (i = 0; i < WORLD_REQUESTS; i++)
	{
		const Slot *r = &w->requests[i];

		CHECK(!r->record.sent || !zkl_uuid_equal(&r->record.uuid, znode) ||
			  r->state == SLOT_RELEASED || (r->state == SLOT_LOST && r->overdue));
	}
}

/* What must be so when the core says so */
static bool
check_action(Worker *worker, const ZklAction *action)
{
	const World *w = worker->owner;
	const Slot *r = &w->requests[action->request];

	switch (action->kind)
	{
		case ZKL_ACTION_SEND:
			if (action->send == ZKL_SEND_MULTI)
				world_check_recorded(w, action);
			CHECK_MSG(w->connected, "sent while disconnected");
			CHECK(action->tag >> 55 == 0);	/* the rest is the host's */
			break;
		case ZKL_ACTION_RECORD:
			check_record(r, &action->record);
			break;
		case ZKL_ACTION_DENY:
			CHECK(r->timed_out && w->was_ready &&
				  zkl_manager_lease(w->worker.m) > w->worker.now);
			/* FALLTHROUGH */
		case ZKL_ACTION_GRANT:
		case ZKL_ACTION_FAIL:
			CHECK_INT(r->state, SLOT_WAITING);
			break;
		case ZKL_ACTION_LOSE:
			CHECK(r->state == SLOT_GRANTED || r->state == SLOT_RELEASED ||
				  (r->state == SLOT_LOST && r->overdue));
			break;
		case ZKL_ACTION_WORD:
			check_word(w, &action->peer.znode);
			break;
		case ZKL_ACTION_RELEASE_REQUEST:
			CHECK(world_holds(w, action->request));
			CHECK(action->asked_zxid != r->asked_zxid);
			break;
		case ZKL_ACTION_FREE:
			CHECK_INT(r->state, SLOT_RELEASED);
			break;
		default:
			break;
	}
	return true;
}

static void
after_action(Worker *worker, const ZklAction *action, bool changed)
{
	World	   *w = worker->owner;
	Slot	   *r = &w->requests[action->request];

	switch (action->kind)
	{
		case ZKL_ACTION_SEND:
			model_send(&w->conn, action);
			break;
		case ZKL_ACTION_GRANT:
			world_check_grant(w, r);
			w->grants++;
			break;
		case ZKL_ACTION_LOSE:
			w->losses += changed;
			break;
		case ZKL_ACTION_RELEASE_REQUEST:
			snprintf(w->asker, sizeof(w->asker), "%s", action->asker);
			break;
		case ZKL_ACTION_FREE:
			put_back(r->name);
			memset(r, 0, sizeof(*r));
			w->frees++;
			break;
		case ZKL_ACTION_REVIVED:
			snprintf(w->asker, sizeof(w->asker), "%s", action->asker);
			w->revived++;
			break;
		case ZKL_ACTION_LOST_WRITES:
			w->lost_writes++;
			break;
		case ZKL_ACTION_ASK:
		case ZKL_ACTION_WORD:
			w->asks += action->kind == ZKL_ACTION_ASK;
			w->words += action->kind == ZKL_ACTION_WORD;
			w->sent = action->peer;
			break;
		case ZKL_ACTION_ASKED:
			w->asked++;
			break;
		case ZKL_ACTION_RECONNECT:
			w->gave_up = true;
			break;
		default:
			break;
	}
}

/* ---- life ---- */

static void
print_line(void *context, const char *line)
{
	const World *w = context;

	printf("# %.6f %s\n", (double) w->worker.now / 1000000, line);
}

static void
make_manager(World *w)
{
	w->config.worker_start++;
	worker_create(&w->worker, w->config);
	if (getenv("UNIT_TRACE") != NULL)
		zkl_trace_begin(&w->worker.trace, w->worker.m, print_line, w);
}

ZklUuid
world_leftover(const World *w)
{
	return zkl_uuid_make(w->worker.session.id, w->config.worker_start, 1000000);
}

static void
destroy_manager(World *w)
{
	worker_destroy(&w->worker);
	CHECK_INT(w->worker.memory, 0);
}

World *
world_make(void)
{
	World	   *w = calloc(1, sizeof(World));

	if (w == NULL)
		abort();
	w->worker.now = 1000000;
	w->last_session = 0x1000000000000;
	w->timeout_ms = WORLD_TIMEOUT_MS;
	w->config.root = WORLD_ROOT;
	w->config.max_requests = 64;
	w->config.max_directories = 64;
	w->config.batches_in_flight = 2;
	w->config.batch_operations = 256;
	w->config.batch_bytes = 256 * 1024;
	w->config.wings = worker_wings;
	w->worker.before = check_action;
	w->worker.after = after_action;
	w->worker.owner = w;
	w->worker.slots = w->requests;
	model_start(&w->zk);
	model_open(&w->conn, &w->zk);
	return w;
}

void
world_begin(World *w)
{
	make_manager(w);
}

void
world_end(World *w)
{
	uint32_t	i;

	for (i = 0; i < w->config.max_requests; i++)
		put_back(w->requests[i].name);
	destroy_manager(w);
	model_disconnect(&w->conn);
	tree_finish();
	free(w);
}

World *
world_ready(void)
{
	World	   *w = world_make();

	world_begin(w);
	world_connect(w);
	world_run(w);
	CHECK(zkl_manager_ready(w->worker.m));
	return w;
}

/* ---- the host's events ---- */

/* Kept holds that were lost; whether there was one */
static bool
look_at_lost(World *w)
{
	bool		found = false;
	uint32_t	i;

	for (i = 0; i < w->config.max_requests; i++)
	{
		if (!w->requests[i].kept_lost || !w->requests[i].marked)
			continue;
		worker_look(&w->worker, (int) i);
		found = true;
	}
	return found;
}

void
world_flush(World *w)
{
	const char *broken;

	w->was_ready = zkl_manager_ready(w->worker.m);
	do
	{
		unit_step();
		(void) worker_flush(&w->worker);
	} while (look_at_lost(w));
	broken = zkl_check_all(w->worker.m);
	CHECK_MSG(broken == NULL, "%s", broken ? broken : "");
}

Slot *
world_fill(World *w, uint32_t request, const char *name, uint64_t owner,
		   ZklLockMode mode)
{
	Slot	   *r = &w->requests[request];
	uint32_t	i;

	r->state = SLOT_WAITING;
	r->name = take_string(name);
	r->owner = owner;
	r->mode = mode;
	r->dialect = w->dialect;
	r->max = w->max;
	r->sibling = -1;
	r->together = w->together;
	r->plain = w->plain;
	r->cacheable = r->taken = false;
	r->patience = w->patience;
	r->dependents_news = false;
	r->since = ++w->submissions;
	for (i = 0; i < w->config.max_requests; i++)
	{
		if (w->max == 0 && world_holds(w, i) && w->requests[i].owner == owner &&
			strcmp(w->requests[i].name, name) == 0)
			r->sibling = (int) i;
	}
	return r;
}

uint32_t
world_enter(World *w, const char *name, uint64_t owner, ZklLockMode mode,
			bool timed_out)
{
	int			request = worker_find_free(&w->worker);

	world_fill(w, (uint32_t) request, name, owner, mode)->timed_out = timed_out;
	worker_look(&w->worker, request);
	return (uint32_t) request;
}

uint32_t
world_submit(World *w, const char *name, uint64_t owner, ZklLockMode mode)
{
	uint32_t	request = world_enter(w, name, owner, mode, false);

	world_flush(w);
	return request;
}

uint32_t
world_try(World *w, const char *name, uint64_t owner, ZklLockMode mode)
{
	uint32_t	request = world_enter(w, name, owner, mode, true);

	world_flush(w);
	return request;
}

void
world_leave(World *w, uint32_t request)
{
	Slot	   *r = &w->requests[request];

	if (r->state == SLOT_FREE || r->state == SLOT_RELEASED)
		return;
	r->state = SLOT_RELEASED;
	worker_look(&w->worker, (int) request);
}

void
world_release(World *w, uint32_t request)
{
	world_leave(w, request);
	world_flush(w);
}

void
world_expire(World *w, uint32_t request)
{
	w->requests[request].timed_out = true;
	worker_look(&w->worker, (int) request);
	world_flush(w);
}

void
world_keep(World *w, uint32_t request, int64_t us)
{
	Slot	   *r = &w->requests[request];

	r->keep_until = w->worker.now + us;
	r->state = SLOT_RELEASED;
	worker_look(&w->worker, (int) request);
	world_flush(w);
}

void
world_overdue(World *w, uint32_t request)
{
	w->requests[request].until = w->worker.now;
	worker_look_bounds(&w->worker, (int) request);
	world_flush(w);
}

void
world_sleep(World *w, int64_t us)
{
	int64_t		until = w->worker.now + us;

	for (;;)
	{
		int64_t		due;

		world_run(w);
		due = zkl_manager_timer(w->worker.m);
		if (due < 0 || due > until)
			break;
		w->worker.now = due > w->worker.now ? due : w->worker.now + 1;
		world_flush(w);
		world_run(w);
	}
	w->worker.now = until > w->worker.now ? until : w->worker.now;
}

void
world_connect(World *w)
{
	int64_t		id = w->worker.session.id;

	if (id == 0)
		id = ++w->last_session;
	model_connect(&w->conn, id);
	w->connected = true;
	w->gave_up = false;
	(void) worker_connected(&w->worker, id, w->timeout_ms, w->worker.now);
	world_flush(w);
}

void
world_disconnect(World *w)
{
	model_disconnect(&w->conn);
	w->connected = false;
	worker_tell(&w->worker, ZKL_EVENT(DISCONNECTED));
	world_flush(w);
}

void
world_expire_session(World *w)
{
	uint32_t	i;

	model_expire(&w->zk, w->worker.session.id);
	model_disconnect(&w->conn);
	w->connected = false;
	worker_session_lost(&w->worker);
	world_flush(w);
	CHECK_INT(zkl_manager_lease(w->worker.m), 0);
	for (i = 0; i < w->config.max_requests; i++)
		CHECK(!world_holds(w, i));
}

void
world_restart(World *w)
{
	uint32_t	i;

	model_expire(&w->zk, w->worker.session.id);
	model_disconnect(&w->conn);
	w->connected = false;
	destroy_manager(w);
	make_manager(w);
	worker_take_over(&w->worker);
	for (i = 0; i < w->config.max_requests; i++)
		if (w->requests[i].marked)
			worker_look(&w->worker, (int) i);
	world_flush(w);
}

/* ---- the connection ---- */

void
world_serve(World *w, int n)
{
	unit_step();
	while (n-- > 0 && model_serve(&w->conn))
		;
}

void
world_deliver(World *w, int n)
{
	Frame	   *message;

	unit_step();
	while (n-- > 0 && (message = model_receive(&w->conn)) != NULL)
	{
		worker_deliver(&w->worker, message);
		message_free_frame(message);
		world_flush(w);
	}
}

/* Waits for what is held back for a moment.  False: nothing is. */
static bool
wait_a_moment(World *w)
{
	int64_t		due = zkl_manager_timer(w->worker.m);

	if (due < 0 || due > w->worker.now + A_MOMENT)
		return false;
	if (due > w->worker.now)
		w->worker.now = due;
	world_flush(w);
	return true;
}

void
world_run(World *w)
{
	int			rounds = 0;

	while (w->conn.inbox != NULL || w->conn.outbox != NULL || w->gave_up ||
		   wait_a_moment(w))
	{
		if (!CHECK_MSG(++rounds < 10000, "it never comes to rest"))
			return;
		if (w->gave_up)
		{
			world_disconnect(w);
			world_connect(w);
		}
		w->worker.now += 100;
		world_serve(w, INT32_MAX);
		world_deliver(w, INT32_MAX);
	}
}
