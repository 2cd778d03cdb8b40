/*
 * commit.c
 *	  The checks: no transaction commits while a hold is lost or its lease has
 *	  passed, and none goes on after the loss of a hold that it began with.
 *
 * Owns the commit check's callback and what the checks remember of the current
 * transaction.  Run by backends.  Takes no locks; it sets slots quiet through
 * backend_slot.h, and waits on the process latch.
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

#include "access/xact.h"
#include "backend/backend_slot.h"
#include "backend/commit.h"
#include "backend/refusal.h"
#include "backend/text.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/lease.h"
#include "shared/settings.h"
#include "shared/status.h"
#include "storage/ipc.h"

/* The arguments of the callbacks that are registered; usually there is one */
static intptr_t oldest = 1;
static intptr_t newest = 0;
static intptr_t before_query = 0;	/* the newest one when the query began */
static intptr_t before_snapshot = 0;	/* likewise, when this snapshot was
										 * first seen of a procedure's portal */
static const void *portal_snapshot = NULL;

/* Of the current transaction */
static bool has_begun = false;	/* earlier losses are noted */
static bool in_doubt = false;	/* one was lost before, or its lease passed */
static bool is_first = false;
static bool is_done = false;
static bool is_warned = false;	/* that a release comes before the commit */
static bool slots_are_quiet = false;
static bool has_acquired = false;	/* since they were set quiet */
static uint32 statements = 0;	/* that have begun, nested ones included */
static bool only_looks = false; /* there is one, and it changes nothing */

/* Calls fn for each hold until it returns one, and returns that one. */
static ZklHold *
find_hold(bool (*fn) (ZklHold *hold))
{
	int			i;

	for (i = 0; i < lengthof(zkl_holds); i++)
	{
		dlist_iter	iter;

		dlist_foreach(iter, &zkl_holds[i])
		{
			ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);

			if (fn(hold))
				return hold;
		}
	}
	return NULL;
}

/* ---- steps of others ---- */

static ZklCommitStep *steps = NULL;

void
zkl_commit_add_step(ZklCommitStep *step)
{
	step->next = steps;
	steps = step;
}

static bool
take_steps(void)
{
	bool		any = false;
	ZklCommitStep *step;

	for (step = steps; step != NULL; step = step->next)
		any |= step->before_commit();
	return any;
}

void
zkl_commit_end_steps(bool committed)
{
	ZklCommitStep *step;

	for (step = steps; step != NULL; step = step->next)
		step->at_end(committed);
}

/* ---- commit ---- */

static bool
set_hold_quiet(ZklHold *hold)
{
	zkl_backend_slot_set_quiet(hold->grant.slotno, slots_are_quiet);
	return false;
}

static void
set_all_quiet(bool committing)
{
	slots_are_quiet = committing;
	(void) find_hold(set_hold_quiet);
}

static void
raise_lost(ZklHold *hold, ZklError error)
{
	hold->told = true;
	zkl_refusal_raise_lost(hold->name, zkl_hold_release_function(hold), error);
}

static bool
raise_if_lost(ZklHold *hold)
{
	ZklError	error;

	if (!zkl_hold_is_good(hold, &error))
		raise_lost(hold, error);
	return false;
}

static bool
has_lapsed(ZklHold *hold)
{
	return zkl_hold_has_lapsed(hold);
}

/*
 * Raises an error, or returns a hold whose lease has passed, if there is one;
 * of all holds, or of just one.
 */
static ZklHold *
check_holds(ZklHold *only)
{
	if (only != NULL)
	{
		(void) raise_if_lost(only);
		return has_lapsed(only) ? only : NULL;
	}
	(void) find_hold(raise_if_lost);
	return find_hold(has_lapsed);
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

/*
 * Returns once the holds are good and their leases valid.  While it waits, the
 * worker may find that one of them is lost.
 */
static void
check_and_wait(ZklHold *only)
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
	if (is_done || proc_exit_inprogress || !zkl_hold_is_any() ||
		zkl_commit_needs_no_check())
		return;
	if (!slots_are_quiet || has_acquired)
		begin_committing();
	check_and_wait(NULL);

	/* Which may take a while, in which all this may change. */
	if (take_steps())
		check_and_wait(NULL);
}

