/*
 * mutants.h
 *	  Simulations of cores with a deliberate bug (mutant_list.h).
 */
#ifndef SIM_MUTANTS_H
#define SIM_MUTANTS_H

#include <stdbool.h>
#include <stdint.h>

/* Builds a bug in, by its name. */
extern void mutant_choose(const char *name);

/*
 * Tries all of them, one after the other, with these seeds until one breaks a
 * rule, and prints a table.  Returns whether each was caught.
 */
extern bool mutants_try(uint64_t first, uint64_t last, int jobs);

#endif							/* SIM_MUTANTS_H */
