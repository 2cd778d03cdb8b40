/*
 * commit.c
 *	  The commit check: no transaction commits while a hold is lost.
 *
 * Owns the check's callback and what it remembers of the current transaction.
 * Run by backends.  Takes no locks; it marks slots through shmem.h.
 *
 * Must not know how a hold begins, or what it is for.
 *
 * The check has a callback of its own, because callbacks run last registered
 * first, and those of other extensions may do what cannot be undone
 * (postgres_fdw commits on its remote servers): ours is moved to the head of
 * the list by the first acquisition of a transaction, and by COMMIT.  Passing
 * it leaves the slots committing: from then on until the transaction has ended
 * nobody signals this backend, whose wait for a synchronous standby a signal
 * would cut short.
 */
#include "postgres.h"

#include "access/xact.h"
#include "commit.h"
#include "hold.h"
#include "refusal.h"
#include "storage/ipc.h"

/* Of the current transaction */
static bool is_first = false;
static bool is_done = false;
static bool slots_are_marked = false;

static void
set_committing(bool committing)
{
	int			i;

	for (i = 0; i < lengthof(zkl_holds); i++)
	{
		dlist_iter	iter;

		dlist_foreach(iter, &zkl_holds[i])
		{
			ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);

			zkl_slot_set_committing(hold->grant.slotno, committing);
		}
	}
	slots_are_marked = committing;
}

/*
 * Marks first and looks then: a loss that comes in between is seen here, and
 * sends no signal.
 */
static void
check(void)
{
	int			i;

	/* A backend that exits commits only the removal of its own leftovers. */
	if (is_done || proc_exit_inprogress || !zkl_holds_anything())
		return;
	set_committing(true);
	for (i = 0; i < lengthof(zkl_holds); i++)
	{
		dlist_iter	iter;

		dlist_foreach(iter, &zkl_holds[i])
		{
			ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);
			ZklError	error;

			if (zkl_hold_is_good(hold, &error))
				continue;
			hold->told = true;
			zkl_raise_lost(hold->name, hold->key.lifetime, error);
		}
	}
}

static void
check_callback(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT)
		check();
	else if (event == XACT_EVENT_PRE_PREPARE)
	{
		if (!dlist_is_empty(&zkl_holds[ZKL_LIFETIME_TRANSACTION]))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot PREPARE a transaction that holds distributed locks of transaction lifetime"),
					 errhint("Use locks of session lifetime, such as zk_lock().")));
		check();
	}
}

/*
 * Registered anew before it is unregistered (the arguments tell the two
 * apart), so that a failure to allocate leaves one in place.
 */
static void
move_to_head(void)
{
	static intptr_t registered = 0;
	intptr_t	next = registered + 1;

	RegisterXactCallback(check_callback, (void *) next);
	if (registered != 0)
		UnregisterXactCallback(check_callback, (void *) registered);
	registered = next;
}

void
zkl_commit_check_first(void)
{
	move_to_head();
	is_first = true;
}

void
zkl_commit_check_soon(void)
{
	if (!is_first)
		move_to_head();
	is_first = true;
}

void
zkl_commit_check_now(void)
{
	check();
	is_done = true;
}

void
zkl_commit_forget(void)
{
	if (slots_are_marked)
		set_committing(false);
	is_first = false;
	is_done = false;
}
