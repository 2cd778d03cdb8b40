/*
 * cache.h
 *	  Locks that stay on the server that uses them.
 */
#ifndef ZKL_CORE_CACHE_H
#define ZKL_CORE_CACHE_H

#include "core/state.h"

extern void zkl_cache_init_all(ZklManager *m);

/* 0: nothing is cached from now on. */
extern void zkl_cache_set_time(ZklManager *m, int64_t time);

/* ---- a request and its node ---- */

/*
 * The node of r is about to be created: decides whether it gets the mark, and its
 * data with that, in a buffer with room for ZKL_NODE_DATA_CACHED bytes more.
 */
extern void zkl_cache_choose(ZklManager *m, ZklRequest *r);
extern size_t zkl_cache_mark(const ZklRequest *r, char *data, size_t length);

/* r holds nothing any more, or its node is gone or about to go. */
extern void zkl_cache_forget(ZklManager *m, ZklRequest *r);

/* ---- for recalls ---- */

/* r, CACHEABLE, was in use at that time: says when to look again. */
extern int64_t zkl_cache_timer(const ZklManager *m);

/* ---- the directory, and what is read ---- */

/*
 * True, of these three: what may be cached is to be recalled.
 *
 * A listing came, with so many contenders that are no requests of ours.
 */
extern bool zkl_cache_listed(ZklManager *m, ZklLock *lock, uint64_t order,
							 size_t others);

/* An event of the lock's directory came: the watch on the children may be gone. */
extern bool zkl_cache_directory_event(ZklManager *m, ZklLock *lock);

/* The node of r was read. */
extern bool zkl_cache_read(ZklRequest *r, const ZklReply *reply);

/* At the end of all decisions: offers the holds that can be cached. */
extern void zkl_cache_offer(ZklManager *m);

/* There is a new request; a hold ends by its release. */
extern void zkl_cache_demanded(ZklManager *m, const ZklRequest *r);
extern void zkl_cache_released(ZklManager *m, const ZklRequest *r);

/* ---- recall ---- */

/* The end of caching: whose a lock is that sessions took in shared memory. */

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

#endif							/* ZKL_CORE_CACHE_H */
