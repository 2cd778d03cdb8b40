/*
 * chaos.h
 *	  What goes wrong in a simulation, when, and how often.
 */
#ifndef SIM_CHAOS_H
#define SIM_CHAOS_H

#include "host.h"

/* Draws the sizes and the faults of this seed, and starts everybody. */
extern void chaos_begin(void);

/* No faults by chance; those that are asked for happen. */
extern void chaos_none(void);

/* faults.c: cuts a host off, with the follower that it is connected to. */
extern void chaos_cut_rack(Host *h);

/* loop.c: a worker is killed then. */
extern void chaos_kill_worker(Host *h, Time at);

/* A server that is out comes back then. */
extern void chaos_heal(int server, Time at);

extern Time chaos_due(void);
extern void chaos_step(void);

/* When the faults stop */
extern Time chaos_end(void);

/* They stop: all is mended, and nobody asks for anything new. */
extern void chaos_calm(void);

#endif							/* SIM_CHAOS_H */
