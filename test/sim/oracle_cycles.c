/*
 * oracle_cycles.c
 *	  Of the rules, those on deadlocks: S11.
 *
 * Owns nothing but what it works out.  It goes by the head of the log: contenders,
 * and publications, which count until they are deleted.  Must not know how the core
 * finds a cycle, so it tries all ways.
 */
#include <string.h>

#include "cycles.h"
#include "oracle.h"
#include "seen.h"
#include "sight.h"
#include "znode/znode.h"

#define MOST	128				/* contenders of all locks */

/* A contender, and all that it waits for */
typedef struct Vertex
{
	const Contender *c;
	Host	   *h;				/* whose it is, or NULL */
	const Slot *s;
	int64_t		session;
	const Contender *waits;		/* published: what its session waits for, or
								 * who is in its way in PostgreSQL's locks */
	bool		to[MOST];
} Vertex;

static Vertex vertices[MOST];
static int	nvertices;

/* Of which publications a cycle is made */
static enum
{
	ALL_OF_THEM,
	BUT_BEHIND,					/* without what other hosts than that which
								 * decides saw of PostgreSQL's locks */
	OLD_ONES					/* with those from before old_at only */
}			believed;
static const Host *decides;
static Time old_at;

/* ---- what there is ---- */

static Vertex *
find_vertex(const ZklUuid *uuid)
{
	int			i;

	for (i = 0; i < nvertices; i++)
		if (vertices[i].c->has_uuid &&
			zkl_uuid_equal(&vertices[i].c->uuid, uuid))
			return &vertices[i];
	return NULL;
}

static void
add_vertices(int lock)
{
	Path	   *path;

	for (path = lock_path(lock)->children; path; path = path->sibling)
	{
		const Contender *c = contender_of(path);
		Vertex	   *v = &vertices[nvertices];

		if (!path->node[HEAD].exists || !c->counts || nvertices == MOST)
			continue;
		memset(v, 0, sizeof(*v));
		v->c = c;
		v->session = path->node[HEAD].stat.ephemeral_owner;
		v->h = host_of_session(v->session);
		v->s = c->has_uuid ? slot_of(v->h, &c->uuid) : NULL;
		nvertices++;
	}
}

static bool
of_one_session(const Vertex *a, const Vertex *b)
{
	return a->s != NULL && b->s != NULL && a->h == b->h &&
		a->s->owner == b->s->owner;
}

static bool
is_in_way(const Vertex *ahead, const Vertex *v)
{
	return v->c->lock == ahead->c->lock && ahead->c->seq <= v->c->seq &&
		zkl_mode_conflicts(v->c->mode, ahead->c->mode);
}

static void
add_queues(void)
{
	int			i,
				j;

	for (i = 0; i < nvertices; i++)
		for (j = 0; j < nvertices; j++)
			if (i != j && is_in_way(&vertices[j], &vertices[i]) &&
				!of_one_session(&vertices[i], &vertices[j]))
				vertices[i].to[j] = true;
}

static void
add_publication(const char *name, const char *data, size_t length, Time made_at)
{
	ZklUuid		uuid;
	ZklWaitData wait;
	Vertex	   *held;
	const Vertex *waits;

	/* Vandals may have written to it. */
	if (!zkl_znode_parse_wait(name, &uuid) ||
		!zkl_node_data_parse_wait(data, length, &wait))
		return;
	held = find_vertex(&uuid);
	waits = find_vertex(&wait.wait);
	if (held == NULL || waits == NULL ||
		(believed == BUT_BEHIND && wait.behind && held->h != decides) ||
		(believed == OLD_ONES && made_at > old_at))
		return;
	held->to[waits - vertices] = true;
	held->waits = waits->c;
}

/*
 * A session does not wait for itself.  But while an earlier wait of it still counts,
 * it cannot do what its later requests ask for.
 */
