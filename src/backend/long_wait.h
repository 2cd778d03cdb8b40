/*
 * long_wait.h
 *	  What a session does while it waits for a lock for longer than
 *	  "deadlock_timeout".
 */
#ifndef ZKL_BACKEND_LONG_WAIT_H
#define ZKL_BACKEND_LONG_WAIT_H

#include "backend/stall.h"

/* A wait; times of zkl_wait_clock() */
typedef struct ZklLongWait
{
	int			slotno;
	const char *name;			/* of the lock, for the client */
	int64		start;
	int64		due;			/* when to call zkl_long_wait_act; ZKL_NEVER */

	int64		look;			/* the next one, if it has patience */
	int64		since;			/* see shared/deadlocks.h */

	int64		report;			/* for "log_lock_waits": the next step */
	bool		reported;		/* the log says that it waits */
	ZklAheadQuestion ahead;		/* the question for it */
} ZklLongWait;

/*
 * A wait begins.  It counts only if it is for the grant of a lock; the patience
 * of its request tells whether it takes part in deadlocks across servers.
 */
extern void zkl_long_wait_begin(ZklLongWait *wait, int slotno,
								const char *name);

/*
 * Once it is due, or the latch is set.  Returns whether it did something, which can
 * have reset the latch.
 */
extern bool zkl_long_wait_act(ZklLongWait *wait);

/* The wait is over, without an error. */
extern void zkl_long_wait_end(ZklLongWait *wait);

#endif							/* ZKL_BACKEND_LONG_WAIT_H */
