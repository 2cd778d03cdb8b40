/*
 * barrier.c
 *	  Barriers: sessions of many servers that start, and end, together.
 *
 * Owns what zk_barrier_enter(), zk_barrier_leave() and zk_barrier() do with the
 * children of a barrier's directory, and how these are told apart.  Run by backends.
 * Takes no locks; waits as wait.c does.
 */
#include "postgres.h"

#include "access/xact.h"
#include "backend/acquire.h"
#include "backend/backend_slot.h"
#include "backend/commit.h"
#include "backend/errand.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "nodes/pg_list.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/gate.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "storage/proc.h"

/* A listing, and how long to wait for another; times in ms of boottime.h */
typedef struct ZklChildren
{
	ZklTarget	target;			/* its directory is listed */
	int64		until;			/* ZKL_FOREVER: no matter how long */
	int64		lock_until;		/* likewise, by "lock_timeout" */
	uint64		known;			/* fingerprint of the listing */
	bool		takes;			/* see ZklDeadlines; off at first */
	ZklErrand  *listing;
} ZklChildren;

/* What a listing says */
typedef struct ZklMembers
{
	int			count;
	bool		is_ready;
	bool		has_us;
	bool		is_first;		/* our name is the lowest */
} ZklMembers;

/* ---- members: the children of a barrier: its members, and "ready" ---- */

/*
 * Takes no locks; waits for errands only, as wait.c does.
 *
 * Must not know which members enter or leave, nor when.
 *
 * As Curator counts them, all children but "ready" are members.
 *
 * "ready" must stay while a member is in that may not have seen it.  A listing
 * cannot promise that: behind it, others may enter, start the next round, and
 * leave.  No delete can name the "ready" that was listed, as its version is 0
 * each time.  So the barrier's directory is deleted in the same transaction:
 * ZooKeeper refuses that as long as there is any other child, and no member is
 * without its znode.  However late such a delete arrives, it can only end a round
 * without members.
 */

/* ---- the listing ---- */

#define FIRST_ROOM		((Size) 8192)	/* for names */
#define NOT_KNOWN		PG_UINT64_MAX	/* differs from all fingerprints */

static void members_forget(ZklChildren *children);

static ZklErrand *
make_listing(const ZklTarget *target, Size room)
{
	return zkl_errand_make(ZKL_ERRAND_AWAIT, target, NULL, room);
}

/*
 * Nothing is listed yet.  timeout_ms is for all looks together, and so is
 * "lock_timeout", from now on.  Lives until members_end, or the end of the
 * transaction.
 */
static void
members_begin(ZklChildren *children, const ZklTarget *target,
			  int64 timeout_ms)
{
	int64		now = zkl_boottime_ms();

	children->target = *target;
	children->until = timeout_ms < ZKL_FOREVER - now ? now + timeout_ms :
		ZKL_FOREVER;
	children->lock_until = LockTimeout > 0 ? now + LockTimeout : ZKL_FOREVER;
	children->known = NOT_KNOWN;
	children->takes = false;
	children->listing = make_listing(target, FIRST_ROOM);
}

static void
members_end(ZklChildren *children)
{
	zkl_errand_free(children->listing);
}

static int64
ms_left(int64 until)
{
	return until == ZKL_FOREVER ? ZKL_FOREVER :
		Max(until - zkl_boottime_ms(), 0);
}

/* What is left of the timeout, in ms, or ZKL_FOREVER */
static int64
members_ms_left(const ZklChildren *children)
{
	return ms_left(children->until);
}

static void
check_lock_timeout(const ZklChildren *children)
{
	if (ms_left(children->lock_until) == 0)
		zkl_stall_raise_lock_timeout(children->target.name);
}

/*
 * Waits until the children are not as listed, and lists them; the first time,
 * or after members_forget, just lists them.  A directory that does not
 * exist has none.  False: the time is over, and they are as listed.  Error
 * 55P03 after "lock_timeout"; 08006 if ZooKeeper cannot be reached within the
 * timeout and "zklock.answer_timeout"; others as ZooKeeper answers.
 */