static void
add_earlier_waits(void)
{
	int			i,
				j;

	for (i = 0; i < nvertices; i++)
		for (j = 0; j < nvertices; j++)
		{
			const Vertex *ahead = &vertices[j];

			if (i != j && of_one_session(&vertices[i], ahead) &&
				is_in_way(ahead, &vertices[i]) &&
				ahead->waits != NULL && ahead->waits != vertices[i].c)
				vertices[i].to[j] = true;
		}
}

static void
make_vertices(void)
{
	Path	   *path;
	int			i;

	nvertices = 0;
	for (i = 0; i < hosts.nlocks; i++)
		if (i != hosts.semaphore)
			add_vertices(i);
	add_queues();
	for (path = tree_children(SIM_ROOT ZKL_WAITS_DIRECTORY); path != NULL;
		 path = path->sibling)
		if (path->node[HEAD].exists)
			add_publication(path->name, path->node[HEAD].data,
							path->node[HEAD].length, contender_of(path)->made_at);
}

static bool
reaches(int from, int to)
{
	int			stack[MOST];
	bool		been[MOST] = {false};
	int			n = 0;
	int			i;

	stack[n++] = from;
	while (n > 0)
	{
		const Vertex *v = &vertices[stack[--n]];

		if (v->to[to])
			return true;
		for (i = 0; i < nvertices; i++)
			if (v->to[i] && !been[i])
			{
				been[i] = true;
				stack[n++] = i;
			}
	}
	return false;
}

/* ---- a verdict ---- */

static bool
is_publication(const Path *path)
{
	return path->parent != NULL && path->parent->parent != NULL &&
		strcmp(path->parent->name, &ZKL_WAITS_DIRECTORY[1]) == 0;
}

/* What its own server said of PostgreSQL's locks is to be new. */
static bool
is_stale(Host *h, const char *name, const ZklWaitData *wait)
{
	ZklUuid		uuid;
	const Slot *held;
	const Slot *waits = slot_of(h, &wait->wait);

	if (!wait->behind || !zkl_znode_parse_wait(name, &uuid) || waits == NULL)
		return false;
	held = slot_of(h, &uuid);
	return held == NULL ||
		cycles.seen[h->id][held->backend][waits->backend] <
		cycles.decided_at[h->id] - cycles.patience / 2 - 10 * MS;
}

/* All that the deciding transaction deletes count, too: NULL, or the victim's wait */
static Vertex *
make_cycle(const Entry *entry, Host *h, bool *behind)
{
	ZklWaitData wait;
	Vertex	   *v = NULL;
	size_t		i;

	make_vertices();
	for (i = 0; i < entry->tx.neffects; i++)
	{
		const Effect *effect = &entry->tx.effects[i];

		if (effect->kind != OP_DELETE || !is_publication(effect->path) ||
			!zkl_node_data_parse_wait(effect->before.data, effect->before.length, &wait))
			continue;
		if (!is_stale(h, effect->path->name, &wait))
			add_publication(effect->path->name, effect->before.data,
							effect->before.length, contender_of(effect->path)->made_at);
		v = find_vertex(&wait.wait);
		*behind |= wait.behind;
	}
	add_earlier_waits();
	return v;
}

static bool
is_in_cycle(const Entry *entry, Host *h, int what, bool *behind)
{
	const Vertex *v;

	believed = what;
	v = make_cycle(entry, h, behind);
	believed = ALL_OF_THEM;
	return v != NULL && reaches((int) (v - vertices), (int) (v - vertices));
}

/* The wait that ends; NULL: it has ended otherwise */
static Slot *
find_victim(const Entry *entry, Host *h)
{
	ZklWaitData wait;
	Slot	   *victim = NULL;
	size_t		i;

	for (i = 0; i < entry->tx.neffects; i++)
	{
		const Effect *effect = &entry->tx.effects[i];

		if (effect->kind == OP_DELETE && is_publication(effect->path) &&
			zkl_node_data_parse_wait(effect->before.data, effect->before.length, &wait))
			victim = slot_of(h, &wait.wait);
	}
	return victim == NULL || victim->state != SLOT_WAITING || victim->tampered ?
		NULL : victim;
}

