/*
 * semaphore.h
 *	  Semaphores: their permits, and what stands in ZooKeeper about one as a
 *	  whole.
 *
 * Curator calls a permit a lease.  Below the semaphore's directory, "leases" has
 * a znode for each permit, and "locks" is a mutex, the guard: a client that
 * acquires permits holds the guard while it makes their znodes and waits until
 * they all are among the first "max".  So if several clients want
 * several permits each, one of them gets all of its own first.  The maximum
 * itself is kept by the order of the permits alone (core/decide.h).
 */
#ifndef ZKL_RECIPES_SEMAPHORE_H
#define ZKL_RECIPES_SEMAPHORE_H

#include "backend/acquire.h"
#include "backend/target.h"
#include "backend/wait.h"
#include "shared/slot.h"

/* ---- maximum ---- */

/*
 * The maximum of a semaphore, which all zklock servers share, and how many permits
 * there are.
 *
 * All raise an error if ZooKeeper refuses an answer or cannot be reached in
 * time: by the deadlines of the call, if given.
 */

/* The maximum that such data of the semaphore's directory records; 0: none. */
extern int	zkl_maximum_parse(const char *data, Size size);

/* The maximum recorded in the semaphore's directory; 0: none is. */
extern int	zkl_maximum_recorded(const ZklTarget *directory);

/* ---- semaphore ---- */

/*
 * Semaphores: several permits of one name, in the layout of Curator's
 * InterProcessSemaphoreV2.
 */

typedef struct ZklSemaphoreRequest
{
	const text *path;
	int			max;			/* these two: at least 1 */
	int			permits;
	ZklLifetime lifetime;
	bool		is_try;			/* false is an answer, even if this session
								 * holds the permits that it waits for */
	int64		timeout_ms;		/* or ZKL_FOREVER */
} ZklSemaphoreRequest;

/*
 * Acquires permits, all or none, in addition to those that are held.  False: the
 * timeout ended.  *token is the highest of their fencing tokens.  Error 22023
 * if the semaphore has a different maximum and some client holds a permit; 40P01 if
 * the call would wait for permits that this session itself holds.
 */
extern bool zkl_semaphore_acquire(const ZklSemaphoreRequest *call,
								  int64 *token);

/*
 * Releases permits of session lifetime, those acquired last.  False, with a
 * warning: fewer are held, and none was released; or one was lost.
 */
extern bool zkl_semaphore_release(const text *path, int permits);

/*
 * The highest fencing token of the permits held of the semaphore that has a
 * lock's name.  False: none is held.
 */
extern bool zkl_semaphore_token(const ZklTarget *lock, int64 *token);

/* The same as zkl_held_assert_lock, for these permits */
extern bool zkl_semaphore_assert(const ZklTarget *lock, int64 *left_ms);

#endif							/* ZKL_RECIPES_SEMAPHORE_H */
