/*
 * backend.c
 *	  The backends of the simulated servers.
 *
 * Owns them.  Does what acquire.c of src/ does: it knows slots and the
 * published lease, and nothing of ZooKeeper.
 */
#include <string.h>

#include "agenda.h"
#include "backend.h"
#include "core/assert.h"
#include "cycles.h"
#include "faults.h"
#include "foreign.h"
#include "oracle.h"
#include "seen.h"

Backends	backends;

Host *
backend_host(const Backend *b)
{
	return &hosts.host[b->host];
}

static void
reset(Backend *b)
{
	b->owner = ++hosts.owners;
	b->waiting = b->wanted = b->taking = b->local_wait = -1;
	b->look_at = NEVER;
	b->checking = b->committing = b->to_downgrade = false;
	b->nholds = 0;
	b->stopped_until = 0;
	b->at = base.calm || backend_host(b)->stopping ? NEVER :
		base.now + some_delay(backends.think);
}

void
backends_start(Host *h)
{
	int			i;

	for (i = 0; i < backends.per_host; i++)
	{
		Backend    *b = &backends.backend[h->id][i];

		b->host = h->id;
		b->id = i;
		reset(b);
	}
}

void
backends_crash(Host *h)
{
	int			i;

	local_crash(h->id);
	for (i = 0; i < backends.per_host; i++)
	{
		reset(&backends.backend[h->id][i]);
		backends.backend[h->id][i].at = NEVER;
	}
}

void
backends_stop(Host *h)
{
	int			i;

	for (i = 0; i < backends.per_host; i++)
		backend_wake(h, i);
	for (i = 0; i < MAX_SLOTS; i++)
		if (h->slots[i].ticket && h->slots[i].state == SLOT_WAITING)
			slot_release(h, i);
}

bool
backends_are_gone(const Host *h)
{
	int			i;

	for (i = 0; i < backends.per_host; i++)
	{
		const Backend *b = &backends.backend[h->id][i];

		if (b->waiting >= 0 || b->taking >= 0 || b->nholds > 0)
			return false;
	}
	return true;
}

void
backend_wake(Host *h, int backend)
{
	Backend    *b = &backends.backend[h->id][backend];
	Time		at = base.now + some_delay(20);

	if (at >= b->at)
		return;
	b->at = at;
	agenda_changed(AGENDA_BACKEND(h->id, backend));
}

/* Whether somebody of another server, or a client, wants what this one has */
static bool
is_wanted_elsewhere(const Host *h, int lock)
{
	int			i,
				j;

	for (i = 0; i < hosts.n; i++)
		for (j = 0; j < MAX_SLOTS && &hosts.host[i] != h; j++)
			if (hosts.host[i].slots[j].state == SLOT_WAITING &&
				hosts.host[i].slots[j].lock == lock)
				return true;
	for (i = 0; i < foreigners.n; i++)
		if (foreigners.foreign[i].phase != FOREIGN_IDLE &&
			foreigners.foreign[i].lock == lock)
			return true;
	return false;
}

/*
 * When all is calm: sessions do not stop to take a cached lock while others want
 * it, who get it all the same.  Returns such a lock, or -1.
 */
static int
wanted_cached(const Host *h)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		if ((h->slots[i].state == SLOT_CACHED ||
			 (h->slots[i].state == SLOT_GRANTED && h->slots[i].cacheable)) &&
			is_wanted_elsewhere(h, h->slots[i].lock))
			return h->slots[i].lock;
	return -1;
}

static Time
next_grab(const Backend *b)
{
	return wanted_cached(backend_host(b)) >= 0 ? base.now + 1 + below(MS) : NEVER;
}

static void
end_holds(Backend *b, void (*end) (Host *h, int slot))
{
	int			i;

	for (i = 0; i < b->nholds; i++)
		end(backend_host(b), b->holds[i].slot);
	b->nholds = 0;
	local_end(b);
	b->checking = b->committing = false;
	b->at = base.calm ? next_grab(b) : base.now + some_delay(backends.think);
}

void
backend_end_holds(Backend *b)
{
	end_holds(b, slot_release);
}

/* on_shmem_exit: marks, and is gone */
void
backend_die(Backend *b)
{
	trace("host # backend #: dies", b->host, b->id, 0, 0, NULL);
	if (b->waiting >= 0)
		slot_release(backend_host(b), b->waiting);
	if (b->taking >= 0)
		slot_release(backend_host(b), b->taking);
	end_holds(b, slot_abandon);
	reset(b);
}

/* ---- asking ---- */

/*
 * Locks are taken in one order, so that backends do not wait for each other in
 * a cycle, but in seeds that are about that.  The first is mostly the one at which
 * the host is at home, if it has such a one.
 */