/*
 * What another host saw of PostgreSQL's locks may be over.  It takes that back within
 * the time of a look, so all the rest of the cycle must be older than that, by any
 * clock.
 */
static void
check_verdict(const Entry *entry, Host *h)
{
	Slot	   *victim = find_victim(entry, h);
	bool		behind = false;

	if (victim == NULL)
		return;
	decides = h;
	old_at = cycles.decided_at[h->id] - cycles.patience * 4 / 5;
	if (!is_in_cycle(entry, h, ALL_OF_THEM, &behind))
		broken("S11", "host %d slot %d is to end for a deadlock that is none",
			   h->id, (int) (victim - h->slots));
	if (!is_in_cycle(entry, h, BUT_BEHIND, &behind) &&
		!is_in_cycle(entry, h, OLD_ONES, &behind))
		broken("S11", "host %d slot %d is to end too soon for a deadlock", h->id,
			   (int) (victim - h->slots));
	victim->judged = true;
	SEEN(VERDICT);
	if (behind)
		SEEN(VERDICT_BEHIND);
	trace("host # slot #: is the victim of a deadlock", h->id,
		  victim - h->slots, 0, 0, NULL);
}

/* ---- a publication ---- */

/*
 * Also of a lock that was cached before: a recall tells who has it.  If the holder is
 * behind the wait, he was so before he took the lock, or is another one by now.
 */
static void
check_pids(const Host *h, const Slot *held, const Slot *waits, const ZklWaitData *wait)
{
	if (wait->behind ?
		held->since > cycles.seen[h->id][held->backend][waits->backend] :
		held->owner != waits->owner)
		return;
	if (wait->holder_pid != held->pid || wait->waiter_pid != waits->pid)
		broken("S11", "a publication of host %d slot %d names process %d, not %d",
			   h->id, (int) (held - h->slots), (int) wait->holder_pid,
			   (int) held->pid);
	if (held->token % ZKL_TOKENS_PER_ZXID != held->record.index)
		SEEN(TAKER_PUBLISHED);
}

/* Whoever reads it knows by its name that he still means the same one. */
static void
check_new(Path *path)
{
	(void) contender_of(path);
	if (path->contender->made_at != 0)
		broken("S11", "the name %s is used twice", path->text);
	path->contender->made_at = base.now;
}

/*
 * It says what is, or was when it was sent.  If the session has got the lock since,
 * another one may have taken it from the cache.
 */
static void
check_published(const Effect *effect)
{
	Host	   *h = host_of_session(effect->owner);
	ZklUuid		uuid;
	ZklWaitData wait;
	const Slot *held;
	const Slot *waits;

	if (h == NULL)
		return;
	if (!zkl_znode_parse_wait(effect->path->name, &uuid) ||
		!zkl_node_data_parse_wait(effect->data, effect->length, &wait))
		broken("S11", "the publication %s cannot be read", effect->path->name);
	held = slot_of(h, &uuid);
	waits = slot_of(h, &wait.wait);
	if (held != NULL && held->state == SLOT_WAITING)
		broken("S11", "%s names what waits", effect->path->text);
	if (held != NULL && waits != NULL && waits->state == SLOT_WAITING &&
		!wait.behind && held->owner != waits->owner)
		broken("S11", "%s is of another session than its wait",
			   effect->path->text);
	if (held != NULL && waits != NULL && waits->state == SLOT_WAITING &&
		held->state == SLOT_GRANTED)
		check_pids(h, held, waits, &wait);
}

/* Of a slot that has changed since the worker looked the core knows an older state. */
static bool
is_known(const Slot *s)
{
	return s != NULL && s->known && !s->marked;
}