static void
refuse_to_prepare(void)
{
	if (!dlist_is_empty(&zkl_holds[ZKL_LIFETIME_TRANSACTION]))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that holds distributed locks of transaction lifetime"),
				 errhint("Use locks of session lifetime, such as zk_lock().")));
}

static void
check_callback(XactEvent event, void *arg)
{
	/* The first one has checked. */
	if (slots_are_quiet)
		return;
	if (event == XACT_EVENT_PRE_COMMIT)
		check_commit();
	else if (event == XACT_EVENT_PRE_PREPARE)
	{
		refuse_to_prepare();
		check_commit();
	}
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
static void
move_to_head(ZklCommitPlace place)
{
	is_first = false;
	if (place == ZKL_COMMIT_IN_QUERY)
		unregister_newer(before_query);
	else if (place == ZKL_COMMIT_IN_PROCEDURE)
	{
		note_snapshot();
		unregister_newer(before_snapshot);
	}
	RegisterXactCallback(check_callback, (void *) (newest + 1));
	newest++;
	is_first = true;
	if (place == ZKL_COMMIT_OUTSIDE)
		unregister_older();
}

/* ---- statements ---- */

static bool
note_if_lost(ZklHold *hold)
{
	ZklError	error;

	hold->lost_before = !zkl_hold_is_good(hold, &error);
	in_doubt |= hold->lost_before || zkl_hold_has_lapsed(hold);
	return false;
}

static bool
raise_if_just_lost(ZklHold *hold)
{
	zkl_commit_check_hold(hold);
	return false;
}

void
zkl_commit_check_hold(ZklHold *hold)
{
	ZklError	error;

	if (!hold->lost_before && !zkl_hold_is_good(hold, &error))
		raise_lost(hold, error);
}

void
zkl_commit_check_known(void)
{
	(void) find_hold(raise_if_lost);
}

void
zkl_commit_check_before(void)
{
	check_and_wait(NULL);
}

bool
zkl_commit_is_in_doubt(void)
{
	return in_doubt;
}

void
zkl_commit_note_statement(bool looks)
{
	statements++;
	only_looks = looks && statements == 1 && !IsTransactionBlock() &&
		!IsSubTransaction();
}

void
zkl_commit_note_acquisition(void)
{
	only_looks = false;
	has_acquired = true;
}

bool
zkl_commit_needs_no_check(void)
{
	return only_looks &&
		dlist_is_empty(&zkl_holds[ZKL_LIFETIME_TRANSACTION]) &&
		!TransactionIdIsValid(GetTopTransactionIdIfAny());
}

/* Walks through the holds only after something was lost on this server. */
void
zkl_commit_check_statement(void)
{
	static uint64 looked_at = 0;
	uint64		losses = pg_atomic_read_u64(&zkl_control->ctl_losses);

	if (!has_begun || losses == looked_at)
		return;
	(void) find_hold(raise_if_just_lost);
	looked_at = losses;
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

	zkl_commit_check_hold(hold);
	if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
		check_and_wait(NULL);
	else if (!only_looks && zkl_hold_is_good(hold, &error))
		check_and_wait(hold);
	return !zkl_hold_has_lapsed(hold);
}

bool
zkl_commit_warn_release(void)
{
	if (is_warned || !TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return false;
	is_warned = true;
	return true;
}

/* ---- what a transaction does on its way ---- */

void
zkl_commit_note_query(void)
{
	before_query = newest;
}

void
zkl_commit_check_first(ZklCommitPlace place)
{
	move_to_head(place);
}

void
zkl_commit_check_soon(void)
{
	if (!has_begun)
		(void) find_hold(note_if_lost);
	has_begun = true;
	if (!is_first)
		move_to_head(ZKL_COMMIT_ANYWHERE);
}

void
zkl_commit_check_now(void)
{
	check_commit();
	is_done = true;
}

void
zkl_commit_check_last(bool prepares)
{
	if (prepares)
		refuse_to_prepare();
	check_commit();
}

bool
zkl_commit_is_checked(void)
{
	return slots_are_quiet;
}

void
zkl_commit_check_never(void)
{
	is_done = true;
}

void
zkl_commit_forget(void)
{
	if (slots_are_quiet)
		set_all_quiet(false);
	unregister_older();
	portal_snapshot = NULL;
	is_done = false;
	has_begun = false;
	is_first = false;
	in_doubt = false;
	is_warned = false;
	statements = 0;
	only_looks = false;
}
