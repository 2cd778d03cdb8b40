/*
 * semaphore.c
 *	  Acquiring and releasing permits of a semaphore.
 *
 * Owns which slot is the guard's (the slot itself is acquire.c's, as of any request
 * under way), and the order of the steps: the guard, the maximum, the permits, and the
 * guard's end.  Run by backends.  Takes no locks but, through backend_slot.h, those of
 * slots; the guard is a distributed one, which is released whatever happens.
 *
 * Must not know how a permit is granted, nor when a hold ends.
 *
 * If the guard is lost, with the ZooKeeper session, say, another client may have
 * made permits meanwhile.  Then the permits requested under it are abandoned,
 * and everything begins again.
 */
#include "postgres.h"

#include "backend/acquire.h"
#include "backend/backend_slot.h"
#include "backend/commit.h"
#include "backend/hold.h"
#include "backend/target.h"
#include "backend/wait.h"
#include "miscadmin.h"
#include "recipes/maximum.h"
#include "recipes/semaphore.h"
#include "shared/boottime.h"
#include "shared/gate.h"
#include "shared/slot.h"

/* ---- the guard, and the requests under it ---- */

/* The guard, and its number among the requests under way; -1: none */
typedef enum ZklPermitAnswer
{
	ZKL_PERMITS_GRANTED,
	ZKL_PERMITS_DENIED,			/* a try timed out */
	ZKL_PERMITS_UNGUARDED		/* the guard, or a permit, was lost meanwhile */
} ZklPermitAnswer;

static int	guard_at = -1;
static ZklGrant guard;

/* Releases the guard, if there is one.  Cannot fail. */
static void
end_guard(void)
{
	if (guard_at >= 0)
		zkl_under_way_abandon(guard_at);
	guard_at = -1;
}

/*
 * Requests the lock that guards a semaphore.  False: a try timed out.  The guard stays
 * under way until end_guard, which must follow an error, too.  It is no hold: its
 * loss sends no signal, and no commit is checked for it.
 */
static bool
begin_guard(const ZklLockRequest *request)
{
	int			slotno;

	CHECK_FOR_INTERRUPTS();
	guard_at = zkl_under_way_count();
	zkl_acquire_submit(request, false, false);
	slotno = zkl_under_way_slot(guard_at);
	zkl_acquire_wait(request, slotno, zkl_wait_is_answered);
	if (zkl_acquire_take(request, slotno, &guard))
		return true;
	end_guard();
	return false;
}

static bool
is_guarded(void)
{
	ZklError	error;

	return zkl_backend_slot_is_held(guard.slotno, guard.generation, &error) &&
		zkl_lease_is_current(guard.generation);
}

/* Answered, or to be given up */
static bool
is_permit_settled(int slotno)
{
	return zkl_wait_is_answered(slotno) || !is_guarded();
}

static bool
is_permit_lost(int slotno)
{
	ZklSlot		slot;

	zkl_slot_copy(slotno, &slot);
	return slot.s_state == ZKL_SLOT_LOST ||
		(slot.s_state == ZKL_SLOT_GRANTED &&
		 !zkl_lease_is_current(slot.s_record.generation));
}

/* What get_permits_guarded() is called with, and its result */
typedef struct PermitRun
{
	const ZklLockRequest *request;
	int			n;
	ZklGrant   *grants;
	ZklPermitAnswer answer;
} PermitRun;

/*
 * No grant is taken before all are there: until then a loss sends no signal,
 * for the permits are requested again.
 */
static ZklPermitAnswer
submit_permits(const PermitRun *run)
{
	ZklLockRequest request = *run->request;
	ZklSlot		slot;
	int			first = zkl_under_way_count();
	int			i;

	zkl_slot_copy(guard.slotno, &slot);
	request.waited = slot.s_answer.blocked;
	for (i = 0; i < run->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		zkl_acquire_submit(&request, false, i + 1 < run->n);
	}
	for (i = 0; i < run->n; i++)
	{
		int			slotno = zkl_under_way_slot(first + i);

		zkl_acquire_wait(run->request, slotno, is_permit_settled);
		if (zkl_slot_peek(slotno) == ZKL_SLOT_DENIED)
			return ZKL_PERMITS_DENIED;
		if (!is_guarded())
			return ZKL_PERMITS_UNGUARDED;
	}
	for (i = 0; i < run->n; i++)
	{
		int			slotno = zkl_under_way_slot(first + i);

		if (is_permit_lost(slotno))
			return ZKL_PERMITS_UNGUARDED;
		(void) zkl_acquire_take(run->request, slotno, &run->grants[i]);
	}
	return ZKL_PERMITS_GRANTED;
}

