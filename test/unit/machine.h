/*
 * machine.h
 *	  The states that a request can be in, and all that can happen to it.
 */
#ifndef ZKL_MACHINE_H
#define ZKL_MACHINE_H

#include "world.h"

#define MACHINE_NAMES		3
#define MACHINE_REQUESTS	24

/* One case: the world, and the request and the lock that it is about */
typedef struct Case
{
	World	   *w;
	const char *name;			/* of the lock that events are about */
	uint32_t	r;
	char		other[ZKL_MAX_PATH + 1];	/* the last foreign contender */
} Case;

typedef struct MachineState
{
	const char *name;
	void		(*enter) (Case *c); /* from a world that is ready */
} MachineState;

typedef struct MachineEvent
{
	const char *name;
	void		(*happen) (Case *c);
	uint32_t	calm;			/* how often it comes up in a walk, */
	uint32_t	wild;			/* and in one with failures */
} MachineEvent;

extern const MachineState machine_states[];
extern const size_t machine_nstates;
extern const MachineEvent machine_events[];
extern const size_t machine_nevents;

/* How many request numbers are in use */
extern uint32_t machine_used(const World *w);

#endif							/* ZKL_MACHINE_H */
