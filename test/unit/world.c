/*
 * world.c
 *	  The host of a manager in tests.
 *
 * Owns the records of requests and the clock.  Single-threaded.  Knows of the
 * core what manager.h says, and of ZooKeeper all that the model knows.
 */
#include "../model/memory.h"
#include "unit.h"
#include "world.h"

#define A_MOMENT	1000		/* µs: a beat is always further off */

/* ---- memory: what comes is never zero, and all must go back ---- */

static void *
host_alloc(void *context, size_t size)
{
	World	   *w = context;
	void	   *memory = malloc(size ? size : 1);

	if (memory == NULL)
		abort();
	memset(memory, 0xA5, size);
	w->memory++;
	return memory;
}

static void
host_release(void *context, void *memory)
{
	World	   *w = context;

	w->memory--;
	free(memory);
}

static void
print_line(void *context, const char *line)
{
	const World *w = context;

	printf("# %.6f %s\n", (double) w->now / 1000000, line);
}

static void
make_manager(World *w)
{
	ZklConfig	config = {
		.root = WORLD_ROOT,
		.max_requests = w->nrequests,
		.max_directories = w->max_directories,
		.batches_in_flight = w->batches_in_flight,
		.batch_operations = w->batch_operations,
		.batch_bytes = w->batch_bytes,
		.uuid_base = ++w->managers,
		.memory = {host_alloc, host_release, w}
	};

	w->m = zkl_manager_create(&config);
	if (getenv("UNIT_TRACE") != NULL)
		zkl_manager_trace(w->m, print_line, w);
}

static void
destroy_manager(World *w)
{
	zkl_manager_destroy(w->m);
	CHECK_INT(w->memory, 0);
}

World *
world_make(void)
{
	World	   *w = calloc(1, sizeof(World));

	if (w == NULL)
		abort();
	w->now = 1000000;
	w->last_session = 0x1000000000000;
	w->nrequests = 64;
	w->max_directories = 64;
	w->batches_in_flight = 2;
	w->batch_operations = 256;
	w->batch_bytes = 256 * 1024;
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

	for (i = 0; i < w->nrequests; i++)
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
	CHECK(zkl_manager_ready(w->m));
	return w;
}

/* ---- actions ---- */

/* What must be so when the core says so */
static void
check_action(const World *w, const ZklAction *action)
{
	const Slot *r = &w->requests[action->request];

	switch (action->kind)
	{
		case ZKL_ACTION_SEND:
			if (action->send == ZKL_SEND_MULTI)
				world_check_recorded(w, action);
			CHECK_MSG(w->connected, "sent while disconnected");
			CHECK(action->tag >> 55 == 0);	/* the rest is the host's */
			break;
		case ZKL_ACTION_CHAIN:
			CHECK(action->chain >= w->chain || action->chain == 1);
			break;
		case ZKL_ACTION_ZNODE:
			CHECK(r->state != SLOT_FREE);
			break;
		case ZKL_ACTION_DENY:
			CHECK(r->timed_out && w->was_ready &&
				  zkl_manager_lease(w->m) > w->now);
			/* FALLTHROUGH */
		case ZKL_ACTION_GRANT:
		case ZKL_ACTION_FAIL:
			CHECK_INT(r->state, SLOT_WAITING);
			break;
		case ZKL_ACTION_LOSE:
			CHECK_INT(r->state, SLOT_GRANTED);
			break;
		case ZKL_ACTION_REVOKE:
			CHECK(world_holds(w, action->request));
			CHECK(action->asked_zxid != r->asked_zxid);
			break;
		case ZKL_ACTION_RETIRE:
			CHECK(r->token != 0 &&
				  (r->state == SLOT_LOST || r->state == SLOT_RELEASED));
			break;
		case ZKL_ACTION_DISOWN:
			CHECK(r->left ||
				  (r->state == SLOT_RELEASED && r->keep_until != 0));
			CHECK(r->owner != action->owner);
			break;
		case ZKL_ACTION_FREE:
			CHECK_INT(r->state, SLOT_RELEASED);
			break;
		default:
			break;
	}
}

static void
carry_out(World *w, const ZklAction *action)
{
	Slot	   *r = &w->requests[action->request];
	bool		changed;

	check_action(w, action);
	changed = slot_record(r, action, w->session.generation);
	switch (action->kind)
	{
		case ZKL_ACTION_SEND:
			model_send(&w->conn, action);
			break;
		case ZKL_ACTION_CHAIN:
			w->chain = action->chain;
			w->chain_kept = action->chain_kept;
			break;
		case ZKL_ACTION_GRANT:
			world_check_grant(w, r);
			w->grants++;
			break;
		case ZKL_ACTION_LOSE:
			w->losses += changed;
			break;
		case ZKL_ACTION_REVOKE:
			snprintf(w->asker, sizeof(w->asker), "%s", action->asker);
			break;
		case ZKL_ACTION_FREE:
			put_back(r->name);
			memset(r, 0, sizeof(*r));
			w->frees++;
			break;
		case ZKL_ACTION_RECONNECT:
			w->gave_up = true;
			break;
		default:
			break;
	}
}

void
world_flush(World *w)
{
	const ZklAction *actions;
	const char *broken;
	size_t		n;
	size_t		i;

	w->was_ready = zkl_manager_ready(w->m);
	zkl_manager_flush(w->m, w->now);
	actions = zkl_manager_actions(w->m, &n);
	for (i = 0; i < n; i++)
		carry_out(w, &actions[i]);
	zkl_manager_clear_actions(w->m);
	broken = zkl_manager_check(w->m);
	CHECK_MSG(broken == NULL, "%s", broken ? broken : "");
}

