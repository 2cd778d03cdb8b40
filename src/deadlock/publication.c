/*
 * publication.c
 *	  Long waits of ours, and the znodes that tell others of them.
 *
 * Owns ZklWait, ZklWaits, ZklPublication and ZklPublications.  What others publish
 * is search.c's.  Runs in the worker (and in tests), takes no locks, knows neither
 * PostgreSQL nor ZooKeeper.
 *
 * A publication is named by the id of a znode that is held, and says what its
 * holder waits for.  It is never rewritten, and its name never used again: its
 * czxid is its place among all publications, and a check that it exists proves that
 * it has said so ever since.
 *
 * They are written in batches; one without a write exists.  No batch without an
 * answer can be applied once the connection is proved, so a listing settles what is
 * unsettled.  None is deleted alone: such a delete may come late, and a listing
 * before it would tell nothing.
 */
#include <string.h>

#include "deadlock/publication.h"

static void waits_add(ZklWait *w, ZklLink *publication);

void
zkl_publication_init_all(ZklDeadlock *d)
{
	zkl_memory_make_table(d->m, &d->publications.by_uuid,
						  d->m->config.max_requests);
	zkl_list_init(&d->publications.all);
}

void
zkl_publication_free_all(ZklDeadlock *d)
{
	zkl_publication_session_lost(d);
	zkl_memory_release(d->m, d->publications.by_uuid.buckets);
}

static ZklList *
publication_bucket(const ZklDeadlock *d, const ZklUuid *uuid)
{
	return zkl_table_bucket(&d->publications.by_uuid,
							zkl_table_hash(uuid->bytes, ZKL_UUID_BYTES));
}

ZklPublication *
zkl_publication_of(const ZklDeadlock *d, const ZklUuid *uuid)
{
	ZklPublication *found = NULL;
	ZklLink    *link,
			   *after;

	if (zkl_list_empty(&d->publications.all))
		return NULL;
	zkl_foreach(link, after, publication_bucket(d, uuid))
	{
		ZklPublication *p = zkl_container(ZklPublication, by_uuid, link);

		if (zkl_uuid_equal(&p->uuid, uuid) && (found == NULL || p->wait != NULL))
			found = p;
	}
	return found;
}

ZklPublication *
zkl_publication_find(const ZklDeadlock *d, const char *name)
{
	ZklUuid		uuid;
	ZklLink    *link,
			   *after;

	if (!zkl_znode_parse_wait(name, &uuid))
		return NULL;
	zkl_foreach(link, after, publication_bucket(d, &uuid))
	{
		ZklPublication *p = zkl_container(ZklPublication, by_uuid, link);

		if (strcmp(p->name, name) == 0)
			return p;
	}
	return NULL;
}

bool
zkl_publication_disowns(const void *wing, const char *name)
{
	const ZklDeadlock *d = wing;
	ZklUuid		uuid;

	return zkl_znode_parse_wait(name, &uuid) && zkl_uuid_is_zklock(&uuid) &&
		zkl_node_find(d->m, &uuid) == NULL && zkl_publication_find(d, name) == NULL;
}

bool
zkl_publication_may_exist(const void *wing, const ZklUuid *uuid)
{
	const ZklDeadlock *d = wing;

	return zkl_publication_of(d, uuid) != NULL || d->publications.unlisted;
}

char *
zkl_publication_path(ZklDeadlock *d, const char *name)
{
	char		below[1 + ZKL_MAX_WAIT_NAME + 1] = "/";

	strcpy(below + 1, name);
	return zkl_actions_join(d->m, d->m->root, ZKL_WAITS_DIRECTORY, below);
}

/* Whether it is pending, to be created or to be deleted */
static bool
is_pending(const ZklPublication *p, const ZklWriter *by)
{
	return p->write.state == ZKL_WRITE_PENDING && p->write.by == by;
}

static ZklPublication *
make(ZklDeadlock *d, const ZklUuid *uuid, const char *name, const char *data,
	 size_t length)
{
	ZklPublication *p = zkl_memory_alloc(d->m, sizeof(ZklPublication) + length);

	memset(p, 0, sizeof(ZklPublication));
	p->d = d;
	strcpy(p->name, name);
	p->uuid = *uuid;
	p->data_length = length;
	memcpy(p->data, data, length);
	zkl_list_append(&d->publications.all, &p->all);
	zkl_list_append(publication_bucket(d, uuid), &p->by_uuid);
	return p;
}

