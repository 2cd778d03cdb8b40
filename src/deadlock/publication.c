/*
 * publication.c
 *	  Znodes that tell others of our long waits.
 *
 * Owns ZklPublication and ZklPublications.  Runs in the worker (and in tests),
 * takes no locks, knows neither PostgreSQL nor ZooKeeper.  waits.c knows what is
 * to be published.
 *
 * A publication is named by the id of a znode that is held, and says what its
 * holder waits for.  It is never rewritten: its czxid is its place among all
 * publications, and a check that it exists proves what it says.
 *
 * They are written in batches; one without a write exists.  No batch without an
 * answer can be applied once the connection is proved, so a listing settles what is
 * unsettled.  None is deleted alone: such a delete may come late, and take the next
 * one of that name.
 */
#include <string.h>

#include "deadlock/publication.h"
#include "deadlock/waits.h"

void
zkl_publication_init_all(ZklManager *m)
{
	zkl_memory_make_table(m, &m->publications.by_uuid,
						  m->config.max_requests);
	zkl_list_init(&m->publications.all);
}

void
zkl_publication_free_all(ZklManager *m)
{
	zkl_publication_session_lost(m);
	zkl_memory_release(m, m->publications.by_uuid.buckets);
}

static ZklList *
publication_bucket(const ZklManager *m, const ZklUuid *uuid)
{
	return zkl_table_bucket(&m->publications.by_uuid,
							zkl_table_hash(uuid->bytes, ZKL_UUID_BYTES));
}

ZklPublication *
zkl_publication_find(const ZklManager *m, const ZklUuid *uuid)
{
	ZklLink    *link,
			   *after;

	if (zkl_list_empty(&m->publications.all))
		return NULL;
	zkl_foreach(link, after, publication_bucket(m, uuid))
	{
		ZklPublication *p = zkl_container(ZklPublication, by_uuid, link);

		if (zkl_uuid_equal(&p->uuid, uuid))
			return p;
	}
	return NULL;
}

bool
zkl_publication_claims(const void *wing, const ZklUuid *uuid)
{
	return zkl_publication_find(wing, uuid) != NULL;
}

char *
zkl_publication_path(ZklManager *m, const ZklUuid *uuid)
{
	char		name[1 + ZKL_UUID_TEXT + 1] = "/";

	zkl_uuid_format(uuid, name + 1);
	return zkl_actions_join(m, m->root, ZKL_WAITS_DIRECTORY, name);
}

/* Whether it is pending, to be created or to be deleted */
static bool
is_pending(const ZklPublication *p, const ZklWriter *by)
{
	return p->write.place == ZKL_WRITE_PENDING && p->write.by == by;
}

/* Counts p in, or out if n is -1. */
static void
count(ZklManager *m, const ZklPublication *p, int n)
{
	if (p->write.place == ZKL_WRITE_NONE)
		m->publications.nexisting += (uint32_t) n;
	else if (p->write.place == ZKL_WRITE_UNSETTLED)
		m->publications.nunsettled += (uint32_t) n;
}

static void
want_created(ZklManager *m, ZklPublication *p)
{
	count(m, p, -1);
	zkl_write_pend(m, &p->write, &zkl_publication_creation, ZKL_RANK_WING_CREATE);
}

static void
want_deleted(ZklManager *m, ZklPublication *p)
{
	count(m, p, -1);
	zkl_write_pend(m, &p->write, &zkl_publication_retraction,
				   ZKL_RANK_WING_DELETE);
}

static ZklPublication *
make(ZklManager *m, const ZklUuid *uuid, const char *data, size_t length)
{
	ZklPublication *p = zkl_memory_alloc(m, sizeof(ZklPublication) + length);

	memset(p, 0, sizeof(ZklPublication));
	p->uuid = *uuid;
	p->data_length = length;
	memcpy(p->data, data, length);
	zkl_list_append(&m->publications.all, &p->all);
	zkl_list_append(publication_bucket(m, uuid), &p->by_uuid);
	count(m, p, 1);
	return p;
}

/* It does not exist. */
static void
forget(ZklManager *m, ZklPublication *p)
{
	if (p->wait != NULL)
		zkl_waits_soon(m, p->wait);
	count(m, p, -1);
	zkl_write_drop(&p->write);
	zkl_list_remove(&p->of_wait);
	zkl_list_remove(&p->by_uuid);
	zkl_list_remove(&p->all);
	zkl_memory_release(m, p);
}

/* It exists: is that still right? */
static void
exists(ZklManager *m, ZklPublication *p)
{
	if (p->wait == NULL)
	{
		want_deleted(m, p);
		return;
	}
	count(m, p, -1);
	zkl_write_drop(&p->write);
	count(m, p, 1);
}

