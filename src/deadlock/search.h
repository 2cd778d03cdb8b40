/*
 * search.h
 *	  What some waits of ours wait for, and what that waits for, and so on.
 */
#ifndef ZKL_DEADLOCK_SEARCH_H
#define ZKL_DEADLOCK_SEARCH_H

#include "deadlock/deadlock_state.h"

/* ---- search ---- */

extern void zkl_search_init_all(ZklDeadlock *d);

/* Begins a search, if one is wanted, and goes on with it. */
extern void zkl_search_send(ZklDeadlock *d);

/* The answer to the listing of all publications ("good": it tells something) */
extern void zkl_search_listed(ZklDeadlock *d, const ZklOp *op,
							  const ZklReply *reply, bool good);

/* The connection is gone: it begins again.  Also at the end of a manager. */
extern void zkl_search_stop(ZklDeadlock *d);

#endif							/* ZKL_DEADLOCK_SEARCH_H */
