/*
 * lifetime.h
 *	  When holds end by themselves, and what each call begins with.
 */
#ifndef ZKL_BACKEND_LIFETIME_H
#define ZKL_BACKEND_LIFETIME_H

#include "backend/hold.h"

/* Registers callbacks and hooks; called once, while preloading. */
extern void zkl_lifetime_init(void);

/*
 * Each call that releases something begins with this: error 55000 if zklock is
 * not loaded, 25000 in a parallel operation.
 */
extern void zkl_lifetime_check(void);

/* Likewise, for those that acquire: from then on holds end by themselves. */
extern void zkl_lifetime_begin(void);

/* Error 0A000 if "zklock.session_locks" is off, and this is such a lifetime. */
extern void zkl_lifetime_check_allowed(ZklLifetime lifetime);

#endif							/* ZKL_BACKEND_LIFETIME_H */