static bool
run_permits(void *arg)
{
	PermitRun  *run = arg;

	run->answer = submit_permits(run);
	return run->answer == ZKL_PERMITS_GRANTED;
}

/*
 * Under the guard: requests n permits of one semaphore, which all wait at the
 * same time.  All or nothing; errors as with zkl_acquire.
 */
static ZklPermitAnswer
get_permits(const ZklLockRequest *request, int n, ZklGrant *grants)
{
	PermitRun	run = {request, n, grants};

	(void) zkl_under_way_run(run_permits, &run);
	return run.answer;
}

/* ---- a semaphore ---- */

#define GUARDS			1		/* requests beside those of the permits */

/* How long a try that has timed out stays in the guard's queue, at a time */
#define GUARD_ATTEMPT_MS	250

typedef struct Semaphore
{
	const ZklSemaphoreRequest *call;
	ZklDeadlines at;			/* of the whole call */
	int64		over;			/* when a try times out */
	int64		asked_us;		/* when the call began, by boottime.h */
	ZklTarget	directory;
	ZklTarget	guard;
	ZklTarget	permits;
} Semaphore;

static void
find_targets(Semaphore *s, const text *path, ZklPrivileges needed)
{
	s->permits = zkl_target_recipe(path, ZKL_SEMAPHORE_PERMITS,
								   ZKL_DIALECT_PERMIT, needed);
	s->guard = zkl_target_recipe(path, ZKL_SEMAPHORE_GUARD,
								 ZKL_DIALECT_CURATOR_MUTEX, ZKL_NEEDS_NOTHING);
	s->directory = zkl_target_recipe(path, "", ZKL_DIALECT_PERMIT,
									 ZKL_NEEDS_NOTHING);
}

/* ---- the session's permits ---- */

/* The first hold from "node" on that is a permit of it, or NULL */
static ZklHold *
next_permit(dlist_node *node, ZklLifetime lifetime, const ZklTarget *permits)
{
	dlist_head *list = &zkl_holds[lifetime];

	for (; node != &list->head; node = node->next)
	{
		ZklHold    *hold = dlist_container(ZklHold, link, node);

		if (hold->lock->key.permit != 0 && strcmp(hold->lock->key.path, permits->path) == 0)
			return hold;
	}
	return NULL;
}

/* The one acquired last; then the one before */
static ZklHold *
first_permit(ZklLifetime lifetime, const ZklTarget *permits)
{
	dlist_head *list = &zkl_holds[lifetime];

	return dlist_is_empty(list) ? NULL :
		next_permit(list->head.next, lifetime, permits);
}

static ZklHold *
next_held_permit(ZklHold *hold, ZklLifetime lifetime, const ZklTarget *permits)
{
	return next_permit(hold->link.next, lifetime, permits);
}

static int
count_permits(ZklLifetime lifetime, const ZklTarget *permits, bool only_good)
{
	ZklHold    *hold = first_permit(lifetime, permits);
	ZklError	error;
	int			n = 0;

	for (; hold != NULL; hold = next_held_permit(hold, lifetime, permits))
		n += !only_good || zkl_hold_is_good(hold, &error);
	return n;
}

/*
 * If this session holds too many permits itself, no other session could ever
 * end the wait.  A try with a timeout just fails when that ends.
 */
static void
refuse_self_deadlock(const Semaphore *s)
{
	int			held = count_permits(ZKL_LIFETIME_SESSION, &s->permits, true) +
	count_permits(ZKL_LIFETIME_TRANSACTION, &s->permits, true);

	if ((s->call->is_try && s->call->timeout_ms != ZKL_FOREVER) ||
		s->call->permits <= s->call->max - held)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
			 errmsg("deadlock detected"),
			 errdetail("This session holds %d of the %d permits of semaphore \"%s\" and requests %d more, so it would wait for itself.",
					   held, s->call->max, s->permits.name, s->call->permits),
			 errhint("Acquire all permits at once, or release some first.")));
}

/* ---- acquiring ---- */

/*
 * Whether there are surely too many permits.  If this server's lease has passed,
 * as when it was idle, it cannot tell.
 */
static bool
is_surely_full(const Semaphore *s)
{
	bool		full = zkl_maximum_count(&s->permits, true, &s->at) >
	s->call->max - s->call->permits;
	uint32		generation;
	int64		deadline;

	zkl_lease_read(&generation, &deadline);
	return full && zkl_lease_is_valid(generation);
}

