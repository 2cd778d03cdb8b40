/*
 * oracle_nodes.c
 *	  Of the rules, those on nodes and on answers: S4, S5, S8, and at every
 *	  transaction what it does to those who hold.
 *
 * Owns nothing.  Must not know how the core decides.
 */
#include <string.h>

#include "cycles.h"
#include "faults.h"
#include "observe/inspect.h"
#include "oracle.h"
#include "seen.h"
#include "sight.h"

/* ---- S4, S5: nodes and slots ---- */

/*
 * Whether another owner's writer stands between the first of s's owner's nodes
 * and the one that is just made for s.  None can get there later.
 */
static bool
has_writer_between(Host *h, const Slot *s, const Contender *made)
{
	ZklSeq		first = made->seq;
	ZklSeq		writer = -1;
	Path	   *path;

	for (path = lock_path(s->lock)->children; path; path = path->sibling)
	{
		const Contender *c = contender_of(path);
		const Slot *other;

		if (!path->node[HEAD].exists || !c->counts || c->seq >= made->seq)
			continue;
		other = host_of_session(path->node[HEAD].stat.ephemeral_owner) == h ?
			slot_of(h, &c->uuid) : NULL;
		if (other != NULL && other->owner == s->owner)
			first = c->seq < first ? c->seq : first;
		else if (c->mode == ZKL_EXCLUSIVE && c->seq > writer)
			writer = c->seq;
	}
	return first < writer;
}

static void
check_created(const Effect *effect, const Contender *c)
{
	Host	   *h = host_of_session(effect->owner);
	int			i;

	if (h == NULL)
		return;
	for (i = 0; i < MAX_SLOTS; i++)
		if (same_uuid(&h->slots[i], &c->uuid))
		{
			Slot	   *s = &h->slots[i];

			s->writer_between = has_writer_between(h, s, c);
			return;
		}
	broken("S5", "%s was created for no slot", effect->path->text);
}

/* An operator has broken the lock; who held it may still be at work. */
static bool
is_at_work(const Host *h, const Slot *s)
{
	return s->state == SLOT_LOST && !s->overdue &&
		s->failure == ZKL_FAILURE_BROKEN &&
		!s->tampered && s->record.generation == h->worker.session.generation;
}

/* The server itself deletes the node of slot i, or what leans on it. */
static void
check_own_delete(const Host *h, int i)
{
	const Slot *s = &h->slots[i];
	int			j;

	for (j = 0; j < MAX_SLOTS; j++)
	{
		const Slot *other = &h->slots[j];

		if (is_at_work(h, other) && !s->tampered &&
			other->owner == s->owner && other->lock == s->lock &&
			(j == i || (!other->record.sent && other->token == s->token)))
			broken("S4", "the node of host %d slot %d is deleted, slot %d is"
				   " not yet released", h->id, i, j);
	}
}

/* Whether the same transaction makes a reader in the writer's place */
static bool
is_downgrade(const Entry *entry, const Contender *c)
{
	size_t		i;

	for (i = 0; i < entry->tx.neffects; i++)
	{
		const Contender *made = contender_of(entry->tx.effects[i].path);

		if (entry->tx.effects[i].kind == OP_CREATE && made->counts &&
			made->mode == ZKL_SHARED && c->mode == ZKL_EXCLUSIVE &&
			made->seq == c->seq &&
			memcmp(&made->uuid, &c->uuid, sizeof(ZklUuid)) == 0)
			return true;
	}
	return false;
}

/* Slot i's node goes on as a reader's: nobody may need more of it. */
static void
check_downgraded(const Host *h, int i)
{
	const Slot *s = &h->slots[i];
	int			j;

	for (j = 0; j < MAX_SLOTS; j++)
	{
		const Slot *other = &h->slots[j];

		if (other->owner == s->owner && other->lock == s->lock &&
			other->mode == ZKL_EXCLUSIVE && holds(h, j) &&
			other->token == s->token)
			broken("S1", "the node of host %d slot %d becomes a reader's, slot"
				   " %d holds exclusively", h->id, i, j);
	}
}

