/*
 * check.h
 *	  The invariants of the core, as code: for tests and simulations.
 */
#ifndef ZKL_CORE_CHECK_H
#define ZKL_CORE_CHECK_H

#include "core/state.h"

/* Names an invariant that does not hold, or NULL. */
extern const char *zkl_check_all(const ZklManager *m);

#endif							/* ZKL_CORE_CHECK_H */