static bool
members_look(ZklChildren *children)
{
	for (;;)
	{
		ZklErrand  *listing = children->listing;
		Size		size;
		int32		rc;

		listing->known = children->known;
		rc = zkl_errand_await(listing, &children->target,
							  Min(ms_left(children->until),
								  ms_left(children->lock_until)),
							  children->takes);
		if (rc != ZKL_RC_OK && rc != ZKL_RC_NONODE)
			zkl_refusal_raise_failed(children->target.name, ZKL_ERROR_ZOOKEEPER, rc);
		if (rc == ZKL_RC_OK && listing->answer.fingerprint == children->known)
		{
			check_lock_timeout(children);
			return false;
		}
		size = listing->answer.size;
		if (size <= listing->room)
		{
			children->known = listing->answer.fingerprint;
			return true;
		}
		members_forget(children);
		zkl_errand_free(listing);
		children->listing = make_listing(&children->target, 2 * size);
	}
}

static void
members_forget(ZklChildren *children)
{
	children->known = NOT_KNOWN;
}

/*
 * The names that were listed, one after the other in no order: the first one for NULL;
 * NULL behind the last one.
 */
static const char *
next_child(const ZklChildren *children, const char *name)
{
	return zkl_errand_next(children->listing, name);
}

/*
 * Writes to a child: CREATE (persistent, empty) or DELETE.  True also if the
 * child exists, or does not exist, already.  False: whether it was done, or will
 * be, is not known, and the next look just lists the children.  Errors as
 * ZooKeeper answers.
 */
static bool
write_child(ZklChildren *children, ZklErrandKind kind,
			const char *child)
{
	ZklErrand  *errand = zkl_errand_make(kind, &children->target, child, 0);
	int32		rc = zkl_errand_run(errand, &children->target);

	zkl_errand_free(errand);
	if (rc == ZKL_RC_UNKNOWN)
	{
		members_forget(children);
		return false;
	}
	if (rc != ZKL_RC_OK &&
		rc != (kind == ZKL_ERRAND_CREATE ? ZKL_RC_NODEEXISTS : ZKL_RC_NONODE))
		zkl_refusal_raise_failed(children->target.name, ZKL_ERROR_ZOOKEEPER, rc);
	return true;
}

/*
 * Whether a client has put data into the directory, and would miss it.  If clients
 * make a directory on their way to a child, it is empty, and they make it again.
 */
static bool
directory_has_data(const ZklChildren *children)
{
	ZklErrand  *get = zkl_errand_make(ZKL_ERRAND_GET, &children->target, NULL,
									  0);
	int32		rc = zkl_errand_run(get, &children->target);
	bool		found = rc != ZKL_RC_NONODE &&
	(rc != ZKL_RC_OK || get->answer.size > 0 || get->answer.stat.version > 0);

	zkl_errand_free(get);
	return found;
}

/*
 * Deletes a child, and the directory with it, unless the directory has other
 * children.  True also if the child does not exist.  If the directory has data,
 * or we may not delete it, it stays, and the child is deleted even if there are
 * others.  False: there are others, or what was done, or will be, is not known,
 * and the next look just lists the children.  Errors as ZooKeeper answers.
 */
static bool
delete_last_child(ZklChildren *children, const char *child)
{
	ZklErrand  *errand;
	int32		rc;

	if (directory_has_data(children))
		return write_child(children, ZKL_ERRAND_DELETE, child);
	errand = zkl_errand_make(ZKL_ERRAND_DELETE_LAST, &children->target, child,
							 0);
	rc = zkl_errand_run(errand, &children->target);
	zkl_errand_free(errand);
	if (rc == ZKL_RC_NOAUTH)
		return write_child(children, ZKL_ERRAND_DELETE, child);
	if (rc == ZKL_RC_UNKNOWN || rc == ZKL_RC_NOTEMPTY)
	{
		members_forget(children);
		return false;
	}
	if (rc != ZKL_RC_OK && rc != ZKL_RC_NONODE)
		zkl_refusal_raise_failed(children->target.name, ZKL_ERROR_ZOOKEEPER, rc);
	return true;
}

