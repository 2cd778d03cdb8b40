/*
 * members.c
 *	  The children of a barrier: its members, and "ready".
 *
 * Owns how they are told apart, how "ready" comes and goes, and the listing with its DSM
 * segment.  Run by backends.  Takes no locks; waits for errands only, as wait.c does.
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

#include "backend/refusal.h"
#include "recipes/members.h"
#include "shared/boottime.h"
#include "shared/slot.h"
#include "storage/proc.h"

/* ---- the listing ---- */

#define FIRST_ROOM		((Size) 8192)	/* for names */
#define NOT_KNOWN		PG_UINT64_MAX	/* differs from all fingerprints */

static ZklErrand *
make_listing(const ZklTarget *target, Size room)
{
	return zkl_errand_make(ZKL_ERRAND_AWAIT, target, NULL, room);
}

void
zkl_members_begin(ZklChildren *children, const ZklTarget *target,
				  int64 timeout_ms)
{
	int64		now = zkl_boottime_ms();

	children->target = *target;
	children->until = timeout_ms < ZKL_FOREVER - now ? now + timeout_ms :
		ZKL_FOREVER;
	children->lock_until = LockTimeout > 0 ? now + LockTimeout : ZKL_FOREVER;
	children->known = NOT_KNOWN;
	children->takes = false;
	children->listing = make_listing(target, FIRST_ROOM);
}

void
zkl_members_end(ZklChildren *children)
{
	zkl_errand_free(children->listing);
}

static int64
ms_left(int64 until)
{
	return until == ZKL_FOREVER ? ZKL_FOREVER :
		Max(until - zkl_boottime_ms(), 0);
}

int64
zkl_members_ms_left(const ZklChildren *children)
{
	return ms_left(children->until);
}

static void
check_lock_timeout(const ZklChildren *children)
{
	if (ms_left(children->lock_until) == 0)
		zkl_stall_raise_lock_timeout(children->target.name);
}

bool
zkl_members_look(ZklChildren *children)
{
	for (;;)
	{
		ZklErrand  *listing = children->listing;
		Size		size;
		int32		rc;

		listing->known = children->known;
		rc = zkl_errand_await(listing, &children->target,
							  Min(ms_left(children->until),
								  ms_left(children->lock_until)),
							  children->takes);
		if (rc != ZKL_RC_OK && rc != ZKL_RC_NONODE)
			zkl_refusal_raise_failed(children->target.name, ZKL_ERROR_ZOOKEEPER, rc);
		if (rc == ZKL_RC_OK && listing->answer.fingerprint == children->known)
		{
			check_lock_timeout(children);
			return false;
		}
		size = listing->answer.size;
		if (size <= listing->room)
		{
			children->known = listing->answer.fingerprint;
			return true;
		}
		zkl_members_forget(children);
		zkl_errand_free(listing);
		children->listing = make_listing(&children->target, 2 * size);
	}
}

void
zkl_members_forget(ZklChildren *children)
{
	children->known = NOT_KNOWN;
}

/*
 * The names that were listed, one after the other in no order: the first one for NULL;
 * NULL behind the last one.
 */
static const char *
next_child(const ZklChildren *children, const char *name)
{
	return zkl_errand_next(children->listing, name);
}

/*
 * Writes to a child: CREATE (persistent, empty) or DELETE.  True also if the
 * child exists, or does not exist, already.  False: whether it was done, or will
 * be, is not known, and the next look just lists the children.  Errors as
 * ZooKeeper answers.
 */
static bool
write_child(ZklChildren *children, ZklErrandKind kind,
			const char *child)
{
	ZklErrand  *errand = zkl_errand_make(kind, &children->target, child, 0);
	int32		rc = zkl_errand_run(errand, &children->target);

	zkl_errand_free(errand);
	if (rc == ZKL_RC_UNKNOWN)
	{
		zkl_members_forget(children);
		return false;
	}
	if (rc != ZKL_RC_OK &&
		rc != (kind == ZKL_ERRAND_CREATE ? ZKL_RC_NODEEXISTS : ZKL_RC_NONODE))
		zkl_refusal_raise_failed(children->target.name, ZKL_ERROR_ZOOKEEPER, rc);
	return true;
}

/*
 * Whether a client has put data into the directory, and would miss it.  If clients
 * make a directory on their way to a child, it is empty, and they make it again.
 */
static bool
directory_has_data(const ZklChildren *children)
{
	ZklErrand  *get = zkl_errand_make(ZKL_ERRAND_GET, &children->target, NULL,
									  0);
	int32		rc = zkl_errand_run(get, &children->target);
	bool		found = rc != ZKL_RC_NONODE &&
	(rc != ZKL_RC_OK || get->answer.size > 0 || get->answer.stat.version > 0);

	zkl_errand_free(get);
	return found;
}

/*
 * Deletes a child, and the directory with it, unless the directory has other
 * children.  True also if the child does not exist.  If the directory has data,
 * or we may not delete it, it stays, and the child is deleted even if there are
 * others.  False: there are others, or what was done, or will be, is not known,
 * and the next look just lists the children.  Errors as ZooKeeper answers.
 */
static bool
delete_last_child(ZklChildren *children, const char *child)
{
	ZklErrand  *errand;
	int32		rc;

	if (directory_has_data(children))
		return write_child(children, ZKL_ERRAND_DELETE, child);
	errand = zkl_errand_make(ZKL_ERRAND_DELETE_LAST, &children->target, child,
							 0);
	rc = zkl_errand_run(errand, &children->target);
	zkl_errand_free(errand);
	if (rc == ZKL_RC_NOAUTH)
		return write_child(children, ZKL_ERRAND_DELETE, child);
	if (rc == ZKL_RC_UNKNOWN || rc == ZKL_RC_NOTEMPTY)
	{
		zkl_members_forget(children);
		return false;
	}
	if (rc != ZKL_RC_OK && rc != ZKL_RC_NONODE)
		zkl_refusal_raise_failed(children->target.name, ZKL_ERROR_ZOOKEEPER, rc);
	return true;
}

/* ---- members ---- */

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
	while ((name = next_child(children, name)) != NULL)
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

	while ((child = next_child(children, child)) != NULL)
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

	while ((name = next_child(children, name)) != NULL)
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
	return write_child(children, ZKL_ERRAND_CREATE, READY);
}

bool
zkl_members_clean_up(ZklChildren *children)
{
	ZklMembers	members;

	zkl_members_count(children, "", &members);
	return !members.is_ready || members.count > 0 ||
		delete_last_child(children, READY);
}
