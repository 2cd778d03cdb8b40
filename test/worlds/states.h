/*
 * states.h
 *	  The states that were seen, each with how many delays and mishaps were left then.
 */
#ifndef WORLDS_STATES_H
#define WORLDS_STATES_H

#include <stdbool.h>
#include <stdint.h>

#define MOST_DEVIATIONS	6		/* delays and mishaps of a schedule */

/* What a schedule does otherwise than the natural one: before which event, and what */
typedef struct Deviation
{
	uint16_t	point;
	uint16_t	what;			/* 0: a delay; else 1 and the mishap */
} Deviation;

typedef struct Route
{
	Deviation	deviations[MOST_DEVIATIONS];
	uint16_t	n;
	uint16_t	point;			/* where it came to the state */
} Route;

extern void states_begin(void);

/*
 * Whether a state was seen with at least as many left; NULL: it was not, and now it is.
 * Else how it was reached first.
 */
extern const Route *states_see(uint64_t hash, int delays, int mishaps, const Route *route);
extern uint64_t states_count(void);

#endif							/* WORLDS_STATES_H */
