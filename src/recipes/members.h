/*
 * members.h
 *	  The children of a barrier: its members, and "ready".
 *
 * "own" is how the znode of our own member begins; empty: we have none.
 */
#ifndef ZKL_RECIPES_MEMBERS_H
#define ZKL_RECIPES_MEMBERS_H

#include "nodes/pg_list.h"
#include "recipes/children.h"

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
