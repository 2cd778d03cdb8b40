/*
 * waits.c
 *	  Long waits: which are published, and when that is looked at again.
 *
 * Owns ZklWait and ZklWaits.  Runs in the worker (and in tests), takes no
 * locks, knows neither PostgreSQL nor ZooKeeper.  publication.c writes; what
 * others publish is search.c's.
 *
 * A wait that lasts longer than its owner's patience is published, if anybody can
 * be waiting for it: for each znode that its owner holds, and for each that is
 * held by an owner that waits for this one in PostgreSQL's own locks.  From then
 * on a search looks for a deadlock after 1, 2, 4, 8, 16, 16 ... times the
 * patience: a victim may die before it decides.  If somebody waits for it in
 * PostgreSQL, it does so each time that the host has looked.
 */
#include <string.h>

#include "deadlock/publication.h"
#include "deadlock/waits.h"

#define MOST_BACKING_OFF	4	/* times twice as long */
#define MOST_REFUSALS		3

void
zkl_waits_init_all(ZklDeadlock *d)
{
	size_t		size = d->m->config.max_requests * sizeof(ZklWait);

	d->waits.all = zkl_memory_alloc(d->m, size);
	memset(d->waits.all, 0, size);
	zkl_list_init(&d->waits.fresh);
	zkl_list_init(&d->waits.due);
	zkl_list_init(&d->waits.wanted);
}

void
zkl_waits_free_all(ZklDeadlock *d)
{
	zkl_memory_release(d->m, d->waits.all);
}

static ZklWait *
wait_of(const ZklDeadlock *d, const ZklRequest *r)
{
	return &d->waits.all[r->id];
}

void
zkl_waits_init(void *wing, ZklRequest *r, const ZklDemand *demand)
{
	ZklDeadlock *d = wing;
	ZklWait    *w = wait_of(d, r);

	memset(w, 0, sizeof(ZklWait));
	w->r = r;
	w->patience = demand->patience;
	if (demand->patience > 0 && demand->patience < ZKL_MIN_PATIENCE)
		w->patience = ZKL_MIN_PATIENCE;
	w->since = d->m->now;
	zkl_list_init(&w->publications);
}

/* ---- when to look ---- */

static int64_t
due_at(const ZklLink *link)
{
	return zkl_container(ZklWait, by_due, link)->due;
}

static void
plan(ZklList *list, ZklWait *w, int64_t due)
{
	ZklLink    *where;

	zkl_list_remove(&w->by_due);
	w->due = due;
	where = list->head.prev;
	while (where != &list->head && due_at(where) > due)
		where = where->prev;
	zkl_list_insert_after(&w->by_due, where);
}

static void
plan_look(ZklDeadlock *d, ZklWait *w, int64_t due)
{
	plan(&d->waits.due, w, due);
}

/* The next that is due; NULL: none waits. */
static ZklWait *
next_due(const ZklDeadlock *d)
{
	const ZklList *list = &d->waits.due;

	if (zkl_list_empty(list) ||
		(!zkl_list_empty(&d->waits.fresh) &&
		 due_at(d->waits.fresh.head.next) < due_at(list->head.next)))
		list = &d->waits.fresh;
	return zkl_list_empty(list) ? NULL :
		zkl_container(ZklWait, by_due, list->head.next);
}

void
zkl_waits_begin(void *wing, ZklRequest *r)
{
	ZklDeadlock *d = wing;
	ZklWait    *w = wait_of(d, r);

	int64_t		due = w->since + w->patience;

	if (w->patience == 0 || w->r->lock->dialect == ZKL_DIALECT_PERMIT)
		return;
	w->looks = w->refusals = 0;
	w->cycle_zxid = 0;
	plan(&d->waits.fresh, w, due > d->m->now ? due : d->m->now);
}

void
zkl_waits_soon(ZklDeadlock *d, ZklWait *w)
{
	if (zkl_list_linked(&w->by_due) &&
		w->due > d->m->now + w->patience)
		plan_look(d, w, d->m->now + w->patience);
}

static void
retract_all(ZklDeadlock *d, ZklWait *w)
{
	while (!zkl_list_empty(&w->publications))
		zkl_publication_retract(d, zkl_container(ZklPublication, of_wait,
												 w->publications.head.next));
}

