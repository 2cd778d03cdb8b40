/*
 * semaphore.c
 *	  Acquiring and releasing leases of a semaphore.
 *
 * Owns the order of the steps: the guard, the maximum, the leases, and the
 * guard's end.  Run by backends.  Takes no locks of its own; the guard is a
 * distributed one, which request.c keeps and gives back whatever happens.
 *
 * Must not know how a lease is granted, nor when a hold ends.
 *
 * Should the guard be lost, with the ZooKeeper session, say, another may have
 * made leases meanwhile: those that were asked for are given up, and all begins
 * again.
 */
#include "postgres.h"

#include "backend/claim.h"
#include "backend/text.h"
#include "backend/lifetime.h"
#include "backend/release.h"
#include "backend/wait.h"
#include "recipes/maximum.h"
#include "recipes/semaphore.h"
#include "shared/lease.h"
#include "shared/slot.h"

#define GUARDS			1		/* requests beside those of the leases */

/* How long a try whose time is over stays in the guard's queue, at a time */
#define GUARD_PATIENCE_MS	250

typedef struct Semaphore
{
	const ZklSemaphoreRequest *ask;
	ZklDeadlines at;			/* of the call, whatever begins again in it */
	int64		over;			/* when a try's time is */
	ZklTarget	directory;
	ZklTarget	guard;
	ZklTarget	leases;
} Semaphore;

static void
find_targets(Semaphore *s, const text *path)
{
	s->leases = zkl_target_recipe(path, ZKL_SEMAPHORE_LEASES,
								  ZKL_DIALECT_PERMIT);
	s->guard = zkl_target_recipe(path, ZKL_SEMAPHORE_GUARD,
								 ZKL_DIALECT_CURATOR_MUTEX);
	s->directory = zkl_target_recipe(path, "", ZKL_DIALECT_PERMIT);
}

/* ---- what is held ---- */

/* The first hold from "node" on that is a lease of it, or NULL */
static ZklHold *
next_lease(dlist_node *node, ZklLifetime lifetime, const ZklTarget *leases)
{
	dlist_head *list = &zkl_holds[lifetime];

	for (; node != &list->head; node = node->next)
	{
		ZklHold    *hold = dlist_container(ZklHold, link, node);

		if (hold->key.lease != 0 && strcmp(hold->key.path, leases->path) == 0)
			return hold;
	}
	return NULL;
}

/* The one acquired last; then the one before */
static ZklHold *
first_held(ZklLifetime lifetime, const ZklTarget *leases)
{
	dlist_head *list = &zkl_holds[lifetime];

	return dlist_is_empty(list) ? NULL :
		next_lease(list->head.next, lifetime, leases);
}

static ZklHold *
next_held(ZklHold *hold, ZklLifetime lifetime, const ZklTarget *leases)
{
	return next_lease(hold->link.next, lifetime, leases);
}

static int
count_held(ZklLifetime lifetime, const ZklTarget *leases, bool only_good)
{
	ZklHold    *hold = first_held(lifetime, leases);
	ZklError	error;
	int			n = 0;

	for (; hold != NULL; hold = next_held(hold, lifetime, leases))
		n += !only_good || zkl_hold_is_good(hold, &error);
	return n;
}

/* Nobody else could ever help. */
static void
refuse_waiting_for_oneself(const Semaphore *s)
{
	int			held = count_held(ZKL_LIFETIME_SESSION, &s->leases, true) +
	count_held(ZKL_LIFETIME_TRANSACTION, &s->leases, true);

	if (s->ask->is_try || s->ask->leases <= s->ask->max - held)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_T_R_DEADLOCK_DETECTED),
			 errmsg("deadlock detected"),
			 errdetail("This session holds %d of the %d leases of semaphore \"%s\" and asks for %d more: it would wait for itself.",
					   held, s->ask->max, s->leases.name, s->ask->leases),
			 errhint("Acquire all leases at once, or release some first.")));
}

/* ---- acquiring ---- */

/*
 * Whether there are too many leases for sure.  Past the lease of this server,
 * as when it was idle, that cannot be vouched for.
 */
