/*
 * run.h
 *	  Runs one simulation, and shows how it ended.
 */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "base.h"

/* False: it breaks a rule. */
extern bool run_input(const Input *input);
extern bool run_seed(uint64_t seed);

/* For so long, or until that is so. */
extern void run_until(Time end, bool (*enough) (void));

/* The faults stop: everything comes to rest. */
extern void run_calm(void);

/* A step that does not end breaks a rule. */
extern void run_limit_time(void);

/* Runs the last one once more, to show its last lines, the state, and the rule. */
extern void run_show_failure(void);
extern void run_show_rule(void);
extern void run_show_state(void);

/* Whether so many processes ended well */
extern bool wait_for_children(int n);

#endif							/* SIM_RUN_H */
