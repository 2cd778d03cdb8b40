/*
 * children.c
 *	  The children of a znode, for recipes that wait for them to change.
 *
 * Owns the listing and its DSM segment.  Run by backends.  Takes no locks;
 * waits as wait.c does.
 *
 * Must not know what the children stand for.
 */
#include "postgres.h"

#include "backend/refusal.h"
#include "recipes/children.h"
#include "shared/boottime.h"
#include "shared/slot.h"
#include "storage/proc.h"

#define FIRST_ROOM		((Size) 8192)	/* for names */
#define NOT_KNOWN		PG_UINT64_MAX	/* differs from all fingerprints */

static ZklErrand *
make_listing(const ZklTarget *target, Size room)
{
	return zkl_errand_make(ZKL_ERRAND_AWAIT, target, NULL, room);
}

void
zkl_children_begin(ZklChildren *children, const ZklTarget *target,
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
zkl_children_end(ZklChildren *children)
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
zkl_children_ms_left(const ZklChildren *children)
{
	return ms_left(children->until);
}

static void
check_lock_timeout(const ZklChildren *children)
{
	if (ms_left(children->lock_until) == 0)
		zkl_refusal_raise_lock_timeout();
}

bool
zkl_children_look(ZklChildren *children)
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
		zkl_children_forget(children);
		zkl_errand_free(listing);
		children->listing = make_listing(&children->target, 2 * size);
	}
}

void
zkl_children_forget(ZklChildren *children)
{
	children->known = NOT_KNOWN;
}

const char *
zkl_children_next(const ZklChildren *children, const char *name)
{
	return zkl_errand_next(children->listing, name);
}

bool
zkl_children_write(ZklChildren *children, ZklErrandKind kind,
				   const char *child)
{
	ZklErrand  *errand = zkl_errand_make(kind, &children->target, child, 0);
	int32		rc = zkl_errand_run(errand, &children->target);

	zkl_errand_free(errand);
	if (rc == ZKL_RC_UNKNOWN)
	{
		zkl_children_forget(children);
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

bool
zkl_children_delete_last(ZklChildren *children, const char *child)
{
	ZklErrand  *errand;
	int32		rc;

	if (directory_has_data(children))
		return zkl_children_write(children, ZKL_ERRAND_DELETE, child);
	errand = zkl_errand_make(ZKL_ERRAND_DELETE_LAST, &children->target, child,
							 0);
	rc = zkl_errand_run(errand, &children->target);
	zkl_errand_free(errand);
	if (rc == ZKL_RC_NOAUTH)
		return zkl_children_write(children, ZKL_ERRAND_DELETE, child);
	if (rc == ZKL_RC_UNKNOWN || rc == ZKL_RC_NOTEMPTY)
	{
		zkl_children_forget(children);
		return false;
	}
	if (rc != ZKL_RC_OK && rc != ZKL_RC_NONODE)
		zkl_refusal_raise_failed(children->target.name, ZKL_ERROR_ZOOKEEPER, rc);
	return true;
}
