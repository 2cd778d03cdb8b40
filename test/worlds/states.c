/*
 * states.c
 *	  The states that were seen.
 *
 * Owns them; they are no part of a state that is put aside.
 */
#include <stdlib.h>
#include <string.h>

#include "states.h"

typedef struct State
{
	uint64_t	hash;			/* 0: none */
	uint8_t		mishaps[MOST_DEVIATIONS + 1];	/* by the delays that were
												 * left: 1 and the most */
	Route		route;			/* the first one to it */
} State;

typedef struct States
{
	uint64_t	n;
	uint64_t	room;			/* a power of two */
	State	   *states;
} States;

static States *all;				/* from malloc */

static State *
find(const States *in, uint64_t hash)
{
	uint64_t	i = hash & (in->room - 1);

	while (in->states[i].hash != 0 && in->states[i].hash != hash)
		i = (i + 1) & (in->room - 1);
	return &in->states[i];
}

static void
make_room(uint64_t room)
{
	States		grown = {.n = all->n,.room = room,.states = calloc(room, sizeof(State))};
	uint64_t	i;

	if (grown.states == NULL)
		abort();
	for (i = 0; i < all->room; i++)
		if (all->states[i].hash != 0)
			*find(&grown, all->states[i].hash) = all->states[i];
	free(all->states);
	*all = grown;
}

void
states_begin(void)
{
	if (all == NULL && (all = calloc(1, sizeof(States))) == NULL)
		abort();
	free(all->states);
	memset(all, 0, sizeof(*all));
	make_room(1 << 12);
}

const Route *
states_see(uint64_t hash, int delays, int mishaps, const Route *route)
{
	State	   *state;
	int			i;

	if (all->n * 2 >= all->room)
		make_room(all->room * 2);
	hash += hash == 0;
	state = find(all, hash);
	for (i = delays; i <= MOST_DEVIATIONS; i++)
		if (state->mishaps[i] > mishaps)
			return &state->route;
	if (state->hash == 0)
	{
		all->n++;
		state->hash = hash;
		state->route = *route;
	}
	state->mishaps[delays] = (uint8_t) (1 + mishaps);
	return NULL;
}

uint64_t
states_count(void)
{
	return all->n;
}
