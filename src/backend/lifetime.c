/*
 * lifetime.c
 *	  When holds end by themselves: with transactions, and with the session.
 *
 * Owns the callbacks by which holds end.  Run by backends.  Takes no
 * locks; what it changes in shared memory it changes through backend_slot.h.
 *
 * Must not know how a request is answered, nor anything of ZooKeeper.
 *
 * A hold of session lifetime ends by unlock, DISCARD ALL or the end of the
 * session.  One of transaction lifetime ends with its transaction, or with the
 * subtransaction that acquired it.  By then the transaction is visible to others or
 * fully undone, its catalog changes are announced, and its other locks are released.
 * PostgreSQL releases its own advisory locks as late (CommitTransaction in xact.c).
 * The callbacks that end holds only set flags and latches.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "backend/admission.h"
#include "backend/cancel.h"
#include "backend/commit.h"
#include "backend/hold.h"
#include "backend/lifetime.h"
#include "backend/promise.h"
#include "backend/statement.h"
#include "backend/tell.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "storage/ipc.h"
#include "utils/resowner.h"

static bool exit_registered = false;

/* Set between the end of a transaction, or subtransaction, and its release */
static bool transaction_over = false;
static XactEvent transaction_end;
static SubTransactionId subtransaction_over = InvalidSubTransactionId;

/* ---- transactions ---- */

static void
end_transaction(XactEvent event)
{
	bool		aborted = event == XACT_EVENT_ABORT;

	zkl_commit_end_step(!aborted);
	if (aborted && zkl_hold_is_any())
		zkl_promise_note_abort();
	if (aborted && zkl_hold_is_any() && !proc_exit_inprogress)
	{
		zkl_tell_lost();
		zkl_tell_release_requests();
	}
	zkl_cancel_stand_by();
	transaction_over = true;
	transaction_end = event;
}

static void
release_transaction(void)
{
	transaction_over = false;
	subtransaction_over = InvalidSubTransactionId;
	zkl_statement_end_transaction(transaction_end == XACT_EVENT_COMMIT);
	if (transaction_end != XACT_EVENT_ABORT && zkl_commit_is_checked())
		zkl_tell_note_late(transaction_end == XACT_EVENT_PREPARE);
	zkl_hold_end_all(ZKL_LIFETIME_TRANSACTION);
	zkl_commit_forget();
	if (zkl_hold_is_any())
		zkl_admission_drain_resign();
}

/*
 * Registered before all that are registered on the way, and so the last one to
 * run: what the others waited for is behind us.
 */
static void
transaction_callback(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
	{
		if (zkl_commit_needs_no_check())
			zkl_tell_lost();
		zkl_commit_check_last(event);
	}
	else if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE ||
			 event == XACT_EVENT_ABORT)
		end_transaction(event);
}

static void
subtransaction_callback(SubXactEvent event, SubTransactionId subid,
						SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
	{
		if (!proc_exit_inprogress)
			zkl_tell_lost();
		subtransaction_over = subid;
	}
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		zkl_hold_commit_scopes(subid, parent);
}

/*
 * PostgreSQL calls this for each resource owner, children first; also for those of
 * portals.  In this phase it has released all locks of the transaction.
 */
static void
release_callback(ResourceReleasePhase phase, bool is_commit, bool is_top_level,
				 void *arg)
{
	if (phase != RESOURCE_RELEASE_AFTER_LOCKS)
		return;
	if (transaction_over && is_top_level)
		release_transaction();
	else if (subtransaction_over != InvalidSubTransactionId && !is_top_level)
	{
		zkl_hold_abort_scopes(subtransaction_over);
		subtransaction_over = InvalidSubTransactionId;
	}
}

static void
exit_callback(int code, Datum arg)
{
	zkl_promise_note_exit(code);
	zkl_hold_end_all(ZKL_LIFETIME_TRANSACTION);
	zkl_hold_end_all(ZKL_LIFETIME_SESSION);
}

/* ---- what is done by calls ---- */

void
zkl_lifetime_check(void)
{
	zkl_gate_check();
	if (IsInParallelMode())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot acquire or release distributed locks during a parallel operation")));
}

void
zkl_lifetime_begin(void)
{
	zkl_lifetime_check();
	if (!exit_registered)
	{
		on_shmem_exit(exit_callback, 0);
		exit_registered = true;
	}
	zkl_cancel_watch();
	zkl_commit_note_acquisition();
	(void) zkl_commit_check_soon();
}

/*
 * Behind a pooler that gives a client another database session for each
 * transaction, nothing of session lifetime belongs to that client.
 */
void
zkl_lifetime_check_allowed(ZklLifetime lifetime)
{
	if (zkl_session_locks || lifetime != ZKL_LIFETIME_SESSION)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("distributed locks of session lifetime are not allowed"),
			 errdetail("\"zklock.session_locks\" is off."),
			 errhint("Use a function of transaction lifetime, such as zk_xact_lock() or zk_xact_acquire_permits().  Behind a connection pooler, session pooling allows session locks.")));
}

void
zkl_lifetime_init(void)
{
	RegisterXactCallback(transaction_callback, NULL);
	RegisterSubXactCallback(subtransaction_callback, NULL);
	RegisterResourceReleaseCallback(release_callback, NULL);
	zkl_statement_init();
}
