/*
 * semaphore.c
 *	  Semaphores: their permits, and what stands in ZooKeeper about one as a
 *	  whole.
 *
 * Owns which slot is the guard's (the slot itself is acquire.c's, as of any request
 * under way), the order of the steps: the guard, the maximum, the permits, and the
 * guard's end; and the record of the maximum, {"zklock":1,"max_leases":3}, which is
 * the data of the semaphore's directory.  Run by backends.  Takes no locks but,
 * through backend_slot.h, those of slots; the guard is a distributed one, which is
 * released whatever happens.
 */
#include "postgres.h"

#include "backend/backend_slot.h"
#include "backend/commit.h"
#include "backend/errand.h"
#include "backend/hold.h"
#include "backend/refusal.h"
#include "miscadmin.h"
#include "recipes/semaphore.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "znode/node_data.h"

/* ---- maximum ---- */

/*
 * What stands in ZooKeeper about a semaphore as a whole: its maximum, and how many
 * permits there are.
 *
 * Must not know who holds what, nor how a permit is granted.
 *
 * A caller that finds no record writes one, and so does a caller with another
 * maximum if no zklock server has a permit.  Both do so under the guard.  If the
 * guard is lost meanwhile, the version of the data tells whether another caller
 * was faster.
 */

#define RECORD_FORMAT		"{\"zklock\":1,\"max_leases\":%d}"
#define RECORD_ROOM			256
#define FIRST_ROOM			((Size) 8192)	/* for names */

/* Permits that this server has released, but perhaps not yet in ZooKeeper */
static int
count_released(const ZklTarget *permits)
{
	ZklSlot		slot;
	int			slotno;
	int			n = 0;

	for (slotno = 0; slotno < zkl_control->ctl_nrequests; slotno++)
	{
		if (zkl_slot_peek(slotno) != ZKL_SLOT_RELEASED)
			continue;
		zkl_slot_copy(slotno, &slot);
		n += slot.s_request.kind == ZKL_KIND_LOCK &&
			slot.s_request.dialect == permits->dialect &&
			strcmp(slot.s_request.path, permits->path) == 0;
	}
	return n;
}

static ZklErrand *
list_permits(const ZklTarget *permits, bool surely, const ZklDeadlines *at, Size room)
{
	ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_LIST, permits, NULL, room);

	errand->sync = surely;
	if (zkl_errand_run_within(errand, permits, at) != ZKL_RC_OK &&
		errand->answer.rc != ZKL_RC_NONODE)
		zkl_refusal_raise_failed(permits->name, ZKL_ERROR_ZOOKEEPER, errand->answer.rc);
	return errand;
}

/*
 * How many permits any client holds or awaits, as far as this server has seen.
 * surely: as of now, and without the permits that this server is releasing; so
 * there are at least as many.
 */
static int64
maximum_count(const ZklTarget *permits, bool surely, const ZklDeadlines *at)
{
	int			released = surely ? count_released(permits) : 0;
	ZklErrand  *errand = list_permits(permits, surely, at, 0);
	int64		n = errand->answer.rc == ZKL_RC_OK ? errand->answer.nchildren : 0;

	zkl_errand_free(errand);
	return n - released;
}

/* How many of the names that errand has listed are zklock's */
static int
count_ours(const ZklErrand *errand)
{
	const char *name = NULL;
	int			n = 0;

	while ((name = zkl_errand_next(errand, name)) != NULL)
	{
		ZklLockMode mode;
		ZklSeq		seq;
		bool		has_uuid;
		ZklUuid		uuid;

		n += zkl_znode_parse(ZKL_DIALECT_PERMIT, name, &mode, &seq, &has_uuid,
							 &uuid) &&
			has_uuid && zkl_uuid_is_zklock(&uuid);
	}
	return n;
}

/*
 * Whether a zklock server has a permit, and so relies on the record.  Other
 * clients do not count: they know nothing of it, and if one of them were always
 * there, the maximum could never be changed.
 */
static bool
is_relied_on(const ZklTarget *permits, bool surely, const ZklDeadlines *at)
{
	int			released = surely ? count_released(permits) : 0;
	Size		room = FIRST_ROOM;
	ZklErrand  *errand;
	int			n;

	while ((errand = list_permits(permits, surely, at, room))->answer.size > room)
	{
		room = 2 * errand->answer.size;
		zkl_errand_free(errand);
	}
	n = errand->answer.rc == ZKL_RC_OK ? count_ours(errand) : 0;
	zkl_errand_free(errand);
	return n > released;
}

