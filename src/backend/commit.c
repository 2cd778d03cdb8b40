/*
 * commit.c
 *	  When holds end by themselves, and the checks that no transaction commits
 *	  while one is lost.
 *
 * Owns the callbacks by which holds end, the commit check's, and what the checks
 * remember of the current transaction.  Run by backends.  Takes no locks; it sets
 * slots quiet through backend_slot.h, and waits on the process latch.
 *
 * Must not know how a hold begins, or what it is for.
 *
 * The commit check has a callback of its own, because callbacks run last
 * registered first, and those of other extensions may do what cannot be undone
 * (postgres_fdw commits on its remote servers): ours is moved to the head of
 * the list by the first acquisition of a transaction, and by COMMIT.  The check
 * sets the slots quiet: until the transaction has ended, the worker does not
 * signal this backend.  A signal would cut short its wait for a synchronous
 * standby.
 *
 * A lease that has passed does not mean that the lock is lost: the session may
 * be alive beyond an outage.  So the check waits until the worker renews the
 * lease, or finds the lock lost, or the time is over.
 */
#include "postgres.h"

#include <unistd.h>

#include "access/parallel.h"
#include "backend/admission.h"
#include "backend/backend_slot.h"
#include "backend/commit.h"
#include "backend/refusal.h"
#include "backend/statement.h"
#include "backend/target.h"
#include "backend/tell.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/status.h"
#include "storage/ipc.h"
#include "utils/resowner.h"

/* The arguments of the callbacks that are registered; usually there is one */
static intptr_t oldest = 1;
static intptr_t newest = 0;
static intptr_t before_query = 0;	/* the newest one when the query began */
static intptr_t before_snapshot = 0;	/* likewise, when this snapshot was
										 * first seen of a procedure's portal */
static const void *portal_snapshot = NULL;

/* Of the current transaction */
static struct
{
	bool		has_begun;		/* earlier losses are noted */
	bool		in_doubt;		/* one was lost before, or its lease passed */
	bool		is_first;		/* the callback, of those registered so far */
	bool		is_done;
	bool		is_warned;		/* that a release comes before the commit */
	uint32		statements;		/* that have begun, nested ones included */
	bool		only_looks;		/* there is one, and it changes nothing */
}			current;

static bool slots_are_quiet = false;
static bool has_acquired = false;	/* since they were set quiet */

static const ZklCommitStep *step = NULL;

static bool commit_needs_no_check(void);

void
zkl_commit_set_step(const ZklCommitStep *of_recipe)
{
	Assert(step == NULL || step == of_recipe);
	step = of_recipe;
}

static void
commit_end_step(bool committed)
{
	if (step != NULL)
		step->at_end(committed);
}

/* ---- commit ---- */

static void
set_all_quiet(bool committing)
{
	ZklHold    *hold;

	slots_are_quiet = committing;
	zkl_hold_foreach(hold)
		zkl_backend_slot_set_quiet(hold->grant.slotno, committing);
}

static void
raise_if_lost(ZklHold *hold)
{
	ZklError	error;

	if (!zkl_hold_is_good(hold, &error))
		zkl_hold_raise_lost(hold, error);
}

void
zkl_commit_check_known(void)
{
	ZklHold    *hold;

	zkl_hold_foreach(hold)
		raise_if_lost(hold);
}

/*
 * Raises an error, or returns a hold whose lease has passed, if there is one;
 * of all holds, or of just one.
 */
static ZklHold *
check_holds(ZklHold *only)
{
	ZklHold    *hold;

	if (only != NULL)
	{
		raise_if_lost(only);
		return zkl_hold_has_lapsed(only) ? only : NULL;
	}
	zkl_commit_check_known();
	zkl_hold_foreach(hold)
	{
		if (zkl_hold_has_lapsed(hold))
			return hold;
	}
	return NULL;
}

static int64
commit_wait_ms(void)
{
	return zkl_commit_wait >= 0 ? zkl_commit_wait : zkl_status_timeout_ms();
}

static void
lease_context(void *name)
{
	errcontext("while waiting for the lease of distributed lock \"%s\" to be renewed",
			   (const char *) name);
}