void
zkl_publication_make(ZklManager *m, const ZklRequest *held, ZklRequest *wait,
					 bool behind)
{
	ZklWaitData data;
	char		text[ZKL_MAX_WAIT_DATA];
	ZklPublication *p;

	memset(&data, 0, sizeof(data));
	data.wait = wait->node.uuid;
	strcpy(data.lock, wait->lock->path + strlen(m->root));
	data.dialect = wait->lock->dialect;
	data.mode = wait->mode;
	data.behind = behind;
	strcpy(data.server, m->server);
	data.holder_pid = held->pid;
	data.waiter_pid = wait->pid;
	data.every_ms = (int32_t) (wait->wait.patience / 1000);
	p = make(m, &held->node.uuid, text, zkl_wait_data_format(&data, text));
	p->wait = wait;
	zkl_waits_add(wait, &p->of_wait);
	want_created(m, p);
}

void
zkl_publication_retract(ZklManager *m, ZklPublication *p)
{
	zkl_list_remove(&p->of_wait);
	p->wait = NULL;
	if (is_pending(p, &zkl_publication_creation))
		forget(m, p);
	else if (p->write.place == ZKL_WRITE_NONE &&
			 !ZKL_MUTANT(PUBLICATION_OUTLIVES))
		exists(m, p);
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
	return ZKL_MAX_ROOT + ZKL_UUID_TEXT + publication_of(w)->data_length +
		ZKL_OPERATION_BYTES;
}

/* The directory may be missing: it is made ahead of creates. */
static void
make_directory(ZklManager *m, ZklForm *form)
{
	const char *path = zkl_actions_join(m, m->root, ZKL_WAITS_DIRECTORY, "");

	if (m->publications.nexisting > 0 || strcmp(path, form->made) == 0)
		return;
	zkl_operations_send(m, ZKL_OP_IGNORE, NULL, NULL, ZKL_SEND_CREATE_CONTAINER,
						path);
	form->made = path;
}

static void
fill_creation(ZklManager *m, ZklWrite *w, ZklMultiOp *op, ZklForm *form)
{
	const ZklPublication *p = publication_of(w);
	char	   *data = zkl_actions_text(m, p->data_length);

	make_directory(m, form);
	memcpy(data, p->data, p->data_length);
	op->kind = ZKL_MULTI_CREATE_EPHEMERAL;
	op->path = zkl_publication_path(m, &p->uuid);
	op->version = -1;
	op->data = data;
	op->data_length = p->data_length;
}

static void
fill_retraction(ZklManager *m, ZklWrite *w, ZklMultiOp *op, ZklForm *form)
{
	(void) form;
	op->kind = ZKL_MULTI_DELETE;
	op->path = zkl_publication_path(m, &publication_of(w)->uuid);
	op->version = -1;
}

/* If one of them cannot be created, neither can the others. */
static void
creation_refused(ZklManager *m, ZklPublication *p, const ZklOutcome *o)
{
	bool		shared = o->by == &zkl_publication_creation;

	if (o->culprit && o->rc == ZKL_RC_NODEEXISTS)
	{
		/* We do not know what it says. */
		ZklRequest *wait = p->wait;

		zkl_publication_retract(m, p);
		if (wait != NULL)
			zkl_waits_soon(m, wait);
	}
	else if (p->wait == NULL ||
			 (shared && o->rc != ZKL_RC_NODEEXISTS &&
			  (o->rc != ZKL_RC_NONODE || ++p->attempts >= ZKL_MAX_ATTEMPTS)))
		forget(m, p);
	else
		want_created(m, p);
}

static void
settle_creation(ZklManager *m, ZklWrite *w, const ZklOutcome *o)
{
	ZklPublication *p = publication_of(w);

	count(m, p, 1);
	if (o->kind == ZKL_OUTCOME_REFUSED)
		creation_refused(m, p, o);
	else if (o->kind == ZKL_OUTCOME_APPLIED)
	{
		p->czxid = o->zxid;
		p->attempts = 0;
		exists(m, p);
	}
}

