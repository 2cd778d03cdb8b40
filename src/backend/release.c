/*
 * release.c
 *	  Releasing locks by call, before they end by themselves.
 *
 * Owns nothing.  Run by backends.  Takes no locks; may wait for a lease, as
 * commit.c does.
 *
 * Must not know how a lock is requested, nor anything of ZooKeeper.
 */
#include "postgres.h"

#include <unistd.h>

#include "backend/backend_slot.h"
#include "backend/commit.h"
#include "backend/lifetime.h"
#include "backend/release.h"
#include "backend/text.h"
#include "miscadmin.h"
#include "shared/slot.h"

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
zkl_release_hold(ZklHold *hold)
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
zkl_release_lock(const ZklTarget *lock, ZklLockMode mode)
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
		return zkl_release_hold(hold);
	known = zkl_commit_check_release(hold);
	hold->count--;
	zkl_backend_slot_set_holds(hold->grant.slotno, hold->count);
	if (!known)
		warn_lapsed(zkl_text_for_client(hold->name));
	return known;
}

void
zkl_release_quietly(const ZklTarget *lock, ZklLockMode mode,
					ZklLifetime lifetime)
{
	ZklHold    *hold = zkl_hold_find(lock, mode, lifetime);

	if (hold != NULL)
		zkl_hold_end(hold);
}

void
zkl_release_all(void)
{
	dlist_mutable_iter iter;

	zkl_lifetime_check();
	dlist_foreach_modify(iter, &zkl_holds[ZKL_LIFETIME_SESSION])
		(void) zkl_release_hold(dlist_container(ZklHold, link, iter.cur));
}
