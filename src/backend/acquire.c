/*
 * acquire.c
 *	  Acquiring locks, or counting those once more that are held.
 *
 * Owns the way from what is asked for to a hold.  Run by backends.  Takes no
 * locks; waits as request.c does.
 *
 * Must not know when a hold ends, nor anything of ZooKeeper.
 */
#include "postgres.h"

#include "backend/acquire.h"
#include "backend/lifetime.h"
#include "backend/refusal.h"
#include "miscadmin.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "znode/dialect.h"

/* A live hold of this backend on the same lock, the stronger one first */
static int
find_sibling(const ZklTarget *lock)
{
	static const ZklLockMode modes[] = {ZKL_EXCLUSIVE, ZKL_SHARED};
	int			i;

	for (i = 0; i < 4; i++)
	{
		ZklHold    *hold = zkl_hold_find(lock, modes[i / 2],
										 (ZklLifetime) (i % 2));
		ZklError	error;

		if (hold != NULL && zkl_hold_is_good(hold, &error))
			return hold->grant.slotno;
	}
	return -1;
}

/* Not all clients that a lock may be shared with know shared locks. */
static void
check_mode(const ZklLockRequest *ask)
{
	if (ask->mode == ZKL_SHARED && !zkl_dialect_shares(ask->lock.dialect))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("distributed lock \"%s\" cannot be shared",
						ask->lock.name),
				 errdetail("Its dialect is %s, which has exclusive locks only.",
						   zkl_dialect_name(ask->lock.dialect)),
				 errhint("Use an exclusive lock, or a name that \"zklock.dialects\" gives another dialect.")));
}

static void
refuse_again(const ZklLockRequest *ask)
{
	if (zkl_reentrant || find_sibling(&ask->lock) < 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("distributed lock \"%s\" is already held by this session",
					ask->lock.name),
			 errhint("Release it first, or set \"zklock.reentrant\" to on.")));
}

/* Returns only if what is held may be counted once more. */
static void
check_again(ZklHold *hold, const ZklLockRequest *ask)
{
	ZklError	error;

	zkl_lock_request_confirm(ask, hold->grant.slotno);
	if (!zkl_hold_is_good(hold, &error))
	{
		hold->told = true;
		zkl_refusal_raise_lost(hold->name, hold->key.lifetime, error);
	}
	zkl_hold_open(hold);
}

static void
drop_all(ZklHold **holds, int n)
{
	while (n > 0)
		zkl_hold_drop(holds[--n]);
}

/* Acquires what is not held yet, all or nothing. */
static bool
acquire_new(ZklLockRequest *asks, int n)
{
	ZklHold   **holds = palloc(n * sizeof(ZklHold *));
	ZklGrant   *grants = palloc(n * sizeof(ZklGrant));
	int volatile prepared = 0;
	bool		granted = false;
	int			i;

	PG_TRY();
	{
		for (; prepared < n; prepared++)
		{
			CHECK_FOR_INTERRUPTS();
			asks[prepared].sibling = find_sibling(&asks[prepared].lock);
			holds[prepared] = zkl_hold_prepare(&asks[prepared]);
		}
		granted = zkl_lock_request_run(asks, n, grants);
	}
	PG_CATCH();
	{
		drop_all(holds, prepared);
		PG_RE_THROW();
	}
	PG_END_TRY();

	if (!granted)
		drop_all(holds, n);
	for (i = 0; granted && i < n; i++)
		zkl_hold_begin(holds[i], &grants[i]);
	return granted;
}

static ZklHold *
find_hold(const ZklLockRequest *ask)
{
	return zkl_hold_find(&ask->lock, ask->mode, ask->lifetime);
}

/* What is held is looked at before the others are waited for, and after. */
static void
check_held(const ZklLockRequest *asks, const bool *held, int n)
{
	int			i;

	for (i = 0; i < n; i++)
	{
		if (held[i])
			check_again(find_hold(&asks[i]), &asks[i]);
	}
}

static bool
acquire(ZklLockRequest *asks, int n, int64 *tokens)
{
	ZklLockRequest *wanted = palloc(n * sizeof(ZklLockRequest));
	bool	   *held = palloc(n * sizeof(bool));
	int			nwanted = 0;
	int			i;

	zkl_lifetime_begin();
	for (i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		check_mode(&asks[i]);
		refuse_again(&asks[i]);
		held[i] = find_hold(&asks[i]) != NULL;
		if (!held[i])
			wanted[nwanted++] = asks[i];
	}
	if (nwanted > 0)
		zkl_request_check_room(zkl_hold_count(), nwanted);
	check_held(asks, held, n);
	if (nwanted > 0 && !acquire_new(wanted, nwanted))
		return false;
	PG_TRY();
	{
		if (nwanted > 0)
			check_held(asks, held, n);
	}
	PG_CATCH();
	{
		for (i = 0; i < nwanted; i++)
			zkl_hold_end(find_hold(&wanted[i]));
		PG_RE_THROW();
	}
	PG_END_TRY();

	for (i = 0; i < n; i++)
	{
		ZklHold    *hold = find_hold(&asks[i]);

		if (held[i])
		{
			zkl_hold_again(hold);
			zkl_slot_set_holds(hold->grant.slotno, hold->count);
			zkl_slot_rebound(hold->grant.slotno, asks[i].at_most_ms,
							 asks[i].at_least_ms);
		}
		tokens[i] = hold->grant.token;
	}
	return true;
}

/*
 * Whatever is waited for on the way, the times count from here, unless this is
 * a part of another call.
 */
bool
zkl_acquire(ZklLockRequest *asks, int n, int64 *tokens)
{
	ZklDeadlines at;
	bool		done;
	int			i;

	if (asks[0].at != NULL)
		return acquire(asks, n, tokens);
	zkl_request_deadlines(&asks[0], &at);
	for (i = 0; i < n; i++)
		asks[i].at = &at;
	done = acquire(asks, n, tokens);
	for (i = 0; i < n; i++)
		asks[i].at = NULL;
	return done;
}
