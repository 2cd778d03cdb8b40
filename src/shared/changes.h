/*
 * changes.h
 *	  Counts the changes of what the worker writes and backends copy.
 *
 * With a lock, a backend that is stopped while it copies would stop the worker, and
 * so end the lease.  Instead, the worker counts its changes, and the number is odd
 * while it makes one.  A backend that sees another number behind its copy than
 * before copies again.
 *
 * If a worker ends in the middle of a change, backends wait until the next worker
 * has made one.
 */
#ifndef ZKL_SHARED_CHANGES_H
#define ZKL_SHARED_CHANGES_H

#include "miscadmin.h"
#include "port/atomics.h"

typedef pg_atomic_uint32 ZklChanges;

#define ZKL_CHANGES_PAUSE_US	100

/* ---- for the worker, around a change ---- */

static inline void
zkl_changes_begin(ZklChanges *changes)
{
	pg_atomic_write_u32(changes, pg_atomic_read_u32(changes) | 1);
	pg_write_barrier();
}

static inline void
zkl_changes_end(ZklChanges *changes)
{
	pg_write_barrier();
	pg_atomic_write_u32(changes, pg_atomic_read_u32(changes) + 1);
}

/* ---- for backends, around a copy ---- */

/* Waits for the end of a change, and may be interrupted. */
static inline uint32
zkl_changes_so_far(ZklChanges *changes)
{
	uint32		number;

	while ((number = pg_atomic_read_u32(changes)) % 2 == 1)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(ZKL_CHANGES_PAUSE_US);
	}
	pg_read_barrier();
	return number;
}

/* Whether the copy made since then is of no use */
static inline bool
zkl_changes_since(ZklChanges *changes, uint32 number)
{
	pg_read_barrier();
	return pg_atomic_read_u32(changes) != number;
}

#endif							/* ZKL_SHARED_CHANGES_H */
