/*
 * lifetime.h
 *	  Acquiring and releasing locks, and when they end by themselves.
 */
#ifndef ZKL_LIFETIME_H
#define ZKL_LIFETIME_H

#include "hold.h"

/* Registers callbacks and hooks; called once, while preloading. */
extern void zkl_lifetime_init(void);

/*
 * Acquires n locks for their lifetime, or counts those once more that are held:
 * then the later times of their bounds and of the asks' count; all or nothing.
 * Siblings are filled in here; see zkl_ask_locks for the rest.  False: a try was
 * refused.  tokens[] are the fencing tokens.
 */
extern bool zkl_lifetime_acquire(ZklAsk *asks, int n, int64 *tokens);

/*
 * Ends a hold of transaction lifetime that has just begun, for one who finds
 * that he has no need of it.
 */
extern void zkl_lifetime_give_back(const ZklTarget *lock, ZklLockMode mode);

/*
 * Releases a lock of session lifetime, once.  False, with a warning, if it is
 * not held, or was lost.
 */
extern bool zkl_lifetime_unlock(const ZklTarget *lock, ZklLockMode mode);

/*
 * Ends the hold on a lock of session lifetime, however often it was acquired,
 * without a check or a word; for what gives up while it acquires something
 * more.  Does nothing if it is not held; cannot fail.
 */
extern void zkl_lifetime_end(const ZklTarget *lock, ZklLockMode mode);

/*
 * Of what holds several at once: what each call that acquires begins with, and
 * the release of one hold.  False, with a warning: it was lost, or may have
 * been.
 */
extern void zkl_lifetime_begin(void);
extern bool zkl_lifetime_release(ZklHold *hold);

/* Releases all locks of session lifetime, however often they were acquired. */
extern void zkl_lifetime_unlock_all(void);

/* The fencing token of a lock.  False: it is not held. */
extern bool zkl_lifetime_token(const ZklTarget *lock, int64 *token);

#endif							/* ZKL_LIFETIME_H */