/* It does not exist. */
static void
forget(ZklDeadlock *d, ZklPublication *p)
{
	if (p->wait != NULL)
		zkl_waits_soon(d, p->wait);
	zkl_write_drop(&p->write);
	zkl_list_remove(&p->of_wait);
	zkl_list_remove(&p->by_uuid);
	zkl_list_remove(&p->all);
	zkl_memory_release(d->m, p);
}

/* It exists: is that still right? */
static void
keep_or_retract(ZklDeadlock *d, ZklPublication *p)
{
	ZKL_ASSERT(p->d == d);
	if (p->wait != NULL)
		zkl_write_drop(&p->write);
	else
		zkl_write_pend(d->m, &p->write, &zkl_publication_retraction,
					   ZKL_RANK_WING_DELETE);
}

/*
 * Publishes that the owner of "held" waits for "wait"; "behind": in PostgreSQL's
 * own locks.  The id of held has no publication yet.
 */
static void
publication_make(ZklDeadlock *d, const ZklRequest *held, ZklWait *wait,
				 bool behind)
{
	ZklWaitData data;
	char		text[ZKL_MAX_WAIT_DATA];
	char		name[ZKL_MAX_WAIT_NAME + 1];
	bool		again = ZKL_MUTANT(NAME_REUSED);
	ZklPublication *p;

	ZKL_ASSERT(held->demand == ZKL_DEMAND_GRANTED);
	ZKL_ASSERT(wait->r->demand == ZKL_DEMAND_WAITING);
	memset(&data, 0, sizeof(data));
	data.wait = wait->r->node.uuid;
	strcpy(data.lock, wait->r->lock->path + strlen(d->m->root));
	data.dialect = wait->r->lock->dialect;
	data.mode = wait->r->mode;
	data.behind = behind;
	strcpy(data.server, d->m->server);
	data.holder_pid = held->pid;
	data.waiter_pid = wait->r->pid;
	data.every_ms = (int32_t) (wait->patience / 1000);
	zkl_znode_wait_name(&held->node.uuid, again ? 0 : d->m->config.worker_start,
						again ? 0 : ++d->publications.made, name);
	p = make(d, &held->node.uuid, name, text,
			 zkl_node_data_format_wait(&data, text));
	p->wait = wait;
	waits_add(wait, &p->of_wait);
	zkl_write_pend(d->m, &p->write, &zkl_publication_creation,
				   ZKL_RANK_WING_CREATE);
}

/* It is no longer true: it goes as soon as that can be done. */
static void
publication_retract(ZklDeadlock *d, ZklPublication *p)
{
	zkl_list_remove(&p->of_wait);
	p->wait = NULL;
	if (is_pending(p, &zkl_publication_creation))
		forget(d, p);
	else if (p->write.state == ZKL_WRITE_NONE &&
			 !ZKL_MUTANT(PUBLICATION_OUTLIVES))
		keep_or_retract(d, p);
}

/* ---- in a batch ---- */

static ZklPublication *
publication_of(const ZklWrite *w)
{
	return zkl_container(ZklPublication, write, w);
}

static size_t
publication_bytes(const ZklWrite *w)
{
	return ZKL_MAX_ROOT + ZKL_MAX_WAIT_NAME + publication_of(w)->data_length +
		ZKL_OPERATION_BYTES;
}

static bool
any_exists(const ZklDeadlock *d)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &d->publications.all)
	{
		if (zkl_container(ZklPublication, all, link)->write.state == ZKL_WRITE_NONE)
			return true;
	}
	return false;
}

/* The directory may be missing: it is made ahead of creates. */
static void
make_directory(ZklDeadlock *d, ZklForm *form)
{
	const char *path = zkl_actions_join(d->m, d->m->root, ZKL_WAITS_DIRECTORY, "");

	if (strcmp(path, form->made) == 0 || any_exists(d))
		return;
	zkl_operations_send(d->m, ZKL_OP_IGNORE, NULL, NULL, ZKL_SEND_CREATE_CONTAINER,
						path);
	form->made = path;
}

