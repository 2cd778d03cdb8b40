/*
 * members.c
 *	  The children of a barrier: its members, and "ready".
 *
 * Owns how they are told apart, and how "ready" comes and goes.  Run by
 * backends.  Takes no locks; waits for errands only.
 *
 * Must not know which members enter or leave, nor when.
 *
 * As Curator counts them, all children but "ready" are members.
 *
 * "ready" must stay while a member is in that may not have seen it.  A listing
 * cannot promise that: behind it, others may enter, start the next round, and
 * leave.  No delete can name the "ready" that was listed, as its version is 0
 * each time.  So the barrier's directory is deleted in the same transaction:
 * ZooKeeper refuses that as long as there is any other child, and no member is
 * without its znode.  However late such a delete arrives, it can only end a round
 * without members.
 */
#include "postgres.h"

#include "recipes/members.h"

#define READY	"ready"

static bool
is_ready_node(const char *name)
{
	return strcmp(name, READY) == 0;
}

static bool
is_own_member(const char *own, const char *name)
{
	return own[0] != '\0' && strncmp(name, own, strlen(own)) == 0;
}

void
zkl_members_count(const ZklChildren *children, const char *own,
				  ZklMembers *members)
{
	const char *lowest = NULL;
	const char *name = NULL;

	memset(members, 0, sizeof(*members));
	while ((name = zkl_children_next(children, name)) != NULL)
	{
		if (is_ready_node(name))
		{
			members->is_ready = true;
			continue;
		}
		members->count++;
		if (is_own_member(own, name))
			members->has_us = true;
		if (lowest == NULL || strcmp(name, lowest) < 0)
			lowest = name;
	}
	members->is_first = lowest != NULL && is_own_member(own, lowest);
}

static bool
is_listed(const ZklChildren *children, const char *name)
{
	const char *child = NULL;

	while ((child = zkl_children_next(children, child)) != NULL)
	{
		if (strcmp(child, name) == 0)
			return true;
	}
	return false;
}

List *
zkl_members_others(const ZklChildren *children, const char *own)
{
	List	   *names = NIL;
	const char *name = NULL;

	while ((name = zkl_children_next(children, name)) != NULL)
	{
		if (!is_ready_node(name) && !is_own_member(own, name))
			names = lappend(names, pstrdup(name));
	}
	return names;
}

List *
zkl_members_left(const ZklChildren *children, List *names)
{
	ListCell   *cell;

	foreach(cell, names)
	{
		if (!is_listed(children, lfirst(cell)))
			names = foreach_delete_current(names, cell);
	}
	return names;
}

bool
zkl_members_set_ready(ZklChildren *children)
{
	return zkl_children_write(children, ZKL_ERRAND_CREATE, READY);
}

bool
zkl_members_clean_up(ZklChildren *children)
{
	ZklMembers	members;

	zkl_members_count(children, "", &members);
	return !members.is_ready || members.count > 0 ||
		zkl_children_delete_last(children, READY);
}