static int
pick_lock(const Backend *b)
{
	const Host *h = backend_host(b);
	int			lowest = 0;
	int			i;

	if (b->nholds == 0 && backends.at_home > 0 &&
		below(100) < backends.at_home)
		return b->host % hosts.nlocks;
	if (cycles.on)
		return (int) below(hosts.nlocks);
	for (i = 0; i < b->nholds; i++)
		if (h->slots[b->holds[i].slot].lock > lowest)
			lowest = h->slots[b->holds[i].slot].lock;
	return lowest + (int) below(hosts.nlocks - lowest);
}

static int
find_sibling(const Backend *b, int lock)
{
	const Host *h = backend_host(b);
	int			i;

	if (lock == hosts.semaphore)
		return -1;				/* permits count each for itself */
	for (i = 0; i < b->nholds; i++)
	{
		const Slot *s = &h->slots[b->holds[i].slot];

		if (s->lock == lock && s->state == SLOT_GRANTED &&
			b->holds[i].generation == h->lease_generation)
			return b->holds[i].slot;
	}
	return -1;
}

/* The semaphore is the last lock: who has a lease asks for nothing more. */
bool
backend_may_ask(const Backend *b)
{
	const Host *h = backend_host(b);
	int			i;

	for (i = 0; i < b->nholds; i++)
		if (h->slots[b->holds[i].slot].lock == hosts.semaphore)
			return false;
	return b->nholds < MAX_HOLDS;
}

/* Also one that is shorter than the time it takes to pick up the grant */
static void
bound(Slot *s)
{
	if (backends.bounded == 0 || s->lock == hosts.semaphore ||
		below(100) >= backends.bounded)
		return;
	if (!once_in(3))
		s->at_most = 1 + some_delay(backends.at_most) / MS;
	if (!once_in(3))
		s->at_least = 1 + some_delay(backends.at_least) / MS;
	if (s->at_most != 0 && s->at_least > s->at_most)
		s->at_least = s->at_most;
}

/* When it does something about its wait by itself */
static void
plan_look(Backend *b)
{
	b->at = b->give_up_at < b->try_until ? b->give_up_at : b->try_until;
	if (b->look_at < b->at)
		b->at = b->look_at;
}

static void
hold(Backend *b, int slot)
{
	Host	   *h = backend_host(b);

	b->holds[b->nholds].slot = slot;
	b->holds[b->nholds].since = base.now;
	b->holds[b->nholds++].generation = h->slots[slot].record.generation;
	b->at = base.now + some_delay(base.calm ? MS : backends.hold);
}

static bool
has_hold(const Backend *b, int lock)
{
	int			i;

	for (i = 0; i < b->nholds; i++)
		if (backend_host(b)->slots[b->holds[i].slot].lock == lock)
			return true;
	return false;
}

/* Whether it has yet to release a hold that it knows to be lost */
static bool
has_lost(const Backend *b, int lock)
{
	const Host *h = backend_host(b);
	int			i;

	for (i = 0; i < b->nholds; i++)
	{
		const Slot *s = &h->slots[b->holds[i].slot];

		if (s->lock == lock && s->state == SLOT_LOST)
			return true;
	}
	return false;
}

/* A slot for a new request; NULL: there is none, or it may not have one. */
static Slot *
begin_request(Backend *b, int lock, ZklLockMode mode)
{
	Host	   *h = backend_host(b);
	int			slot;
	Slot	   *s;

	b->at = base.now + some_delay(backends.think);
	if (has_lost(b, lock) || (slot = slot_claim(h)) < 0)
		return NULL;
	s = &h->slots[slot];
	s->lock = lock;
	s->mode = mode;
	s->owner = b->owner;
	s->backend = b->id;
	s->sibling = find_sibling(b, s->lock);
	return s;
}

/* A wait that gets long is published, where deadlocks are looked for. */
static void
set_patience(Backend *b, Slot *s)
{
	if (!cycles.on || s->is_try || s->lock == hosts.semaphore)
		return;
	s->patience = backend_host(b)->undetected ? 0 : cycles.patience;
	b->look_at = base.now + cycles.patience;
}

static void
submit(Backend *b, Slot *s)
{
	Host	   *h = backend_host(b);

	s->plain = !s->guard && s->at_most == 0 && s->at_least == 0 &&
		s->lock != hosts.semaphore;
	b->waiting = (int) (s - h->slots);
	plan_look(b);
	slot_submit(h, b->waiting);
}

static void
request(Backend *b, int lock, ZklLockMode mode)
{
	Slot	   *s = begin_request(b, lock, mode);

	if (s == NULL)
		return;
	s->is_try = below(100) < backends.tries;
	s->timed_out = s->is_try && once_in(2);
	s->together = s->lock != hosts.semaphore && once_in(4);
	set_patience(b, s);
	b->try_until = s->is_try ? base.now + some_delay(backends.patience) :
		NEVER;
	b->give_up_at = below(100) < backends.cancels ?
		base.now + some_delay(backends.patience) : !s->is_try ? NEVER :
		(s->timed_out ? base.now : b->try_until) + some_delay(3 * ens.timeout / 2);
	bound(s);
	s->guard = once_in(12);
	submit(b, s);
}