/*
 * Whether the slots will say that somebody holds the node, when the worker has done what
 * the core has decided: it grants the lock, or the node passes to another hold.
 */
static bool
is_to_hold(const Host *h, const Slot *s)
{
	size_t		n,
				i;
	const ZklAction *actions = zkl_manager_actions(h->worker.m, &n);

	for (i = 0; i < n; i++)
	{
		const ZklAction *action = &actions[i];

		if (action->kind == ZKL_ACTION_GRANT && &h->slots[action->request] == s)
			return s->state == SLOT_WAITING;
		if (action->kind == ZKL_ACTION_RECORD &&
			zkl_uuid_equal(&action->record.uuid, &s->record.uuid) &&
			h->slots[action->request].state == SLOT_GRANTED)
			return true;
	}
	return false;
}

/*
 * The worker is about to publish: nobody waits for a holder who has left, and whose
 * lock is only kept, as that ends by itself.
 */
void
oracle_publishes(Host *h, const ZklMultiOp *op)
{
	const char *name = strrchr(op->path, '/') + 1;
	ZklUuid		uuid;
	ZklWaitData wait;
	const Slot *held;
	const Slot *waits;

	if (op->kind != ZKL_MULTI_CREATE_EPHEMERAL || !zkl_znode_parse_wait(name, &uuid) ||
		!zkl_node_data_parse_wait(op->data, op->data_length, &wait))
		return;
	held = slot_of(h, &uuid);
	waits = slot_of(h, &wait.wait);
	if (is_known(held) && held->state != SLOT_GRANTED && !is_to_hold(h, held))
		broken("S11", "host %d slot %d is published, which holds nothing", h->id,
			   (int) (held - h->slots));
	if (is_known(waits) && waits->state != SLOT_WAITING)
		broken("S11", "host %d slot %d is published, which does not wait", h->id,
			   (int) (waits - h->slots));
}

void
oracle_cycles(const Entry *entry)
{
	Host	   *h = host_of_session(entry->tx.session);
	bool		verdict = false;
	size_t		i;

	if (!cycles.on)
		return;
	for (i = 0; i < entry->tx.neffects; i++)
	{
		const Effect *effect = &entry->tx.effects[i];

		verdict |= effect->kind == OP_CHECK;
		if (effect->kind == OP_CREATE && is_publication(effect->path))
		{
			check_new(effect->path);
			check_published(effect);
		}
	}
	if (verdict && h != NULL)
		check_verdict(entry, h);
}

/* ---- the end ---- */

/* Truly waits: the others hold, or wait, and their servers know */
static bool
is_at_it(const Vertex *v)
{
	return v->s != NULL && !v->s->tampered && !v->s->judged &&
		(v->s->state == SLOT_WAITING || v->s->state == SLOT_GRANTED);
}

/* Who holds a lock waits for another one. */
static void
add_holders(void)
{
	int			i,
				j;

	for (i = 0; i < nvertices; i++)
		for (j = 0; j < nvertices; j++)
			if (i != j && of_one_session(&vertices[i], &vertices[j]) &&
				vertices[i].s->state == SLOT_GRANTED &&
				vertices[j].s->state == SLOT_WAITING)
				vertices[i].to[j] = true;
}

void
oracle_cycles_over(void)
{
	int			i;

	if (!cycles.on || base.now < base.calm_since + 10 * ens.timeout +
		40 * cycles.patience)
		return;
	nvertices = 0;
	for (i = 0; i < hosts.nlocks; i++)
		if (i != hosts.semaphore)
			add_vertices(i);
	for (i = nvertices; i-- > 0;)
		if (!is_at_it(&vertices[i]))
			vertices[i] = vertices[--nvertices];
	add_queues();
	add_holders();
	for (i = 0; i < nvertices; i++)
		if (reaches(i, i))
			broken("liveness", "host %d slot %d is in a deadlock that lives on",
				   vertices[i].h->id,
				   (int) (vertices[i].s - vertices[i].h->slots));
}