static void
fill_in_request(Semaphore *s, const ZklTarget *target, ZklLockRequest *request)
{
	memset(request, 0, sizeof(*request));
	request->lock = *target;
	request->mode = ZKL_EXCLUSIVE;
	request->lifetime = s->call->lifetime;
	request->is_try = zkl_acquire_is_try(s->call->is_try, s->call->timeout_ms);
	request->timeout_ms = s->call->timeout_ms;
	request->at = &s->at;
	request->asked_us = s->asked_us;
	request->sibling = -1;
	request->max = (uint32) s->call->max;
}

static void
raise_unknown(const Semaphore *s)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("could not determine whether semaphore \"%s\" has enough permits left",
					s->permits.name),
			 errdetail("Other clients held its guard, the lock \"%s\", until \"zklock.answer_timeout\" had passed.",
					   s->guard.path),
			 errhint("Retry later.  A client that hangs loses the guard when its ZooKeeper session ends.")));
}

/*
 * A client that acquires permits holds the guard for a moment.  If it holds the
 * guard for longer, it waits for permits, and more than the maximum of them can
 * be seen.  So a try that has timed out looks at the permits: if they are too
 * many, it is refused; if not, it waits for the guard, a moment at a time.  The
 * answer stays unknown if a client hangs with the guard while few permits are
 * taken.
 *
 * In the last of these moments ZooKeeper has a little longer to answer, so that
 * the error tells the two cases apart.
 */
static bool
try_guard(Semaphore *s, ZklLockRequest *request)
{
	for (;;)
	{
		ZklDeadlines at = s->at;
		int64		now = zkl_wait_clock();

		if (now >= zkl_wait_answer_due(&s->at))
			raise_unknown(s);
		if (now >= s->over && is_surely_full(s))
			return false;
		at.time_out = Max(s->over, zkl_wait_after_ms(now, GUARD_ATTEMPT_MS));
		at.time_out = Min(at.time_out, zkl_wait_answer_due(&s->at));
		at.answer = zkl_wait_after_ms(s->at.answer, GUARD_ATTEMPT_MS);
		at.timed_out = false;
		request->timeout_ms = GUARD_ATTEMPT_MS; /* it does wait */
		request->at = &at;
		if (begin_guard(request))
			return true;
	}
}

static bool
enter_guard(Semaphore *s)
{
	ZklLockRequest request;

	fill_in_request(s, &s->guard, &request);
	request.guard = true;
	return request.is_try ? try_guard(s, &request) : begin_guard(&request);
}

/* One attempt under the guard, which is released in any case */
static ZklPermitAnswer
get_permits_guarded(Semaphore *s, ZklGrant *grants)
{
	ZklPermitAnswer volatile answer = ZKL_PERMITS_DENIED;
	ZklLockRequest request;

	PG_TRY();
	{
		if (enter_guard(s))
		{
			zkl_maximum_settle(&s->directory, &s->permits, s->call->max, true,
							   &s->at);
			fill_in_request(s, &s->permits, &request);
			answer = get_permits(&request, s->call->permits, grants);
		}
	}
	PG_FINALLY();
	{
		end_guard();
	}
	PG_END_TRY();
	return answer;
}

static bool
acquire_permits(Semaphore *s, int64 *token)
{
	int			n = s->call->permits;
	ZklHold   **holds = palloc(n * sizeof(ZklHold *));
	ZklGrant   *grants = palloc(n * sizeof(ZklGrant));
	int volatile prepared = 0;
	ZklPermitAnswer volatile answer = ZKL_PERMITS_UNGUARDED;
	ZklLockRequest request;
	int			i;

	fill_in_request(s, &s->permits, &request);
	PG_TRY();
	{
		for (; prepared < n; prepared++)
			holds[prepared] = zkl_hold_prepare(&request);
		while (answer == ZKL_PERMITS_UNGUARDED)
			answer = get_permits_guarded(s, grants);
	}
	PG_FINALLY();
	{
		if (answer != ZKL_PERMITS_GRANTED)
			zkl_hold_drop_prepared(holds, prepared);
	}
	PG_END_TRY();

	*token = 0;
	for (i = 0; answer == ZKL_PERMITS_GRANTED && i < n; i++)
	{
		zkl_hold_begin(holds[i], &grants[i]);
		*token = Max(*token, grants[i].token);
	}
	return answer == ZKL_PERMITS_GRANTED;
}

