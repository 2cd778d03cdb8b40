/*
 * semaphore.h
 *	  Semaphores: several leases of one name, in the layout of Curator's
 *	  InterProcessSemaphoreV2.
 *
 * Below the semaphore's directory, "leases" has a znode for each lease, and
 * "locks" is a mutex, the guard: whoever acquires holds it while he makes his
 * leases and waits until they all are among the first "max".  So those who
 * want several leases do not each get some of them.  The maximum itself is
 * kept by the order of the leases alone (core/permits.h).
 */
#ifndef ZKL_RECIPES_SEMAPHORE_H
#define ZKL_RECIPES_SEMAPHORE_H

#include "backend/request.h"
#include "shared/slot.h"

typedef struct ZklSemaphoreRequest
{
	const text *path;
	int			max;			/* these two: at least 1 */
	int			leases;
	ZklLifetime lifetime;
	bool		is_try;
	int64		timeout_ms;		/* of a try */
} ZklSemaphoreRequest;

/*
 * Acquires leases, all or none, on top of those that are held.  False: a try
 * was refused.  *token is the greatest of their fencing tokens.  Error 22023
 * if the semaphore has another maximum, and somebody holds a lease; 40P01 if it
 * would wait for what this session holds itself.
 */
extern bool zkl_semaphore_acquire(const ZklSemaphoreRequest *ask, int64 *token);

/*
 * Releases leases of session lifetime, those acquired last.  False, with a
 * warning: fewer are held, and none was released; or one was lost.
 */
extern bool zkl_semaphore_release(const text *path, int leases);

/*
 * The greatest fencing token of the leases that are held of the semaphore of a
 * lock's name.  False: there is none.
 */
extern bool zkl_semaphore_token(const ZklTarget *lock, int64 *token);

#endif							/* ZKL_RECIPES_SEMAPHORE_H */
