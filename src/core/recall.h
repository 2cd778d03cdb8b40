/*
 * recall.h
 *	  The end of caching: whose a lock is that sessions took in shared memory.
 */
#ifndef ZKL_CORE_RECALL_H
#define ZKL_CORE_RECALL_H

#include "core/state.h"

/* Why a lock is cached no longer */
typedef enum ZklRecallCause
{
	ZKL_RECALL_DEMANDED,		/* another session of this server wants it */
	ZKL_RECALL_WANTED,			/* another client does */
	ZKL_RECALL_OVER				/* any other reason */
} ZklRecallCause;

/*
 * Whatever happens to r, or is to be told of it: from now on what the core
 * believes of its owner stays right.  If r has no holder, it is released.
 */
extern void zkl_recall_request(ZklManager *m, ZklRequest *r,
							   ZklRecallCause cause);

/* The same for the request of a lock that may be cached, if there is one. */
extern void zkl_recall_lock(ZklManager *m, const ZklLock *lock,
							ZklRecallCause cause);
extern void zkl_recall_all(ZklManager *m);

/* Recalls what these owners may hold, as far as the core or the slots say. */
extern void zkl_recall_owners(ZklManager *m, uint64_t owner,
							  const uint64_t *others, size_t n);

/* Recalls what was not used for so long. */
extern void zkl_recall_idle(ZklManager *m);

#endif							/* ZKL_CORE_RECALL_H */