/* ---- the host's events ---- */

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
	r->since = ++w->submissions;
	for (i = 0; i < w->nrequests; i++)
	{
		if (world_holds(w, i) && w->requests[i].owner == owner &&
			strcmp(w->requests[i].name, name) == 0)
			r->sibling = (int) i;
	}
	return r;
}

uint32_t
world_enter(World *w, const char *name, uint64_t owner, ZklLockMode mode,
			bool timed_out)
{
	uint32_t	request = 0;
	Slot	   *r;
	ZklDemand	demand;

	while (w->requests[request].state != SLOT_FREE)
		request++;
	r = world_fill(w, request, name, owner, mode);
	r->timed_out = timed_out;
	demand = slot_demand(r);
	zkl_manager_submit(w->m, w->now, request, &demand);
	return request;
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
	static const ZklEnd at_once = {0};
	Slot	   *r = &w->requests[request];

	if (r->state == SLOT_FREE || r->state == SLOT_RELEASED)
		return;
	r->state = SLOT_RELEASED;
	zkl_manager_release(w->m, w->now, request, &at_once);
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
	zkl_manager_time_out(w->m, w->now, request);
	world_flush(w);
}

void
world_keep(World *w, uint32_t request, int64_t us)
{
	Slot	   *r = &w->requests[request];
	ZklEnd		end = {.keep_until = w->now + us};

	r->keep_until = r->state == SLOT_GRANTED ? end.keep_until : 0;
	r->state = SLOT_RELEASED;
	zkl_manager_release(w->m, w->now, request, &end);
	world_flush(w);
}

void
world_overdue(World *w, uint32_t request)
{
	Slot	   *r = &w->requests[request];

	if (r->state == SLOT_GRANTED)
	{
		r->state = SLOT_LOST;
		r->overdue = true;
	}
	zkl_manager_overdue(w->m, w->now, request);
	world_flush(w);
}

void
world_sleep(World *w, int64_t us)
{
	int64_t		until = w->now + us;

	for (;;)
	{
		int64_t		due;

		world_run(w);
		due = zkl_manager_timer(w->m);
		if (due < 0 || due > until)
			break;
		w->now = due > w->now ? due : w->now + 1;
		world_flush(w);
		world_run(w);
	}
	w->now = until > w->now ? until : w->now;
}

void
world_connect(World *w)
{
	if (w->session.id == 0)
	{
		w->session.id = ++w->last_session;
		w->session.generation++;
		w->session.timeout_ms = WORLD_TIMEOUT_MS;
		w->chain = w->chain_kept = 0;
	}
	w->session.begun_at = w->now;
	w->session.zxid_seen = zkl_manager_zxid(w->m);
	model_connect(&w->conn, w->session.id);
	w->connected = true;
	w->gave_up = false;
	zkl_manager_connected(w->m, w->now, &w->session);
	world_flush(w);
}

void
world_disconnect(World *w)
{
	model_disconnect(&w->conn);
	w->connected = false;
	zkl_manager_disconnected(w->m, w->now);
	world_flush(w);
}

void
world_expire_session(World *w)
{
	uint32_t	i;

	model_expire(&w->zk, w->session.id);
	model_disconnect(&w->conn);
	w->connected = false;
	w->session.id = 0;
	zkl_manager_session_lost(w->m, w->now);
	world_flush(w);
	CHECK_INT(zkl_manager_lease(w->m), 0);
	for (i = 0; i < w->nrequests; i++)
		CHECK(!world_holds(w, i));
}

static bool
read_slot(void *context, uint32_t request, ZklRestored *restored)
{
	World	   *w = context;
	const Slot *r = &w->requests[request];

	if (r->state == SLOT_FREE)
		return false;
	slot_restore(r, restored);
	restored->current = w->session.id != 0 &&
		r->generation == w->session.generation;
	restored->over = r->state == SLOT_LOST && r->overdue;
	restored->end.keep_until = r->keep_until;
	return true;
}

void
world_restart(World *w)
{
	model_disconnect(&w->conn);
	w->connected = false;
	destroy_manager(w);
	make_manager(w);
	zkl_manager_attach(w->m, &w->session, w->chain, w->chain_kept);
	zkl_manager_restore(w->m, w->now, read_slot, w);
	world_flush(w);
}

/* ---- the connection ---- */

void
world_serve(World *w, int n)
{
	while (n-- > 0 && model_serve(&w->conn))
		;
}

void
world_deliver(World *w, int n)
{
	Frame	   *message;

	while (n-- > 0 && (message = model_receive(&w->conn)) != NULL)
	{
		if (message->is_event)
			zkl_manager_event(w->m, w->now, message->event, message->path);
		else
			zkl_manager_reply(w->m, w->now, message->tag, &message->reply);
		message_free_frame(message);
		world_flush(w);
	}
}

/* Waits for what is held back for a moment.  False: nothing is. */
static bool
wait_a_moment(World *w)
{
	int64_t		due = zkl_manager_timer(w->m);

	if (due < 0 || due > w->now + A_MOMENT)
		return false;
	if (due > w->now)
		w->now = due;
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
		w->now += 100;
		world_serve(w, INT32_MAX);
		world_deliver(w, INT32_MAX);
	}
}