static bool
read_record_member(ZklJsonReader *r, const char *key, void *max)
{
	return strcmp(key, "max_leases") == 0 ?
		zkl_json_integer(r, 1, PG_INT32_MAX, max) : zkl_json_skip_value(r);
}

int
zkl_maximum_parse(const char *data, Size size)
{
	int64_t		max = 0;

	return zkl_json_object(data, size, read_record_member, &max) ? (int) max : 0;
}

/*
 * What errand, a GET of the semaphore's directory, finds; empty: nothing.  at
 * may be NULL.
 */
static int
read_record(ZklErrand *errand, const ZklTarget *directory,
			const ZklDeadlines *at, bool *empty)
{
	int32		rc;

	errand->kind = ZKL_ERRAND_GET;
	errand->length = 0;
	errand->version = -1;
	rc = at != NULL ? zkl_errand_run_within(errand, directory, at) :
		zkl_errand_run(errand, directory);
	if (rc == ZKL_RC_NONODE)
	{
		*empty = true;
		return 0;
	}
	if (rc != ZKL_RC_OK)
		zkl_refusal_raise_failed(directory->name, ZKL_ERROR_ZOOKEEPER, rc);
	*empty = errand->answer.size == 0;
	return errand->answer.size <= RECORD_ROOM ?
		zkl_maximum_parse(errand->answer.bytes, errand->answer.size) : 0;
}

int
zkl_maximum_recorded(const ZklTarget *directory)
{
	ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_GET, directory, NULL,
										 RECORD_ROOM);
	bool		empty;
	int			max = read_record(errand, directory, NULL, &empty);

	zkl_errand_free(errand);
	return max;
}

/*
 * Under the guard.  False: somebody else wrote it just now, or it is not known
 * whether it was written.
 */
static bool
write_record(const ZklTarget *directory, int max, ZklErrand *errand,
			 const ZklDeadlines *at)
{
	errand->kind = ZKL_ERRAND_SET;
	errand->version = errand->answer.stat.version;
	errand->length = (uint32) snprintf(errand->data, sizeof(errand->data),
									   RECORD_FORMAT, max);
	switch (zkl_errand_run_within(errand, directory, at))
	{
		case ZKL_RC_OK:
		case ZKL_RC_NONODE:		/* then the guard is gone, too */
			return true;
		case ZKL_RC_BADVERSION:
		case ZKL_RC_UNKNOWN:
			return false;
		default:
			zkl_refusal_raise_failed(directory->name, ZKL_ERROR_ZOOKEEPER, errand->answer.rc);
	}
	return false;
}

/*
 * Ensures that all zklock servers have the same maximum: error 22023 if another
 * one is recorded and a zklock server has a permit.  Under the guard, records
 * the maximum if need be.  If the directory holds data of another client, leaves
 * it alone and compares nothing.
 */
static void
maximum_settle(const ZklTarget *directory, const ZklTarget *permits,
			   int max, bool guarded, const ZklDeadlines *at)
{
	ZklErrand  *errand = zkl_errand_make(ZKL_ERRAND_GET, directory, NULL,
										 RECORD_ROOM);

	for (;;)
	{
		bool		empty;
		int			recorded = read_record(errand, directory, at, &empty);

		if (recorded == max || (recorded == 0 && !empty))
			break;
		if (recorded != 0 && is_relied_on(permits, !guarded, at))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("semaphore \"%s\" has a different maximum",
							directory->name),
					 errdetail("Its maximum is %d permits, but this call specifies %d.",
							   recorded, max),
					 errhint("The maximum can be changed while no zklock server holds a permit or waits for one.")));
		if (!guarded || write_record(directory, max, errand, at))
			break;
	}
	zkl_errand_free(errand);
}

/* ---- semaphore: acquiring and releasing permits of a semaphore ---- */

/*
 * Must not know how a permit is granted, nor when a hold ends.
 *
 * If the guard is lost, with the ZooKeeper session, say, another client may have
 * made permits meanwhile.  Then the permits requested under it are abandoned,
 * and everything begins again.
 */

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
	bool		full = maximum_count(&s->permits, true, &s->at) >
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
			maximum_settle(&s->directory, &s->permits, s->call->max, true,
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
		maximum_settle(&s.directory, &s.permits, call->max, false, &s.at);
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
