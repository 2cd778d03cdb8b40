/*
 * members.h
 *	  The children of a barrier: its members, and "ready".
 *
 * "own" is how the znode of our own member begins; empty: we have none.
 */
#ifndef ZKL_RECIPES_MEMBERS_H
#define ZKL_RECIPES_MEMBERS_H

#include "backend/errand.h"
#include "nodes/pg_list.h"

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
 * "lock_timeout", from now on.  Lives until zkl_members_end, or the end of the
 * transaction.
 */
extern void zkl_members_begin(ZklChildren *children, const ZklTarget *target,
							  int64 timeout_ms);
extern void zkl_members_end(ZklChildren *children);

/* What is left of the timeout, in ms, or ZKL_FOREVER */
extern int64 zkl_members_ms_left(const ZklChildren *children);

/*
 * Waits until the children are not as listed, and lists them; the first time,
 * or after zkl_members_forget, just lists them.  A directory that does not
 * exist has none.  False: the time is over, and they are as listed.  Error
 * 55P03 after "lock_timeout"; 08006 if ZooKeeper cannot be reached within the
 * timeout and "zklock.answer_timeout"; others as ZooKeeper answers.
 */
extern bool zkl_members_look(ZklChildren *children);
extern void zkl_members_forget(ZklChildren *children);

/* What a listing says */
typedef struct ZklMembers
{
	int			count;
	bool		is_ready;
	bool		has_us;
	bool		is_first;		/* our name is the lowest */
} ZklMembers;

extern void zkl_members_count(const ZklChildren *children, const char *own,
							  ZklMembers *members);

/* The members that are listed, but for us: a list of names */
extern List *zkl_members_others(const ZklChildren *children, const char *own);

/* Takes the members that are no longer listed out of such a list. */
extern List *zkl_members_left(const ZklChildren *children, List *names);

/*
 * Says that there are enough.  False: it is not known whether it is said, and
 * the next look just lists the children.
 */
extern bool zkl_members_set_ready(ZklChildren *children);

/*
 * Deletes "ready" if there is no member, by the listing and when ZooKeeper does it.
 * False: somebody has come, or it is not known what was done, and the next look
 * just lists the children.
 */
extern bool zkl_members_clean_up(ZklChildren *children);

#endif							/* ZKL_RECIPES_MEMBERS_H */
