/*
 * retry.h
 *	  When what ZooKeeper refused is tried again.
 */
#ifndef ZKL_CORE_RETRY_H
#define ZKL_CORE_RETRY_H

#include "core/state.h"

/* Whether something was refused that is to be tried again after stuck_until */
extern bool zkl_retry_is_stuck(const ZklManager *m);

/* Before something of that kind is noted */
extern void zkl_retry_later(ZklManager *m);

#endif							/* ZKL_CORE_RETRY_H */