static bool
is_surely_full(const Semaphore *s)
{
	bool		full = zkl_maximum_count(&s->leases, true, &s->at) >
	s->ask->max - s->ask->leases;
	uint32		generation;
	int64		deadline;

	zkl_lease_read(&generation, &deadline);
	return full && zkl_lease_is_valid(generation);
}

static void
fill_in(Semaphore *s, const ZklTarget *target, ZklLockRequest *ask)
{
	memset(ask, 0, sizeof(*ask));
	ask->lock = *target;
	ask->mode = ZKL_EXCLUSIVE;
	ask->lifetime = s->ask->lifetime;
	ask->is_try = s->ask->is_try;
	ask->timeout_ms = s->ask->timeout_ms;
	ask->at = &s->at;
	ask->sibling = -1;
	ask->max = (uint32) s->ask->max;
}

static void
raise_unknown(const Semaphore *s)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("could not find out whether semaphore \"%s\" has enough leases left",
					s->leases.name),
			 errdetail("Other clients held its guard, the lock \"%s\", until \"zklock.connect_timeout\" had passed.",
					   s->guard.path),
			 errhint("Retry later.  A client that hangs loses the guard when its ZooKeeper session ends.")));
}

static void
begin_deadlines(Semaphore *s)
{
	ZklLockRequest ask;

	fill_in(s, &s->leases, &ask);
	s->over = zkl_wait_after_ms(zkl_wait_clock(), ask.timeout_ms);
	zkl_request_deadlines(&ask, &s->at);
}

/*
 * Whoever acquires leases holds the guard for a moment; and whoever holds it
 * for longer, because he waits for leases, has more than the maximum in sight.
 * So a try whose time is over looks at the leases: it is refused if they are
 * too many, and else waits for the guard, a moment at a time.  Nothing is known
 * if somebody hangs with the guard, and few leases are taken.
 *
 * In the last of these moments ZooKeeper has a little longer to answer, so that
 * the error tells the two apart.
 */
static bool
try_to_enter(Semaphore *s, ZklLockRequest *ask)
{
	for (;;)
	{
		ZklDeadlines at = s->at;
		int64		now = zkl_wait_clock();

		if (now >= s->at.answer)
			raise_unknown(s);
		if (now >= s->over && is_surely_full(s))
			return false;
		at.expire = Max(s->over, zkl_wait_after_ms(now, GUARD_PATIENCE_MS));
		at.expire = Min(at.expire, s->at.answer);
		at.answer = zkl_wait_after_ms(s->at.answer, GUARD_PATIENCE_MS);
		at.expired = false;
		ask->timeout_ms = GUARD_PATIENCE_MS;	/* it does wait */
		ask->at = &at;
		if (zkl_guard_begin(ask))
			return true;
	}
}

static bool
enter(Semaphore *s)
{
	ZklLockRequest ask;

	fill_in(s, &s->guard, &ask);
	ask.guard = true;
	return ask.is_try ? try_to_enter(s, &ask) : zkl_guard_begin(&ask);
}

/* One turn under the guard, which is given back in any case */
static ZklAnswer
ask_guarded(Semaphore *s, ZklGrant *grants)
{
	ZklAnswer volatile answer = ZKL_ANSWER_UNGUARDED;
	ZklLockRequest ask;

	if (!enter(s))
		return ZKL_ANSWER_DENIED;
	PG_TRY();
	{
		zkl_maximum_settle(&s->directory, &s->leases, s->ask->max, true,
						   &s->at);
		fill_in(s, &s->leases, &ask);
		answer = zkl_guard_get_permits(&ask, s->ask->leases, grants);
	}
	PG_FINALLY();
	{
		zkl_guard_end();
	}
	PG_END_TRY();
	return answer;
}

static void
drop_all(ZklHold **holds, int n)
{
	while (n > 0)
		zkl_hold_drop(holds[--n]);
}

