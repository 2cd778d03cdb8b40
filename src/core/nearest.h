/*
 * nearest.h
 *	  What is ahead of a request that waits, as far as it is known.
 */
#ifndef ZKL_CORE_NEAREST_H
#define ZKL_CORE_NEAREST_H

#include "core/state.h"

/* As zkl_manager_nearest */
extern bool zkl_nearest_find(const ZklRequest *r, ZklNearest *nearest);

#endif							/* ZKL_CORE_NEAREST_H */
