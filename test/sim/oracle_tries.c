/*
 * oracle_tries.c
 *	  Of the rules, S8 of tries: who is told "false" has met somebody.
 *
 * Owns Slot.met.  Must not know how the core decides.
 *
 * At some moment of the wait some other session held the lock, or stood ahead of the
 * try.  A lock is held until its znode is gone, but not while its server has it
 * cached.
 */
#include <string.h>

#include "oracle.h"
#include "sight.h"

/* ---- who is ahead ---- */

/*
 * A request of the try's own server: one that has left holds nothing.  Who has lost the
 * lock may still be at work.  If the delete of its znode is lost, it is nobody's any more,
 * and stands there until the server finds it.
 */
static bool
own_is_ahead(const Host *h, const Slot *s, const Slot *other, bool revived)
{
	return is_kept(h, other) ||
		(revived && (other->state == SLOT_LOST || other->state == SLOT_RELEASED)) ||
		(!same_owner(other, s) &&
		 (other->state == SLOT_WAITING || other->state == SLOT_GRANTED ||
		  other->state == SLOT_LOST));
}

/*
 * Another server's: no session has it while it is cached, nor after that.  What others
 * write over the mark hides that, until the server sees it.  Of a server that is gone
 * only the mark is left.
 */
static bool
others_is_ahead(const Slot *other, const Node *node)
{
	bool		marked = zkl_node_data_is_cached(node->data, node->length);

	if (other == NULL || other->state == SLOT_RELEASED)
		return !marked;
	return other->state != SLOT_CACHED || other->overwritten != 0;
}

static bool
is_ahead(const Host *h, const Slot *s, Path *path, ZklSeq place)
{
	const Contender *c = contender_of(path);
	const Node *node = &path->node[HEAD];
	Host	   *owner;
	const Slot *other;

	if (!node->exists)
		return false;
	if (!c->counts)
		return s->lock == hosts.semaphore;
	if (!zkl_mode_conflicts(c->mode, s->mode) || c->seq > place ||
		(s->record.sent && same_uuid(s, &c->uuid)))
		return false;
	if (oracle_heard_at(h, c) < s->since)
		return false;			/* its server knows that it has departed */
	owner = host_of_session(node->stat.ephemeral_owner);
	other = slot_of(owner, &c->uuid);
	return owner == h && other != NULL ? own_is_ahead(h, s, other, c->revived_at != 0) :
		others_is_ahead(other, node);
}

/* The number of a try's znode; one that has none stands behind all. */
static ZklSeq
place_of(const Slot *s)
{
	Path	   *path;

	for (path = lock_path(s->lock)->children; path && s->record.sent; path = path->sibling)
		if (path->node[HEAD].exists && contender_of(path)->counts &&
			same_uuid(s, &contender_of(path)->uuid))
			return contender_of(path)->seq;
	return ZKL_SEQ_NONE;
}

/*
 * Of another owner of this server: whether it has the lock by the node of another hold,
 * or came before s and waits with no node now.  A kept lock is in everybody's way, before
 * the worker has recorded that, too.
 */
static bool
is_there_without_node(const Host *h, const Slot *s, const Slot *other)
{
	if (other->lock != s->lock || !zkl_mode_conflicts(other->mode, s->mode))
		return false;
	if (is_kept(h, other))
		return true;
	if (other->owner == s->owner)
		return false;
	if (other->state == SLOT_WAITING)
		return other->znodes > 0 && other->since < s->since;
	return other->state == SLOT_GRANTED && !other->record.sent;
}

static bool
are_ahead(const Host *h, const Slot *s)
{
	uint32_t	enough = s->lock == hosts.semaphore ? hosts.max : 1;
	ZklSeq		place = place_of(s);
	Path	   *path;
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		if (is_there_without_node(h, s, &h->slots[i]))
			return true;
	for (path = lock_path(s->lock)->children; path; path = path->sibling)
		if (is_ahead(h, s, path, place) && --enough == 0)
			return true;
	return false;
}

/* ---- what befalls a lock ---- */

void
oracle_tries_look(int lock)
{
	int			i,
				j;

	for (i = 0; i < hosts.n; i++)
		for (j = 0; j < MAX_SLOTS; j++)
		{
			Slot	   *s = &hosts.host[i].slots[j];

			if (s->state == SLOT_WAITING && s->is_try && s->lock == lock && !s->met)
				s->met = are_ahead(&hosts.host[i], s);
		}
}

/* ---- answers ---- */

/* What a deposed leader says may be as old as the lease. */
static bool
asked_deposed(const Host *h, Time since)
{
	const Session *session = session_find(h->worker.session.id);

	return session != NULL && session->deposed_at >= since;
}

/* Others whose znode was taken away, which their server may not know yet */
static bool
are_believed(const Host *h, const Slot *s)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
	{
		const Slot *other = &h->slots[i];

		if (other->state != SLOT_FREE && other->tampered && other->lock == s->lock &&
			other->owner != s->owner)
			return true;
	}
	return false;
}

void
oracle_deny(Host *h, int i)
{
	Slot	   *s = &h->slots[i];

	if (!s->is_try || !s->timed_out)
		broken("S8", "host %d slot %d was denied without being asked", h->id,
			   i);
	if (lease_is_over(h) && !h->interrupted)
		broken("S8", "host %d slot %d was denied past the lease", h->id, i);
	s->met |= are_ahead(h, s) || !lease_is_valid(h) || asked_deposed(h, s->since) ||
		are_believed(h, s);
}

void
oracle_false(const Host *h, int i)
{
	const Slot *s = &h->slots[i];

	if (!s->met)
		broken("S8", "host %d slot %d is told that it cannot have %s, which nobody"
			   " else wanted", h->id, i, lock_name(s->lock));
}

/* The backend names that server if the answer does not come in time. */
void
oracle_behind_cached(const Host *h, int i, bool begins)
{
	const Slot *s = &h->slots[i];

	if (!s->is_try || !s->timed_out)
		broken("S8", "host %d slot %d is no try that timed out", h->id, i);
	if (begins == (s->behind_cached[0] != '\0'))
		broken("S8", "host %d slot %d is told twice whether it waits for a"
			   " cached lock", h->id, i);
}
