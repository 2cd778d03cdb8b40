/*
 * script.c
 *	  What the sessions of a world do, in order.
 *
 * Owns how far each is.  Each deed is a step of its own, so that others can come
 * between.
 */
#include <string.h>

#include "../sim/agenda.h"
#include "../sim/chaos.h"
#include "../sim/cycles.h"
#include "../sim/draw.h"
#include "../sim/foreign.h"
#include "../sim/oracle.h"
#include "../sim/peers.h"
#include "../sim/run.h"
#include "world.h"

const World *world;

static Time begun;				/* the scripts */

static struct
{
	int			next;			/* command; -1: it is through */
	uint64_t	owner;			/* it began as; 0: not yet */
	int			kept;			/* the slot that it kept last */
}			sessions[MAX_HOSTS][MOST_SESSIONS];

/* ---- deeds ---- */

/* A hold that it has; -1: it lost it, or did not get it */
static int
slot_of_hold(const Backend *b, int64_t n)
{
	return n < b->nholds ? b->holds[n].slot : -1;
}

static void
release_and_write(Backend *b, int64_t ms)
{
	Host	   *h = backend_host(b);
	Hold		holds[MAX_HOLDS];
	int			n = b->nholds;
	int			i;

	memcpy(holds, b->holds, sizeof(holds));
	backend_end_holds(b);
	for (i = 0; i < n; i++)
		if (h->slots[holds[i].slot].state == SLOT_RELEASED)
			h->slots[holds[i].slot].epilogue_until = host_clock(h) + ms * MS;
}

static void
do_with_hold(Backend *b, const Command *c)
{
	Host	   *h = backend_host(b);
	int			slot = slot_of_hold(b, c->n);

	if (slot < 0)
		return;
	if (c->deed == DO_GIVE_BACK)
		transaction_give_back(b, (int) c->n);
	else if (c->deed == DO_PROMISE)
		slot_promise(h, slot);
	else
	{
		slot_keep(h, slot, c->ms);
		sessions[b->host][b->id].kept = slot;
	}
}

static void
cancel(Host *h)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		slot_renew(h, i, 0, true);
}

static void
carry_out(Backend *b, const Command *c)
{
	Host	   *h = backend_host(b);

	switch (c->deed)
	{
		case DO_WAIT:
			b->at = base.now + c->n * MS;
			break;
		case DO_ASK:
			backend_want(b, &c->want);
			break;
		case DO_COMMIT:
			if (b->nholds > 0)
				transaction_check(b);
			break;
		case DO_RELEASE_AND_WRITE:
			release_and_write(b, c->n);
			break;
		case DO_RENEW:
			slot_renew(h, sessions[b->host][b->id].kept, c->n, false);
			break;
		case DO_CANCEL:
			cancel(h);
			break;
		case DO_DIE:
			backend_die(b);
			break;
		case DO_STOP_SERVER:
			host_stop(h, base.now + 100 * MS);
			break;
		case DO_END_WORKER:
			worker_terminate(h, base.now + 100 * MS);
			break;
		default:
			do_with_hold(b, c);
			break;
	}
}

static void
go_on(Backend *b)
{
	int		   *next = &sessions[b->host][b->id].next;
	const Command *c;

	/* Whose process has ended does nothing more. */
	if (sessions[b->host][b->id].owner == 0)
		sessions[b->host][b->id].owner = b->owner;
	else if (sessions[b->host][b->id].owner != b->owner)
		*next = -1;
	b->at = NEVER;
	if (*next < 0)
		return;
	c = &world->scripts[b->host][b->id][(*next)++];
	if (c->deed == DO_NOTHING)
	{
		*next = -1;
		return;
	}
	b->at = base.now;
	agenda_all_changed();
	carry_out(b, c);
}

bool
world_is_over(void)
{
	int			i,
				j;

	for (i = 0; i < hosts.n; i++)
		for (j = 0; j < backends.per_host; j++)
			if (sessions[i][j].next >= 0)
				return false;
	return backends_idle() && foreign_idle() &&
		(foreigners.n == 0 || base.now > begun + ens.timeout);
}

/* ---- the beginning ---- */

Time
draw(const Time *from, int n)
{
	(void) n;
	return from[0];
}