void
zkl_waits_end(void *wing, ZklRequest *r)
{
	ZklDeadlock *d = wing;
	ZklWait    *w = wait_of(d, r);

	if (!zkl_list_linked(&w->by_due))
		return;
	zkl_list_remove(&w->by_due);
	zkl_list_remove(&w->wanted);
	retract_all(d, w);
	w->ndependents = 0;
}

void
zkl_waits_hold_ended(void *wing, const ZklRequest *r)
{
	ZklDeadlock *d = wing;
	ZklPublication *p = zkl_publication_of(d, &r->node.uuid);

	if (p != NULL && zkl_node_find(d->m, &r->node.uuid) == r)
		zkl_publication_retract(d, p);
}

/* ---- what is to be published ---- */

typedef struct Held
{
	const ZklRequest *all[ZKL_MAX_PUBLISHED];
	size_t		nown;			/* of these, its owner's own */
	size_t		n;
	bool		too_many;
} Held;

/*
 * Only znodes that others may wait for.  A broken hold does not count: its
 * znode goes without its holder.  A kept one goes by itself, but stands in the queue
 * as if it waited for its owner's others on that lock.
 */
static bool
is_obstacle(const ZklRequest *r)
{
	return r->demand == ZKL_DEMAND_GRANTED &&
		r->node.state == ZKL_NODE_EXISTS && !r->broken &&
		(!zkl_keep_has_any(r) || ZKL_MUTANT(KEPT_IS_OBSTACLE)) && r->lock->dialect != ZKL_DIALECT_PERMIT &&
		r->lock->dialect != ZKL_DIALECT_MEMBER;
}

static void
add_holds(const ZklDeadlock *d, uint64_t owner, Held *held)
{
	const ZklRequest *r = NULL;

	while ((r = zkl_siblings_owned(d->m, owner, r)) != NULL)
	{
		if (!is_obstacle(r))
			continue;
		if (held->n == ZKL_MAX_PUBLISHED)
		{
			held->too_many = true;
			return;
		}
		held->all[held->n++] = r;
	}
}

static void
gather_holds(ZklDeadlock *d, ZklWait *w, Held *held)
{
	size_t		i;

	held->n = 0;
	held->too_many = false;
	add_holds(d, w->r->ring.owner, held);
	held->nown = held->n;
	ZKL_ASSERT(w->ndependents <= ZKL_MAX_DEPENDENTS);
	for (i = 0; i < w->ndependents; i++)
		add_holds(d, w->dependents[i], held);
	if (!held->too_many)
		return;
	d->waits.unpublished += !w->counted;
	w->counted = true;
	held->n = held->nown = 0;
}

static void
retract_others(ZklDeadlock *d, ZklWait *w, const Held *held)
{
	ZklLink    *link,
			   *after;
	size_t		i;

	zkl_foreach(link, after, &w->publications)
	{
		ZklPublication *p = zkl_container(ZklPublication, of_wait, link);

		for (i = 0; i < held->n; i++)
		{
			if (zkl_uuid_equal(&held->all[i]->node.uuid, &p->uuid))
				break;
		}
		if (i == held->n && !ZKL_MUTANT(STALE_DEPENDENTS))
			zkl_publication_retract(d, p);
	}
}

/*
 * Whether a writer whose request is over still stands ahead of r, a reader: other
 * servers would take it for one that waits for the readers ahead of it.
 */
static bool
is_behind_remains(const ZklRequest *r)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &r->lock->requests.all)
	{
		const ZklRequest *other = zkl_container(ZklRequest, all, link);

		if ((other->demand == ZKL_DEMAND_RELEASED ||
			 other->demand == ZKL_DEMAND_ANSWERED) &&
			other->node.state != ZKL_NODE_NONE && other->node.seq < r->node.seq &&
			other->node.mode == ZKL_EXCLUSIVE && r->node.mode == ZKL_SHARED)
			return true;
	}
	return false;
}

/*
 * Makes what is published equal to what is to be.  True: nothing is missing,
 * but what waits for an answer.  The id of a znode can be published for one wait
 * at a time: the first one.
 */
static bool
publish_wait(ZklDeadlock *d, ZklWait *w)
{
	Held		held;
	bool		complete = true;
	size_t		i;

	if (is_behind_remains(w->r))
	{
		retract_all(d, w);
		return false;
	}
	gather_holds(d, w, &held);
	retract_others(d, w, &held);
	for (i = 0; i < held.n; i++)
	{
		const ZklPublication *p =
		zkl_publication_of(d, &held.all[i]->node.uuid);

		if (p == NULL)
			zkl_publication_make(d, held.all[i], w, i >= held.nown);
		else
			complete &= p->wait == w;
	}
	if (!zkl_list_empty(&w->publications))
		zkl_waits_want(d, w);
	return complete;
}

