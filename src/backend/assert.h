/*
 * assert.h
 *	  Asking whether this session still has what it was granted.
 */
#ifndef ZKL_BACKEND_ASSERT_H
#define ZKL_BACKEND_ASSERT_H

#include "backend/hold.h"

/*
 * For how many ms, at least one, a hold is surely good from now on: until its
 * lease or its at_most ends.  Error 40001 if it was lost, or its lease has ended.
 * Waits for nothing.
 */
extern int64 zkl_assert_hold(ZklHold *hold);

/*
 * The same for all holds on a lock; *left_ms becomes the least of that time and of
 * what it was before.  False: it is not held.
 */
extern bool zkl_assert_lock(const ZklTarget *lock, int64 *left_ms);

#endif							/* ZKL_BACKEND_ASSERT_H */
