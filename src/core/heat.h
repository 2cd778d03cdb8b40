/*
 * heat.h
 *	  Which locks are used here again and again.
 */
#ifndef ZKL_CORE_HEAT_H
#define ZKL_CORE_HEAT_H

#include "core/state.h"

/* There is a new request; a hold ends by its release. */
extern void zkl_heat_demanded(ZklManager *m, const ZklRequest *r);
extern void zkl_heat_released(ZklManager *m, const ZklRequest *r);

extern bool zkl_heat_is_hot(ZklManager *m, const ZklLock *lock);

/*
 * The lock was to be cached, and is no longer: whether somebody else wanted it,
 * and how often it was taken meanwhile.
 */
extern void zkl_heat_learn(ZklManager *m, const ZklLock *lock, bool wanted,
						   int64_t takes);

#endif							/* ZKL_CORE_HEAT_H */