void
draw_ensemble(void)
{
	ens.tick = 2 * SECOND;
	ens.timeout = ens.granted = ens.shortest = ens.longest = 2 * ens.tick;
	ens.nservers = world->members;
	ens.leader = world->lags ? 1 : 0;
	clock_set(&ens.leader_clock, 0, 0);
	if (world->reaps)
	{
		ens.reap_every = 500 * MS;
		ens.reap_at = base.now + ens.reap_every;
	}
}

void
draw_hosts(void)
{
	int			i;

	memset(&hosts, 0, sizeof(hosts));
	memset(&backends, 0, sizeof(backends));
	memset(&foreigners, 0, sizeof(foreigners));
	hosts.n = world->hosts;
	hosts.nlocks = world->locks;
	hosts.batches_in_flight = 2;
	hosts.batch_operations = 8;
	hosts.max_directories = world->forgetful ? 0 : 16;
	hosts.cold = world->forgetful;
	hosts.cache_time = world->cache_time * MS;
	hosts.semaphore = world->permits > 0 ? hosts.nlocks - 1 : -1;
	hosts.max = world->permits;
	backends.per_host = world->scripts[0][1] != NULL ? 2 : 1;
	backends.script = go_on;
	foreigners.n = world->clients;
	foreigners.hold = 100 * MS;
	foreigners.think = NEVER / 4;
	foreigners.downgrades = world->client_downgrades;
	for (i = 0; i < hosts.nlocks; i++)
		hosts.dialects[i] = i == hosts.semaphore ? ZKL_DIALECT_PERMIT : world->dialect;
	for (i = 0; i < hosts.n; i++)
	{
		hosts.host[i].id = i;
		clock_set(&hosts.host[i].clock, i * 100 * SECOND, 0);
		hosts.host[i].cache_time = hosts.cache_time;
		hosts.host[i].peers = world->peers;
	}
}

/* As zklock makes them, with a counter that has come far */
static void
make_directory(void)
{
	Op			op = {.kind = OP_CREATE,.container = true,.version = -1};
	const char *path = lock_path(0)->text;
	const char *slash;
	int			copy;

	for (slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/'))
	{
		op.path = take_copy(path, (size_t) (slash - path));
		(void) ensemble_write(&op, false);
	}
	op.path = path;
	(void) ensemble_write(&op, false);
	for (copy = 0; copy <= ens.nservers; copy++)
		lock_path(0)->node[copy].counter = world->counter;
}

static bool
all_are_ready(void)
{
	int			i;

	for (i = 0; i < hosts.n; i++)
		if (hosts.host[i].worker.m == NULL || !zkl_manager_ready(hosts.host[i].worker.m))
			return false;
	return true;
}

static void
begin_scripts(void)
{
	int			i,
				j;

	begun = base.now;
	memset(sessions, 0, sizeof(sessions));
	for (i = 0; i < hosts.n; i++)
		for (j = 0; j < backends.per_host; j++)
		{
			if (world->scripts[i][j] == NULL)
				sessions[i][j].next = -1;
			else
				backends.backend[i][j].at = base.now + 100 * MS;
		}
	for (i = 0; i < foreigners.n; i++)
		foreigners.foreign[i].at = base.now + 100 * MS;
	agenda_all_changed();
}

void
world_begin(void)
{
	int			i;

	agenda_begin();
	schedule_begin();
	ensemble_begin();
	oracle_begin();
	draw_ensemble();
	draw_hosts();
	memset(&cycles, 0, sizeof(cycles));
	memset(cycles.holder, 0xff, sizeof(cycles.holder));
	cycles.on = cycles.wing = world->cycles;
	cycles.patience = ens.timeout / 20;
	chaos_none();
	peers_begin();
	for (i = 0; i < hosts.n; i++)
		hosts.host[i].peers = world->peers;
	clocks_begin();
	ensemble_elect(ens.leader);
	backends.think = NEVER / 4;
	for (i = 0; i < hosts.n; i++)
		host_start(&hosts.host[i]);
	backends.think = 0;
	foreign_start();
	if (world->counter != 0)
		make_directory();
	run_until(base.now + ens.timeout, all_are_ready);
	if (!all_are_ready())
		broken("world", "the servers do not connect");
	begin_scripts();
}
