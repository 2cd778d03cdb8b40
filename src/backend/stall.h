/*
 * stall.h
 *	  Whether a wait is for ZooKeeper, or for other sessions that have the lock.
 */
#ifndef ZKL_BACKEND_STALL_H
#define ZKL_BACKEND_STALL_H

#include "shared/compat.h"

/*
 * For how many µs the wait for a slot has been one for ZooKeeper; -1: it is one
 * for other sessions; PG_INT64_MAX: all of its time, as far as is known.
 */
extern int64 zkl_stall_time(int slotno);

/* A NOTICE that says so; both of these take a name that the client can show. */
extern void zkl_stall_notice(const char *name);

/*
 * Raises error 55P03, whose detail tells what the wait was for.  "timeout_ms" is
 * that of the call, or 0: it was "lock_timeout".
 */
pg_noreturn extern void zkl_stall_raise_lock_timeout(int slotno,
													 const char *name,
													 int64 timeout_ms);

#endif							/* ZKL_BACKEND_STALL_H */