static void
settle_retraction(ZklManager *m, ZklWrite *w, const ZklOutcome *o)
{
	ZklPublication *p = publication_of(w);

	count(m, p, 1);
	if (o->kind == ZKL_OUTCOME_APPLIED ||
		(o->culprit && o->rc == ZKL_RC_NONODE))
		forget(m, p);
	else if (o->culprit)
	{
		/* Another listing has to tell: one comes after a while. */
		m->publications.retry_at = m->now + ZKL_RETRY_DELAY;
	}
	else if (o->kind == ZKL_OUTCOME_REFUSED)
		want_deleted(m, p);
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
zkl_publication_judge(ZklManager *m, ZklPublication *p)
{
	count(m, p, -1);
	zkl_write_go_apart(&p->write, &zkl_publication_retraction);
}

void
zkl_publication_unknown(ZklManager *m, ZklPublication *p)
{
	zkl_write_unsettle(&p->write);
	count(m, p, 1);
}

void
zkl_publication_judged(ZklManager *m, ZklPublication *p, bool done)
{
	if (done)
		forget(m, p);
	else
		exists(m, p);
}

/* ---- the listing of all ---- */

void
zkl_publication_want_list(ZklManager *m)
{
	m->publications.list_wanted = true;
}

static bool
must_list(const ZklManager *m)
{
	return m->publications.unlisted || m->publications.nunsettled > 0;
}

/*
 * While the chain is to be replaced, a batch without an answer may still be
 * applied.
 */
void
zkl_publication_send(ZklManager *m)
{
	ZklPublications *all = &m->publications;

	if (m->connection.state != ZKL_CONNECTION_READY || m->chain.needed ||
		all->list_sent ||
		!(all->list_wanted || (must_list(m) && m->now >= all->retry_at)))
		return;
	all->list_wanted = false;
	all->list_sent = true;
	zkl_operations_read(m, ZKL_DEADLOCK_LIST_ALL, NULL, NULL, ZKL_SEND_LIST,
						zkl_actions_join(m, m->root, ZKL_WAITS_DIRECTORY, ""),
						false);
}

int64_t
zkl_publication_timer(const ZklManager *m)
{
	return must_list(m) && !m->publications.list_sent &&
		m->publications.retry_at > m->now ? m->publications.retry_at : -1;
}

/* Notes one that is there.  If no wait of ours knows of it, it is to go. */
static void
note_listed(ZklManager *m, const char *name, uint64_t order)
{
	ZklUuid		uuid;
	ZklPublication *p;

	if (!zkl_uuid_parse(name, &uuid))
		return;
	p = zkl_publication_find(m, &uuid);
	if (p == NULL && zkl_node_find(m, &uuid) != NULL)
	{
		p = make(m, &uuid, "", 0);
		exists(m, p);
	}
	if (p != NULL)
		p->seen = order;
	else if (m->publications.unlisted && zkl_uuid_is_zklock(&uuid))
		zkl_janitor_ask(m, zkl_publication_path(m, &uuid));
}

bool
zkl_publication_listed(ZklManager *m, const ZklOp *op, const ZklReply *reply)
{
	ZklLink    *link,
			   *after;
	size_t		i;

	m->publications.list_sent = false;
	if (op->order < m->connection.proved_at || m->chain.needed)
		return false;
	if (reply->rc != ZKL_RC_OK && reply->rc != ZKL_RC_NONODE)
	{
		m->publications.retry_at = m->now + ZKL_RETRY_DELAY;
		return false;
	}
	for (i = 0; i < reply->nchildren; i++)
		note_listed(m, reply->children[i], op->order);
	zkl_foreach(link, after, &m->publications.all)
	{
		ZklPublication *p = zkl_container(ZklPublication, all, link);

		bool		unsettled = p->write.place == ZKL_WRITE_UNSETTLED;

		if (unsettled && p->seen == op->order &&
			m->now >= m->publications.retry_at)
			exists(m, p);
		else if (p->seen != op->order &&
				 (unsettled || p->write.place == ZKL_WRITE_NONE ||
				  is_pending(p, &zkl_publication_retraction)))
			forget(m, p);
	}
	m->publications.leftovers = m->publications.unlisted = false;
	return true;
}

void
zkl_publication_attach(void *wing)
{
	ZklManager *m = wing;

	m->publications.leftovers = true;
}

void
zkl_publication_find_leftovers(ZklManager *m)
{
	m->publications.unlisted = true;
}

void
zkl_publication_found(void *wing, const char *path)
{
	ZklManager *m = wing;

	if (strcmp(path, zkl_actions_join(m, m->root, ZKL_WAITS_DIRECTORY, "")) == 0)
		zkl_publication_find_leftovers(m);
}

void
zkl_publication_disconnected(ZklManager *m)
{
	m->publications.list_sent = m->publications.list_wanted = false;
	m->publications.retry_at = 0;
}

void
zkl_publication_session_lost(ZklManager *m)
{
	while (!zkl_list_empty(&m->publications.all))
		forget(m, zkl_container(ZklPublication, all,
								m->publications.all.head.next));
	m->publications.leftovers = m->publications.unlisted = false;
}
