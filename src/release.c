/*
 * release.c
 *	  Releasing locks by call, before they end by themselves.
 *
 * Owns nothing.  Run by backends.  Takes no locks; may wait for a lease, as
 * commit.c does.
 *
 * Must not know how a lock is asked for, nor anything of ZooKeeper.
 */
#include "postgres.h"

#include "commit.h"
#include "lifetime.h"
#include "refusal.h"
#include "release.h"

static void
warn_not_held(const ZklTarget *lock, ZklLockMode mode)
{
	ZklHold    *until_commit = zkl_hold_find(lock, mode,
											 ZKL_LIFETIME_TRANSACTION);

	ereport(WARNING,
			(lock->dialect == ZKL_DIALECT_LATCH ?
			 errmsg("you do not lead \"%s\"", lock->name) :
			 mode == ZKL_EXCLUSIVE ?
			 errmsg("you do not hold distributed lock \"%s\" in exclusive mode",
					lock->name) :
			 errmsg("you do not hold distributed lock \"%s\" in shared mode",
					lock->name),
			 until_commit != NULL ?
			 errhint("A lock of transaction lifetime ends with its transaction.") : 0));
}

static void
warn_lapsed(const ZklHold *hold)
{
	ereport(WARNING,
			(errmsg("distributed lock \"%s\" may have been lost", hold->name),
			 errdetail("Its lease has passed.")));
}

/* A barrier protects nothing that its members write. */
static void
warn_early(const ZklHold *hold)
{
	if (hold->key.dialect == ZKL_DIALECT_MEMBER || !zkl_commit_warn_release())
		return;
	ereport(WARNING,
			(errmsg("distributed lock \"%s\" is released before the changes of this transaction are visible",
					hold->name),
			 errhint("Release it after the transaction, or use a lock that lasts until its end, such as zk_xact_lock().")));
}

/*
 * Ends a hold that is asked to end; false, with a warning, if it was lost, or
 * may have been.  A loss since the transaction began must not be waved through
 * to its commit.
 */
bool
zkl_release_hold(ZklHold *hold)
{
	ZklError	error;
	bool		known = zkl_commit_check_release(hold);

	if (!zkl_hold_is_good(hold, &error))
	{
		ereport(WARNING,
				(errmsg("distributed lock \"%s\" had been lost", hold->name),
				 errdetail("%s", zkl_lost_detail(error))));
		known = false;
	}
	else if (!known)
		warn_lapsed(hold);
	else
		warn_early(hold);
	zkl_hold_end(hold);
	return known;
}

bool
zkl_release_lock(const ZklTarget *lock, ZklLockMode mode)
{
	ZklHold    *hold;
	ZklError	error;
	bool		known;

	zkl_lifetime_check();
	hold = zkl_hold_find(lock, mode, ZKL_LIFETIME_SESSION);
	if (hold == NULL)
	{
		warn_not_held(lock, mode);
		return false;
	}
	if (hold->count == 1 || !zkl_hold_is_good(hold, &error))
		return zkl_release_hold(hold);
	known = zkl_commit_check_release(hold);
	if (!known)
		warn_lapsed(hold);
	hold->count--;
	zkl_slot_set_holds(hold->grant.slotno, hold->count);
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