static void
fill_creation(ZklManager *m, ZklWrite *w, ZklMultiOp *op, ZklForm *form)
{
	const ZklPublication *p = publication_of(w);
	char	   *data = zkl_actions_text(m, p->data_length);

	make_directory(p->d, form);
	memcpy(data, p->data, p->data_length);
	op->kind = ZKL_MULTI_CREATE_EPHEMERAL;
	op->path = zkl_publication_path(p->d, p->name);
	op->version = -1;
	op->data = data;
	op->data_length = p->data_length;
}

static void
fill_retraction(ZklManager *m, ZklWrite *w, ZklMultiOp *op, ZklForm *form)
{
	const ZklPublication *p = publication_of(w);

	(void) m;
	(void) form;
	op->kind = ZKL_MULTI_DELETE;
	op->path = zkl_publication_path(p->d, p->name);
	op->version = -1;
}

/*
 * If one of them cannot be created, neither can the others; but if only its name is
 * taken, by somebody else, the next one has another name.
 */
static void
creation_refused(ZklDeadlock *d, ZklPublication *p, const ZklOutcome *o)
{
	bool		shared = o->by == &zkl_publication_creation;
	bool		taken = o->rc == ZKL_RC_NODEEXISTS;

	if (p->wait == NULL || (o->culprit && taken) ||
		(shared && !taken &&
		 (o->rc != ZKL_RC_NONODE || ++p->attempts >= ZKL_MAX_ATTEMPTS)))
		forget(d, p);
	else
		zkl_write_pend(d->m, &p->write, &zkl_publication_creation,
					   ZKL_RANK_WING_CREATE);
}

static void
settle_creation(ZklManager *m, ZklWrite *w, const ZklOutcome *o)
{
	ZklPublication *p = publication_of(w);
	ZklDeadlock *d = p->d;

	(void) m;
	if (o->kind == ZKL_OUTCOME_REFUSED)
		creation_refused(d, p, o);
	else if (o->kind == ZKL_OUTCOME_APPLIED)
	{
		p->czxid = o->zxid;
		p->attempts = 0;
		keep_or_retract(d, p);
	}
	else
		d->publications.unsettled = true;
}

static void
settle_retraction(ZklManager *m, ZklWrite *w, const ZklOutcome *o)
{
	ZklPublication *p = publication_of(w);
	ZklDeadlock *d = p->d;

	if (o->kind == ZKL_OUTCOME_APPLIED ||
		(o->culprit && o->rc == ZKL_RC_NONODE))
		forget(d, p);
	else if (o->kind == ZKL_OUTCOME_REFUSED && !o->culprit)
		keep_or_retract(d, p);
	else
	{
		/* A listing has to tell; if it was refused, one after a while. */
		d->publications.unsettled = true;
		if (o->culprit)
			d->publications.retry_at = m->now + ZKL_RETRY_DELAY;
	}
}

const ZklWriter zkl_publication_creation = {
	.nops = 1,.bytes = publication_bytes,.fill = fill_creation,
	.settle = settle_creation
};

const ZklWriter zkl_publication_retraction = {
	.nops = 1,.bytes = publication_bytes,.fill = fill_retraction,
	.settle = settle_retraction
};

/* ---- in a verdict ---- */

void
zkl_publication_judge(ZklDeadlock *d, ZklPublication *p)
{
	ZKL_ASSERT(p->write.state == ZKL_WRITE_NONE && p->wait != NULL);
	zkl_write_go_alone(d->m, &p->write, &zkl_publication_retraction);
}

void
zkl_publication_judged(ZklDeadlock *d, ZklOutcomeKind kind)
{
	ZklOutcome	outcome = {.kind = kind};
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &d->publications.all)
	{
		ZklPublication *p = zkl_container(ZklPublication, all, link);

		if (p->write.state == ZKL_WRITE_ALONE)
			zkl_write_settle(d->m, &p->write, &outcome);
	}
}

/* ---- the listing of all ---- */

void
zkl_publication_want_list(ZklDeadlock *d)
{
	d->publications.list_wanted = true;
}

static bool
must_list(const ZklDeadlock *d)
{
	return d->publications.unlisted || d->publications.unsettled;
}

/*
 * While the chain is to be replaced, a batch without an answer may still be
 * applied.
 */
