/*
 * intake.c
 *	  From the slots of a simulated zklock server to the core, as from_slots.c of
 *	  src/ does it.
 *
 * Owns the worker's knowledge of which slots the core knows.  Decides nothing
 * about locks.
 */
#include <string.h>

#include "host.h"

static void
release_slot(Host *h, int i)
{
	ZklEnd		end = {.keep_until = h->slots[i].keep_until * MS};

	zkl_manager_release(h->m, host_clock(h), (uint32_t) i, &end);
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
		demand = slot_demand(s);
		zkl_manager_submit(h->m, host_clock(h), (uint32_t) i, &demand);
	}
	else if (s->state == SLOT_WAITING && s->timed_out)
		zkl_manager_time_out(h->m, host_clock(h), (uint32_t) i);
	else if (s->state == SLOT_GRANTED || s->state == SLOT_LOST)
		bounds_look(h, i);
}

static bool
read_slot(void *context, uint32_t request, ZklRestored *restored)
{
	Host	   *h = context;
	Slot	   *s = &h->slots[request];

	if (s->state == SLOT_FREE)
		return false;
	restored->over = slot_overdue(h, (int) request);
	slot_restore(s, restored);
	restored->current = h->session != 0 && s->generation == h->generation;
	restored->end.keep_until = s->keep_until * MS;
	return true;
}

void
intake_restore(Host *h)
{
	uint32_t	i;

	zkl_manager_restore(h->m, host_clock(h), read_slot, h);
	for (i = 0; i < MAX_SLOTS; i++)
		h->known[i] = zkl_manager_knows(h->m, i) ? h->slots[i].serial : 0;
}
