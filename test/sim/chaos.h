/*
 * chaos.h
 *	  What goes wrong in a simulation, when, and how often.
 */
#ifndef SIM_CHAOS_H
#define SIM_CHAOS_H

#include "base.h"

/* Draws the sizes and the faults of this seed, and starts everybody. */
extern void chaos_begin(void);
extern Time chaos_due(void);
extern void chaos_step(void);

/* When the faults stop */
extern Time chaos_end(void);

/* They stop: all is mended, and nobody asks for anything new. */
extern void chaos_calm(void);

#endif							/* SIM_CHAOS_H */
