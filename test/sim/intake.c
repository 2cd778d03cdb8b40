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
	demand->timed_out = s->is_try && s->expired;
	demand->together = s->together;
	demand->data = data;
	demand->data_length = sizeof(data) - 1;
}

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
		describe_demand(s, &demand);
		zkl_manager_submit(h->m, host_clock(h), (uint32_t) i, &demand);
	}
	else if (s->state == SLOT_WAITING && s->expired)
		zkl_manager_time_out(h->m, host_clock(h), (uint32_t) i);
	else if (s->state == SLOT_GRANTED || s->state == SLOT_LOST)
		bounds_look(h, i);
}

static ZklSlotSays
slot_says(const Slot *s)
{
	static const ZklSlotSays says[] = {
		[SLOT_WAITING] = ZKL_SLOT_SAYS_WAITING,
		[SLOT_GRANTED] = ZKL_SLOT_SAYS_GRANTED,
		[SLOT_DENIED] = ZKL_SLOT_SAYS_ANSWERED,
		[SLOT_FAILED] = ZKL_SLOT_SAYS_ANSWERED,
		[SLOT_LOST] = ZKL_SLOT_SAYS_LOST,
		[SLOT_RELEASED] = ZKL_SLOT_SAYS_RELEASED,
	};

	return says[s->state];
}

static bool
read_slot(void *context, uint32_t request, ZklRestored *restored)
{
	Host	   *h = context;
	Slot	   *s = &h->slots[request];

	if (s->state == SLOT_FREE)
		return false;
	restored->over = slot_overdue(h, (int) request);
	describe_demand(s, &restored->demand);
	restored->state = slot_says(s);
	restored->current = h->session != 0 && s->generation == h->generation;
	restored->broken = !s->overdue && s->failure == ZKL_FAILURE_BROKEN;
	restored->overdue = s->overdue;
	restored->retired = s->retired;
	restored->end.keep_until = s->keep_until * MS;
	restored->token = s->token;
	restored->asked_zxid = s->asked_zxid;
	restored->sent = s->sent;
	restored->going = s->going;
	restored->uuid = s->uuid;
	restored->znode_mode = s->znode_mode;
	restored->seq = s->seq;
	restored->index = s->index;
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