/*
 * A hold that was lost as unreadable is not told of the mark of an operator, too:
 * it has the time that the operator gives to all that are marked.
 */
static bool
was_told_once(const Slot *s)
{
	return s->state == SLOT_LOST && s->failure == ZKL_FAILURE_UNREADABLE &&
		s->breaking;
}

static void
check_deleted(const Entry *entry, const Effect *effect, const Contender *c)
{
	Host	   *h = host_of_session(effect->owner);
	bool		downgrade;
	int			i;

	if (h == NULL)
		return;
	downgrade = entry->tx.session == h->worker.session.id && is_downgrade(entry, c);
	for (i = 0; i < MAX_SLOTS; i++)
	{
		Slot	   *s = &h->slots[i];

		if (!same_uuid(s, &c->uuid))
			continue;
		if (downgrade)
		{
			check_downgraded(h, i);
			continue;
		}
		if (entry->tx.session == 0 && entry->ends == 0)
		{
			if (!entry->by_vandal && holds(h, i) && !was_told_once(s))
				broken("S1", "the lock of host %d slot %d is broken, which"
					   " does not know it", h->id, i);
			tamper(h, s->owner, s->lock);
			s->node_gone = true;
			continue;
		}
		if (entry->tx.session == h->worker.session.id)
			check_own_delete(h, i);
		if (holds(h, i))
			broken("S4", "the node of host %d slot %d is deleted, which holds"
				   " %s", h->id, i, lock_name(s->lock));
	}
}

static void
check_ended(const Entry *entry)
{
	Host	   *h = host_of_session(entry->ends);

	if (h == NULL)
		return;
	if (entry->by_vandal)
		tamper_all(h);
	else if (lease_is_valid(h))
		broken("S1", "the session of host %d ended %" PRId64
			   " ms before its lease", h->id,
			   h->lease_ms - host_clock(h) / 1000);
}

/* The directory of a lock whose counter has come to its end is no more. */
static void
note_begun_anew(const Effect *effect)
{
	int			i;

	for (i = 0; i < hosts.nlocks; i++)
		if (effect->kind == OP_DELETE && effect->path == lock_path(i) &&
			(uint32_t) effect->before.counter > ZKL_SEQ_LIMIT)
			hosts.begun_anew[i] = base.now;
}

void
oracle_transaction(const Entry *entry)
{
	size_t		i;

	if (entry->ends != 0)
		check_ended(entry);
	oracle_cycles(entry);
	oracle_marks(entry);
	oracle_promises_transaction(entry);
	for (i = 0; i < entry->tx.neffects; i++)
	{
		const Effect *effect = &entry->tx.effects[i];
		const Contender *c = contender_of(effect->path);

		note_begun_anew(effect);
		if (hosts.semaphore >= 0 && !c->counts &&
			effect->path->parent == lock_path(hosts.semaphore))
			oracle_tries_look(hosts.semaphore);
		if (!c->counts)
			continue;
		if (effect->kind == OP_CREATE)
			check_created(effect, c);
		else if (effect->kind == OP_DELETE)
		{
			check_deleted(entry, effect, c);
			if (c->mode == ZKL_SHARED)
				hosts.reader_gone[c->lock] = effect->path;
		}
		oracle_tries_look(c->lock);
	}
}

/* What has the node of this slot, or leans on it, is its session's again. */
static void
note_revived(Host *h, const Slot *s)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		if (h->slots[i].state != SLOT_FREE && h->slots[i].owner == s->owner &&
			h->slots[i].lock == s->lock)
			h->slots[i].revived = true;
}

/*
 * ZooKeeper has lost a transaction.  It promised not to: S1 rests on that.  But if
 * the end of a session is lost, its server must see who has got its locks since.
 */