/* While it waits, the worker may find that a hold is lost. */
void
zkl_commit_check_wait(ZklHold *only)
{
	int64		until = zkl_boottime_ms() + commit_wait_ms();
	ZklHold    *hold = check_holds(only);
	ZklHold    *named = hold;
	ErrorContextCallback context;

	if (hold == NULL)
		return;
	context.callback = lease_context;
	context.arg = unconstify(char *, zkl_text_for_client(hold->name));
	context.previous = error_context_stack;
	error_context_stack = &context;

	for (; hold != NULL; hold = check_holds(only))
	{
		int64		left = until - zkl_boottime_ms();

		if (left <= 0)
			zkl_refusal_raise_lapsed(hold->name);
		if (hold != named)
			context.arg = unconstify(char *, zkl_text_for_client(hold->name));
		named = hold;
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (long) Min(left, zkl_lease_look_ms()),
						 zkl_compat_wait_event(ZKL_EVENT_COMMIT_CHECK));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}

	error_context_stack = context.previous;
}

/*
 * From here on the worker sends no signal.  A signal that it sent before arrives
 * by the end of the next system call, and is acted upon while the transaction can
 * still fail; later it would end the wait for a synchronous standby.
 */
static void
begin_committing(void)
{
	has_acquired = false;
	set_all_quiet(true);
	(void) getppid();
	CHECK_FOR_INTERRUPTS();
}

/*
 * Sets the slots quiet first and looks then: a loss that comes in between is
 * seen here, and sends no signal.
 */
static void
check_commit(void)
{
	/* A backend that exits commits only the removal of its own leftovers. */
	if (current.is_done || proc_exit_inprogress || !zkl_hold_is_any() ||
		commit_needs_no_check())
		return;
	if (!slots_are_quiet || has_acquired)
		begin_committing();
	zkl_commit_check_wait(NULL);

	/* Which may take a while, in which all this may change. */
	if (step != NULL && step->before_commit())
		zkl_commit_check_wait(NULL);
}

/*
 * In the last of the callbacks before a commit or PREPARE TRANSACTION: looks once
 * more, since those of other extensions may have taken long, and may have acquired
 * locks.
 */
static void
commit_check_last(XactEvent event)
{
	if (event == XACT_EVENT_PRE_PREPARE &&
		!dlist_is_empty(&zkl_holds[ZKL_LIFETIME_TRANSACTION]))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that holds distributed locks of transaction lifetime"),
				 errhint("Use locks of session lifetime, such as zk_lock().")));
	check_commit();
}

/* The first one checks. */
static void
check_callback(XactEvent event, void *arg)
{
	if (!slots_are_quiet &&
		(event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE))
		commit_check_last(event);
}

static void
unregister_older(void)
{
	intptr_t	arg;

	/* From the head of the list on */
	for (arg = newest - 1; arg >= oldest; arg--)
		UnregisterXactCallback(check_callback, (void *) arg);
	oldest = newest;
}

/*
 * Within one query, and while a procedure has one snapshot, nothing commits, so no
 * callbacks that run have seen those that were registered since it began.
 */
static void
unregister_newer(intptr_t than)
{
	while (newest > than && newest >= oldest)
	{
		UnregisterXactCallback(check_callback, (void *) newest);
		newest--;
	}
}

static void
note_snapshot(void)
{
	const void *snapshot = zkl_compat_portal_snapshot();

	if (snapshot != portal_snapshot)
		before_snapshot = newest;
	portal_snapshot = snapshot;
}

/*
 * Registers the check once more, before all others; the arguments tell the callbacks
 * apart.  While PostgreSQL calls the callbacks of a transaction, it remembers which
 * one comes next (CallXactCallbacks in xact.c, since version 16), and one of another
 * extension may run SQL, and so call this: then the older ones stay until the
 * transaction is over.
 */
void
zkl_commit_check_first(ZklCommitContext context)
{
	current.is_first = false;
	if (context == ZKL_COMMIT_IN_QUERY)
		unregister_newer(before_query);
	else if (context == ZKL_COMMIT_IN_PROCEDURE)
	{
		note_snapshot();
		unregister_newer(before_snapshot);
	}
	RegisterXactCallback(check_callback, (void *) (newest + 1));
	newest++;
	current.is_first = true;
	if (context == ZKL_COMMIT_OUTSIDE)
		unregister_older();
}

