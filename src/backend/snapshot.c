/*
 * snapshot.c
 *	  A procedure that waits without a snapshot.
 *
 * Owns nothing.  Run by backends.  Takes no locks.
 *
 * Must not know what the wait is for.
 *
 * As long as a session has a snapshot, VACUUM removes no row of its database that was
 * deleted since, and CREATE INDEX CONCURRENTLY waits for it.  A statement has one
 * from its beginning to its end.  But a procedure may commit, so PostgreSQL expects
 * that the snapshot of a CALL is gone when the procedure returns, or is another one
 * (PortalRunUtility and EnsurePortalSnapshotExists in pquery.c).
 *
 * That holds only if the portal's snapshot is the one in use.  In a query, a function,
 * an exception block, or a procedure with SECURITY DEFINER, there is another one above
 * it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "backend/snapshot.h"
#include "nodes/parsenodes.h"
#include "storage/proc.h"
#include "tcop/pquery.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"

static bool
is_of_portal(void)
{
	return ActivePortal->portalSnapshot == GetActiveSnapshot();
}

/*
 * A CALL with output arguments registers it for values that are read later, from TOAST
 * tables (PortalRunUtility).  Ours has none.
 */
static void
give_hold_snapshot_up(void)
{
	if (ActivePortal->holdSnapshot == NULL)
		return;
	UnregisterSnapshotFromOwner(ActivePortal->holdSnapshot, ActivePortal->resowner);
	ActivePortal->holdSnapshot = NULL;
}

/* False: there is another one below it, and all is as before. */
static bool
pop_snapshot(void)
{
	Snapshot	snapshot = RegisterSnapshot(GetActiveSnapshot());
	bool		is_last;

	PopActiveSnapshot();
	is_last = !ActiveSnapshotSet();
	if (is_last)
		ActivePortal->portalSnapshot = NULL;
	else
	{
		PushActiveSnapshotWithLevel(snapshot, ActivePortal->createLevel);
		ActivePortal->portalSnapshot = GetActiveSnapshot();
	}
	UnregisterSnapshot(snapshot);
	return is_last;
}

const char *
zkl_snapshot_give_up(FunctionCallInfo fcinfo)
{
	if (IsolationUsesXactSnapshot())
		return "At this isolation level the transaction keeps its snapshot, and will not see what others commit during the wait.";
	if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		ActivePortal == NULL || (ActiveSnapshotSet() && !(is_of_portal() && pop_snapshot())))
		return "The CALL is within a query, a function, a trigger, an exception block, or a DO in a transaction block.";
	give_hold_snapshot_up();
	InvalidateCatalogSnapshot();
	if (!TransactionIdIsValid(MyProc->xmin))
		return NULL;
	zkl_snapshot_regain();
	return "The transaction has an open cursor, a loop over a query, or an exported snapshot.";
}

void
zkl_snapshot_regain(void)
{
	EnsurePortalSnapshotExists();
}
