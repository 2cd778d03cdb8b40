/*
 * slot.c
 *	  What a server keeps of a request, whatever becomes of its worker.
 *
 * Owns nothing; does what slot.c, from_slots.c and carry_out.c of src/ do with
 * the slot of a request for a lock.
 */
#include <string.h>

#include "slot.h"

ZklDemand
slot_demand(const Slot *s)
{
	static const char data[] = "{\"zklock\":1,\"server\":\"test\"}";
	ZklDemand	demand = {
		.name = s->name,.owner = s->owner,.mode = s->mode,
		.dialect = s->dialect,.max = s->max,.sibling = s->sibling,
		.timed_out = s->timed_out,.together = s->together,
		.data = data,.data_length = sizeof(data) - 1
	};

	return demand;
}

void
slot_restore(const Slot *s, ZklRestored *restored)
{
	static const ZklSlotSays says[] = {
		[SLOT_WAITING] = ZKL_SLOT_SAYS_WAITING,
		[SLOT_GRANTED] = ZKL_SLOT_SAYS_GRANTED,
		[SLOT_DENIED] = ZKL_SLOT_SAYS_ANSWERED,
		[SLOT_FAILED] = ZKL_SLOT_SAYS_ANSWERED,
		[SLOT_LOST] = ZKL_SLOT_SAYS_LOST,
		[SLOT_RELEASED] = ZKL_SLOT_SAYS_RELEASED,
	};

	restored->demand = slot_demand(s);
	restored->state = says[s->state];
	restored->broken = !s->overdue && s->failure == ZKL_FAILURE_BROKEN;
	restored->overdue = s->overdue;
	restored->retired = s->retired;
	restored->token = s->token;
	restored->asked_zxid = s->asked_zxid;
	restored->sent = s->sent;
	restored->going = s->going;
	restored->uuid = s->uuid;
	restored->znode_mode = s->znode_mode;
	restored->seq = s->seq;
	restored->index = s->index;
}

static void
record_znode(Slot *s, const ZklAction *action)
{
	s->znodes += !s->sent ||
		memcmp(&s->uuid, &action->uuid, sizeof(ZklUuid)) != 0;
	s->sent = true;
	s->uuid = action->uuid;
	s->index = action->index;
	s->znode_mode = action->mode;
	s->seq = action->seq;
	s->going = action->going;
}

static bool
go_to(Slot *s, SlotState from, SlotState to)
{
	if (s->state != from)
		return false;
	s->state = to;
	return true;
}

bool
slot_record(Slot *s, const ZklAction *action, uint32_t generation)
{
	switch (action->kind)
	{
		case ZKL_ACTION_ZNODE:
			record_znode(s, action);
			s->generation = generation;
			return false;
		case ZKL_ACTION_GRANT:
			if (!go_to(s, SLOT_WAITING, SLOT_GRANTED))
				return false;
			s->token = action->token;
			s->generation = generation;
			return true;
		case ZKL_ACTION_DENY:
			return go_to(s, SLOT_WAITING, SLOT_DENIED);
		case ZKL_ACTION_FAIL:
			s->failure = action->failure;
			s->rc = action->rc;
			return go_to(s, SLOT_WAITING, SLOT_FAILED);
		case ZKL_ACTION_LOSE:
			s->failure = action->failure;
			if (!go_to(s, SLOT_GRANTED, SLOT_LOST))
				return false;
			s->overdue = action->failure == ZKL_FAILURE_UNREADABLE;
			return true;
		case ZKL_ACTION_FREE:
			return go_to(s, SLOT_RELEASED, SLOT_FREE);
		case ZKL_ACTION_BLOCKED:
			s->together = false;
			s->blocked = true;
			return false;
		case ZKL_ACTION_REVOKE:
			s->asked_zxid = action->asked_zxid;
			s->asked++;
			return false;
		case ZKL_ACTION_RETIRE:
			s->retired = true;
			s->sent &= action->has_node;
			return false;
		case ZKL_ACTION_DISOWN:
			s->owner = action->owner;
			return false;
		case ZKL_ACTION_KEPT:
			s->keep_until = 0;
			return false;
		default:
			return false;		/* not about a slot */
	}
}
