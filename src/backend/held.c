/*
 * held.c
 *	  What a call does with locks that the session holds: it releases them, extends
 *	  their time, or asserts them.
 *
 * Owns nothing: it looks at this backend's holds, and changes their slots.  Run by
 * backends.  Takes the slots' mutexes through backend_slot.h, one at a time; a
 * release may wait for a lease, as commit.c does.
 *
 * Must not know how a lock is requested, nor anything of ZooKeeper.
 */
#include "postgres.h"

#include <unistd.h>

#include "backend/backend_slot.h"
#include "backend/commit.h"
#include "backend/held.h"
#include "backend/hold.h"
#include "backend/lifetime.h"
#include "backend/promise.h"
#include "backend/refusal.h"
#include "backend/text.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/gate.h"
#include "shared/slot.h"

/* ---- releasing ---- */

/*
 * What a user may have meant instead: the hold of the other lifetime, the one of the
 * other mode, or one of another kind, such as a semaphore's of that name
 */
static int
hint_at_other_hold(ZklHeldLock *held, const ZklTarget *lock, ZklLockMode mode)
{
	ZklHold    *other;

	if (zkl_hold_in(held, mode, ZKL_LIFETIME_TRANSACTION) != NULL)
		return errhint("A lock of transaction lifetime is released when the transaction ends.");
	if (zkl_hold_in(held, ZKL_SHARED, ZKL_LIFETIME_SESSION) != NULL)
		return errhint("Release your shared lock with zk_unlock_shared().");
	if (zkl_hold_in(held, ZKL_EXCLUSIVE, ZKL_LIFETIME_SESSION) != NULL)
		return errhint("Release your exclusive lock with zk_unlock().");
	other = zkl_hold_named(lock->name);
	if (other != NULL)
		return errhint("Release the other hold of that name with %s().",
					   zkl_hold_release_function(other));
	return 0;
}

static void
warn_not_held(const ZklTarget *lock, ZklLockMode mode, ZklHeldLock *held)
{
	const char *name = zkl_text_for_client(lock->name);

	ereport(WARNING,
			(lock->dialect == ZKL_DIALECT_LATCH ?
			 errmsg("you are not the leader of \"%s\"", name) :
			 mode == ZKL_EXCLUSIVE ?
			 errmsg("you do not hold distributed lock \"%s\" in exclusive mode",
					name) :
			 errmsg("you do not hold distributed lock \"%s\" in shared mode",
					name),
			 hint_at_other_hold(held, lock, mode)));
}

static void
warn_lost(const char *name, ZklError error)
{
	ereport(WARNING,
			(errmsg("distributed lock \"%s\" was already lost", name),
			 errdetail("%s", zkl_slot_lost_detail(error))));
}

static void
warn_lapsed(const char *name)
{
	ereport(WARNING,
			(errmsg("distributed lock \"%s\" may have been lost", name),
			 errdetail("Its lease has ended.")));
}

static void
warn_early(const char *name)
{
	ereport(WARNING,
			(errmsg("distributed lock \"%s\" is released before the changes of this transaction are visible",
					name),
			 errhint("Release it after the transaction, or use a lock that lasts until its end, such as zk_xact_lock().")));
}

/*
 * Whether others can have the lock before what the transaction has written is
 * visible.  A barrier protects nothing that its members write.
 */
static bool
is_early(const ZklHold *hold)
{
	return hold->lock->key.dialect != ZKL_DIALECT_MEMBER &&
		!zkl_hold_is_covered(hold) && zkl_commit_warn_release();
}

/*
 * The worker may just have cancelled this statement because of the loss.  Without
 * the hold, nobody could tell why.
 */
static void
await_cancel(void)
{
	(void) getppid();			/* a signal arrives by the end of any call */
	CHECK_FOR_INTERRUPTS();
}

/*
 * Ends a hold; false, with a warning, if it was lost or may have been.  If it
 * was lost since the transaction began, the commit check made here raises an
 * error, so that the transaction cannot commit.  The warning comes after the end:
 * whatever becomes of it, the loss is acknowledged.
 */
bool
zkl_held_release(ZklHold *hold)
{
	ZklError	error;
	bool		known = zkl_commit_check_release(hold);
	bool		good = zkl_hold_is_good(hold, &error);
	bool		early = good && known && is_early(hold);
	const char *name = pstrdup(zkl_text_for_client(hold->name));

	if (!good)
		await_cancel();
	zkl_hold_end(hold);
	if (!good)
		warn_lost(name, error);
	else if (!known)
		warn_lapsed(name);
	else if (early)
		warn_early(name);
	return good && known;
}