/* Nobody waits for it: its owner is no backend's. */
static void
enqueue(Backend *b, int lock)
{
	Host	   *h = backend_host(b);
	int			slot = slot_claim(h);
	Slot	   *s;

	b->at = base.now + some_delay(backends.think);
	if (slot < 0)
		return;
	SEEN(TICKET);
	s = &h->slots[slot];
	s->ticket = true;
	s->lock = lock;
	s->mode = lock_mode(lock, false);
	s->owner = ++hosts.owners;
	s->backend = b->id;
	s->at_least = 1 + some_delay(backends.at_least) / MS;
	slot_submit(h, slot);
}

static void
use_ticket(Host *h, int slot)
{
	Slot	   *s = &h->slots[slot];
	bool		kept = s->state == SLOT_RELEASED && s->keep_until != 0 && !s->kept_lost &&
	(s->keep_until > host_clock(h) || ZKL_MUTANT(TICKET_CLAIMED_LATE));

	if (s->state == SLOT_FAILED ||
		(s->state == SLOT_WAITING && !base.calm && once_in(32)))
		slot_release(h, slot);
	else if (kept && s->claimed && once_in(16))
		slot_give_back(h, slot);
	else if (kept && s->claimed && once_in(4))
		slot_promise(h, slot);
	else if (kept && !s->claimed && once_in(16))
		slot_withdraw(h, slot);
	else if (kept && !s->claimed && !base.calm && once_in(4))
	{
		SEEN(TICKET_CLAIMED);
		s->claimed = true;
		slot_renew(h, slot, 1 + some_delay(backends.at_least) / MS, false);
		slot_promise(h, slot);	/* nothing, until the worker has answered */
	}
}

static void
use_tickets(Host *h)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		if (h->slots[i].ticket && h->slots[i].state != SLOT_FREE)
			use_ticket(h, i);
}

/* What may have come between a take and the check */
static void
note_taking(const Host *h, const Backend *b)
{
	const Slot *s = &h->slots[b->taking];

	if (s->state == SLOT_LOST)
		SEEN(TAKE_LOST);
	else if (!lease_is_good(h, b->taking_generation))
		SEEN(TAKE_LAPSED);
	else if (!s->cacheable)
		SEEN(TAKE_RECALLED);
}

/* If the lease has passed, the lock is asked for as any other. */
static void
finish_take(Backend *b)
{
	Host	   *h = backend_host(b);
	int			slot = b->taking;

	note_taking(h, b);
	b->taking = -1;
	if (lease_is_good(h, b->taking_generation) || ZKL_MUTANT(TAKE_PAST_LEASE))
	{
		oracle_took(h, slot);
		hold(b, slot);
		return;
	}
	slot_release(h, slot);
	if (!base.calm)
		request(b, h->slots[slot].lock, ZKL_EXCLUSIVE);
	else if (b->nholds > 0)
		b->at = base.now + some_delay(MS);	/* ends what it has */
	else
		b->at = next_grab(b);
}

/*
 * In shared memory, without the worker, if the lock is cached.  The take and the
 * look at the lease are two steps.
 */
static bool
take_cached(Backend *b, int lock)
{
	Host	   *h = backend_host(b);
	int			slot = slot_find_cached(h, lock);

	if (slot < 0 || has_hold(b, lock))
		return false;
	slot_take(h, slot, b->owner, b->id);
	b->taking = slot;
	b->taking_generation = h->slots[slot].record.generation;
	if (base.calm || (!base.natural && !once_in(4)))
		finish_take(b);
	else
	{
		SEEN(TAKE_STOPPED);
		b->at = base.now + (once_in(4) ? below(2 * ens.timeout) : some_delay(20));
	}
	return true;
}

void
backend_ask(Backend *b)
{
	int			lock = pick_lock(b);
	ZklLockMode mode;

	if (backends.tickets > 0 && lock != hosts.semaphore && below(100) < backends.tickets)
	{
		enqueue(b, lock);
		return;
	}
	mode = lock_mode(lock, below(100) < backends.shared);
	if (mode == ZKL_SHARED || !take_cached(b, lock))
		request(b, lock, mode);
}

void
backend_want(Backend *b, const Want *want)
{
	ZklLockMode mode = lock_mode(want->lock, want->shared);
	bool		plain = mode == ZKL_EXCLUSIVE && want->at_most == 0 && want->at_least == 0;
	Slot	   *s;

	if ((plain && take_cached(b, want->lock)) ||
		(s = begin_request(b, want->lock, mode)) == NULL)
		return;
	s->is_try = want->try_for >= 0;
	s->timed_out = want->try_for == 0;
	s->guard = want->guard;
	s->at_most = want->at_most;
	s->at_least = want->at_least;
	b->try_until = want->try_for > 0 ? base.now + want->try_for : NEVER;
	b->give_up_at = want->give_up > 0 ? base.now + want->give_up : NEVER;
	set_patience(b, s);
	submit(b, s);
}

