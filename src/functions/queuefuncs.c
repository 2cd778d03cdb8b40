/*
 * queuefuncs.c
 *	  The set-returning function zk_queue().
 *
 * Decides what a role may see of the queue of a lock or a semaphore.  Run by
 * backends.  Takes no locks.
 *
 * Must not know which locks this backend holds.
 */
#include "postgres.h"

#include "backend/lock_queue.h"
#include "functions/contender.h"
#include "functions/ownqueue.h"
#include "functions/row.h"
#include "recipes/maximum.h"
#include "recipes/semaphore.h"
#include "shared/listing.h"
#include "shared/settings.h"
#include "storage/dsm.h"
#include "utils/builtins.h"

#define QUEUE_COLUMNS	12

ZKL_FUNCTION(zkl_sql_queue);

/* Numbers the rows in the order of the calls. */
static void
put_row(FunctionCallInfo fcinfo, const ZklTarget *target, const char *mode,
		bool granted, bool kept, const ZklListingEntry *entry,
		const ZklOwnQueue *own, int *position)
{
	ZklRow		row = {0};
	char	   *znode = psprintf("%s%s/%.*s", zkl_root, target->path,
								 (int) entry->name_length, entry->name);

	zkl_row_add(&row, Int32GetDatum(++*position));
	zkl_row_text(&row, mode);
	zkl_row_add(&row, BoolGetDatum(granted));
	zkl_contender_add(&row, entry->data, entry->data_length, kept);
	zkl_row_utf8(&row, znode, strlen(znode));
	zkl_row_session_id(&row, entry->session_id);
	zkl_row_unix_ms_or_null(&row, entry->ctime_ms);
	zkl_row_add(&row, BoolGetDatum(zkl_ownqueue_is_cached(own, entry)));

	Assert(row.n == QUEUE_COLUMNS);
	zkl_row_put(fcinfo, &row);
}

/*
 * "granted" follows from the znodes ahead, unless this server knows more: for
 * its own znodes, its slots decide.
 */
static void
put_entry(FunctionCallInfo fcinfo, const ZklTarget *target, const char *mode,
		  bool granted, const ZklListingEntry *entry, ZklOwnQueue *own,
		  int *position)
{
	bool		kept;

	if (zkl_ownqueue_judge(own, entry, &granted, &kept))
		put_row(fcinfo, target, mode, granted, kept, entry, own, position);
}

/* Shows a lock's queue, by the rule that grants locks. */
static void
put_lock(FunctionCallInfo fcinfo, const ZklTarget *lock, int *position)
{
	ZklListing	list;
	ZklListingEntry entry;
	dsm_segment *segment = zkl_lock_queue_read(lock, &list);
	ZklOwnQueue *own = zkl_ownqueue_make(lock);
	bool		first = true;
	bool		exclusive_ahead = false;

	while (zkl_listing_next(&list, &entry))
	{
		bool		granted = first ||
		(entry.mode == ZKL_SHARED && !exclusive_ahead);

		put_entry(fcinfo, lock, zkl_row_mode_name(entry.mode), granted,
				  &entry, own, position);
		first = false;
		exclusive_ahead |= entry.mode == ZKL_EXCLUSIVE;
	}
	zkl_ownqueue_free(own);
	dsm_detach(segment);
}

/* Shows the queue of a recipe of that name; the first "most" are granted. */
static void
put_others(FunctionCallInfo fcinfo, const ZklTarget *lock, ZklDialect dialect,
		   const char *mode, uint32 most, int *position)
{
	ZklTarget	target = *lock;
	ZklListing	list;
	ZklListingEntry entry;
	dsm_segment *segment;
	ZklOwnQueue *own;
	uint32		n = 0;

	target.dialect = dialect;
	segment = zkl_lock_queue_read(&target, &list);
	own = zkl_ownqueue_make(&target);
	for (; zkl_listing_next(&list, &entry); n++)
		put_entry(fcinfo, &target, mode, n < most, &entry, own,
				  position);
	zkl_ownqueue_free(own);
	dsm_detach(segment);
}

/* Shows the queue for the guard of a semaphore, without the first "skip". */
static void
put_guard(FunctionCallInfo fcinfo, const ZklTarget *guard, int skip,
		  int *position)
{
	ZklListing	list;
	ZklListingEntry entry;
	dsm_segment *segment = zkl_lock_queue_read(guard, &list);
	ZklOwnQueue *own = zkl_ownqueue_make(guard);

	while (zkl_listing_next(&list, &entry))
	{
		bool		has_it = false;
		bool		kept;

		if (zkl_ownqueue_judge(own, &entry, &has_it, &kept) && skip-- <= 0)
			put_row(fcinfo, guard, "lease", false, kept, &entry, own,
					position);
	}
	zkl_ownqueue_free(own);
	dsm_detach(segment);
}

/*
 * Shows the leases of the semaphore of that name, then the waiters for its
 * guard.  If the holder of the guard waits, its leases are already among the
 * others, past the maximum.  If no maximum is recorded, all leases count as
 * granted.
 */
static void
put_semaphore(FunctionCallInfo fcinfo, const ZklTarget *lock, int *position)
{
	ZklTarget	leases = *lock;
	ZklTarget	guard = *lock;
	ZklListing	list;
	ZklListingEntry entry;
	dsm_segment *segment;
	ZklOwnQueue *own;
	uint32		n = 0,
				max = PG_UINT32_MAX;

	leases.path = psprintf("%s%s", lock->path, ZKL_SEMAPHORE_PERMITS);
	leases.dialect = ZKL_DIALECT_PERMIT;
	guard.path = psprintf("%s%s", lock->path, ZKL_SEMAPHORE_GUARD);
	guard.dialect = ZKL_DIALECT_CURATOR_MUTEX;
	if (strlen(leases.path) > ZKL_MAX_NAME)
		return;
	segment = zkl_lock_queue_read(&leases, &list);
	if (list.count > 0)
	{
		int			recorded = zkl_maximum_recorded(lock);

		if (recorded > 0)
			max = (uint32) recorded;
	}
	own = zkl_ownqueue_make(&leases);
	for (; zkl_listing_next(&list, &entry); n++)
		put_entry(fcinfo, &leases, "lease", n < max, &entry, own,
				  position);
	zkl_ownqueue_free(own);
	dsm_detach(segment);
	if (n > 0)
		put_guard(fcinfo, &guard, n > max, position);
}

Datum
zkl_sql_queue(PG_FUNCTION_ARGS)
{
	ZklTarget	lock = zkl_target_any(PG_GETARG_TEXT_PP(0), ZKL_MAY_LOOK);
	int			position = 0;

	InitMaterializedSRF(fcinfo, 0);
	put_lock(fcinfo, &lock, &position);
	put_others(fcinfo, &lock, ZKL_DIALECT_LATCH, "leader", 1, &position);
	put_others(fcinfo, &lock, ZKL_DIALECT_MEMBER, "member", PG_UINT32_MAX,
			   &position);
	put_semaphore(fcinfo, &lock, &position);
	return (Datum) 0;
}
