/*
 * stall.h
 *	  Whether a wait is for ZooKeeper, for the worker, or for other sessions that
 *	  have the lock.
 */
#ifndef ZKL_BACKEND_STALL_H
#define ZKL_BACKEND_STALL_H

#include "shared/compat.h"
#include "shared/slot.h"

/* In the place of a slot: the worker has yet to free one for the request. */
#define ZKL_NO_SLOT		(-1)

/*
 * For how many µs a slot has waited for ZooKeeper or the worker; -1: it waits
 * for other sessions; PG_INT64_MAX: all of its time, as far as is known.
 */
extern int64 zkl_stall_time(int slotno);

/*
 * Whether it waits for the worker, which has yet to look at it.  A worker that
 * runs looks at each request at once.
 */
extern bool zkl_stall_is_worker(int slotno);

/*
 * Whether it is a try that timed out and waits for a server that may have the lock
 * cached; then also copies the slot.
 */
extern bool zkl_stall_is_cached(int slotno, ZklSlot *slot);

/* Which wait event shows for what the slot waits now */
extern ZklWaitEvent zkl_stall_event(int slotno);

/* A NOTICE that says so; both of these take a name that the client can show. */
extern void zkl_stall_notice(int slotno, const char *name);

/* What a wait was for, in words for the client; NULL: nothing to be told */
typedef struct ZklStallReason
{
	const char *detail;
	const char *hint;
} ZklStallReason;

/*
 * Finds that out before the wait ends with an error: also, for a second at most, by
 * asking the worker.
 */
extern void zkl_stall_explain(int slotno, const char *name, ZklStallReason *reason);

/*
 * Gives the request up, and raises error 55P03, whose detail tells what the wait was
 * for.  "timeout_ms" is that of the call, or 0: it was "lock_timeout".
 */
pg_noreturn extern void zkl_stall_raise_lock_timeout(int slotno,
													 const char *name,
													 int64 timeout_ms);

#endif							/* ZKL_BACKEND_STALL_H */
