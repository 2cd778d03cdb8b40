/*
 * explore.h
 *	  All schedules of a world with so many delays and mishaps at most.
 */
#ifndef WORLDS_EXPLORE_H
#define WORLDS_EXPLORE_H

#include "states.h"
#include "world.h"

typedef struct Bounds
{
	int			delays;
	int			mishaps;
	bool		hash;			/* states that were seen are cut */
	bool		everywhere;		/* delays, also of what commutes */
	double		seconds;		/* at most; 0: as long as it takes */
} Bounds;

typedef struct Explored
{
	bool		good;			/* no rule was broken */
	bool		complete;
	Route		found;			/* the schedule that broke one */
	uint64_t	schedules;
	uint64_t	events;
	uint64_t	states;
	uint64_t	cut;			/* schedules that came to a state that was
								 * seen */
	uint64_t	twins;			/* of these, that were continued all the same */
	double		seconds;
} Explored;

extern void explore(const World *w, const Bounds *bounds, Explored *result);

/* Runs one schedule, with its trace as base.trace says; false: it breaks a rule. */
extern bool explore_route(const World *w, const Route *route);

#endif							/* WORLDS_EXPLORE_H */
