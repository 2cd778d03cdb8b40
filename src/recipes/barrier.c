/*
 * barrier.c
 *	  Barriers: sessions of many servers that start, and end, together.
 *
 * Owns what zk_barrier_enter(), zk_barrier_leave() and zk_barrier() do with the
 * children of a barrier's directory.  Run by backends.  Takes no locks; waits
 * as wait.c does.
 *
 * Must not know how a lock is requested, nor how the worker runs an errand.
 *
 * The layout is that of Curator's DistributedDoubleBarrier: an ephemeral child
 * for each member, and a persistent one, "ready", which says that enough members
 * have come, and that they may start.  A member's is a shared lock of session
 * lifetime, in a dialect in which nothing conflicts, so that it is watched, shown
 * and lost as a lock is.  As Curator counts them, all children but "ready" are
 * members.
 *
 * A member that leaves and is not the first by name goes at once, and waits; the
 * first stays until it is alone.  That is Curator's order: its members wait for
 * the first one to go, and do not wait for the last one that is left.
 *
 * Where this differs from Curator, and why that is safe beside it:
 *
 * - If a round ended by crashes, it leaves "ready" without any member.
 *	 Curator's members would run right through; ours delete it before they
 *	 enter, and only then take it for the start.
 * - Ours delete "ready" only if no member is in (members.c), Curator's whenever
 *	 they leave.  So a member that has not seen it yet, while others are through
 *	 and gone, still finds it.
 * - A member that has left waits for the members that were in with it, not for
 *	 later ones: those are in the next round already, and may wait for it there.
 */
#include "postgres.h"

#include "access/xact.h"
#include "backend/acquire.h"
#include "backend/backend_slot.h"
#include "backend/commit.h"
#include "backend/hold.h"
#include "backend/target.h"
#include "recipes/members.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/gate.h"
#include "shared/slot.h"
#include "shared/status.h"

ZKL_FUNCTION(zkl_sql_barrier_enter);
ZKL_FUNCTION(zkl_sql_barrier_leave);
ZKL_FUNCTION(zkl_sql_barrier);

/* One call */
typedef struct Barrier
{
	ZklTarget	target;
	ZklHold    *hold;			/* our membership, or NULL */
	int64		timeout_ms;
	bool		stays;			/* a member beyond the call that enters */
	ZklDeadlines at;			/* of what is no wait for children */
	ZklChildren children;
	char		own[ZKL_MAX_ZNODE_NAME + 1];	/* how our znode begins */
} Barrier;

/* ---- membership ---- */

static void
find_membership(Barrier *b)
{
	b->hold = zkl_hold_find(&b->target, ZKL_SHARED, ZKL_LIFETIME_SESSION);
}

/*
 * While we wait, a loss is an error of ours, and no signal.  Also notes what
 * our znode is called.
 */
static void
begin_wait(Barrier *b)
{
	int			slotno = b->hold->grant.slotno;
	ZklSlot		slot;

	zkl_backend_slot_set_quiet(slotno, true);
	zkl_slot_copy(slotno, &slot);
	zkl_znode_prefix(ZKL_DIALECT_MEMBER, &slot.s_record.uuid, ZKL_SHARED,
					 b->own);
}

static void
check_member(const Barrier *b, bool has_us)
{
	ZklError	error;

	if (zkl_hold_is_good(b->hold, &error))
	{
		if (has_us)
			return;
		error = ZKL_ERROR_NODE_DELETED;
		zkl_hold_lose(b->hold, error);
	}
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("membership in barrier \"%s\" was lost", b->target.name),
			 errdetail("%s", zkl_slot_lost_detail(error))));
}

/* The request for a member's lock */
static ZklLockRequest
make_request(Barrier *b)
{
	ZklLockRequest request = {0};

	request.lock = b->target;
	request.mode = ZKL_SHARED;
	request.lifetime = ZKL_LIFETIME_SESSION;
	request.is_try = b->timeout_ms != ZKL_FOREVER;
	request.timeout_ms = zkl_members_ms_left(&b->children);
	request.at = &b->at;
	return request;
}

