/*
 * transaction.c
 *	  What the backends of the simulated servers do while they hold locks: they go
 *	  on, commit, and give locks back.
 *
 * Owns nothing but what backend.c does.  Does what commit.c of src/
 * do.
 */
#include "backend.h"
#include "cycles.h"
#include "faults.h"
#include "oracle.h"

static void
may_not_commit(Backend *b)
{
	trace("host # backend #: may not commit", b->host, b->id, 0, 0, NULL);
	backend_end_holds(b);
}

static void
set_quiet(Backend *b, bool quiet)
{
	int			i;

	for (i = 0; i < b->nholds; i++)
		slot_set_quiet(backend_host(b), b->holds[i].slot, quiet);
}

/* The first half of the commit check; a while may pass before the second. */
void
transaction_check(Backend *b)
{
	int			i;

	set_quiet(b, true);
	for (i = 0; i < b->nholds; i++)
		if (!slot_is_good(backend_host(b), b->holds[i].slot,
						  b->holds[i].generation))
		{
			may_not_commit(b);
			return;
		}
	b->checking = true;
	b->at = base.now + (base.calm || !once_in(30) ? some_delay(20) :
						below(2 * ens.timeout));
}

/* What passes the commit check is committed, whatever comes then. */
void
transaction_commit(Backend *b)
{
	Host	   *h = backend_host(b);
	int			i;

	b->checking = false;
	for (i = 0; i < b->nholds; i++)
		if (!lease_is_good(h, b->holds[i].generation))
		{
			may_not_commit(b);
			return;
		}
	trace("host # backend #: commits", b->host, b->id, 0, 0, NULL);
	for (i = 0; i < b->nholds; i++)
		oracle_commit(h, b->holds[i].slot);
	b->committing = true;
	b->at = base.now + some_delay(MS);
}

/* Locks of session lifetime outlast the transaction. */
void
transaction_end(Backend *b)
{
	int			i;

	if (base.calm || backends.bounded == 0 || !once_in(3))
	{
		backend_end_holds(b);
		return;
	}
	b->committing = false;
	set_quiet(b, false);
	for (i = 0; i < b->nholds && backend_host(b)->uncached; i++)
		slot_resign(backend_host(b), b->holds[i].slot);
	b->at = base.now + some_delay(backends.hold);
}

/*
 * Somebody has deleted the node of a hold, or asks for it: that must come to light.
 */
static bool
waits_for_bad_news(const Backend *b)
{
	Host	   *h = backend_host(b);
	int			i;

	for (i = 0; i < b->nholds; i++)
	{
		const Slot *s = &h->slots[b->holds[i].slot];

		bool		asked = oracle_is_asked(h, b->holds[i].slot);

		if (!asked && !(s->node_gone && s->state == SLOT_GRANTED))
			continue;
		if (base.now > base.calm_since + 5 * ens.timeout &&
			base.now > b->holds[i].since + 5 * ens.timeout)
			broken(asked ? "S8" : "S1", "host %d slot %d does not learn that %s",
				   h->id, b->holds[i].slot, asked ? "it is asked for its lock" :
				   "its node is gone");
		return true;
	}
	return false;
}

/* An exclusive hold of a lock that it holds shared as well, or -1 */
static int
find_downgrade(const Backend *b)
{
	const Host *h = backend_host(b);
	int			i,
				j;

	for (i = 0; i < b->nholds; i++)
		for (j = 0; j < b->nholds; j++)
		{
			const Slot *s = &h->slots[b->holds[i].slot];
			const Slot *other = &h->slots[b->holds[j].slot];

			if (s->mode == ZKL_EXCLUSIVE && other->mode == ZKL_SHARED &&
				s->lock == other->lock)
				return i;
		}
	return -1;
}

void
transaction_give_back(Backend *b, int i)
{
	slot_release(backend_host(b), b->holds[i].slot);
	b->holds[i] = b->holds[--b->nholds];
	if (b->nholds == 0)
		local_end(b);
	b->at = base.now + some_delay(base.calm ? MS : backends.hold);
}

/* A slot to renew or cancel: mostly one that keeps what was promised */
static int
some_kept(const Host *h)
{
	int			i = (int) below(MAX_SLOTS);
	int			n;

	for (n = 0; n < MAX_SLOTS && !once_in(8); n++, i = (i + 1) % MAX_SLOTS)
		if (h->slots[i].state == SLOT_RELEASED && h->slots[i].promised_until > host_clock(h))
			return i;
	return i;
}

void
transaction_go_on(Backend *b)
{
	int			i = (int) below(b->nholds);
	int			downgrade = find_downgrade(b);

	if (backends.bounded > 0 && once_in(8) &&
		backend_host(b)->slots[b->holds[i].slot].lock != hosts.semaphore)
		slot_extend(backend_host(b), b->holds[i].slot,
					once_in(4) ? 0 : 1 + some_delay(backends.at_most) / MS);
	if (backends.bounded > 0 && !base.calm && once_in(16) &&
		backend_host(b)->slots[b->holds[i].slot].lock != hosts.semaphore)
		slot_keep(backend_host(b), b->holds[i].slot,
				  1 + some_delay(backends.at_least) / MS);
	if (backends.bounded > 0 && once_in(8))
		slot_renew(backend_host(b), some_kept(backend_host(b)), once_in(4) || base.calm ? 0 :
				   1 + some_delay(backends.at_least) / MS, once_in(3));
	if (below(100) < backends.asserts)
		slot_promise(backend_host(b), once_in(4) ? (int) below(MAX_SLOTS) : b->holds[i].slot);
	if (base.calm && waits_for_bad_news(b))
		b->at = base.now + ens.timeout / 10;
	else if (downgrade >= 0 && b->to_downgrade)
	{
		b->to_downgrade = false;
		transaction_give_back(b, downgrade);
	}
	else if (downgrade >= 0 && once_in(3))
	{
		b->to_downgrade = true;
		b->at = base.now + (operators_await_downgrade(
													  backend_host(b)->slots[b->holds[downgrade].slot].lock) ?
							some_delay(3 * ens.net + ens.lag) : 0);
	}
	else if (!base.calm && cycles.nlocal > 0 && backend_may_ask(b) &&
			 below(100) < cycles.local && local_ask(b))
		return;
	else if (!base.calm && backend_may_ask(b) &&
			 below(100) < backends.nested)
		backend_ask(b);
	else if (b->nholds > 1 && once_in(3))
		transaction_give_back(b, i);
	else if (once_in(4))
		backend_end_holds(b);	/* rolled back */
	else
		transaction_check(b);
}
