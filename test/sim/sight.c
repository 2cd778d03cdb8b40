/*
 * sight.c
 *	  What the oracle sees: who holds what, and what the nodes say.
 *
 * Owns the reading of names.  It judges nothing.
 */
#include <string.h>

#include "sight.h"

const Contender *
contender_of(Path *path)
{
	Contender  *c = path->contender;
	int			i;

	if (c != NULL)
		return c;
	c = path->contender = take(sizeof(Contender));
	for (i = 0; i < hosts.nlocks; i++)
		if (path->parent == lock_path(i))
		{
			c->lock = i;
			c->counts = zkl_znode_parse(lock_dialect(i),
										path->name, &c->mode, &c->seq,
										&c->has_uuid, &c->uuid);
		}
	return c;
}

void
contender_revive(Path *path)
{
	(void) contender_of(path);
	path->contender->revived_at = base.now;
}

void
contender_grant(Path *path)
{
	(void) contender_of(path);
	path->contender->granted = true;
}

/* What a server has read before serves it as long as its lease does. */
bool
contender_is_unseen(const Contender *c)
{
	return c->revived_at != 0 && base.now <= c->revived_at + 2 * ens.longest;
}

Host *
host_of_session(int64_t id)
{
	const Session *session = session_find(id);
	Host	   *h;

	if (session == NULL || session->host < 0)
		return NULL;
	h = &hosts.host[session->host];
	return h->up && h->worker.session.id == id ? h : NULL;
}

bool
same_uuid(const Slot *s, const ZklUuid *uuid)
{
	return s->state != SLOT_FREE && s->record.sent &&
		memcmp(&s->record.uuid, uuid, sizeof(*uuid)) == 0;
}

Slot *
slot_of(Host *h, const ZklUuid *uuid)
{
	Slot	   *found = NULL;
	int			i;

	for (i = 0; h != NULL && i < MAX_SLOTS; i++)
	{
		Slot	   *s = &h->slots[i];

		if (same_uuid(s, uuid) && (found == NULL || s->state == SLOT_GRANTED))
			found = s;
	}
	return found;
}

bool
lease_is_valid(const Host *h)
{
	return h->lease_generation == h->worker.session.generation &&
		h->lease_ms > host_clock(h) / 1000;
}

bool
leans(const Host *h, const Slot *s)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
	{
		const Slot *other = &h->slots[i];

		if (other->state != SLOT_FREE && other->record.stays && other->owner == s->owner &&
			other->lock == s->lock && other->token == s->token)
			return true;
	}
	return !s->record.sent;
}

bool
is_kept(const Host *h, const Slot *s)
{
	return s->state == SLOT_RELEASED &&
		(s->keep_until > host_clock(h) || slot_has_epilogue(s, host_clock(h)));
}

/*
 * Its time is over, but its backend looked at it for its commit before.  Who
 * was broken by an operator has the time that the operator gives.  Who was
 * overtaken had no lease any more.
 */
static bool
is_committing(const Slot *s)
{
	return s->quiet && (s->state == SLOT_GRANTED ||
						(s->state == SLOT_LOST && s->overdue &&
						 s->failure != ZKL_FAILURE_BROKEN &&
						 s->failure != ZKL_FAILURE_OVERTAKEN));
}

/* What an operator breaks is kept no longer, nor what was overtaken. */
bool
holds(const Host *h, int i)
{
	const Slot *s = &h->slots[i];

	return s->state >= SLOT_GRANTED && h->up && !s->tampered && lease_is_valid(h) &&
		(slot_is_good(h, i, h->lease_generation) ||
		 (s->record.generation == h->lease_generation &&
		  ((is_kept(h, s) && !s->breaking && s->failure != ZKL_FAILURE_OVERTAKEN) ||
		   is_committing(s))));
}

bool
same_owner(const Slot *a, const Slot *b)
{
	return a->owner == b->owner && b->since < a->nobodys_since &&
		a->since < b->nobodys_since;
}

bool
foreign_holds(const Foreign *f)
{
	const Session *session = session_find(f->session);

	return f->holding && !f->broken && session != NULL && session->alive &&
		tree_find(f->node) != NULL;
}

bool
lease_is_over(const Host *h)
{
	return h->lease_generation != h->worker.session.generation ||
		h->lease_ms < host_clock(h) / 1000;
}

void
tamper(Host *h, uint64_t owner, int lock)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		if (h->slots[i].state != SLOT_FREE && h->slots[i].owner == owner &&
			h->slots[i].lock == lock)
			h->slots[i].tampered = true;
}

void
tamper_all(Host *h)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		h->slots[i].tampered = true;
}

bool
queue_tampered(const Host *h, int lock)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		if (h->slots[i].state != SLOT_FREE && h->slots[i].tampered &&
			h->slots[i].lock == lock)
			return true;
	return false;
}