/*
 * A listing may come, after an outage, ahead of the lease: waits until that is
 * renewed, or the membership known to be lost.
 */
static void
confirm_member(Barrier *b)
{
	ZklLockRequest request = make_request(b);

	zkl_acquire_confirm(&request, b->hold->grant.slotno);
	check_member(b, true);
}

/* Goes without a word; does nothing if we are no member. */
static void
drop_out(Barrier *b)
{
	if (b->hold != NULL)
		zkl_hold_end(b->hold);
	b->hold = NULL;
}

/*
 * An error ends a membership that this transaction may have relied on.  If the
 * membership is lost or in doubt, and a subtransaction can catch the error, the
 * hold stays: so the commit check finds it, as any lock that was lost.
 */
static void
drop_out_after_error(Barrier *b)
{
	ZklError	error;

	find_membership(b);			/* the error may have come behind its end */
	if (b->hold != NULL && GetCurrentTransactionNestLevel() > 1 &&
		(!zkl_hold_is_good(b->hold, &error) || zkl_hold_has_lapsed(b->hold)))
		zkl_backend_slot_set_quiet(b->hold->grant.slotno, false);
	else
		drop_out(b);
}

/* ---- entering ---- */

/* False: the time was over first. */
static bool
become_member(Barrier *b)
{
	ZklLockRequest request = make_request(b);
	int64		token;

	request.within_call = !b->stays;
	if (!zkl_acquire(&request, 1, &token))
		return false;
	find_membership(b);
	return true;
}

/* Before we are in: after that, "ready" says that we may start. */
static bool
delete_stale_ready(Barrier *b)
{
	ZklMembers	view;

	do
	{
		if (!zkl_members_look(&b->children))
			return false;
		zkl_members_count(&b->children, b->own, &view);
	} while (!zkl_members_clean_up(&b->children) ||
			 (!b->stays && view.is_ready && view.count > 0));
	zkl_members_forget(&b->children);
	return true;
}

/* True once there are enough members, or were: the first to see it says so. */
static bool
wait_for_start(Barrier *b, int parties)
{
	ZklMembers	view;

	begin_wait(b);
	for (;;)
	{
		if (!zkl_members_look(&b->children))
			return false;
		zkl_members_count(&b->children, b->own, &view);
		check_member(b, view.has_us);
		if (view.is_ready ||
			(view.count >= parties && zkl_members_set_ready(&b->children)))
			break;
	}
	confirm_member(b);
	zkl_backend_slot_set_quiet(b->hold->grant.slotno, false);
	check_member(b, true);
	return true;
}

static void
refuse_entering_again(const Barrier *b)
{
	if (b->hold == NULL)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("this session is already in barrier \"%s\"",
					b->target.name),
			 errhint("Leave it first, with zk_barrier_leave().")));
}

