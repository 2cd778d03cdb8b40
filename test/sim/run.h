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

/* Runs the last one once more, to show its last lines, the state, and the rule. */
extern void run_show_failure(void);
extern void run_show_rule(void);

/* Whether so many processes ended well */
extern bool wait_for_children(int n);

#endif							/* SIM_RUN_H */
