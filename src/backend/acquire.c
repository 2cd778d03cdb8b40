/*
 * acquire.c
 *	  Acquiring locks, or counting existing holds once more.
 *
 * Owns the way from a request to a hold.  Run by backends.  Takes no locks;
 * waits as wait.c does.
 *
 * Must not know when a hold ends, nor anything of ZooKeeper.
 */
#include "postgres.h"

#include "backend/acquire.h"
#include "backend/backend_slot.h"
#include "backend/lifetime.h"
#include "backend/quota.h"
#include "backend/refusal.h"
#include "miscadmin.h"
#include "shared/settings.h"
#include "znode/dialect.h"

/* Not all clients that a lock may be shared with know shared locks. */
static void
check_mode(const ZklLockRequest *request)
{
	if (request->mode == ZKL_SHARED && !zkl_dialect_shares(request->lock.dialect))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("distributed lock \"%s\" cannot be shared",
						request->lock.name),
				 errdetail("Its dialect is %s, which has only exclusive locks.",
						   zkl_dialect_name(request->lock.dialect)),
				 errhint("Use an exclusive lock, or a name to which \"zklock.dialects\" assigns another dialect.")));
}

static void
refuse_again(const ZklLockRequest *request, ZklHeldLock *held)
{
	if (zkl_reentrant || zkl_hold_sibling(held) < 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("distributed lock \"%s\" is already held by this session",
					request->lock.name),
			 errhint("Release it first, or set \"zklock.reentrant\" to on.")));
}

/* The hold that a request would count once more; NULL: there is none */
static ZklHold *
find_counted(const ZklLockRequest *request)
{
	ZklHeldLock *held = zkl_hold_lookup(&request->lock);

	refuse_again(request, held);
	return zkl_hold_in(held, request->mode, request->lifetime);
}

/* Returns only if each of the holds may be counted once more. */
static void
check_held(const ZklLockRequest *requests, ZklHold **holds, int n)
{
	ZklError	error;
	int			i;

	for (i = 0; i < n; i++)
	{
		if (holds[i] == NULL)
			continue;
		zkl_lock_request_confirm(&requests[i], holds[i]->grant.slotno);
		if (!zkl_hold_is_good(holds[i], &error))
		{
			holds[i]->told = true;
			zkl_refusal_raise_lost(holds[i]->name, zkl_hold_release_function(holds[i]), error);
		}
		zkl_hold_open(holds[i]);
	}
}

/* Counts a hold once more; its bounds become the later ones. */
static void
count_again(ZklHold *hold, const ZklLockRequest *request)
{
	zkl_hold_again(hold);
	zkl_backend_slot_set_holds(hold->grant.slotno, hold->count);
	zkl_backend_slot_rebound(hold->grant.slotno, request->at_most_ms,
							 request->at_least_ms);
}

static void
drop_prepared(ZklHold **holds, int n)
{
	while (n > 0)
		zkl_hold_drop(holds[--n]);
}

/* Acquires locks of which there is no such hold yet, all or nothing. */
static bool
acquire_new(ZklLockRequest *requests, int n, ZklHold **holds)
{
	ZklGrant   *grants = palloc(n * sizeof(ZklGrant));
	int volatile prepared = 0;
	bool		granted = false;
	int			i;

	PG_TRY();
	{
		for (; prepared < n; prepared++)
		{
			CHECK_FOR_INTERRUPTS();
			holds[prepared] = zkl_hold_prepare(&requests[prepared]);
			requests[prepared].sibling =
				zkl_hold_sibling(holds[prepared]->lock);
		}
		granted = zkl_lock_request_run(requests, n, grants);
	}
	PG_CATCH();
	{
		drop_prepared(holds, prepared);
		PG_RE_THROW();
	}
	PG_END_TRY();

	if (!granted)
		drop_prepared(holds, n);
	for (i = 0; granted && i < n; i++)
		zkl_hold_begin(holds[i], &grants[i]);
	return granted;
}

/*
 * The holds that are there already are checked before the wait for the others,
 * and after it.
 */
static bool
acquire_locks(const ZklLockRequest *requests, int n, int64 *tokens)
{
	ZklLockRequest *new_requests = palloc(n * sizeof(ZklLockRequest));
	ZklHold   **new_holds = palloc(n * sizeof(ZklHold *));
	ZklHold   **holds = palloc(n * sizeof(ZklHold *));
	int			nnew = 0;
	int			i;

	zkl_lifetime_begin();
	if (!requests[0].within_call)
		zkl_lifetime_check_allowed(requests[0].lifetime);
	for (i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		check_mode(&requests[i]);
		holds[i] = find_counted(&requests[i]);
		if (holds[i] == NULL)
			new_requests[nnew++] = requests[i];
	}
	if (nnew > 0)
		zkl_quota_check_room(zkl_hold_count(), nnew);
	check_held(requests, holds, n);
	if (nnew > 0 && !acquire_new(new_requests, nnew, new_holds))
		return false;
	PG_TRY();
	{
		if (nnew > 0)
			check_held(requests, holds, n);
	}
	PG_CATCH();
	{
		for (i = 0; i < nnew; i++)
			zkl_hold_end(new_holds[i]);
		PG_RE_THROW();
	}
	PG_END_TRY();

	for (i = n; i-- > 0;)
	{
		if (holds[i] != NULL)
			count_again(holds[i], &requests[i]);
		else
			holds[i] = new_holds[--nnew];
		tokens[i] = holds[i]->grant.token;
	}
	return true;
}

/* All deadlines count from here, unless this is a part of another call. */
bool
zkl_acquire(ZklLockRequest *requests, int n, int64 *tokens)
{
	ZklDeadlines at;
	bool		done;
	int			i;

	if (requests[0].at != NULL)
		return acquire_locks(requests, n, tokens);
	zkl_wait_begin_lock(&at, requests[0].is_try, requests[0].timeout_ms);
	for (i = 0; i < n; i++)
		requests[i].at = &at;
	done = acquire_locks(requests, n, tokens);
	for (i = 0; i < n; i++)
		requests[i].at = NULL;
	return done;
}