/* ---- members ---- */

#define READY	"ready"

static bool
is_ready_node(const char *name)
{
	return strcmp(name, READY) == 0;
}

static bool
is_own_member(const char *own, const char *name)
{
	return own[0] != '\0' && strncmp(name, own, strlen(own)) == 0;
}

static void
members_count(const ZklChildren *children, const char *own,
			  ZklMembers *members)
{
	const char *lowest = NULL;
	const char *name = NULL;

	memset(members, 0, sizeof(*members));
	while ((name = next_child(children, name)) != NULL)
	{
		if (is_ready_node(name))
		{
			members->is_ready = true;
			continue;
		}
		members->count++;
		if (is_own_member(own, name))
			members->has_us = true;
		if (lowest == NULL || strcmp(name, lowest) < 0)
			lowest = name;
	}
	members->is_first = lowest != NULL && is_own_member(own, lowest);
}

static bool
is_listed(const ZklChildren *children, const char *name)
{
	const char *child = NULL;

	while ((child = next_child(children, child)) != NULL)
	{
		if (strcmp(child, name) == 0)
			return true;
	}
	return false;
}

/* The members that are listed, but for us: a list of names */
static List *
members_others(const ZklChildren *children, const char *own)
{
	List	   *names = NIL;
	const char *name = NULL;

	while ((name = next_child(children, name)) != NULL)
	{
		if (!is_ready_node(name) && !is_own_member(own, name))
			names = lappend(names, pstrdup(name));
	}
	return names;
}

/* Takes the members that are no longer listed out of such a list. */
static List *
members_left(const ZklChildren *children, List *names)
{
	ListCell   *cell;

	foreach(cell, names)
	{
		if (!is_listed(children, lfirst(cell)))
			names = foreach_delete_current(names, cell);
	}
	return names;
}

/*
 * Says that there are enough.  False: it is not known whether it is said, and
 * the next look just lists the children.
 */
static bool
members_set_ready(ZklChildren *children)
{
	return write_child(children, ZKL_ERRAND_CREATE, READY);
}

/*
 * Deletes "ready" if there is no member, by the listing and when ZooKeeper does it.
 * False: somebody has come, or it is not known what was done, and the next look
 * just lists the children.
 */
static bool
members_clean_up(ZklChildren *children)
{
	ZklMembers	members;

	members_count(children, "", &members);
	return !members.is_ready || members.count > 0 ||
		delete_last_child(children, READY);
}

/* ---- barrier ---- */

/*
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
 * - Ours delete "ready" only if no member is in (members), Curator's whenever
 *	 they leave.  So a member that has not seen it yet, while others are through
 *	 and gone, still finds it.
 * - A member that has left waits for the members that were in with it, not for
 *	 later ones: those are in the next round already, and may wait for it there.
 */

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
	request.timeout_ms = members_ms_left(&b->children);
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
		if (!members_look(&b->children))
			return false;
		members_count(&b->children, b->own, &view);
	} while (!members_clean_up(&b->children) ||
			 (!b->stays && view.is_ready && view.count > 0));
	members_forget(&b->children);
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
		if (!members_look(&b->children))
			return false;
		members_count(&b->children, b->own, &view);
		check_member(b, view.has_us);
		if (view.is_ready ||
			(view.count >= parties && members_set_ready(&b->children)))
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
		if (!members_look(&b->children))
			return false;
		members_count(&b->children, b->own, &view);
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
		members = members_left(children, members);
		members_count(children, b->own, &view);
		if (members == NIL && !view.has_us && members_clean_up(children))
			return true;
		if (members == NIL && children->until != ZKL_FOREVER)
			children->until = Max(children->until,
								  zkl_boottime_ms() + zkl_status_answer_timeout_ms());
		if (!members_look(children))
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
		members = members_others(&b->children, b->own);
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
	members_begin(&b->children, &b->target, b->timeout_ms);
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
	members_end(&b.children);
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
	members_end(&b.children);
	PG_RETURN_BOOL(left);
}
