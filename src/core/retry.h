/*
 * retry.h
 *	  When to try refused work again.
 */
#ifndef ZKL_CORE_RETRY_H
#define ZKL_CORE_RETRY_H

#include "core/state.h"

/* Whether any refused work waits for stuck_until */
extern bool zkl_retry_is_stuck(const ZklManager *m);

/* Call this before noting refused work. */
extern void zkl_retry_later(ZklManager *m);

#endif							/* ZKL_CORE_RETRY_H */