static bool
acquire(Semaphore *s, int64 *token)
{
	int			n = s->ask->leases;
	ZklHold   **holds = palloc(n * sizeof(ZklHold *));
	ZklGrant   *grants = palloc(n * sizeof(ZklGrant));
	int volatile prepared = 0;
	ZklAnswer volatile answer = ZKL_ANSWER_UNGUARDED;
	ZklLockRequest ask;
	int			i;

	fill_in(s, &s->leases, &ask);
	PG_TRY();
	{
		for (; prepared < n; prepared++)
			holds[prepared] = zkl_hold_prepare_lease(&ask);
		while (answer == ZKL_ANSWER_UNGUARDED)
			answer = ask_guarded(s, grants);
	}
	PG_CATCH();
	{
		drop_all(holds, prepared);
		PG_RE_THROW();
	}
	PG_END_TRY();

	if (answer == ZKL_ANSWER_DENIED)
		drop_all(holds, n);
	*token = 0;
	for (i = 0; answer == ZKL_ANSWER_GRANTED && i < n; i++)
	{
		zkl_hold_begin(holds[i], &grants[i]);
		*token = Max(*token, grants[i].token);
	}
	return answer == ZKL_ANSWER_GRANTED;
}

static void
check_numbers(const ZklSemaphoreRequest *ask)
{
	if (ask->max <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("maximum number of leases must be positive")));
	if (ask->leases <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of leases must be positive")));
	if (ask->leases > ask->max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of leases must not be greater than the maximum"),
				 errdetail("%d leases are asked for, and the maximum is %d.",
						   ask->leases, ask->max)));
}

bool
zkl_semaphore_acquire(const ZklSemaphoreRequest *ask, int64 *token)
{
	Semaphore	s;

	find_targets(&s, ask->path);
	check_numbers(ask);
	zkl_claim_check_number((int64) ask->leases + GUARDS);
	zkl_lifetime_begin();
	zkl_request_check_room(zkl_hold_count(), ask->leases + GUARDS);
	s.ask = ask;
	begin_deadlines(&s);
	refuse_waiting_for_oneself(&s);
	if (ask->is_try && ask->timeout_ms == 0)
		zkl_maximum_settle(&s.directory, &s.leases, ask->max, false, &s.at);
	return acquire(&s, token);
}

/* ---- releasing ---- */

static void
warn_not_held(const ZklTarget *leases, int held, int wanted)
{
	bool		until_commit = first_held(ZKL_LIFETIME_TRANSACTION,
										  leases) != NULL;
	const char *name = zkl_text_for_client(leases->name);

	ereport(WARNING,
			(wanted == 1 ?
			 errmsg("you do not hold a lease of semaphore \"%s\"",
					name) :
			 errmsg("you do not hold %d leases of semaphore \"%s\"", wanted,
					name),
			 errdetail("This session holds %d; none was released.", held),
			 until_commit ?
			 errhint("A lease of transaction lifetime ends with its transaction.") : 0));
}

bool
zkl_semaphore_release(const text *path, int leases)
{
	ZklHold    *hold;
	Semaphore	s;
	bool		good = true;
	int			held;

	find_targets(&s, path);
	if (leases <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("number of leases must be positive")));
	zkl_lifetime_check();
	held = count_held(ZKL_LIFETIME_SESSION, &s.leases, false);
	if (held < leases)
	{
		warn_not_held(&s.leases, held, leases);
		return false;
	}
	while (leases-- > 0)
	{
		hold = first_held(ZKL_LIFETIME_SESSION, &s.leases);
		good &= zkl_release_hold(hold);
	}
	return good;
}

bool
zkl_semaphore_token(const ZklTarget *lock, int64 *token)
{
	ZklTarget	leases = *lock;
	ZklError	error;
	bool		found = false;
	int			i;

	leases.path = psprintf("%s%s", lock->path, ZKL_SEMAPHORE_LEASES);
	for (i = 0; i < 2; i++)
	{
		ZklHold    *hold = first_held((ZklLifetime) i, &leases);

		for (; hold != NULL; hold = next_held(hold, (ZklLifetime) i, &leases))
		{
			if (!zkl_hold_is_good(hold, &error))
				continue;
			*token = found ? Max(*token, hold->grant.token) :
				hold->grant.token;
			found = true;
		}
	}
	return found;
}
