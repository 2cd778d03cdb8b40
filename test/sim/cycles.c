/*
 * cycles.c
 *	  Sessions that wait for each other: the locks of PostgreSQL's own.
 *
 * Owns these locks.  Does what lock.c of PostgreSQL and the wait loop of src/ do.
 * They are taken in one order, so that PostgreSQL has no deadlocks of its own.
 */
#include <string.h>

#include "agenda.h"
#include "cycles.h"
#include "draw.h"
#include "foreign.h"
#include "seen.h"

Cycles		cycles;

/* ---- the seeds ---- */

void
cycles_begin(void)
{
	uint64_t	state = base.seed ^ UINT64_C(0x72696e6773);

	memset(&cycles, 0, sizeof(cycles));
	memset(cycles.holder, 0xff, sizeof(cycles.holder));
	cycles.on = splitmix64(&state) % (base.profile == PROFILE_HOT ? 2 : 4) == 0;
	cycles.wing = cycles.on || splitmix64(&state) % 2 == 0;
	cycles.disturbed = splitmix64(&state) % 2 == 0;
	if (!cycles.on)
		return;
	cycles.patience = ens.timeout / DRAW(20, 10, 5);
	cycles.nlocal = (int) DRAW(0, 1, 2, 2);
	cycles.local = (int) DRAW(20, 40, 60);
	if (hosts.semaphore < 0)
		hosts.nlocks = (int) DRAW(2, 3);
	if (base.profile == PROFILE_HOT)
		backends.nested = (int) DRAW(20, 40);
	else
	{
		backends.per_host = (int) DRAW(2, 2, 4);
		backends.nested = (int) DRAW(60, 80);
		backends.hold = ens.timeout / DRAW(50, 20, 10);
		backends.think = ens.timeout / DRAW(100, 20);
	}
	backends.tries = (int) DRAW(0, 0, 20);
	backends.cancels = (int) DRAW(0, 0, 20);
	backends.patience = ens.timeout / DRAW(10, 2);
	foreigners.n = (int) DRAW(0, 0, 1);
}

/* ---- waiting ---- */

static void
local_grant(Backend *b, int lock)
{
	trace("host # backend #: gets local lock #", b->host, b->id, lock, 0, NULL);
	cycles.holder[b->host][lock] = b->id;
	b->local_wait = -1;
	b->at = base.now + some_delay(base.calm ? MS : backends.hold);
	agenda_changed(AGENDA_BACKEND(b->host, b->id));
}

bool
local_ask(Backend *b)
{
	int			lock = 0;
	int			i;

	for (i = 0; i < cycles.nlocal; i++)
		if (cycles.holder[b->host][i] == b->id)
			lock = i + 1;
	if (lock >= cycles.nlocal)
		return false;
	lock += (int) below(cycles.nlocal - lock);
	trace("host # backend #: asks for local lock #", b->host, b->id, lock, 0,
		  NULL);
	b->local_wait = lock;
	b->local_since = base.now;
	b->give_up_at = below(100) < backends.cancels ?
		base.now + some_delay(backends.patience) : NEVER;
	b->at = b->give_up_at;
	if (cycles.holder[b->host][lock] < 0)
		local_grant(b, lock);
	return true;
}

/* Who has waited longest is next. */
static void
local_release(int host, int lock)
{
	Backend    *next = NULL;
	int			i;

	cycles.holder[host][lock] = -1;
	for (i = 0; i < backends.per_host; i++)
	{
		Backend    *b = &backends.backend[host][i];

		if (b->local_wait == lock &&
			(next == NULL || b->local_since < next->local_since))
			next = b;
	}
	if (next != NULL)
		local_grant(next, lock);
}

void
local_give_up(Backend *b)
{
	b->local_wait = -1;
	b->at = base.now + some_delay(base.calm ? MS : backends.hold);
}

void
local_end(Backend *b)
{
	int			i;

	if (!cycles.on)
		return;
	b->local_wait = -1;
	for (i = 0; i < cycles.nlocal; i++)
		if (cycles.holder[b->host][i] == b->id)
			local_release(b->host, i);
}

void
local_crash(int host)
{
	int			i;

	for (i = 0; i < MAX_LOCAL; i++)
		cycles.holder[host][i] = -1;
}

/* ---- what is told to the worker ---- */

