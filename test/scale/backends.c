/*
 * backends.c
 *	  The backends: each thinks, asks for a lock, holds it, and lets it go.
 *
 * Owns them, and what is true of the locks: that no two hold one at a time,
 * and that its tokens grow.  Must not know how a server gets a lock.
 */
#include <math.h>

#include "agenda.h"
#include "scale.h"

#define MAX_LOCK_NAME	32

typedef enum BackendState
{
	THINKING,
	WAITING,
	HOLDING
} BackendState;

typedef struct Backend
{
	BackendState state;
	uint32_t	name;
	uint32_t	request;
	int64_t		since;			/* it asked */
} Backend;

typedef struct Lock
{
	bool		held;
	int64_t		token;			/* the last one */
} Lock;

static Backend *backends;
static Lock *locks;
static double *shares;			/* of the names up to each */
static uint64_t seed;
static bool stopping = false;

/* 0 <= x < 1 */
static double
chance(void)
{
	return (double) (splitmix64(&seed) >> 11) / 9007199254740992.0;
}

static int64_t
some_time(double mean)
{
	return (int64_t) (-mean * log(1 - chance()));
}

static uint32_t
draw_name(uint32_t server)
{
	uint32_t	share = options.names / options.servers;
	double		x;
	uint32_t	low = 0;
	uint32_t	high = options.names - 1;

	if (chance() < options.own)
		return server * share + (uint32_t) (chance() * share);
	x = chance() * shares[options.names - 1];
	while (low < high)
	{
		uint32_t	middle = low + (high - low) / 2;

		if (shares[middle] <= x)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void
backends_begin(void)
{
	uint32_t	n = options.servers * options.backends;
	double		sum = 0;
	uint32_t	i;

	seed = options.seed ^ 0x5DEECE66D;
	backends = take(n * sizeof(Backend));
	locks = take(options.names * sizeof(Lock));
	shares = take(options.names * sizeof(double));
	for (i = 0; i < options.names; i++)
		shares[i] = sum += pow(i + 1, -options.skew);

	/* By then all servers are connected. */
	for (i = 0; i < n; i++)
		agenda_add(agenda_now + options.timeout_ms * 1000 +
				   some_time(options.think), AGENDA_BACKEND, i);
}

static Server *
server_of(uint32_t backend)
{
	return &servers[backend / options.backends];
}

static void
ask(Backend *b, uint32_t backend)
{
	Server	   *s = server_of(backend);

	b->state = WAITING;
	b->name = options.for_ever ? backend : draw_name(s->number);
	b->since = agenda_now;
	figures_submitted(b->name);
	server_submit(s, backend, zookeeper_path(b->name) + sizeof(SCALE_ROOT) - 1);
}

static void
let_go(Backend *b, uint32_t backend)
{
	Server	   *s = server_of(backend);

	b->state = THINKING;
	locks[b->name].held = false;
	figures_released(b->name, s->number);
	server_release(s, b->request);
	if (!stopping)
		agenda_add(agenda_now + some_time(options.think), AGENDA_BACKEND,
				   backend);
}

void
backend_step(uint32_t backend)
{
	Backend    *b = &backends[backend];

	if (b->state == HOLDING)
		let_go(b, backend);
	else if (!stopping)
		ask(b, backend);
}

void
backend_granted(uint32_t backend, uint32_t request, int64_t token)
{
	Backend    *b = &backends[backend];
	Lock	   *lock = &locks[b->name];

	if (lock->held)
		broken("lock %u is granted twice", (unsigned) b->name);
	if (token <= lock->token)
		broken("a token of lock %u does not grow", (unsigned) b->name);
	lock->held = true;
	lock->token = token;
	b->state = HOLDING;
	b->request = request;
	figures_granted(b->name, server_of(backend)->number,
					agenda_now - b->since);
	if (!options.for_ever)
		agenda_add(agenda_now + some_time(options.hold), AGENDA_BACKEND,
				   backend);
}

void
backends_stop(void)
{
	uint32_t	i;

	stopping = true;
	for (i = 0; options.for_ever && i < options.servers * options.backends; i++)
		if (backends[i].state == HOLDING)
			let_go(&backends[i], i);
}
