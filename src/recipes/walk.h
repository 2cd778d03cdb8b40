/*
 * walk.h
 *	  All contenders of all locks below a path, of all servers and clients.
 */
#ifndef ZKL_RECIPES_WALK_H
#define ZKL_RECIPES_WALK_H

#include "backend/target.h"

typedef enum ZklWalkMode
{
	ZKL_WALK_EXCLUSIVE,
	ZKL_WALK_SHARED,
	ZKL_WALK_LEADER,
	ZKL_WALK_PERMIT,
	ZKL_WALK_MEMBER
} ZklWalkMode;

/* A contender; or, if it has no name, a directory that could not be read */
typedef struct ZklWalkEntry
{
	const char *path;			/* of the lock, without a NUL behind it */
	int			path_length;
	const char *directory;		/* of the znode, below the root */
	const char *name;			/* of the znode, or NULL */
	const char *dialect;
	ZklWalkMode mode;
	int			position;
	bool		granted;
	int32		rc;				/* ZooKeeper's result code */
	const char *data;			/* these four only if that is ZKL_RC_OK */
	uint32		length;
	int64		session_id;
	int64		ctime_ms;
} ZklWalkEntry;

/*
 * Calls fn for each contender below a directory, whose path is empty for the root.
 * A lock's contenders come one after the other, in the order of its queue.
 * Znodes that vanish meanwhile are left out.  Error 08006 if ZooKeeper does not
 * answer.
 */
extern void zkl_walk(const ZklTarget *from,
					 void (*fn) (void *arg, const ZklWalkEntry *entry),
					 void *arg);

#endif							/* ZKL_RECIPES_WALK_H */