void
oracle_lost(const Entry *entry)
{
	size_t		i;
	int			j;

	oracle_promises_void();
	for (i = 0; i < entry->tx.neffects; i++)
	{
		const Effect *effect = &entry->tx.effects[i];
		const Contender *c = contender_of(effect->path);
		Host	   *h = host_of_session(effect->owner);

		if (effect->kind == OP_DELETE)
			contender_revive(effect->path);
		oracle_mark_lost(effect);
		if (!c->counts || (effect->kind != OP_CREATE && effect->kind != OP_DELETE))
			continue;
		hosts.large_lost[c->lock] |= effect->kind == OP_CREATE &&
			c->seq >= ZKL_SEQ_LIMIT;
		for (j = 0; j < MAX_SLOTS && h != NULL; j++)
			if (same_uuid(&h->slots[j], &c->uuid) && entry->ends != 0)
				note_revived(h, &h->slots[j]);
			else if (same_uuid(&h->slots[j], &c->uuid))
			{
				tamper(h, h->slots[j].owner, c->lock);
				h->slots[j].node_gone = effect->kind == OP_CREATE;
			}
	}
}

bool
oracle_is_marked(Path *path)
{
	const Node *node = &path->node[HEAD];
	const Contender *c = contender_of(path);
	Host	   *h = host_of_session(node->stat.ephemeral_owner);
	const Slot *s = c->counts ? slot_of(h, &c->uuid) : NULL;

	return c->counts && ((s != NULL && s->breaking) ||
						 zkl_node_data_breaking(node->data, node->length));
}

/* Whether ZooKeeper has lost anything since the server's session began */
static bool
may_have_lost(const Host *h)
{
	const Session *session = session_find(h->worker.session.id);

	return session != NULL && session->rewinds < ens.rewinds;
}

void
oracle_lost_writes(const Host *h)
{
	if (!may_have_lost(h) && !vandals_deleted_heartbeat())
		broken("S8", "host %d is wrong: no write is lost", h->id);
}

/*
 * A client whose writer an operator has deleted may go on as a reader all the same, with
 * the writer's number, behind the listing by which the next one was granted.  If the
 * directory has been made anew, that one can have the same number.
 */
static bool
is_late_reader(const Slot *s, Path *path)
{
	const Contender *c = contender_of(path);

	return c->counts && c->mode == ZKL_SHARED && c->seq <= s->record.seq &&
		path->node[HEAD].stat.czxid > s->token / ZKL_TOKENS_PER_ZXID;
}

/* The operator may have deleted it, too, while the server read it. */
static bool
is_late_reader_ahead(const Slot *s)
{
	Path	   *gone = hosts.reader_gone[s->lock];
	Path	   *path;

	for (path = lock_path(s->lock)->children; path; path = path->sibling)
		if (path->node[HEAD].exists && is_late_reader(s, path))
			return true;
	return gone != NULL && is_late_reader(s, gone);
}

void
oracle_revived(const Host *h, int i)
{
	if (!may_have_lost(h) && !is_late_reader_ahead(&h->slots[i]))
		broken("S8", "host %d is wrong: nobody is ahead of slot %d", h->id, i);
}

void
oracle_free(Host *h, int i)
{
	const Slot *s = &h->slots[i];
	Path	   *path;
	int			j;

	if (s->state != SLOT_RELEASED)
		broken("S5", "host %d slot %d is freed in state %d", h->id, i,
			   (int) s->state);
	if (!s->record.sent || h->worker.session.id == 0)
		return;
	for (j = 0; j < MAX_SLOTS; j++)
		if (j != i && same_uuid(&h->slots[j], &s->record.uuid))
			return;
	for (path = lock_path(s->lock)->children; path; path = path->sibling)
	{
		const Contender *c = contender_of(path);

		if (path->node[HEAD].exists && c->counts && c->revived_at == 0 &&
			memcmp(&c->uuid, &s->record.uuid, sizeof(ZklUuid)) == 0 &&
			path->node[HEAD].stat.ephemeral_owner == h->worker.session.id)
			broken("S5", "host %d slot %d is free, and %s is there", h->id, i,
				   path->text);
	}
}

