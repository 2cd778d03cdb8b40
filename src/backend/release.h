/*
 * release.h
 *	  Releasing locks by call, before they end by themselves.
 */
#ifndef ZKL_BACKEND_RELEASE_H
#define ZKL_BACKEND_RELEASE_H

#include "backend/hold.h"
#include "shared/slot.h"

/*
 * Releases a lock of session lifetime, once.  False, with a warning, if it is
 * not held, or was lost.
 */
extern bool zkl_release_lock(const ZklTarget *lock, ZklLockMode mode);

/*
 * Releases one hold, however often it was acquired.  False, with a warning: it
 * was lost, or may have been.
 */
extern bool zkl_release_hold(ZklHold *hold);

/* Releases all locks of session lifetime, however often they were acquired. */
extern void zkl_release_all(void);

/*
 * Ends the hold on a lock, however often it was acquired, without a check or a
 * word; for what gives up while it acquires something more.  Does nothing if it
 * is not held; cannot fail.
 */
extern void zkl_release_quietly(const ZklTarget *lock, ZklLockMode mode,
								ZklLifetime lifetime);

#endif							/* ZKL_BACKEND_RELEASE_H */
