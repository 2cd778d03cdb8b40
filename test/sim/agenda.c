/*
 * agenda.c
 *	  Who acts next.
 *
 * Owns the times at which each is due, as far as they are known.  Must not know
 * what anybody does then.
 */
#include "agenda.h"
#include "backend.h"
#include "chaos.h"
#include "foreign.h"
#include "peers.h"

/* A time and a place in one number, so that the least is the first to act */
#define PLACE_BITS	7
#define KEY(time, place) \
	((Time) ((uint64_t) ((time) < NEVER >> PLACE_BITS ? (time) : \
						 NEVER >> PLACE_BITS) << PLACE_BITS | \
			 (uint64_t) (place)))

uint64_t	agenda_stale[2];

static Time keys[AGENDA_PLACES];
static int	next;

_Static_assert(AGENDA_PLACES <= 1 << PLACE_BITS, "a number for each");
_Static_assert(MAX_CONNS == AGENDA_HOSTS - AGENDA_CONNS && MAX_BACKENDS < 8 &&
			   MAX_HOSTS == 3 && MAX_FOREIGN == 4, "a place for each");

void
agenda_begin(void)
{
	agenda_all_changed();
}

/* ---- asking ---- */

static Time
ask_host(int host, int i)
{
	if (host >= hosts.n)
		return NEVER;
	if (i == 0)
		return host_due(&hosts.host[host]);
	if (i > backends.per_host || !hosts.host[host].up)
		return NEVER;
	return backend_due(&backends.backend[host][i - 1]);
}

static Time
ask(int place)
{
	if (place == AGENDA_ENSEMBLE)
		return ensemble_due();
	if (place == AGENDA_LATE)
		return late_due();
	if (place == AGENDA_CHAOS)
		return chaos_due();
	if (place < AGENDA_HOSTS)
	{
		const Conn *c = &ens.conns[place - AGENDA_CONNS];

		return c->open ? conn_due(c) : NEVER;
	}
	if (place < AGENDA_CLIENTS)
		return ask_host((place - AGENDA_HOSTS) / 8,
						(place - AGENDA_HOSTS) % 8);
	if (place == AGENDA_PEERS)
		return peers_due();
	place -= AGENDA_CLIENTS;
	return place < foreigners.n ? foreign_due(&foreigners.foreign[place]) :
		NEVER;
}

static void
ask_changed(int word)
{
	uint64_t	bits = agenda_stale[word];

	for (; bits != 0; bits &= bits - 1)
	{
		int			place = word * 64 + __builtin_ctzll(bits);
		Time		time = ask(place);

		keys[place] = KEY(time, place);
	}
	agenda_stale[word] = 0;
}

/* Nobody has forgotten to say that another's time has changed. */
static void
check_asked(void)
{
	int			i;

	for (i = 0; i < AGENDA_PLACES; i++)
		if (keys[i] != KEY(ask(i), i))
			broken("simulation", "place %d of the agenda is stale", i);
}

Time
agenda_due(void)
{
	Time		best;
	int			i;

	agenda_changed(AGENDA_LATE);
	ask_changed(0);
	ask_changed(1);
	if (SIM_CHECKED)
		check_asked();
	best = keys[0];
	for (i = 1; i < AGENDA_PLACES; i++)
		best = keys[i] < best ? keys[i] : best;
	next = (int) (best & ((1 << PLACE_BITS) - 1));
	best >>= PLACE_BITS;
	return best == NEVER >> PLACE_BITS ? NEVER : best;
}

int
agenda_place(void)
{
	return next;
}

/* ---- acting ---- */

static void
step_host(int host, int i)
{
	if (i == 0)
		host_step(&hosts.host[host]);
	else
		backend_step(&backends.backend[host][i - 1]);
}

void
agenda_step(void)
{
	agenda_changed(next);
	if (next == AGENDA_ENSEMBLE)
		ensemble_step();
	else if (next == AGENDA_LATE)
		late_step();
	else if (next == AGENDA_CHAOS)
	{
		agenda_all_changed();
		chaos_step();
	}
	else if (next < AGENDA_HOSTS)
		conn_step(&ens.conns[next - AGENDA_CONNS]);
	else if (next == AGENDA_PEERS)
		peers_step();
	else if (next < AGENDA_CLIENTS)
		step_host((next - AGENDA_HOSTS) / 8, (next - AGENDA_HOSTS) % 8);
	else
		foreign_step(&foreigners.foreign[next - AGENDA_CLIENTS]);
}
