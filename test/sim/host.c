/*
 * host.c
 *	  A simulated zklock server: its clock, its slots, its life.
 *
 * Owns the hosts.  Does what worker_slot.c of src/ do.  Must not know the
 * core: that is loop.c's.
 */
#include <stdio.h>
#include <string.h>

#include "agenda.h"
#include "backend.h"
#include "core/assert.h"
#include "host.h"
#include "oracle.h"
#include "seen.h"

Hosts		hosts;

/* Those of cold seeds come under one parent. */
static const char *const names[2][MAX_LOCKS] = {{"/a", "/b/c", "/b/d"}, {"/b/a", "/b/c", "/b/d"}};

void
host_suspend(Host *h, Time until)
{
	h->stopped_until = until;
	if (h->deaf_until < until)
		h->deaf_until = until;
}

const char *
lock_name(int lock)
{
	return names[hosts.cold][lock];
}

Path *
lock_path(int lock)
{
	static const char *const paths[2][MAX_LOCKS] = {
		{SIM_ROOT "/a", SIM_ROOT "/b/c", SIM_ROOT "/b/d"},
		{SIM_ROOT "/b/a", SIM_ROOT "/b/c", SIM_ROOT "/b/d"}
	};

	if (hosts.paths_of != tree_generation())
	{
		memset(hosts.paths, 0, sizeof(hosts.paths));
		hosts.paths_of = tree_generation();
	}
	if (hosts.paths[lock] == NULL)
		hosts.paths[lock] = tree_path(paths[hosts.cold][lock]);
	return hosts.paths[lock];
}

ZklDialect
lock_dialect(int lock)
{
	return hosts.dialects[lock];
}

ZklLockMode
lock_mode(int lock, bool shared)
{
	ZklDialect	dialect = lock_dialect(lock);

	return dialect == ZKL_DIALECT_MEMBER ||
		(shared && zkl_dialect_shares(dialect)) ? ZKL_SHARED : ZKL_EXCLUSIVE;
}

bool
lock_conflicts(int lock, ZklLockMode a, ZklLockMode b)
{
	return lock != hosts.semaphore && zkl_mode_conflicts(a, b);
}

int64_t
host_clock(const Host *h)
{
	return clock_now(&h->clock);
}

int64_t
host_bound(const Host *h, int64_t ms)
{
	return (host_clock(h) / MS + ms) * MS;
}

Time
host_true_time(const Host *h, int64_t local)
{
	return clock_true_time(&h->clock, local);
}

/* ---- slots: the backends' side ---- */

int
slot_claim(Host *h)
{
	int			slot = worker_find_free(&h->worker);
	Slot	   *s;

	if (slot < 0)
		return -1;
	s = &h->slots[slot];
	memset(s, 0, sizeof(*s));
	s->sibling = -1;
	s->record.seq = -1;
	s->since = base.now;
	s->asked_at = host_clock(h);
	s->nobodys_since = NEVER;
	return slot;
}

/* As PostgreSQL, it gives the process of one backend after the other one number. */
static int32_t
slot_pid(const Host *h, int backend)
{
	return 100 * (1 + h->id) + backend;
}

static const char *
slot_data(uint64_t owner)
{
	char		data[64];

	snprintf(data, sizeof(data), "{\"zklock\":1,\"server\":\"sim\",\"owner\":%" PRIu64 "}", owner);
	return take_string(data);
}

static void
mark(Host *h, Slot *s)
{
	s->marked = true;
	h->marked = true;
	worker_wake(h, hosts.wake_delay);
}

void
slot_submit(Host *h, int slot)
{
	Slot	   *s = &h->slots[slot];

	trace(s->mode == ZKL_EXCLUSIVE ?
		  "host # slot #: owner # asks for @ exclusively (sibling #)" :
		  "host # slot #: owner # asks for @ shared (sibling #)",
		  h->id, slot, (int64_t) s->owner, s->sibling, lock_name(s->lock));
	s->state = SLOT_WAITING;
	s->name = lock_name(s->lock);
	s->dialect = lock_dialect(s->lock);
	s->max = s->lock == hosts.semaphore ? hosts.max : 0;
	s->pid = slot_pid(h, s->backend);
	s->data = slot_data(s->owner);
	oracle_tries_look(s->lock);
	mark(h, s);
}

