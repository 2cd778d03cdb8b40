/*
 * publication.c
 *	  Znodes that tell others of our long waits.
 *
 * Owns ZklPublication and ZklPublications.  Runs in the worker (and in tests),
 * takes no locks, knows neither PostgreSQL nor ZooKeeper.  waits.c knows what is
 * to be published.
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
#include "deadlock/waits.h"

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

void
zkl_publication_make(ZklDeadlock *d, const ZklRequest *held, ZklWait *wait,
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
	zkl_waits_add(wait, &p->of_wait);
	zkl_write_pend(d->m, &p->write, &zkl_publication_creation,
				   ZKL_RANK_WING_CREATE);
}

void
zkl_publication_retract(ZklDeadlock *d, ZklPublication *p)
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
