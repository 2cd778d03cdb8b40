/*
 * held.h
 *	  What a call does with locks that the session holds: it releases them, extends
 *	  their time, or asserts them.
 */
#ifndef ZKL_BACKEND_HELD_H
#define ZKL_BACKEND_HELD_H

#include "backend/hold.h"
#include "backend/target.h"

/*
 * Releases a lock of session lifetime, once.  False, with a warning, if it is
 * not held, or was lost.
 */
extern bool zkl_held_release_lock(const ZklTarget *lock, ZklLockMode mode);

/*
 * Releases one hold, however often it was acquired.  False, with a warning: it
 * was lost, or may have been.
 */
extern bool zkl_held_release(ZklHold *hold);

/*
 * For the call that took it, if that comes to nothing: the hold counts once less, or
 * ends.  Cannot fail.
 */
extern void zkl_held_abandon(const ZklTarget *lock, ZklLockMode mode,
							 ZklLifetime lifetime);

/*
 * Releases all locks of session lifetime whose names in UTF-8 begin so, however often
 * they were acquired; but none that a call under way took for itself.
 */
extern void zkl_held_release_all(const char *prefix);

/*
 * From now on each hold of this backend on the lock may last for so many ms; 0:
 * without limit.  False, with a warning, if there is none; an error if one was
 * lost.
 */
extern bool zkl_held_extend(const ZklTarget *lock, int64 at_most_ms);

/*
 * For how many ms, at least one, a hold is surely good from now on: until its
 * lease or its at_most ends.  Error 40001 if it was lost, or its lease has ended.
 * Waits for nothing.
 */
extern int64 zkl_held_assert(ZklHold *hold);

/*
 * The same for all holds on a lock; *left_ms becomes the least of that time and of
 * what it was before.  False: it is not held.
 */
extern bool zkl_held_assert_lock(const ZklTarget *lock, int64 *left_ms);

#endif							/* ZKL_BACKEND_HELD_H */
