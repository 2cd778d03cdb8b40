/*
 * childwatch.c
 *	  Taking back the watches on children that errands have set.
 *
 * Owns the listings whose errand has ended before they were answered.  Runs in
 * the worker only.  Takes no locks.  Must not know what an errand is for.
 *
 * A watch that nobody takes back stays with ZooKeeper until something changes
 * there.  One that a listing is yet to set cannot be taken back: ZooKeeper's
 * client does not know of it before the answer.
 */
#include "postgres.h"

#include "nodes/pg_list.h"
#include "utils/memutils.h"

#include "worker/childwatch.h"

typedef struct
{
	uint32		attempt;
	char	   *path;
} Listing;

static bool (*is_awaited) (const char *path);
static void (*take_back) (const char *path);
static List *given_up = NIL;	/* of Listing, in TopMemoryContext */

void
zkl_childwatch_begin(bool (*awaited) (const char *path),
					 void (*unwatch) (const char *path))
{
	is_awaited = awaited;
	take_back = unwatch;
}

void
zkl_childwatch_end(const char *path)
{
	if (!is_awaited(path))
		take_back(path);
}

void
zkl_childwatch_give_up(uint32 attempt, const char *path)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	Listing    *listing = palloc(sizeof(Listing));

	listing->attempt = attempt;
	listing->path = pstrdup(path);
	given_up = lappend(given_up, listing);
	MemoryContextSwitchTo(old);
}

static void
forget(Listing *listing)
{
	given_up = list_delete_ptr(given_up, listing);
	pfree(listing->path);
	pfree(listing);
}

void
zkl_childwatch_answered(uint32 attempt)
{
	ListCell   *cell;

	foreach(cell, given_up)
	{
		Listing    *listing = lfirst(cell);

		if (listing->attempt != attempt)
			continue;
		zkl_childwatch_end(listing->path);
		forget(listing);
		return;
	}
}

void
zkl_childwatch_disconnected(void)
{
	while (given_up != NIL)
		forget(linitial(given_up));
}
