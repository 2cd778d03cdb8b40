/*
 * oracle_promises.c
 *	  Of the rules, S12: until the time that was told nobody else gets the lock.
 *
 * Owns the promises.  They live in the heads of those who were told: the end of a
 * process, a server or a session ends none.  Their own hand does, and so does
 * somebody at the ensemble with other tools, or an ensemble that loses writes.
 */
#include <string.h>

#include "faults.h"
#include "oracle.h"
#include "sight.h"

#ifndef MAX_PROMISES
#define MAX_PROMISES	256
#endif

typedef struct Promise
{
	const Host *host;
	int			slot;
	uint64_t	owner;
	int64_t		since;			/* of the slot's request */
	int			lock;
	ZklLockMode mode;
	int64_t		session;
	int64_t		until;			/* by the host's clock, which goes on without
								 * it */
} Promise;

static Promise promises[MAX_PROMISES];
static int	npromises = 0;

void
oracle_promises_begin(void)
{
	npromises = 0;
}

void
oracle_promises_void(void)
{
	npromises = 0;
}

static void
remove_promise(int i)
{
	promises[i] = promises[--npromises];
}

static void
drop_old(void)
{
	int			i;

	for (i = npromises - 1; i >= 0; i--)
		if (promises[i].until <= host_clock(promises[i].host))
			remove_promise(i);
}

static bool
is_of_slot(const Promise *p, const Host *h, int slot)
{
	const Slot *s = &h->slots[slot];

	return p->host == h && p->slot == slot && p->owner == s->owner && p->since == s->since;
}

static Promise *
find(const Host *h, int slot)
{
	int			i;

	for (i = 0; i < npromises; i++)
		if (is_of_slot(&promises[i], h, slot))
			return &promises[i];
	return NULL;
}

void
oracle_promise(const Host *h, int slot, int64_t until)
{
	const Slot *s = &h->slots[slot];
	Promise    *p = find(h, slot);

	/* Somebody may have the lock already, or get it now. */
	if (s->tampered || s->revived || s->node_gone)
		return;
	drop_old();
	if (p == NULL && npromises == MAX_PROMISES)
		broken("simulation", "there are too many promises");
	p = find(h, slot);
	if (p == NULL)
	{
		p = &promises[npromises++];
		memset(p, 0, sizeof(*p));
	}
	p->host = h;
	p->slot = slot;
	p->owner = s->owner;
	p->since = s->since;
	p->lock = s->lock;
	p->mode = s->mode;
	p->session = h->worker.session.id;
	if (p->until < until)
		p->until = until;
}

void
oracle_promise_ends(const Host *h, int slot, int64_t until)
{
	Promise    *p = find(h, slot);

	if (p != NULL && p->until > until)
		p->until = until;
}

/* Which promise is in the way of another owner */
void
oracle_promise_kept(int lock, ZklLockMode mode, const Host *h, uint64_t owner)
{
	int			i;

	for (i = 0; i < npromises; i++)
	{
		const Promise *p = &promises[i];

		if (p->until > host_clock(p->host) && p->lock == lock && !(p->host == h && p->owner == owner) &&
			lock_conflicts(lock, p->mode, mode))
			broken("S12", "%s is granted %" PRId64 " us before the time that host %d"
				   " slot %d was told", lock_name(lock), p->until - host_clock(p->host), p->host->id,
				   p->slot);
	}
}

uint32_t
oracle_promises_left(int lock)
{
	uint32_t	n = 0;
	int			i;

	for (i = 0; i < npromises; i++)
	{
		const Promise *p = &promises[i];

		n += p->until > host_clock(p->host) && p->lock == lock &&
			!(is_of_slot(p, p->host, p->slot) && holds(p->host, p->slot));
	}
	return n;
}

static void
void_session(int64_t session, int lock)
{
	int			i;

	for (i = npromises - 1; i >= 0; i--)
		if (promises[i].session == session && (lock < 0 || promises[i].lock == lock))
			remove_promise(i);
}

void
oracle_promises_transaction(const Entry *entry)
{
	size_t		i;

	if (!entry->by_vandal)
		return;
	if (entry->ends != 0)
		void_session(entry->ends, -1);
	for (i = 0; i < entry->tx.neffects; i++)
	{
		const Effect *effect = &entry->tx.effects[i];
		const Contender *c = contender_of(effect->path);

		if (c->counts && effect->kind == OP_DELETE)
			void_session(effect->owner, c->lock);
	}
}