static void
check_numbers(const ZklSemaphoreRequest *call)
{
	if (call->max <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("maximum number of permits must be positive")));
	if (call->permits <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of permits must be positive")));
	if (call->permits > call->max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of permits must not be greater than the maximum"),
				 errdetail("The call requests %d permits, but the maximum is %d.",
						   call->permits, call->max)));
}

bool
zkl_semaphore_acquire(const ZklSemaphoreRequest *call, int64 *token)
{
	Semaphore	s;

	find_targets(&s, call->path, ZKL_MAY_SEMAPHORE);
	check_numbers(call);
	zkl_under_way_check_number((int64) call->permits + GUARDS, true);
	zkl_lifetime_begin();
	zkl_lifetime_check_allowed(call->lifetime);
	zkl_under_way_check_room(zkl_hold_count(), call->permits + GUARDS);
	s.call = call;
	s.asked_us = zkl_boottime_us();
	s.over = zkl_wait_after_ms(zkl_wait_clock(), call->timeout_ms);
	zkl_wait_begin_lock(&s.at, zkl_acquire_is_try(call->is_try, call->timeout_ms),
						call->timeout_ms);
	refuse_self_deadlock(&s);
	if (call->timeout_ms == 0)
		zkl_maximum_settle(&s.directory, &s.permits, call->max, false, &s.at);
	return acquire_permits(&s, token);
}

/* ---- releasing ---- */

static void
warn_permits_not_held(const ZklTarget *permits, int held, int wanted)
{
	bool		until_commit = first_permit(ZKL_LIFETIME_TRANSACTION,
											permits) != NULL;
	const char *name = zkl_text_for_client(permits->name);
	ZklHold    *other = held > 0 ? NULL : zkl_hold_named(permits->name);

	ereport(WARNING,
			(wanted == 1 ?
			 errmsg("you do not hold a permit of semaphore \"%s\"",
					name) :
			 errmsg("you do not hold %d permits of semaphore \"%s\"", wanted,
					name),
			 errdetail("This session holds %d; none was released.", held),
			 until_commit ?
			 errhint("A permit of transaction lifetime is released when the transaction ends.") :
			 other != NULL ?
			 errhint("Release the other hold of that name with %s().",
					 zkl_hold_release_function(other)) : 0));
}

bool
zkl_semaphore_release(const text *path, int permits)
{
	ZklHold    *hold;
	Semaphore	s;
	bool		good = true;
	int			held;

	find_targets(&s, path, ZKL_NEEDS_NOTHING);
	if (permits <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of permits must be positive")));
	zkl_lifetime_check();
	held = count_permits(ZKL_LIFETIME_SESSION, &s.permits, false);
	if (held < permits)
	{
		warn_permits_not_held(&s.permits, held, permits);
		return false;
	}
	while (permits-- > 0)
	{
		hold = first_permit(ZKL_LIFETIME_SESSION, &s.permits);
		good &= zkl_held_release(hold);
	}
	return good;
}

/* Calls fn for each permit of the semaphore that has a lock's name; counts them. */
static int
each_permit(const ZklTarget *lock, void (*fn) (ZklHold *hold, int64 *value), int64 *value)
{
	ZklTarget	permits = *lock;
	ZklHold    *hold;
	int			n = 0;
	int			i;

	permits.path = psprintf("%s%s", lock->path, ZKL_SEMAPHORE_PERMITS);
	for (i = 0; i < lengthof(zkl_holds); i++)
	{
		hold = first_permit((ZklLifetime) i, &permits);
		for (; hold != NULL; hold = next_held_permit(hold, (ZklLifetime) i, &permits))
		{
			fn(hold, value);
			n++;
		}
	}
	return n;
}

static void
shorten_time(ZklHold *hold, int64 *left_ms)
{
	*left_ms = Min(*left_ms, zkl_held_assert(hold));
}

bool
zkl_semaphore_assert(const ZklTarget *lock, int64 *left_ms)
{
	return each_permit(lock, shorten_time, left_ms) > 0;
}

static void
raise_token(ZklHold *hold, int64 *token)
{
	ZklError	error;

	if (zkl_hold_is_good(hold, &error))
		*token = Max(*token, hold->grant.token);
}

bool
zkl_semaphore_token(const ZklTarget *lock, int64 *token)
{
	*token = 0;
	(void) each_permit(lock, raise_token, token);
	return *token > 0;
}