/* What is left of an owner's on a lock is nobody's with the last hold. */
static void
note_nobodys(Host *h, const Slot *released)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
	{
		const Slot *s = &h->slots[i];

		if (s->owner == released->owner && s->lock == released->lock &&
			(s->state == SLOT_WAITING || s->state == SLOT_GRANTED ||
			 s->state == SLOT_LOST))
			return;
	}
	for (i = 0; i < MAX_SLOTS; i++)
	{
		Slot	   *s = &h->slots[i];

		if (s->state == SLOT_RELEASED && s->owner == released->owner &&
			s->lock == released->lock && s->nobodys_since == NEVER)
			s->nobodys_since = base.now;
	}
}

int
slot_find_cached(const Host *h, int lock)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		if (h->slots[i].state == SLOT_CACHED && h->slots[i].lock == lock &&
			h->slots[i].record.generation == h->lease_generation)
			return i;
	return -1;
}

/* What a claim clears, and what stays: the lock, the znode, and what befell it */
void
slot_take(Host *h, int slot, uint64_t owner, int backend)
{
	Slot	   *s = &h->slots[slot];

	oracle_take(h, slot);
	s->state = SLOT_GRANTED;
	s->owner = owner;
	s->backend = backend;
	s->pid = slot_pid(h, backend);
	s->data = slot_data(owner);
	s->token += !ZKL_MUTANT(TAKE_SAME_TOKEN);
	s->taken = true;
	s->quiet = s->quiet && ZKL_MUTANT(TAKE_QUIET);
	s->is_try = s->timed_out = s->together = s->counted = false;
	s->dependents_news = s->judged = s->writer_between = false;
	s->ndependents = 0;
	s->patience = s->at_most = s->at_least = 0;
	s->promised_until = 0;
	s->until = s->keep_until = s->epilogue_until = s->renewal = s->asked_zxid = s->waited = 0;
	s->sibling = -1;
	s->since = base.now;
	s->asked_at = host_clock(h);
	s->nobodys_since = NEVER;
	oracle_tries_look(s->lock);
	trace("host # slot #: owner # takes @, token #", h->id, slot,
		  (int64_t) owner, s->token, s->name);
}

void
slot_keep(Host *h, int slot, int64_t at_least)
{
	Slot	   *s = &h->slots[slot];

	if (!slot_is_good(h, slot, h->lease_generation))
		return;
	trace("host # slot #: to be kept for # ms", h->id, slot, at_least, 0, NULL);
	s->keep_until = host_bound(h, at_least);
	mark(h, s);
}

void
slot_renew(Host *h, int slot, int64_t at_least, bool by_other)
{
	Slot	   *s = &h->slots[slot];
	int64_t		until = at_least == 0 ? 0 : host_bound(h, at_least);

	if (s->state != SLOT_RELEASED || s->claimed < s->ticket ||
		(s->keep_until <= host_clock(h) && !(s->ticket && ZKL_MUTANT(TICKET_CLAIMED_LATE))))
		return;
	trace("host # slot #: to be kept for # ms instead", h->id, slot, at_least, 0, NULL);
	if (by_other && until < s->promised_until && !ZKL_MUTANT(CANCEL_BREAKS_PROMISE))
		until = s->promised_until;
	if (until < s->promised_until)
		s->promised_until = until;
	if (!by_other)
		oracle_promise_ends(h, slot, until);
	s->renewal = until <= host_clock(h) ? -1 : until;
	if (s->ticket && ZKL_MUTANT(TICKET_CLAIMED_LATE))
	{
		s->keep_until = until;
		s->renewal = 0;
	}
	mark(h, s);
}

void
slot_give_back(Host *h, int slot)
{
	Slot	   *s = &h->slots[slot];

	if (s->renewal != 0 ||
		(s->promised_until > host_clock(h) && !ZKL_MUTANT(GIVEN_BACK_ALTHOUGH_TOLD)))
		return;
	trace("host # slot #: its ticket is given back", h->id, slot, 0, 0, NULL);
	SEEN(TICKET_GIVEN_BACK);
	s->claimed = false;
	s->renewal = host_bound(h, s->at_least);
	mark(h, s);
}

void
slot_withdraw(Host *h, int slot)
{
	Slot	   *s = &h->slots[slot];

	trace("host # slot #: its ticket is withdrawn", h->id, slot, 0, 0, NULL);
	s->keep_until = s->renewal = 0;
	mark(h, s);
}

