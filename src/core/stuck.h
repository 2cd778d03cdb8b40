/*
 * stuck.h
 *	  When to try refused work again.
 */
#ifndef ZKL_CORE_STUCK_H
#define ZKL_CORE_STUCK_H

#include "core/state.h"

/* Whether any refused work waits for stuck_until */
extern bool zkl_stuck_any(const ZklManager *m);

/* Call this before noting refused work. */
extern void zkl_stuck_begin(ZklManager *m);

#endif							/* ZKL_CORE_STUCK_H */
