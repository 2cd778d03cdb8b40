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

/*
 * r was HOPED, or CACHEABLE and taken so often: it is neither any more.  wanted:
 * by another session, of whatever server.
 */
extern void zkl_cache_give_up(ZklManager *m, ZklRequest *r, bool wanted);
extern void zkl_cache_end(ZklManager *m, ZklRequest *r, bool wanted,
						  int64_t takes);

/* r, CACHEABLE, was in use at that time: says when to look again. */
extern void zkl_cache_used(ZklManager *m, ZklRequest *r, int64_t at);
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

extern bool zkl_cache_is_hot(ZklManager *m, const ZklLock *lock);

/*
 * The lock was to be cached, and is no longer: whether somebody else wanted it,
 * and how often it was taken meanwhile.
 */
extern void zkl_cache_learn(ZklManager *m, const ZklLock *lock, bool wanted,
							int64_t takes);

#endif							/* ZKL_CORE_CACHE_H */
