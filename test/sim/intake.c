/*
 * intake.c
 *	  From the slots of a simulated zklock server to the core, as intake.c of
 *	  src/ does it.
 *
 * Owns the worker's knowledge of which slots the core knows.  Decides nothing
 * about locks.
 */
#include <string.h>

#include "host.h"

static void
describe_demand(const Slot *s, ZklDemand *demand)
{
	static const char data[] = "{\"zklock\":1,\"server\":\"sim\"}";

	memset(demand, 0, sizeof(*demand));
	demand->name = lock_name(s->lock);
	demand->owner = s->owner;
	demand->mode = s->mode;
	demand->dialect = lock_dialect(s->lock);
	demand->max = s->lock == hosts.semaphore ? hosts.max : 0;
	demand->sibling = s->sibling;
	demand->expired = s->is_try && s->expired;
	demand->together = s->together;
	demand->data = data;
	demand->data_length = sizeof(data) - 1;
}

static void
release_slot(Host *h, int i)
{
	if (h->known[i] != h->slots[i].serial)
		slot_free(h, i);
	else if (h->slots[i].keep_until != 0)
		zkl_manager_keep(h->m, host_clock(h), (uint32_t) i,
						 h->slots[i].keep_until * MS);
	else
		zkl_manager_release(h->m, host_clock(h), (uint32_t) i);
}

void
bounds_look(Host *h, int i)
{
	if (slot_overdue(h, i))
		zkl_manager_overdue(h->m, host_clock(h), (uint32_t) i);
}

void
intake_take(Host *h, int i)
{
	Slot	   *s = &h->slots[i];
	ZklDemand	demand;

	s->marked = false;
	if (s->state == SLOT_RELEASED)
		release_slot(h, i);
	else if (s->state == SLOT_WAITING && h->known[i] != s->serial)
	{
		h->known[i] = s->serial;
		describe_demand(s, &demand);
		zkl_manager_submit(h->m, host_clock(h), (uint32_t) i, &demand);
	}
	else if (s->state == SLOT_WAITING && s->expired)
		zkl_manager_expire(h->m, host_clock(h), (uint32_t) i);
	else if (s->state == SLOT_GRANTED || s->state == SLOT_LOST)
		bounds_look(h, i);
}

/* Lost to an operator: who held it has not yet let go. */
static bool
is_broken(const Slot *s)
{
	return s->state == SLOT_LOST && s->token != 0 && !s->overdue &&
		s->failure == ZKL_FAILURE_BROKEN;
}

static bool
is_overdue(const Slot *s)
{
	return s->state == SLOT_LOST && s->token != 0 && s->overdue &&
		!s->retired;
}

static bool
is_kept(const Slot *s)
{
	return s->state == SLOT_RELEASED && s->keep_until != 0;
}

/* A request that an earlier worker knew: the core takes it up again. */
static void
restore_slot(Host *h, int i)
{
	Slot	   *s = &h->slots[i];
	bool		current = h->session != 0 && s->generation == h->generation;
	bool		sent = s->sent && current;
	ZklDemand	demand;
	ZklRestored restored;

	if (s->state == SLOT_RELEASED && !sent && !(is_kept(s) && current))
		return;
	h->known[i] = s->serial;
	if (s->state == SLOT_GRANTED && !current)
	{
		(void) slot_answer(h, i, SLOT_GRANTED, SLOT_LOST, "host # slot #: lost #");
		return;
	}
	memset(&restored, 0, sizeof(restored));
	restored.broken = is_broken(s) && current;
	restored.granted = s->state == SLOT_GRANTED || restored.broken ||
		((is_overdue(s) || is_kept(s)) && current) ||
		(s->state == SLOT_RELEASED && sent && s->token != 0 && s->seq >= 0);
	restored.answered = !restored.granted && s->state != SLOT_WAITING;
	restored.sent = sent;
	restored.uuid = s->uuid;
	restored.znode_mode = s->znode_mode;
	restored.seq = s->seq;
	restored.index = s->index;
	restored.token = s->token;
	restored.asked_zxid = s->asked_zxid;
	describe_demand(s, &demand);
	zkl_manager_restore(h->m, host_clock(h), (uint32_t) i, &demand, &restored);
}

static bool
is_due(const Slot *s, int pass)
{
	switch (pass)
	{
		case 0:
			return s->sent && s->token != 0 && !s->retired;
		case 1:
			return s->state == SLOT_GRANTED || is_broken(s) ||
				is_overdue(s) || is_kept(s);
		case 2:
			return s->state == SLOT_RELEASED;
		default:
			return true;
	}
}

void
intake_restore(Host *h)
{
	int			pass;
	int			i;

	for (pass = 0; pass < 4; pass++)
	{
		for (i = 0; i < MAX_SLOTS; i++)
		{
			Slot	   *s = &h->slots[i];

			if (s->state == SLOT_FREE || !is_due(s, pass))
				continue;
			if (h->known[i] != s->serial)
				restore_slot(h, i);
			if (pass == 2)
				release_slot(h, i);
		}
		for (i = 0; i < MAX_SLOTS && pass == 2; i++)
			bounds_look(h, i);
	}
}
