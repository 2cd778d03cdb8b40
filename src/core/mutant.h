/*
 * mutant.h
 *	  ZKL_MUTANT(bug) stands where a rule lives, and is false: see
 *	  test/sim/mutant_list.h.
 */
#ifndef ZKL_CORE_MUTANT_H
#define ZKL_CORE_MUTANT_H

#ifndef ZKL_MUTANT
#define ZKL_MUTANT(bug) 0
#endif

#endif							/* ZKL_CORE_MUTANT_H */
