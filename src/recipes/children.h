/*
 * children.h
 *	  The children of a znode, for recipes that wait for them to change.
 */
#ifndef ZKL_RECIPES_CHILDREN_H
#define ZKL_RECIPES_CHILDREN_H

#include "backend/errand.h"

/* A listing, and how long to wait for another; times in ms of boottime.h */
typedef struct ZklChildren
{
	ZklTarget	target;			/* its directory is listed */
	int64		until;			/* ZKL_FOREVER: no matter how long */
	int64		lock_until;		/* likewise, by "lock_timeout" */
	uint64		known;			/* fingerprint of the listing */
	bool		takes;			/* see ZklDeadlines; off at first */
	ZklErrand  *listing;
} ZklChildren;

/*
 * Nothing is listed yet.  timeout_ms is for all looks together, and so is
 * "lock_timeout", from now on.  Lives until zkl_children_end, or the end of the
 * transaction.
 */
extern void zkl_children_begin(ZklChildren *children, const ZklTarget *target,
							   int64 timeout_ms);
extern void zkl_children_end(ZklChildren *children);

/* What is left of the timeout, in ms, or ZKL_FOREVER */
extern int64 zkl_children_ms_left(const ZklChildren *children);

/*
 * Waits until the children are not as listed, and lists them; the first time,
 * or after zkl_children_forget, just lists them.  A directory that does not
 * exist has none.  False: the time is over, and they are as listed.  Error
 * 55P03 after "lock_timeout"; 08006 if ZooKeeper cannot be reached within the
 * timeout and "zklock.connect_timeout"; others as ZooKeeper answers.
 */
extern bool zkl_children_look(ZklChildren *children);
extern void zkl_children_forget(ZklChildren *children);

/*
 * The names that were listed, one after the other in no order: the first one for NULL;
 * NULL behind the last one.
 */
extern const char *zkl_children_next(const ZklChildren *children,
									 const char *name);

/*
 * Writes to a child: CREATE (persistent, empty) or DELETE.  True also if the
 * child exists, or does not exist, already.  False: whether it was done, or will
 * be, is not known, and the next look just lists the children.  Errors as
 * ZooKeeper answers.
 */
extern bool zkl_children_write(ZklChildren *children, ZklErrandKind kind,
							   const char *child);

/*
 * Deletes a child, and the directory with it, unless the directory has other
 * children.  True also if the child does not exist.  If the directory has data,
 * or we may not delete it, it stays, and the child is deleted even if there are
 * others.  False: there are others, or what was done, or will be, is not known,
 * and the next look just lists the children.  Errors as ZooKeeper answers.
 */
extern bool zkl_children_delete_last(ZklChildren *children, const char *child);

#endif							/* ZKL_RECIPES_CHILDREN_H */
