/*
 * server.c
 *	  The PostgreSQL servers: a real manager each, and the least of a host.
 *
 * Owns the managers.  As the worker does, it calls flush after events and when
 * the timer is due.  Must not know what backends do with their locks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agenda.h"
#include "scale.h"

#define BATCHES_IN_FLIGHT	2	/* as in worker.c */
#define BATCH_OPERATIONS	256
#define BATCH_BYTES			(256 * 1024)

Server	   *servers;

static uint32_t in_use = 0;		/* requests, of all servers */
static char data[ZKL_MAX_NODE_DATA];
static size_t data_length;

/* ---- memory ---- */

/* In front of each piece */
typedef union Header
{
	size_t		size;
	long double strictest_alignment;
} Header;

static void *
server_alloc(void *context, size_t size)
{
	Server	   *s = context;
	Header	   *header = malloc(sizeof(Header) + size);

	if (header == NULL)
		abort();
	header->size = size;
	s->memory += (int64_t) size;
	if (s->memory > s->most_memory)
		s->most_memory = s->memory;
	return header + 1;
}

static void
server_free(void *context, void *pointer)
{
	Server	   *s = context;
	Header	   *header = (Header *) pointer - 1;

	s->memory -= (int64_t) header->size;
	free(header);
}

/* ---- actions ---- */

static void
carry_out(Server *s, const ZklAction *action)
{
	switch (action->kind)
	{
		case ZKL_ACTION_SEND:
			figures_sent(action);
			zookeeper_send(&s->connection, s->number, action);
			break;
		case ZKL_ACTION_GRANT:
			backend_granted(s->backend_of[action->request], action->request,
							action->token);
			break;
		case ZKL_ACTION_FREE:
			s->free_requests[s->nfree++] = action->request;
			in_use--;
			break;
		case ZKL_ACTION_CHAIN:
		case ZKL_ACTION_ZNODE:
			break;
		default:
			broken("server %u: action %d where nothing fails",
				   (unsigned) s->number, (int) action->kind);
	}
}

static void
set_timer(Server *s)
{
	int64_t		due = zkl_manager_timer(s->manager);

	if (due < 0 || (s->timer_at >= 0 && s->timer_at <= due))
		return;
	s->timer_at = due > agenda_now ? due : agenda_now;
	agenda_add(s->timer_at, AGENDA_TIMER, s->number);
}

static void
flush(Server *s)
{
	const ZklAction *actions;
	size_t		n;
	size_t		i;

	zkl_manager_flush(s->manager, agenda_now);
	actions = zkl_manager_actions(s->manager, &n);
	for (i = 0; i < n; i++)
		carry_out(s, &actions[i]);
	zkl_manager_clear_actions(s->manager);
	set_timer(s);
}

/* ---- events ---- */

static void
connect_server(Server *s)
{
	ZklSession	session = {
		.id = SCALE_SESSION + s->number,.generation = 1,
		.timeout_ms = options.timeout_ms,.begun_at = agenda_now
	};

	model_connect(&s->connection, session.id);
	zkl_manager_connected(s->manager, agenda_now, &session);
	flush(s);
}

void
server_timer(Server *s)
{
	int64_t		due;

	if (agenda_now != s->timer_at)
		return;
	s->timer_at = -1;
	if (s->connection.session == 0)
	{
		connect_server(s);
		return;
	}
	due = zkl_manager_timer(s->manager);
	if (due >= 0 && due <= agenda_now)
		flush(s);
	else
		set_timer(s);
}

void
server_submit(Server *s, uint32_t backend, const char *name)
{
	ZklDemand	demand = {
		.name = name,.owner = backend + 1,.mode = ZKL_EXCLUSIVE,.sibling = -1,
		.data = data,.data_length = data_length
	};
	uint32_t	request;

	if (s->nfree == 0)
		broken("server %u has no free request", (unsigned) s->number);
	request = s->free_requests[--s->nfree];
	in_use++;
	s->backend_of[request] = backend;
	zkl_manager_submit(s->manager, agenda_now, request, &demand);
	flush(s);
}

void
server_release(Server *s, uint32_t request)
{
	static const ZklEnd at_once = {0};

	s->backend_of[request] = NOBODY;
	zkl_manager_release(s->manager, agenda_now, request, &at_once);
	flush(s);
}

void
server_deliver(Server *s)
{
	Frame	   *message = model_receive(&s->connection);

	if (message->is_event)
		zkl_manager_event(s->manager, agenda_now, message->event,
						  message->path);
	else
		zkl_manager_reply(s->manager, agenda_now, message->tag,
						  &message->reply);
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

	data_length = zkl_node_data_format(&node, data, sizeof(data));
}

static void
begin(Server *s, uint32_t number, uint64_t *random)
{
	ZklConfig	config = {
		.root = SCALE_ROOT,.max_requests = options.max_requests,
		.max_directories = options.max_directories,
		.batches_in_flight = BATCHES_IN_FLIGHT,
		.batch_operations = BATCH_OPERATIONS,.batch_bytes = BATCH_BYTES,
		.uuid_base = number + 1,
		.memory = {server_alloc, server_free, s}
	};
	uint32_t	i;

	s->number = number;
	s->manager = zkl_manager_create(&config);
	model_open(&s->connection, &zookeeper);
	s->connection.owner = s;
	s->connection.noticed = zookeeper_noticed;
	s->free_requests = take(options.max_requests * sizeof(uint32_t));
	s->backend_of = take(options.max_requests * sizeof(uint32_t));
	for (i = options.max_requests; i-- > 0;)
		s->free_requests[s->nfree++] = i;

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
		const char *why = zkl_manager_check(servers[i].manager);

		if (why != NULL)
			broken("server %u: %s", (unsigned) i, why);
	}
}