/*
 * To its holder; or, if it is kept, to whoever knows of that: the end that was told
 * last may be on its way.
 */
void
slot_promise(Host *h, int slot)
{
	Slot	   *s = &h->slots[slot];
	int64_t		until = h->lease_ms * MS;
	bool		kept = s->state == SLOT_RELEASED && s->keep_until > host_clock(h) &&
	!s->kept_lost && s->renewal == 0 && s->claimed >= s->ticket &&
	s->record.generation == h->lease_generation;

	if (!kept && !(s->taken && slot_is_good(h, slot, h->lease_generation)))
		return;
	if (kept && s->keep_until < until)
		until = s->keep_until;
	if (!kept && s->until != 0 && s->until < until)
		until = s->until;
	if (ZKL_MUTANT(PROMISE_PAST_LEASE))
		until += h->timeout / 3;
	if (until <= host_clock(h))
		return;
	trace("host # slot #: promised for # us", h->id, slot, until - host_clock(h), 0, NULL);
	SEEN(PROMISE);
	if (until > s->promised_until)
		s->promised_until = until;
	oracle_promise(h, slot, until);
}

/* Whether its owner has nothing else of that lock: only so are there epilogues. */
static bool
is_only(const Host *h, const Slot *s)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
	{
		const Slot *other = &h->slots[i];

		if (other != s && other->state != SLOT_FREE && !other->record.stays &&
			other->owner == s->owner && other->lock == s->lock)
			return false;
	}
	return true;
}

static void
end_slot(Host *h, int slot)
{
	Slot	   *s = &h->slots[slot];
	bool		lost = s->state == SLOT_LOST;
	bool		ends_well;

	if (slot_stays(s) && s->promised_until <= host_clock(h) &&
		s->record.generation == h->lease_generation)
	{
		trace("host # slot #: stays cached", h->id, slot, 0, 0, NULL);
		s->state = SLOT_CACHED;
		s->left_at = host_clock(h);
		return;
	}
	trace("host # slot #: released in state #", h->id, slot, s->state, 0, NULL);
	if (s->state != SLOT_GRANTED || !s->taken ||
		slot_is_over(s, host_clock(h)))
		s->keep_until = 0;
	if (s->keep_until < s->promised_until && (!lost || !ZKL_MUTANT(PROMISE_FORGOTTEN)))
		s->keep_until = s->promised_until;
	s->kept_lost = lost;
	ends_well = s->keep_until == 0 && is_only(h, s) &&
		slot_is_good(h, slot, h->lease_generation);
	s->state = SLOT_RELEASED;
	if (s->ticket && s->token == 0 && ZKL_MUTANT(TICKET_WITHDRAWN_UNTOLD))
		return;
	note_nobodys(h, s);
	if (ends_well && once_in(8) && !base.calm)
	{
		SEEN(EPILOGUE);
		s->epilogue_until = host_clock(h) + below(ens.timeout / 10);
	}
	mark(h, s);
}

/* By its holder, who relies on it no longer */
void
slot_release(Host *h, int slot)
{
	h->slots[slot].promised_until = 0;
	oracle_promise_ends(h, slot, 0);
	end_slot(h, slot);
}

void
slot_abandon(Host *h, int slot)
{
	Slot	   *s = &h->slots[slot];

	if (s->promised_until > host_clock(h))
		SEEN(PROMISE_OUTLIVES);
	if (ZKL_MUTANT(EXIT_BREAKS_PROMISE))
		s->promised_until = 0;
	end_slot(h, slot);
}

void
slot_tell_dependents(Host *h, int slot)
{
	h->slots[slot].dependents_news = true;
	mark(h, &h->slots[slot]);
}

void
slot_expire(Host *h, int slot)
{
	h->slots[slot].timed_out = true;
	mark(h, &h->slots[slot]);
}

bool
slot_is_good(const Host *h, int slot, uint32_t generation)
{
	const Slot *s = &h->slots[slot];

	return s->state == SLOT_GRANTED && s->record.generation == generation &&
		!slot_is_over(s, host_clock(h));
}