bool
zkl_held_release_lock(const ZklTarget *lock, ZklLockMode mode)
{
	ZklHeldLock *held;
	ZklHold    *hold;
	ZklError	error;
	bool		known;

	zkl_lifetime_check();
	held = zkl_hold_lookup(lock);
	hold = zkl_hold_in(held, mode, ZKL_LIFETIME_SESSION);
	if (hold == NULL)
	{
		warn_not_held(lock, mode, held);
		return false;
	}
	if (hold->count == 1 || !zkl_hold_is_good(hold, &error))
		return zkl_held_release(hold);
	known = zkl_commit_check_release(hold);
	zkl_hold_uncount(hold);
	if (!known)
		warn_lapsed(zkl_text_for_client(hold->name));
	return known;
}

void
zkl_held_abandon(const ZklTarget *lock, ZklLockMode mode, ZklLifetime lifetime)
{
	ZklHold    *hold = zkl_hold_find(lock, mode, lifetime);

	if (hold != NULL)
		zkl_hold_uncount(hold);
}

void
zkl_held_release_all(const char *prefix)
{
	dlist_mutable_iter iter;

	zkl_lifetime_check();
	dlist_foreach_modify(iter, &zkl_holds[ZKL_LIFETIME_SESSION])
	{
		ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);

		if (!hold->within_call &&
			strncmp(hold->lock->key.path, prefix, strlen(prefix)) == 0)
			(void) zkl_held_release(hold);
	}
}

/* ---- extending ---- */

static void
extend_hold(ZklHold *hold, int64 at_most_ms)
{
	ZklError	error = ZKL_ERROR_OVERDUE;

	if (zkl_lease_is_current(hold->grant.generation) &&
		zkl_backend_slot_extend(hold->grant.slotno, hold->grant.generation,
								at_most_ms))
		return;
	(void) zkl_hold_is_good(hold, &error);
	zkl_hold_raise_lost(hold, error);
}

/*
 * All holds on the lock: their holder cannot tell which of them would let it
 * go.
 */
bool
zkl_held_extend(const ZklTarget *lock, int64 at_most_ms)
{
	ZklHeldLock *held;
	bool		found = false;
	int			i;

	zkl_gate_check();
	held = zkl_hold_lookup(lock);
	for (i = 0; i < ZKL_HOLDS_PER_LOCK; i++)
	{
		ZklHold    *hold = zkl_hold_nth(held, i);

		if (hold == NULL)
			continue;
		extend_hold(hold, at_most_ms);
		found = true;
	}
	if (!found)
		ereport(WARNING,
				(errmsg("you do not hold distributed lock \"%s\"",
						zkl_text_for_client(lock->name))));
	return found;
}

/* ---- asserting ---- */

/*
 * The lease is read before the clock: so the time that is left is not too long.  What
 * is told is a promise, and so stands in the slot before.
 */
int64
zkl_held_assert(ZklHold *hold)
{
	ZklError	error = ZKL_ERROR_NONE;
	uint32		generation;
	int64		until;
	int64		now;

	zkl_lease_read(&generation, &until);
	now = zkl_boottime_ms();
	if (!zkl_hold_is_good(hold, &error) ||
		!zkl_lease_same_generation(generation, hold->grant.generation))
		zkl_hold_raise_lost(hold, error);
	if (now >= until)
		zkl_refusal_raise_lease_ended(hold->name);
	if (!zkl_promise_make(hold->grant.slotno, generation, hold->grant.token, &until))
	{
		if (zkl_hold_is_good(hold, &error))
			zkl_refusal_raise_lease_ended(hold->name);
		zkl_hold_raise_lost(hold, error);
	}
	return Max(until - now, 1);
}

bool
zkl_held_assert_lock(const ZklTarget *lock, int64 *left_ms)
{
	ZklHeldLock *held = zkl_hold_lookup(lock);
	bool		found = false;
	int			i;

	for (i = 0; i < ZKL_HOLDS_PER_LOCK; i++)
	{
		ZklHold    *hold = zkl_hold_nth(held, i);

		if (hold == NULL)
			continue;
		*left_ms = Min(*left_ms, zkl_held_assert(hold));
		found = true;
	}
	return found;
}
