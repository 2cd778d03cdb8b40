/*
 * lockstats.h
 *	  Cumulative statistics of locks, by name: zk_stat_locks.
 *
 * The worker adds what a request has counted when it frees the request's slot, and
 * before that what sessions have noted there in s_uncounted; backends only look.
 * If the table is full, the name that was counted least recently makes room.
 */
#ifndef ZKL_SHARED_LOCKSTATS_H
#define ZKL_SHARED_LOCKSTATS_H

#include "datatype/timestamp.h"
#include "znode/znode.h"

/* Times in µs */
typedef struct ZklLockstatsCounts
{
	int64		acquires;
	int64		waited;			/* of these, how many had to wait for others */
	int64		wait_time;		/* of all acquires, from request to grant */
	int64		longest_wait;
	int64		hold_time;
	int64		longest_hold;
	int64		timeouts;
	int64		denials;
	int64		losses;
	int64		deadlocks;		/* across servers */
} ZklLockstatsCounts;

typedef struct ZklLockstatsRow
{
	char		path[ZKL_MAX_NAME + 1]; /* UTF-8 */
	ZklLockstatsCounts counts;
} ZklLockstatsRow;

/* For control.c, which lays out the shared memory */
extern Size zkl_lockstats_size(void);
extern void zkl_lockstats_attach(void *memory);
extern void zkl_lockstats_init(void);

/*
 * Worker: adds counts to those of a name, whose first "length" bytes count.
 */
extern void zkl_lockstats_add(const char *path, int length,
							  const ZklLockstatsCounts *counts);

/*
 * Copies up to n rows, from the given one on; returns how many.  Rows that are
 * read by several calls are no snapshot.
 */
extern int	zkl_lockstats_read(int from, ZklLockstatsRow *rows, int n);

/* Since when they are counted, and how many names made room for others */
extern void zkl_lockstats_since(TimestampTz *since, int64 *evicted);

/* Forgets all of them. */
extern void zkl_lockstats_reset(void);

#endif							/* ZKL_SHARED_LOCKSTATS_H */
