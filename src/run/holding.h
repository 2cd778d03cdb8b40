/*
 * holding.h
 *	  The reservation that is zklock-run's lock, and for how long it is sure.
 */
#ifndef ZKL_RUN_HOLDING_H
#define ZKL_RUN_HOLDING_H

#include <stdbool.h>
#include <stdint.h>

#include "run/options.h"

/* Waits for the lock, and reserves it; or leaves. */
extern void zkl_holding_reserve(const ZklRunOptions *options);

/* Right ahead of the program: sets the guard's deadlines, or leaves. */
extern void zkl_holding_prove(void);

extern const char *zkl_holding_token(void);

/* Enforces the deadlines, renews the lock when it is time, and waits for anything. */
extern void zkl_holding_keep(void);

/* From then on the program and all that it has started are ended. */
extern void zkl_holding_limit(int64_t until);

/* Whether that time, or --at-most, has come */
extern bool zkl_holding_is_limited(int64_t now);

/* Why the lock could not be kept, as far as is known */
extern const char *zkl_holding_trouble(void);

/* Between these, another process may keep the lock. */
extern void zkl_holding_pause(void);
extern void zkl_holding_resume(void);

#endif							/* ZKL_RUN_HOLDING_H */