void
zkl_publication_send(ZklDeadlock *d)
{
	ZklPublications *all = &d->publications;

	if (d->m->connection.state != ZKL_CONNECTION_READY || d->m->chain.needed ||
		all->list_sent ||
		!(all->list_wanted || (must_list(d) && d->m->now >= all->retry_at)))
		return;
	all->list_wanted = false;
	all->list_sent = true;
	zkl_operations_read(d->m, ZKL_DEADLOCK_LIST_ALL, NULL, NULL, ZKL_SEND_LIST,
						zkl_actions_join(d->m, d->m->root, ZKL_WAITS_DIRECTORY, ""),
						false);
}

int64_t
zkl_publication_timer(const ZklDeadlock *d)
{
	return must_list(d) && !d->publications.list_sent &&
		d->publications.retry_at > d->m->now ? d->publications.retry_at : -1;
}

/* Notes one that is there.  If no wait of ours knows of it, it is to go. */
static void
note_listed(ZklDeadlock *d, const char *name, uint64_t order)
{
	ZklUuid		uuid;
	ZklPublication *p;

	if (!zkl_znode_parse_wait(name, &uuid))
		return;
	p = zkl_publication_find(d, name);
	if (p == NULL && zkl_node_find(d->m, &uuid) != NULL)
	{
		p = make(d, &uuid, name, "", 0);
		keep_or_retract(d, p);
	}
	if (p != NULL)
		p->seen = order;
	else if (d->publications.unlisted && zkl_uuid_is_zklock(&uuid))
		zkl_janitor_ask(d->m, zkl_publication_path(d, name));
}

bool
zkl_publication_listed(ZklDeadlock *d, const ZklOp *op, const ZklReply *reply)
{
	ZklLink    *link,
			   *after;
	size_t		i;

	d->publications.list_sent = false;
	if (op->order < d->m->connection.proved_at || d->m->chain.needed)
		return false;
	if (reply->rc != ZKL_RC_OK && reply->rc != ZKL_RC_NONODE)
	{
		d->publications.retry_at = d->m->now + ZKL_RETRY_DELAY;
		return false;
	}
	for (i = 0; i < reply->nchildren; i++)
		note_listed(d, reply->children[i], op->order);
	d->publications.unsettled = false;
	zkl_foreach(link, after, &d->publications.all)
	{
		ZklPublication *p = zkl_container(ZklPublication, all, link);
		bool		unsettled = p->write.state == ZKL_WRITE_UNSETTLED;

		if (p->seen == op->order && unsettled &&
			d->m->now < d->publications.retry_at)
			d->publications.unsettled = true;
		else if (p->seen == op->order && unsettled)
			keep_or_retract(d, p);
		else if (p->seen != op->order &&
				 (unsettled || p->write.state == ZKL_WRITE_NONE ||
				  is_pending(p, &zkl_publication_retraction)))
			forget(d, p);
	}
	d->publications.unlisted = false;
	return true;
}

void
zkl_publication_found(void *wing, const char *path)
{
	ZklDeadlock *d = wing;

	if (strcmp(path, zkl_actions_join(d->m, d->m->root, ZKL_WAITS_DIRECTORY, "")) == 0)
		d->publications.unlisted = true;
}

void
zkl_publication_disconnected(ZklDeadlock *d)
{
	d->publications.list_sent = d->publications.list_wanted = false;
	d->publications.retry_at = 0;
}

void
zkl_publication_session_lost(ZklDeadlock *d)
{
	while (!zkl_list_empty(&d->publications.all))
		forget(d, zkl_container(ZklPublication, all,
								d->publications.all.head.next));
	d->publications.unlisted = false;
	d->publications.unsettled = false;
}

/* ---- waits: long waits: which are published, and when that is looked at again ---- */

/*
 * A wait that lasts longer than its owner's patience is published, if anybody can
 * be waiting for it: for each znode that its owner holds, and for each that is
 * held by an owner that waits for this one in PostgreSQL's own locks.  From then
 * on a search looks for a deadlock after 1, 2, 4, 8, 16, 16 ... times the
 * patience: a victim may die before it decides.  If somebody waits for it in
 * PostgreSQL, it does so each time that the host has looked.
 */

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
		publication_retract(d, zkl_container(ZklPublication, of_wait,
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
		publication_retract(d, p);
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
			publication_retract(d, p);
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
			publication_make(d, held.all[i], w, i >= held.nown);
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

/* There is another publication of w. */
static void
waits_add(ZklWait *w, ZklLink *publication)
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