/* ---- statements ---- */

/* Raises an error if a hold was lost since the transaction began. */
static void
raise_if_just_lost(ZklHold *hold)
{
	if (!hold->lost_before)
		raise_if_lost(hold);
}

/* Walks through the holds only after something was lost on this server. */
void
zkl_commit_check_statement(void)
{
	static uint64 looked_at = 0;
	uint64		losses = pg_atomic_read_u64(&zkl_control->ctl_losses);
	ZklHold    *hold;

	if (!current.has_begun || losses == looked_at)
		return;
	zkl_hold_foreach(hold)
		raise_if_just_lost(hold);
	looked_at = losses;
}

void
zkl_commit_note_statement(bool looks)
{
	current.statements++;
	current.only_looks = looks && current.statements == 1 && !IsTransactionBlock() &&
		!IsSubTransaction();
}

/* And acquires a lock. */
static void
commit_note_acquisition(void)
{
	current.only_looks = false;
	has_acquired = true;
}

/*
 * Whether the transaction is one statement that only looks: its commit needs no
 * lock, and if it failed, a client could not look at a loss.
 */
static bool
commit_needs_no_check(void)
{
	return current.only_looks &&
		dlist_is_empty(&zkl_holds[ZKL_LIFETIME_TRANSACTION]) &&
		!TransactionIdIsValid(GetTopTransactionIdIfAny());
}

/*
 * Once the hold is gone, the commit check knows nothing of it.  So if the
 * transaction has written something, this checks now what the commit would
 * check.  If it has written nothing, it may acknowledge a loss.  But what it did
 * elsewhere, on a foreign server or by NOTIFY, cannot be seen here: so a lock
 * that is not lost is checked too, unless the transaction is one statement that
 * only looks.
 */
bool
zkl_commit_check_release(ZklHold *hold)
{
	ZklError	error;

	raise_if_just_lost(hold);
	if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
		zkl_commit_check_wait(NULL);
	else if (!current.only_looks && zkl_hold_is_good(hold, &error))
		zkl_commit_check_wait(hold);
	return !zkl_hold_has_lapsed(hold);
}

bool
zkl_commit_warn_release(void)
{
	if (current.is_warned || !TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return false;
	current.is_warned = true;
	return true;
}

/* ---- what a transaction does on its way ---- */

void
zkl_commit_note_query(void)
{
	before_query = newest;
}

bool
zkl_commit_check_soon(void)
{
	ZklHold    *hold;
	ZklError	error;

	if (!current.has_begun)
	{
		zkl_hold_foreach(hold)
		{
			hold->lost_before = !zkl_hold_is_good(hold, &error);
			current.in_doubt |= hold->lost_before || zkl_hold_has_lapsed(hold);
		}
	}
	current.has_begun = true;
	if (!current.is_first)
		zkl_commit_check_first(ZKL_COMMIT_ANYWHERE);
	return current.in_doubt;
}

void
zkl_commit_check_now(bool commits)
{
	if (commits)
		check_commit();
	current.is_done = true;
}

/* Whether the commit was checked: then tell.h may report a later loss */
static bool
commit_is_checked(void)
{
	return slots_are_quiet;
}

/* The transaction is over: the slots are quiet no longer, all is forgotten. */
static void
commit_forget(void)
{
	if (slots_are_quiet)
		set_all_quiet(false);
	unregister_older();
	portal_snapshot = NULL;
	memset(&current, 0, sizeof(current));
}

/* ---- lifetime ---- */

/*
 * When holds end by themselves: with transactions, and with the session.
 *
 * Takes no locks; what it changes in shared memory it changes through
 * backend_slot.h.
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

	commit_end_step(!aborted);
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
	if (transaction_end != XACT_EVENT_ABORT && commit_is_checked())
		zkl_tell_note_late(transaction_end == XACT_EVENT_PREPARE);
	zkl_hold_end_all(ZKL_LIFETIME_TRANSACTION);
	commit_forget();
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
		if (commit_needs_no_check())
			zkl_tell_lost();
		commit_check_last(event);
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
	commit_note_acquisition();
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
