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
zkl_waits_init_all(ZklManager *m)
{
	zkl_list_init(&m->waits.fresh);
	zkl_list_init(&m->waits.due);
	zkl_list_init(&m->waits.wanted);
}

static void
forget_dependents(ZklManager *m, ZklRequest *r)
{
	if (r->wait.dependents != NULL)
		zkl_memory_release(m, r->wait.dependents);
	r->wait.dependents = NULL;
	r->wait.ndependents = 0;
}

void
zkl_waits_free_all(ZklManager *m)
{
	uint32_t	i;

	for (i = 0; i < m->config.max_requests; i++)
		forget_dependents(m, &m->requests.all[i]);
}

void
zkl_waits_init(void *wing, ZklRequest *r, const ZklDemand *demand)
{
	ZklManager *m = wing;

	r->wait.patience = demand->patience;
	if (demand->patience > 0 && demand->patience < ZKL_MIN_PATIENCE)
		r->wait.patience = ZKL_MIN_PATIENCE;
	r->wait.since = m->now;
	zkl_list_init(&r->wait.publications);
}

/* ---- when to look ---- */

static int64_t
due_at(const ZklLink *link)
{
	return zkl_container(ZklRequest, wait.by_due, link)->wait.due;
}

static void
plan(ZklList *list, ZklRequest *r, int64_t due)
{
	ZklLink    *where;

	zkl_list_remove(&r->wait.by_due);
	r->wait.due = due;
	where = list->head.prev;
	while (where != &list->head && due_at(where) > due)
		where = where->prev;
	zkl_list_insert_after(&r->wait.by_due, where);
}

static void
plan_look(ZklManager *m, ZklRequest *r, int64_t due)
{
	plan(&m->waits.due, r, due);
}

/* The next that is due; NULL: none waits. */
static ZklRequest *
next_due(const ZklManager *m)
{
	const ZklList *list = &m->waits.due;

	if (zkl_list_empty(list) ||
		(!zkl_list_empty(&m->waits.fresh) &&
		 due_at(m->waits.fresh.head.next) < due_at(list->head.next)))
		list = &m->waits.fresh;
	return zkl_list_empty(list) ? NULL :
		zkl_container(ZklRequest, wait.by_due, list->head.next);
}

void
zkl_waits_begin(void *wing, ZklRequest *r)
{
	ZklManager *m = wing;

	int64_t		due = r->wait.since + r->wait.patience;

	if (r->wait.patience == 0 || r->lock->dialect == ZKL_DIALECT_PERMIT)
		return;
	r->wait.looks = r->wait.refusals = 0;
	r->wait.cycle_zxid = 0;
	plan(&m->waits.fresh, r, due > m->now ? due : m->now);
}

void
zkl_waits_soon(ZklManager *m, ZklRequest *r)
{
	if (zkl_list_linked(&r->wait.by_due) &&
		r->wait.due > m->now + r->wait.patience)
		plan_look(m, r, m->now + r->wait.patience);
}

static void
retract_all(ZklManager *m, ZklRequest *r)
{
	while (!zkl_list_empty(&r->wait.publications))
		zkl_publication_retract(m, zkl_container(ZklPublication, of_wait,
												 r->wait.publications.head.next));
}

void
zkl_waits_end(void *wing, ZklRequest *r)
{
	ZklManager *m = wing;

	if (!zkl_list_linked(&r->wait.by_due))
		return;
	zkl_list_remove(&r->wait.by_due);
	zkl_list_remove(&r->wait.wanted);
	retract_all(m, r);
	forget_dependents(m, r);
}