void
slot_extend(Host *h, int slot, int64_t at_most)
{
	Slot	   *s = &h->slots[slot];

	if (!slot_is_good(h, slot, h->lease_generation))
		return;
	if (s->resigned)
		return;
	trace("host # slot #: extended by # ms", h->id, slot, at_most, 0, NULL);
	s->until = at_most != 0 ? host_bound(h, at_most) : 0;
	if (s->until != 0 && s->until < s->promised_until)
	{
		s->promised_until = s->until;
		oracle_promise_ends(h, slot, s->until);
	}
	mark(h, s);
}

void
slot_set_quiet(Host *h, int slot, bool quiet)
{
	Slot	   *s = &h->slots[slot];

	s->quiet = quiet;
	if (s->state == SLOT_LOST && !quiet)
		mark(h, s);
}

void
slot_resign(Host *h, int slot)
{
	Slot	   *s = &h->slots[slot];

	if (s->dialect != ZKL_DIALECT_LATCH || s->state != SLOT_GRANTED || !s->taken ||
		slot_is_over(s, host_clock(h)))
		return;
	trace("host # slot #: resigns", h->id, slot, 0, 0, NULL);
	SEEN(RESIGNED);
	s->resigned = true;
	if (s->until == 0 || s->until > s->promised_until)
		s->until = s->promised_until > host_clock(h) ? s->promised_until : host_clock(h);
	mark(h, s);
}

bool
lease_is_good(const Host *h, uint32_t generation)
{
	return (generation == h->lease_generation ||
			ZKL_MUTANT(LEASE_WITHOUT_GENERATION)) &&
		h->lease_ms > host_clock(h) / 1000;
}

/* ---- slots: the worker's side ---- */

void
slot_tell(Host *h, int i, bool changed, const char *what)
{
	trace(what, h->id, i, changed, 0, NULL);
	if (changed)
		backend_wake(h, h->slots[i].backend);
}

void
lease_publish(Host *h, uint32_t generation, int64_t ms)
{
	h->lease_generation = generation;
	h->lease_ms = ms;
}

/* ---- life ---- */

void
host_start(Host *h)
{
	agenda_all_changed();
	memset(h->slots, 0, sizeof(h->slots));
	memset(&h->worker, 0, sizeof(h->worker));
	h->worker.slots = h->slots;
	h->lease_generation = 0;
	h->lease_ms = 0;
	h->zxid_floor = 0;
	h->left_session = h->not_before = 0;
	h->up = true;
	h->stopping = false;
	h->leave_at = 0;
	h->wake_at = NEVER;
	h->stopped_until = 0;
	h->stop_after = -1;
	h->refused_at = -NEVER;
	backends_start(h);
	worker_start(h);
}

void
host_crash(Host *h, Time up_at)
{
	Session    *session = session_find(h->worker.session.id);

	agenda_all_changed();
	trace("host #: crashes", h->id, 0, 0, 0, NULL);
	worker_kill(h, NEVER);
	if (session != NULL)
		session->host = -1;
	h->worker.session.id = 0;
	h->up = false;
	h->up_at = up_at;
	memset(h->slots, 0, sizeof(h->slots));
	backends_crash(h);
}

/* The postmaster does not start the worker again. */
void
host_stop(Host *h, Time up_at)
{
	if (!h->up || h->stopping)
		return;
	trace("host #: stops", h->id, 0, 0, 0, NULL);
	h->stopping = true;
	h->up_at = up_at;
	h->stop_until = host_clock(h) + h->timeout;
	backends_stop(h);
	if (h->worker.m != NULL)
		worker_wake(h, hosts.wake_delay);
}

void
host_accept_lower_tokens(Host *h)
{
	trace("host #: may grant lower tokens", h->id, 0, 0, 0, NULL);
	h->worker.session.zxid_seen = h->zxid_floor = 0;
}

Time
host_due(const Host *h)
{
	Time		due;

	if (!h->up)
		return h->up_at;
	if (h->worker.m == NULL)
		return h->worker_at;
	due = h->wake_at > h->stopped_until ? h->wake_at : h->stopped_until;
	return h->attempt_at < due ? h->attempt_at : due;
}

void
host_step(Host *h)
{
	if (!h->up)
		host_start(h);
	else if (h->worker.m == NULL && h->stopping)
		host_crash(h, h->up_at > base.now ? h->up_at : base.now + 1);
	else if (h->worker.m == NULL)
		worker_start(h);
	else if (h->attempt_at <= base.now)
		supervisor_attempt(h);
	else
		worker_step(h);
}