/* The one that is due; NULL: none is. */
static ZklWait *
take_due(ZklDeadlock *d)
{
	ZklWait    *w = next_due(d);

	return d->m->connection.state == ZKL_CONNECTION_READY && w != NULL &&
		w->due <= d->m->now ? w : NULL;
}

/* A wait is published with all that its owner holds. */
static void
look_at_wait(ZklDeadlock *d, ZklWait *w)
{
	bool		complete;

	ZKL_ASSERT(w->r->demand == ZKL_DEMAND_WAITING);
	zkl_recall_owners(d->m, w->r->ring.owner, w->dependents, w->ndependents);
	complete = publish_wait(d, w);
	w->refusals = 0;
	plan_look(d, w, d->m->now + (complete ? w->patience << w->looks :
								 w->patience));
	if (complete && w->looks < MOST_BACKING_OFF)
		w->looks++;
}

void
zkl_waits_look(void *wing)
{
	ZklDeadlock *d = wing;
	ZklWait    *w;

	while ((w = take_due(d)) != NULL)
		look_at_wait(d, w);
}

int64_t
zkl_waits_timer(const ZklDeadlock *d)
{
	const ZklWait *w = next_due(d);

	return w == NULL ? -1 : w->due;
}

void
zkl_waits_told(void *wing, ZklRequest *r, const void *news)
{
	ZklDeadlock *d = wing;
	ZklWait    *w = wait_of(d, r);
	const ZklDependents *told = news;
	size_t		n = told->n < ZKL_MAX_DEPENDENTS ? told->n : ZKL_MAX_DEPENDENTS;
	bool		some = n > 0 || w->ndependents > 0;

	if (told->n > 0)
		zkl_recall_owners(d->m, r->ring.owner, told->owners, told->n);
	if (!zkl_list_linked(&w->by_due) || !some)
		return;
	memcpy(w->dependents, told->owners, n * sizeof(uint64_t));
	w->ndependents = n;
	w->dependents_at = told->seen_at;
	if (d->m->now >= w->since + w->patience && !publish_wait(d, w))
		zkl_waits_soon(d, w);
}

/* ---- for publications, searches and verdicts ---- */

void
zkl_waits_add(ZklWait *w, ZklLink *publication)
{
	zkl_list_append(&w->publications, publication);
}

bool
zkl_waits_is_published(const ZklWait *w)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &w->publications)
	{
		if (zkl_container(ZklPublication, of_wait, link)->write.state !=
			ZKL_WRITE_NONE)
			return false;
	}
	return !zkl_list_empty(&w->publications);
}

void
zkl_waits_want(ZklDeadlock *d, ZklWait *w)
{
	if (zkl_list_linked(&w->wanted))
		w->again = true;
	else
		zkl_list_append(&d->waits.wanted, &w->wanted);
}

void
zkl_waits_ask(ZklWait *w, ZklList *asked)
{
	zkl_list_remove(&w->wanted);
	w->again = false;
	zkl_list_append(asked, &w->wanted);
}

void
zkl_waits_answered(ZklDeadlock *d, ZklWait *w, bool again)
{
	zkl_list_remove(&w->wanted);
	if (again || w->again)
		zkl_waits_want(d, w);
}

bool
zkl_waits_refused(ZklWait *w)
{
	return ++w->refusals <= MOST_REFUSALS;
}

bool
zkl_waits_cycle_lasts(ZklDeadlock *d, ZklWait *w, int64_t zxid, int64_t time)
{
	if (zxid > w->cycle_zxid)
	{
		w->cycle_zxid = zxid;
		w->cycle_at = d->m->now;
	}
	return d->m->now >= w->cycle_at + time;
}

bool
zkl_waits_knows(const ZklDeadlock *d, uint64_t owner, const char *lock)
{
	const ZklRequest *r = NULL;

	while ((r = zkl_siblings_owned(d->m, owner, r)) != NULL)
	{
		if ((r->demand == ZKL_DEMAND_GRANTED ||
			 r->demand == ZKL_DEMAND_WAITING) &&
			strcmp(r->lock->path + strlen(d->m->root), lock) == 0)
			return true;
	}
	return false;
}
