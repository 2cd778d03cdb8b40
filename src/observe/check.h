/*
 * check.h
 *	  The invariants of the core, as code: for tests and simulations.
 */
#ifndef ZKL_OBSERVE_CHECK_H
#define ZKL_OBSERVE_CHECK_H

#include "core/manager.h"

/* Names an invariant that does not hold, or NULL.  Walks everything. */
extern const char *zkl_check_all(const ZklManager *m);

#endif							/* ZKL_OBSERVE_CHECK_H */
