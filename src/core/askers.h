/*
 * askers.h
 *	  The servers that have asked for the word of a node of ours, and whether we are
 *	  to ask others; see words.c.
 *
 * Has all that the core writes to ZklAskers and ZklLock.asks_due, which are its part's.
 */
#ifndef ZKL_CORE_ASKERS_H
#define ZKL_CORE_ASKERS_H

#include <string.h>

#include "core/state.h"

/* Something is new: a listing, another request waits first, or there are peers. */
static inline void
zkl_askers_ask_again(ZklLock *lock)
{
	lock->asks_due = true;
}

static inline void
zkl_askers_asked(ZklLock *lock)
{
	lock->asks_due = false;
}

/* Nobody has asked for r's node. */
static inline void
zkl_askers_init(ZklRequest *r)
{
	r->askers.n = 0;
	r->askers.over = false;
}

/* Whether anybody has; then somebody waits for it to go. */
static inline bool
zkl_askers_has_any(const ZklRequest *r)
{
	return r->askers.n > 0 && !ZKL_MUTANT(ASKED_IS_SOLITARY);
}

/*
 * A server asks for the first of its requests that waits: another ask is newer.  If
 * there are too many servers, the one that was first to ask goes: it may be no more.
 */
static inline void
zkl_askers_add(ZklRequest *r, const ZklPeerMessage *ask)
{
	uint32_t	i = 0;

	ZKL_ASSERT(r->askers.n <= ZKL_MAX_ASKERS);
	while (i < r->askers.n && r->askers.all[i].session != ask->session)
		i++;
	if (i == ZKL_MAX_ASKERS)
	{
		i--;
		memmove(r->askers.all, r->askers.all + 1, i * sizeof(*r->askers.all));
	}
	r->askers.all[i] = *ask;
	if (i == r->askers.n)
		r->askers.n++;
}

/* The word may be said from now on. */
static inline void
zkl_askers_set_over(ZklRequest *r)
{
	r->askers.over = true;
}

#endif							/* ZKL_CORE_ASKERS_H */