/* The counter of the directory was at its end: that must pass. */
static void
ask_again(Backend *b)
{
	request(b, b->wanted, lock_mode(b->wanted, below(100) < backends.shared));
	if (b->waiting < 0)
		return;
	b->wanted = -1;
	b->give_up_at = NEVER;
	plan_look(b);
}

/* Looks at what it waits for. */
static void
look(Backend *b)
{
	Host	   *h = backend_host(b);
	int			slot = b->waiting;
	Slot	   *s = &h->slots[slot];

	if (slot_is_good(h, slot, s->record.generation) &&
		lease_is_good(h, s->record.generation))
	{
		b->waiting = -1;
		b->look_at = NEVER;
		s->taken = true;
		hold(b, slot);
		oracle_taken(h, slot);
	}
	else if (s->state != SLOT_WAITING || base.now >= b->give_up_at)
	{
		bool		deadlock = cycles.on && s->state == SLOT_FAILED &&
		s->failure == ZKL_FAILURE_DEADLOCK;

		/* What it holds may keep the directory. */
		bool		again = base.calm && s->state == SLOT_FAILED &&
		s->failure == ZKL_FAILURE_NO_NUMBER;

		if (s->state == SLOT_DENIED)
			oracle_false(h, slot);
		b->waiting = -1;
		b->look_at = NEVER;
		slot_release(h, slot);
		if (again)
			b->wanted = s->lock;
		if (deadlock || again)
			backend_end_holds(b);
		b->at = base.now + some_delay(base.calm ? MS : backends.think);
	}
	else
	{
		if (base.now >= b->try_until)
		{
			b->try_until = NEVER;
			slot_expire(h, slot);
		}
		if (base.now >= b->look_at)
			local_look(b);
		plan_look(b);
	}
}

static void
grab(Backend *b)
{
	int			lock = wanted_cached(backend_host(b));

	if (lock < 0 || !take_cached(b, lock))
		b->at = next_grab(b);
}

/* It waits for a lock of PostgreSQL's own: until it gets that, or gives up. */
static void
look_local(Backend *b)
{
	if (base.now < b->give_up_at)
		b->at = b->give_up_at;
	else if (!once_in(4))
		local_give_up(b);
	else
		backend_end_holds(b);
}

/* A commit is not interrupted. */
static bool
is_terminated(const Backend *b)
{
	return backend_host(b)->stopping && !b->checking && !b->committing;
}

void
backend_step(Backend *b)
{
	if (backends.tickets > 0)
		use_tickets(backend_host(b));
	if (is_terminated(b))
		backend_die(b);
	else if (b->taking >= 0)
		finish_take(b);
	else if (b->waiting >= 0)
		look(b);
	else if (b->local_wait >= 0)
		look_local(b);
	else if (b->committing)
		transaction_end(b);
	else if (b->checking)
		transaction_commit(b);
	else if (backends.script != NULL && !base.calm)
		backends.script(b);
	else if (b->nholds > 0)
		transaction_go_on(b);
	else if (b->wanted >= 0)
		ask_again(b);
	else if (base.calm)
		grab(b);
	else
		backend_ask(b);
}

Time
backend_due(const Backend *b)
{
	return b->at > b->stopped_until ? b->at : b->stopped_until;
}

/* ---- the end ---- */

void
backends_calm(void)
{
	int			i,
				j;

	for (i = 0; i < hosts.n; i++)
		for (j = 0; j < backends.per_host; j++)
		{
			Backend    *b = &backends.backend[i][j];

			b->stopped_until = 0;
			b->give_up_at = NEVER;
			cycles_calm(b);
			if (b->at == NEVER || b->at < base.now)
				b->at = base.now;
		}
}

bool
backends_idle(void)
{
	int			i,
				j;

	for (i = 0; i < hosts.n; i++)
		for (j = 0; j < MAX_SLOTS; j++)
			if (hosts.host[i].slots[j].ticket &&
				(hosts.host[i].slots[j].state == SLOT_WAITING ||
				 hosts.host[i].slots[j].state == SLOT_GRANTED))
				return false;
	for (i = 0; i < hosts.n; i++)
		for (j = 0; j < backends.per_host; j++)
			if (backends.backend[i][j].waiting >= 0 ||
				backends.backend[i][j].wanted >= 0 ||
				backends.backend[i][j].taking >= 0 ||
				backends.backend[i][j].nholds > 0)
				return false;
	return true;
}