static bool
enter_barrier(Barrier *b, int parties)
{
	bool		started = false;

	if (!delete_stale_ready(b) || !become_member(b))
		return false;
	PG_TRY();
	{
		started = wait_for_start(b, parties);
	}
	PG_CATCH();
	{
		drop_out(b);
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (!started)
		drop_out(b);
	return started;
}

/* ---- leaving ---- */

/*
 * Stays while we are the first and not alone.  False: the time was over.  The
 * listing then has the members that were in with us.
 */
static bool
wait_until_not_first(Barrier *b)
{
	ZklMembers	view;

	begin_wait(b);
	for (;;)
	{
		if (!zkl_members_look(&b->children))
			return false;
		zkl_members_count(&b->children, b->own, &view);
		check_member(b, view.has_us);
		if (!view.is_first || view.count == 1)
			return true;
	}
}

/*
 * Waits until our znode and these members' are gone; a member that finds the
 * barrier empty cleans up.  If only our znode is left, that takes a moment,
 * whatever the timeout.
 */
static bool
wait_until_gone(Barrier *b, List *members)
{
	ZklChildren *children = &b->children;
	ZklMembers	view;

	for (;;)
	{
		members = zkl_members_left(children, members);
		zkl_members_count(children, b->own, &view);
		if (members == NIL && !view.has_us && zkl_members_clean_up(children))
			return true;
		if (members == NIL && children->until != ZKL_FOREVER)
			children->until = Max(children->until,
								  zkl_boottime_ms() + zkl_status_answer_timeout_ms());
		if (!zkl_members_look(children))
			return members == NIL;
	}
}

static bool
leave_barrier(Barrier *b)
{
	ZklError	error;
	List	   *members = NIL;
	bool		may_go = false;
	bool		released = false;

	/* One that was lost before is acknowledged, as of a lock. */
	if (!zkl_hold_is_good(b->hold, &error))
		return zkl_held_release_lock(&b->target, ZKL_SHARED);
	PG_TRY();
	{
		may_go = wait_until_not_first(b);
		if (may_go)
			confirm_member(b);
		members = zkl_members_others(&b->children, b->own);
		released = zkl_held_release_lock(&b->target, ZKL_SHARED);
	}
	PG_CATCH();
	{
		drop_out_after_error(b);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return may_go && released && wait_until_gone(b, members);
}

/* ---- SQL ---- */

/* Takes the path and the timeout, argument number "timeout". */
static void
get_barrier(FunctionCallInfo fcinfo, int timeout, ZklPrivileges needed,
			Barrier *b)
{
	memset(b, 0, sizeof(*b));
	b->target = zkl_target_recipe(zkl_target_name(fcinfo), "",
								  ZKL_DIALECT_MEMBER, needed);
	b->timeout_ms = zkl_target_timeout_ms(fcinfo, timeout);
	find_membership(b);
}

/* All that the call waits for has the same deadlines. */
static void
begin_barrier(Barrier *b)
{
	zkl_wait_begin_lock(&b->at, b->timeout_ms != ZKL_FOREVER, b->timeout_ms);
	zkl_members_begin(&b->children, &b->target, b->timeout_ms);
}

static int
get_parties(FunctionCallInfo fcinfo)
{
	int			parties = PG_GETARG_INT32(1);

	if (parties <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of parties must be positive")));
	return parties;
}

/* zk_barrier_enter(), and zk_barrier(), which does not stay in */
static Datum
enter_by_sql(FunctionCallInfo fcinfo, bool stays)
{
	Barrier		b;
	int			parties;
	bool		started;

	(void) zkl_target_name(fcinfo);
	zkl_target_need(fcinfo, 1, "number of parties");
	get_barrier(fcinfo, 2, ZKL_MAY_BARRIER, &b);
	b.stays = stays;
	parties = get_parties(fcinfo);
	refuse_entering_again(&b);
	zkl_gate_check_worker();
	if (stays)
		zkl_lifetime_check_allowed(ZKL_LIFETIME_SESSION);
	begin_barrier(&b);
	b.children.takes = true;
	started = enter_barrier(&b, parties);
	b.children.takes = false;
	if (started && !stays)
	{
		drop_out(&b);
		(void) wait_until_gone(&b, NIL);
	}
	zkl_members_end(&b.children);
	PG_RETURN_BOOL(started);
}

Datum
zkl_sql_barrier_enter(PG_FUNCTION_ARGS)
{
	return enter_by_sql(fcinfo, true);
}

Datum
zkl_sql_barrier(PG_FUNCTION_ARGS)
{
	return enter_by_sql(fcinfo, false);
}

Datum
zkl_sql_barrier_leave(PG_FUNCTION_ARGS)
{
	Barrier		b;
	bool		left;

	get_barrier(fcinfo, 1, ZKL_NEEDS_NOTHING, &b);
	if (b.hold == NULL)
	{
		ereport(WARNING,
				(errmsg("this session is not in barrier \"%s\"",
						zkl_text_for_client(b.target.name))));
		PG_RETURN_BOOL(false);
	}
	zkl_gate_check_worker();
	begin_barrier(&b);
	left = leave_barrier(&b);
	zkl_members_end(&b.children);
	PG_RETURN_BOOL(left);
}
