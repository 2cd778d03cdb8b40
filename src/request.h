/*
 * request.h
 *	  Submitting a request to the worker, waiting for its answer, cancelling.
 */
#ifndef ZKL_REQUEST_H
#define ZKL_REQUEST_H

#include "shmem.h"

/* A try's timeout that never passes */
#define ZKL_FOREVER		PG_INT64_MAX

/* What a backend asks for */
typedef struct ZklAsk
{
	const char *path;			/* the lock's name in UTF-8, checked */
	const char *name;			/* the same as the database writes it */
	ZklLockMode mode;
	ZklLifetime lifetime;
	bool		is_try;
	int64		timeout_ms;		/* of a try */
	int			sibling;		/* slot of a hold on the same lock, or -1 */
} ZklAsk;

typedef struct ZklGrant
{
	int			slotno;			/* now the caller's to release */
	int64		token;
	uint32		generation;		/* of the ZooKeeper session it is good for */
} ZklGrant;

/*
 * Asks for a lock and waits for the answer.  True: *grant tells what was
 * granted.  False: a try's time passed while another holds the lock.  All else
 * (cancel, timeouts, no ZooKeeper, refusals) is an error, and whatever comes
 * of the request is released.
 */
extern bool zkl_ask_lock(const ZklAsk *ask, ZklGrant *grant);

/*
 * The same for a lock that is held, in a slot of the caller's: returns at once
 * if the lease is good or the lock lost, else waits until it is either.
 */
extern void zkl_ask_again(const ZklAsk *ask, int slotno);

/*
 * Asks for the queue of a lock, to be written into a DSM segment.  Returns 0,
 * or the size of the segment that it takes.
 */
extern Size zkl_ask_queue(const char *path, const char *name,
						  dsm_handle segment);

/*
 * Removes the head of a lock's queue, whoever owns it.  Waits for the holder
 * to lose it properly, its session timeout at most.  False: the queue is
 * empty.
 */
extern bool zkl_ask_break(const char *path, const char *name);

#endif							/* ZKL_REQUEST_H */