void
oracle_quiet(void)
{
	Path	   *path;
	int			beats[MAX_HOSTS] = {0};

	for (path = tree_newest(); path != NULL; path = path->all)
	{
		int64_t		owner = path->node[HEAD].stat.ephemeral_owner;
		Host	   *h = host_of_session(owner);

		if (!path->node[HEAD].exists || owner == 0)
			continue;
		if (h == NULL)
			broken("simulation", "%s is left of session %" PRId64, path->text,
				   owner);
		if (strcmp(path->parent->name, ".servers") != 0)
			broken("S5", "%s is left of host %d", path->text, h->id);
		if (beats[h->id]++ > 0 && !ens.late_after_move)
			broken("S5", "%s is the second beat of host %d", path->text,
				   h->id);
	}
}

/* ---- S8: answers but "false" ---- */

/* Whether a server whose worker was not stopped meanwhile has surely heard of it */
static bool
has_heard(const Host *h, Time at)
{
	Time		since = at > h->deaf_until ? at : h->deaf_until;

	return base.now > since + 2 * ens.longest;
}

/*
 * The counter of a lock's directory is at its end, or the answer that tells that it has
 * begun anew may be under way.  If ZooKeeper has lost that it ended, who has seen it
 * goes on as if it were so.
 */
static bool
has_no_number(const Host *h, int lock)
{
	return (uint32_t) lock_path(lock)->node[HEAD].counter > ZKL_SEQ_LIMIT ||
		(hosts.begun_anew[lock] != 0 && !has_heard(h, hosts.begun_anew[lock])) ||
		(hosts.wiped_at != 0 && !has_heard(h, hosts.wiped_at)) ||
		(hosts.large_lost[lock] && may_have_lost(h));
}

void
oracle_fail(Host *h, int i)
{
	const Slot *s = &h->slots[i];

	/*
	 * No other answer fails a request, nor one that came before the request,
	 * nor one about the session.
	 */
	if ((s->failure == ZKL_FAILURE_ZOOKEEPER || s->failure == ZKL_FAILURE_PARENTS) &&
		zkl_zkapi_is_of_session(s->rc))
		broken("S8", "host %d slot %d failed with %d", h->id, i, s->rc);
	if (s->failure == ZKL_FAILURE_ZOOKEEPER &&
		(!ensemble_is_refusal(s->rc) || h->refused_at < s->since))
		broken("S8", "host %d slot %d failed with %d", h->id, i, s->rc);
	if (s->failure == ZKL_FAILURE_NO_NUMBER)
	{
		SEEN(NO_NUMBER);
		if (!has_no_number(h, s->lock))
			broken("S8", "host %d slot %d: the directory has numbers", h->id, i);
		return;
	}
	if (s->failure != ZKL_FAILURE_DEADLOCK)
	{
		/* It may have missed its parents twice before all was calm. */
		if (base.calm_since + 2 * ens.timeout < base.now &&
			s->failure != ZKL_FAILURE_PARENTS)
			broken("liveness", "host %d slot %d failed %d (rc %d)", h->id, i,
				   (int) s->failure, s->rc);
		return;
	}

	if (!s->judged && !s->writer_between && !queue_tampered(h, s->lock))
		broken("S8", "host %d slot %d: a deadlock with nobody", h->id, i);
}

static bool
is_tampered(const Host *h)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		if (h->slots[i].state != SLOT_FREE && h->slots[i].tampered)
			return true;
	return false;
}

void
oracle_invariants(Host *h)
{
	const char *why = h->worker.m != NULL ? zkl_check_all(h->worker.m) : NULL;

	/* A directory that was made anew under us counts from 0 again. */
	if (why != NULL && strcmp(why, "a queue is out of order") == 0 &&
		is_tampered(h))
		why = NULL;
	if (why != NULL)
		broken("invariant", "host %d: %s", h->id, why);
}
