/*
 * world.c
 *	  The host of a manager in tests.
 *
 * Owns the records of requests and the clock.  Single-threaded.  Knows of the
 * core what manager.h says, and of ZooKeeper all that the model knows.
 */
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

static void
record_znode(const World *w, WorldRequest *r, const ZklAction *action)
{
	CHECK(r->used);
	if (!r->has_znode ||
		memcmp(&r->uuid, &action->uuid, sizeof(r->uuid)) != 0)
		r->znodes++;
	r->has_znode = true;
	r->session = w->session.id;
	r->uuid = action->uuid;
	r->znode_mode = action->mode;
	r->seq = action->seq;
	r->index = action->index;
	r->going = action->going;
}

static void
record_answer(World *w, WorldRequest *r, const ZklAction *action)
{
	CHECK(r->used && !r->denied && !r->failed && !r->lost && !r->released);
	r->failure = action->failure;
	r->rc = action->rc;
	if (action->kind == ZKL_ACTION_LOSE)
	{
		CHECK(r->granted);
		r->lost = true;
		w->losses++;
		return;
	}
	CHECK(!r->granted);
	if (action->kind == ZKL_ACTION_DENY)
	{
		CHECK(r->expired);
		CHECK(w->was_ready && zkl_manager_lease(w->m) > w->now);
		r->denied = true;
	}
	else
		r->failed = true;
}

static void
carry_out(World *w, const ZklAction *action)
{
	WorldRequest *r = &w->requests[action->request];

	switch (action->kind)
	{
		case ZKL_ACTION_SEND:
			if (action->send == ZKL_SEND_MULTI)
				world_check_recorded(w, action);
			CHECK_MSG(w->connected, "sent while disconnected");
			CHECK(action->tag >> 63 == 0);
			model_send(&w->conn, action);
			break;
		case ZKL_ACTION_CHAIN:
			CHECK(action->chain >= w->chain || action->chain == 1);
			w->chain = action->chain;
			w->chain_kept = action->chain_kept;
			break;
		case ZKL_ACTION_ZNODE:
			record_znode(w, r, action);
			break;
		case ZKL_ACTION_GRANT:
			r->token = action->token;
			r->session = w->session.id;
			world_check_grant(w, r);
			r->granted = true;
			w->grants++;
			break;
		case ZKL_ACTION_BLOCKED:
			w->requests[action->request].blocked = true;
			break;
		case ZKL_ACTION_DENY:
		case ZKL_ACTION_FAIL:
		case ZKL_ACTION_LOSE:
			record_answer(w, r, action);
			break;
		case ZKL_ACTION_REVOKE:
			CHECK(world_holds(w, action->request));
			CHECK(action->asked_zxid != r->asked_zxid);
			r->asked_zxid = action->asked_zxid;
			r->asked++;
			snprintf(r->asker, sizeof(r->asker), "%s", action->asker);
			break;
		case ZKL_ACTION_RETIRE:
			CHECK(r->used && r->lost);
			r->retired = true;
			r->has_znode &= action->has_node;
			break;
		case ZKL_ACTION_DISOWN:
			CHECK(r->used && (r->left || (r->released && r->keep_until != 0)));
			CHECK(r->owner != action->owner);
			r->owner = action->owner;
			break;
		case ZKL_ACTION_KEPT:
			r->keep_until = 0;
			break;
		case ZKL_ACTION_FREE:
			CHECK(r->used && r->released);
			memset(r, 0, sizeof(*r));
			w->frees++;
			break;
		case ZKL_ACTION_RECONNECT:
			w->gave_up = true;
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

/* What the worker tells the manager of a request */
static ZklDemand
make_demand(const World *w, uint32_t request)
{
	static const char data[] = "{\"zklock\":1,\"server\":\"unit\"}";
	const WorldRequest *r = &w->requests[request];
	ZklDemand	demand = {
		.name = r->name,.owner = r->owner,.mode = r->mode,.sibling = -1,
		.timed_out = r->expired,
		.together = w->together && !r->blocked,.data = data,.data_length = sizeof(data) - 1
	};
	uint32_t	i;

	for (i = 0; i < w->nrequests; i++)
	{
		if (i != request && world_holds(w, i) &&
			w->requests[i].owner == r->owner &&
			strcmp(w->requests[i].name, r->name) == 0)
			demand.sibling = (int32_t) i;
	}
	return demand;
}

uint32_t
world_enter(World *w, const char *name, uint64_t owner, ZklLockMode mode,
			bool expired)
{
	uint32_t	request = 0;
	WorldRequest *r;
	ZklDemand	demand;

	while (w->requests[request].used)
		request++;
	r = &w->requests[request];
	r->used = true;
	snprintf(r->name, sizeof(r->name), "%s", name);
	r->owner = owner;
	r->mode = mode;
	r->expired = expired;
	r->since = ++w->submissions;
	demand = make_demand(w, request);
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
	WorldRequest *r = &w->requests[request];

	if (!r->used || r->released)
		return;
	r->released = true;
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
	w->requests[request].expired = true;
	zkl_manager_time_out(w->m, w->now, request);
	world_flush(w);
}

void
world_keep(World *w, uint32_t request, int64_t us)
{
	WorldRequest *r = &w->requests[request];
	ZklEnd		end = {.keep_until = w->now + us};

	r->released = true;
	r->keep_until = end.keep_until;
	zkl_manager_release(w->m, w->now, request, &end);
	world_flush(w);
}

void
world_overdue(World *w, uint32_t request)
{
	w->requests[request].overdue = world_holds(w, request);
	w->requests[request].lost |= world_holds(w, request);
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

static ZklSlotSays
slot_says(const WorldRequest *r)
{
	return r->released ? ZKL_SLOT_SAYS_RELEASED :
		r->lost ? ZKL_SLOT_SAYS_LOST :
		r->denied || r->failed ? ZKL_SLOT_SAYS_ANSWERED :
		r->granted ? ZKL_SLOT_SAYS_GRANTED : ZKL_SLOT_SAYS_WAITING;
}

static bool
read_slot(void *context, uint32_t request, ZklRestored *slot)
{
	World	   *w = context;
	const WorldRequest *r = &w->requests[request];

	if (!r->used)
		return false;
	slot->demand = make_demand(w, request);
	slot->state = slot_says(r);
	slot->current = w->session.id != 0 && r->session == w->session.id;
	slot->broken = r->failure == ZKL_FAILURE_BROKEN;
	slot->overdue = r->overdue;
	slot->over = r->lost && r->overdue;
	slot->retired = r->retired;
	slot->end.keep_until = r->keep_until;
	slot->token = r->token;
	slot->asked_zxid = r->asked_zxid;
	slot->sent = r->has_znode;
	slot->going = r->going;
	slot->uuid = r->uuid;
	slot->znode_mode = r->znode_mode;
	slot->seq = r->seq;
	slot->index = r->index;
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
