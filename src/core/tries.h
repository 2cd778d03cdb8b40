/*
 * tries.h
 *	  The tries that wait for a look at their lock's directory; see probe.c.
 *
 * Has all that the core writes to ZklTries and to the link of a request in it, which are
 * its part's.
 */
#ifndef ZKL_CORE_TRIES_H
#define ZKL_CORE_TRIES_H

#include "core/state.h"

static inline void
zkl_tries_add(ZklLock *lock, ZklRequest *r)
{
	zkl_list_append(&lock->tries.all, &r->trying);
}

/* Does nothing if r waits for no look. */
static inline void
zkl_tries_remove(ZklRequest *r)
{
	zkl_list_remove(&r->trying);
}

/* The look is sent; the sync ahead of it was refused; its answer is over. */
static inline void
zkl_tries_look_sent(ZklLock *lock)
{
	lock->tries.sent = true;
	lock->tries.stale = false;
}

static inline void
zkl_tries_look_stale(ZklLock *lock)
{
	lock->tries.stale = true;
}

/* Those that were submitted until then wait for what a node in their way says. */
static inline void
zkl_tries_wait_for_mark(ZklLock *lock, uint64_t until)
{
	lock->tries.until = until;
	lock->tries.sent = true;
}

static inline void
zkl_tries_look_over(ZklLock *lock)
{
	lock->tries.sent = false;
}

#endif							/* ZKL_CORE_TRIES_H */
