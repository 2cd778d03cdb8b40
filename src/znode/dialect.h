/*
 * dialect.h
 *	  The dialects, and which one a lock has, by the beginning of its name.
 *
 * A list of dialects is text such as "/jobs=curator_mutex, /py=kazoo".  An
 * entry is for the lock of that name and for all below it; "/" is for all.
 * The longest that fits counts; where none fits it is curator_rw.
 */
#ifndef ZKL_ZNODE_DIALECT_H
#define ZKL_ZNODE_DIALECT_H

#include <stdbool.h>

/* Which clients a lock is shared with */
typedef enum ZklDialect
{
	ZKL_DIALECT_CURATOR_RW = 0, /* Curator's InterProcessReadWriteLock */
	ZKL_DIALECT_CURATOR_MUTEX,	/* Curator's InterProcessMutex, go-zookeeper */
	ZKL_DIALECT_KAZOO,			/* kazoo's Lock, ReadLock and WriteLock */

	/* not to be chosen for a lock: what these are for fixes them */
	ZKL_DIALECT_LATCH,			/* Curator's LeaderLatch */
	ZKL_DIALECT_PERMIT,			/* of Curator's InterProcessSemaphoreV2 */
	ZKL_DIALECT_MEMBER			/* in Curator's DistributedDoubleBarrier */
} ZklDialect;

#define ZKL_LOCK_DIALECTS	3	/* the first ones */
#define ZKL_DIALECTS		6

/* Whether locks can be shared in it */
static inline bool
zkl_dialect_shares(ZklDialect dialect)
{
	return dialect == ZKL_DIALECT_CURATOR_RW ||
		dialect == ZKL_DIALECT_KAZOO || dialect == ZKL_DIALECT_MEMBER;
}

/*
 * Whether the data of its znodes is zklock's own, so that a mark in it means
 * something.  In a latch it is the participant's.
 */
static inline bool
zkl_dialect_marks(ZklDialect dialect)
{
	return dialect != ZKL_DIALECT_LATCH;
}

#define ZKL_MAX_DIALECTS	1000	/* bytes of a list */

/* NULL if the list is good, else the broken rule as a full sentence. */
extern const char *zkl_dialect_check_list(const char *list);

/* The dialect of a lock, by a list that is good. */
extern ZklDialect zkl_dialect_find(const char *list, const char *name);

/*
 * Writes a good list in the one form that all lists with the same meaning have:
 * in the order of the paths, without spaces, and without entries that change
 * nothing.  It gets no longer; buf has ZKL_MAX_DIALECTS + 1 bytes.
 */
extern void zkl_dialect_normalize(const char *list, char *buf);

/*
 * Finds the paths from which on names have another dialect in list b than in
 * list a, in the order of the paths: "path" is the last one that was found, or
 * empty, and becomes the next one.  It has ZKL_MAX_NAME + 1 bytes.  False: there
 * are no more.  All names below such a path have its two dialects, up to the next
 * path that either list has an entry for.
 */
extern bool zkl_dialect_next_change(const char *a, const char *b, char *path);

/* Whether a list has an entry for just this path */
extern bool zkl_dialect_has_entry(const char *list, const char *path);

/* As it is written in a list; of one that a list can have. */
extern const char *zkl_dialect_name(ZklDialect dialect);

#endif							/* ZKL_ZNODE_DIALECT_H */