/* Whether b waits for "other", directly or through others */
static bool
waits_for(const Backend *b, int other)
{
	int			steps;
	int			holder;

	for (steps = 0; steps <= MAX_LOCAL && b->local_wait >= 0; steps++)
	{
		holder = cycles.holder[b->host][b->local_wait];
		if (holder == other)
			return true;
		if (holder < 0)
			return false;
		b = &backends.backend[b->host][holder];
	}
	return false;
}

/* True: there are more than can be told. */
static bool
find_dependents(const Backend *b, Slot *s)
{
	bool		too_many = false;
	int			i;

	s->ndependents = 0;
	for (i = 0; i < backends.per_host; i++)
	{
		Backend    *other = &backends.backend[b->host][i];

		if (i == b->id || other->nholds == 0 || !waits_for(other, b->id))
			continue;
		too_many |= s->ndependents == ZKL_MAX_DEPENDENTS;
		if (too_many)
			break;
		s->dependents[s->ndependents++] = other->owner;
		cycles.seen[b->host][i][b->id] = base.now;
	}
	return too_many;
}

/* How many znodes s's owner holds, and those behind it */
static int
count_held(const Host *h, const Slot *s)
{
	int			n = 0;
	int			i;
	uint32_t	j;

	for (i = 0; i < MAX_SLOTS; i++)
	{
		const Slot *held = &h->slots[i];

		if (held->state != SLOT_GRANTED || !held->record.sent)
			continue;
		n += held->owner == s->owner;
		for (j = 0; j < s->ndependents; j++)
			n += held->owner == s->dependents[j];
	}
	return n;
}

/* Of sessions that hold locks, one that waits here for one that waits there */
static Backend *
some_dependent(const Host *h, Backend **waiter)
{
	Backend    *found = NULL;
	int			n = 0;
	int			i,
				j;

	for (i = 0; i < backends.per_host; i++)
		for (j = 0; j < backends.per_host; j++)
		{
			Backend    *b = &backends.backend[h->id][i];
			Backend    *other = &backends.backend[h->id][j];

			if (b->nholds > 0 && other->nholds > 0 && other->look_at != NEVER &&
				waits_for(b, j) && once_in(++n))
			{
				found = b;
				*waiter = other;
			}
		}
	return found;
}

void
cycles_searched(const Host *h)
{
	Backend    *waiter = NULL;
	Backend    *b = NULL;

	if (cycles.disturbed && cycles.nlocal > 0 && !base.calm)
		b = some_dependent(h, &waiter);
	if (b == NULL)
		return;
	b->at = b->give_up_at = base.now + some_delay(8 * ens.net);
	agenda_changed(AGENDA_BACKEND(b->host, b->id));
	waiter->look_at = b->give_up_at + 10;
	if (waiter->look_at >= waiter->at)
		return;
	waiter->at = waiter->look_at;
	agenda_changed(AGENDA_BACKEND(waiter->host, waiter->id));
}

/* Not before others had time to publish, and to find what they can */
static void
give_up_soon(Backend *b)
{
	Time		at = base.now + 2 * ens.timeout + below(4 * ens.timeout);

	b->give_up_at = at < b->give_up_at ? at : b->give_up_at;
}

void
cycles_calm(Backend *b)
{
	const Slot *s;

	if (!cycles.on || b->waiting < 0)
		return;
	s = &hosts.host[b->host].slots[b->waiting];
	if (s->patience == 0 && !s->is_try && s->lock != hosts.semaphore)
		give_up_soon(b);
}

void
local_look(Backend *b)
{
	Host	   *h = &hosts.host[b->host];
	Slot	   *s = &h->slots[b->waiting];
	uint32_t	before = s->ndependents;
	bool		too_many = false;
	bool		too_much = false;

	b->look_at = base.now + cycles.patience;
	s->ndependents = 0;
	if (!h->undetected)
	{
		too_many = find_dependents(b, s);
		too_much = count_held(h, s) > ZKL_MAX_PUBLISHED;
	}
	if (too_many)
		SEEN(DEPENDENTS_TOO_MANY);
	if (too_much)
		SEEN(HELD_TOO_MANY);
	if ((too_many || too_much) && base.calm)
		give_up_soon(b);
	if (s->ndependents == 0 && before == 0)
		return;
	trace("host # backend #: # wait for it", b->host, b->id, s->ndependents, 0,
		  NULL);
	s->seen_at = host_clock(h);
	slot_tell_dependents(h, b->waiting);
}
