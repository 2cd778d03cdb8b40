/*
 * server.c
 *	  The PostgreSQL servers: a worker with a real core each.
 *
 * Owns the workers.  Calls flush after events and when the timer is due.  Must not know what backends do with their locks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agenda.h"
#include "observe/inspect.h"
#include "scale.h"

#define BATCHES_IN_FLIGHT	2	/* as in worker.c */
#define BATCH_OPERATIONS	256
#define BATCH_BYTES			(256 * 1024)

Server	   *servers;

static uint32_t in_use = 0;		/* requests, of all servers */
static char data[ZKL_MAX_NODE_DATA];

/* ---- actions ---- */

static void
after_action(Worker *w, const ZklAction *action, bool changed)
{
	Server	   *s = w->owner;

	(void) changed;
	switch (action->kind)
	{
		case ZKL_ACTION_SEND:
			figures_sent(action);
			zookeeper_send(&s->connection, s->number, action);
			break;
		case ZKL_ACTION_GRANT:
			backend_granted((uint32_t) w->slots[action->request].backend,
							action->request, action->token);
			break;
		case ZKL_ACTION_FREE:
			put_back(w->slots[action->request].name);
			in_use--;
			break;
		case ZKL_ACTION_RECORD:
			break;
		default:
			broken("server %u: action %d where nothing fails",
				   (unsigned) s->number, (int) action->kind);
	}
}

static void
set_timer(Server *s)
{
	int64_t		due = zkl_manager_timer(s->worker.m);

	if (due < 0 || (s->timer_at >= 0 && s->timer_at <= due))
		return;
	s->timer_at = due > agenda_now ? due : agenda_now;
	agenda_add(s->timer_at, AGENDA_TIMER, s->number);
}

static void
flush(Server *s)
{
	(void) worker_flush(&s->worker);
	set_timer(s);
}

/* ---- events ---- */

static void
connect_server(Server *s)
{
	int64_t		id = SCALE_SESSION + s->number;

	model_connect(&s->connection, id);
	(void) worker_connected(&s->worker, id, options.timeout_ms, agenda_now);
	flush(s);
}

void
server_timer(Server *s)
{
	int64_t		due;

	if (agenda_now != s->timer_at)
		return;
	s->timer_at = -1;
	s->worker.now = agenda_now;
	if (s->connection.session == 0)
	{
		connect_server(s);
		return;
	}
	due = zkl_manager_timer(s->worker.m);
	if (due >= 0 && due <= agenda_now)
		flush(s);
	else
		set_timer(s);
}

void
server_submit(Server *s, uint32_t backend, const char *name)
{
	int			request = worker_find_free(&s->worker);
	Slot	   *slot;

	if (request < 0)
		broken("server %u has no free request", (unsigned) s->number);
	slot = &s->worker.slots[request];
	slot->state = SLOT_WAITING;
	slot->name = take_string(name);
	slot->data = data;
	slot->owner = backend + 1;
	slot->mode = ZKL_EXCLUSIVE;
	slot->sibling = -1;
	slot->backend = (int) backend;
	in_use++;
	s->worker.now = agenda_now;
	worker_look(&s->worker, request);
	flush(s);
}

void
server_release(Server *s, uint32_t request)
{
	s->worker.slots[request].state = SLOT_RELEASED;
	s->worker.now = agenda_now;
	worker_look(&s->worker, (int) request);
	flush(s);
}

void
server_deliver(Server *s)
{
	Frame	   *message = model_receive(&s->connection);

	s->worker.now = agenda_now;
	worker_deliver(&s->worker, message);
	message_free_frame(message);
	flush(s);
}

/* ---- life ---- */

static void
format_data(void)
{
	ZklNodeData node = {
		.server = "db-0001.example.org:5432",.database = "app",
		.usename = "app",.application_name = "worker",
		.lifetime = "transaction",.pid = 12345,.since = 1700000000000
	};

	(void) zkl_node_data_format(&node, data, sizeof(data));
}

static void
begin(Server *s, uint32_t number, uint64_t *random)
{
	ZklConfig	config = {
		.root = SCALE_ROOT,.max_requests = options.max_requests,
		.max_directories = options.max_directories,
		.batches_in_flight = BATCHES_IN_FLIGHT,
		.batch_operations = BATCH_OPERATIONS,.batch_bytes = BATCH_BYTES,
		.worker_start = number + 1
	};

	s->number = number;
	s->worker.after = after_action;
	s->worker.owner = s;
	s->worker.slots = take(options.max_requests * sizeof(Slot));
	worker_create(&s->worker, config);
	model_open(&s->connection, &zookeeper);
	s->connection.owner = s;
	s->connection.noticed = zookeeper_noticed;

	/* They do not all start, nor beat, at the same moment. */
	s->timer_at = agenda_now + (int64_t) (splitmix64(random) %
										  (options.timeout_ms * 1000 / 6));
	agenda_add(s->timer_at, AGENDA_TIMER, number);
}

void
servers_begin(void)
{
	uint64_t	random = options.seed;
	uint32_t	i;

	format_data();
	servers = take(options.servers * sizeof(Server));
	for (i = 0; i < options.servers; i++)
		begin(&servers[i], i, &random);
}

bool
servers_at_rest(void)
{
	return in_use == 0;
}

void
servers_check(void)
{
	uint32_t	i;

	for (i = 0; i < options.servers; i++)
	{
		const char *why = zkl_check_all(servers[i].worker.m);

		if (why != NULL)
			broken("server %u: %s", (unsigned) i, why);
	}
}