void
zkl_waits_unhold(void *wing, const ZklRequest *r)
{
	ZklManager *m = wing;
	ZklPublication *p = zkl_publication_find(m, &r->node.uuid);

	if (p != NULL && zkl_node_find(m, &r->node.uuid) == r)
		zkl_publication_retract(m, p);
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
add_holds(const ZklManager *m, uint64_t owner, Held *held)
{
	const ZklRequest *r = NULL;

	while ((r = zkl_siblings_owned(m, owner, r)) != NULL)
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
gather_holds(ZklManager *m, ZklRequest *r, Held *held)
{
	size_t		i;

	held->n = 0;
	held->too_many = false;
	add_holds(m, r->ring.owner, held);
	held->nown = held->n;
	for (i = 0; i < r->wait.ndependents; i++)
		add_holds(m, r->wait.dependents[i], held);
	if (!held->too_many)
		return;
	m->waits.unpublished += !r->wait.counted;
	r->wait.counted = true;
	held->n = held->nown = 0;
}

static void
retract_others(ZklManager *m, ZklRequest *r, const Held *held)
{
	ZklLink    *link,
			   *after;
	size_t		i;

	zkl_foreach(link, after, &r->wait.publications)
	{
		ZklPublication *p = zkl_container(ZklPublication, of_wait, link);

		for (i = 0; i < held->n; i++)
		{
			if (zkl_uuid_equal(&held->all[i]->node.uuid, &p->uuid))
				break;
		}
		if (i == held->n && !ZKL_MUTANT(STALE_DEPENDENTS))
			zkl_publication_retract(m, p);
	}
}

/*
 * Makes what is published equal to what is to be.  True: nothing is missing,
 * but what waits for an answer.  The id of a znode can be published for one wait
 * at a time: the first one.
 */
static bool
publish_wait(ZklManager *m, ZklRequest *r)
{
	Held		held;
	bool		complete = true;
	size_t		i;

	gather_holds(m, r, &held);
	retract_others(m, r, &held);
	for (i = 0; i < held.n; i++)
	{
		const ZklPublication *p =
		zkl_publication_find(m, &held.all[i]->node.uuid);

		if (p == NULL)
			zkl_publication_make(m, held.all[i], r, i >= held.nown);
		else
			complete &= p->wait == r;
	}
	if (!zkl_list_empty(&r->wait.publications))
		zkl_waits_want(m, r);
	return complete;
}

/* The one that is due; NULL: none is, or leftovers have to be found first. */
static ZklRequest *
take_due(ZklManager *m)
{
	ZklRequest *r = next_due(m);

	if (m->connection.state != ZKL_CONNECTION_READY || r == NULL ||
		r->wait.due > m->now)
		return NULL;
	if (!m->publications.leftovers)
		return r;
	zkl_publication_find_leftovers(m);
	return NULL;
}

/* A wait is published with all that its owner holds. */
static void
look_at_wait(ZklManager *m, ZklRequest *r)
{
	bool		complete;

	zkl_recall_owners(m, r->ring.owner, r->wait.dependents, r->wait.ndependents);
	complete = publish_wait(m, r);
	r->wait.refusals = 0;
	plan_look(m, r, m->now + (complete ? r->wait.patience << r->wait.looks :
							  r->wait.patience));
	if (complete && r->wait.looks < MOST_BACKING_OFF)
		r->wait.looks++;
}

void
zkl_waits_look(void *wing)
{
	ZklManager *m = wing;
	ZklRequest *r;

	while ((r = take_due(m)) != NULL)
		look_at_wait(m, r);
}

int64_t
zkl_waits_timer(const ZklManager *m)
{
	const ZklRequest *r = next_due(m);

	return r == NULL || m->publications.unlisted ? -1 : r->wait.due;
}

void
zkl_waits_told(void *wing, ZklRequest *r, const void *news)
{
	ZklManager *m = wing;
	const ZklDependents *told = news;
	size_t		n = told->n < ZKL_MAX_DEPENDENTS ? told->n : ZKL_MAX_DEPENDENTS;
	bool		some = n > 0 || r->wait.ndependents > 0;

	if (told->n > 0)
		zkl_recall_owners(m, r->ring.owner, told->owners, told->n);
	if (!zkl_list_linked(&r->wait.by_due) || !some)
		return;
	if (r->wait.dependents == NULL)
		r->wait.dependents = zkl_memory_alloc(m, ZKL_MAX_DEPENDENTS * sizeof(uint64_t));
	memcpy(r->wait.dependents, told->owners, n * sizeof(uint64_t));
	r->wait.ndependents = n;
	r->wait.dependents_at = told->seen_at;
	if (!m->publications.leftovers &&
		m->now >= r->wait.since + r->wait.patience && !publish_wait(m, r))
		zkl_waits_soon(m, r);
}

/* ---- for publications, searches and verdicts ---- */

void
zkl_waits_add(ZklRequest *r, ZklLink *publication)
{
	zkl_list_append(&r->wait.publications, publication);
}

bool
zkl_waits_is_published(const ZklRequest *r)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &r->wait.publications)
	{
		if (zkl_container(ZklPublication, of_wait, link)->write.place !=
			ZKL_WRITE_NONE)
			return false;
	}
	return !zkl_list_empty(&r->wait.publications);
}

void
zkl_waits_want(ZklManager *m, ZklRequest *r)
{
	if (zkl_list_linked(&r->wait.wanted))
		r->wait.again = true;
	else
		zkl_list_append(&m->waits.wanted, &r->wait.wanted);
}

void
zkl_waits_ask(ZklRequest *r, ZklList *asked)
{
	zkl_list_remove(&r->wait.wanted);
	r->wait.again = false;
	zkl_list_append(asked, &r->wait.wanted);
}

void
zkl_waits_answered(ZklManager *m, ZklRequest *r, bool again)
{
	zkl_list_remove(&r->wait.wanted);
	if (again || r->wait.again)
		zkl_waits_want(m, r);
}

bool
zkl_waits_refused(ZklRequest *r)
{
	return ++r->wait.refusals <= MOST_REFUSALS;
}

bool
zkl_waits_confirm(ZklManager *m, ZklRequest *r, int64_t zxid, int64_t time)
{
	if (zxid > r->wait.cycle_zxid)
	{
		r->wait.cycle_zxid = zxid;
		r->wait.cycle_at = m->now;
	}
	return m->now >= r->wait.cycle_at + time;
}

bool
zkl_waits_knows(const ZklManager *m, uint64_t owner, const char *lock)
{
	const ZklRequest *r = NULL;

	while ((r = zkl_siblings_owned(m, owner, r)) != NULL)
	{
		if ((r->demand == ZKL_DEMAND_GRANTED ||
			 r->demand == ZKL_DEMAND_WAITING) &&
			strcmp(r->lock->path + strlen(m->root), lock) == 0)
			return true;
	}
	return false;
}
