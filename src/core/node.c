/*
 * node.c
 *	  The znodes of our requests: their states, their data, and what others leave
 *	  there.
 *
 * Owns ZklNode, ZklNodes, ZklLook, ZklLooks, ZklAsked, ZklAskers, ZklRewrite,
 * ZklRewrites and ZklDowngrade.  request.c knows what a step means for the request
 * and its lock; reads.c counts the watches.  Runs in the worker (and in tests),
 * takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "core/host.h"
#include "core/node.h"
#include "core/owner.h"
#include "core/reads.h"
#include "core/write.h"

void
zkl_node_init_all(ZklManager *m)
{
	zkl_memory_make_table(m, &m->nodes.by_uuid, m->config.max_requests);
}

void
zkl_node_free_all(ZklManager *m)
{
	zkl_memory_release(m, m->nodes.by_uuid.buckets);
}

void
zkl_node_init(ZklRequest *r, const ZklDemand *demand)
{
	r->node.mode = demand->mode;
	r->node.seq = -1;
	zkl_node_set_data(r, demand->data, demand->data_length);
}

void
zkl_node_set_data(ZklRequest *r, const char *data, size_t length)
{
	r->node.data_length = length < ZKL_MAX_NODE_DATA ?
		length : ZKL_MAX_NODE_DATA;
	memcpy(r->node.data, data, r->node.data_length);
}

static void
node_set_waited(ZklRequest *r, int64_t ms)
{
	if (r->node.data_length + ZKL_NODE_DATA_WAITED <= ZKL_MAX_NODE_DATA)
		r->node.data_length = zkl_node_data_waited(r->node.data,
												   r->node.data_length, ms);
}

static ZklList *
uuid_bucket(const ZklManager *m, const ZklUuid *uuid)
{
	return zkl_table_bucket(&m->nodes.by_uuid,
							zkl_table_hash(uuid->bytes, ZKL_UUID_BYTES));
}

ZklRequest *
zkl_node_find(const ZklManager *m, const ZklUuid *uuid)
{
	ZklList    *bucket = uuid_bucket(m, uuid);
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, bucket)
	{
		ZklRequest *r = zkl_container(ZklRequest, node.by_uuid, link);

		if (memcmp(&r->node.uuid, uuid, sizeof(ZklUuid)) == 0)
			return r;
	}
	return NULL;
}

bool
zkl_node_made_uuid(const ZklManager *m, const ZklUuid *uuid)
{
	const int64_t sessions[] = {m->nodes.session, m->nodes.session_before};
	size_t		i;

	for (i = 0; i < sizeof(sessions) / sizeof(sessions[0]); i++)
	{
		ZklUuid		ours = zkl_uuid_make(sessions[i], m->config.worker_start, 0);

		if (zkl_uuid_same_maker(uuid, &ours))
			return true;
	}
	return false;
}

char *
zkl_node_path_as(ZklManager *m, const ZklRequest *r, ZklLockMode mode)
{
	char		name[ZKL_MAX_ZNODE_NAME + 1];

	if (r->node.seq < 0)
		zkl_znode_prefix(r->lock->dialect, &r->node.uuid, mode, name);
	else
		zkl_znode_name(r->lock->dialect, &r->node.uuid, mode, r->node.seq,
					   name);
	return zkl_actions_join(m, r->lock->path, "/", name);
}

char *
zkl_node_path(ZklManager *m, const ZklRequest *r)
{
	return zkl_node_path_as(m, r, r->node.mode);
}

size_t
zkl_node_bytes(const ZklRequest *r)
{
	return r->lock->path_length + ZKL_MAX_ZNODE_NAME + ZKL_OPERATION_BYTES +
		r->node.data_length + ZKL_NODE_DATA_CACHED;
}

void
zkl_node_record(ZklManager *m, const ZklRequest *r)
{
	const ZklRequest *cover = r->ring.cover;
	const ZklRequest *shown = cover != NULL && zkl_siblings_stays(cover) ? cover : r;
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_RECORD);
	ZklRecord  *record = &action->record;

	action->request = r->id;
	record->sent = zkl_node_was_sent(shown) && !zkl_siblings_stays(r);
	record->stays = zkl_siblings_stays(r);
	record->going = r->node.recreate;
	record->disowned = zkl_siblings_are_nobodys(r->ring.owner);
	record->generation = m->session.generation;
	record->index = shown->node.index;
	record->mode = shown->node.mode;
	record->uuid = shown->node.uuid;
	record->seq = shown->node.seq;
}

void
zkl_node_record_all(ZklManager *m, const ZklRequest *r)
{
	const ZklRequest *s = r;

	/*
	 * r comes last: until then its slot shows the node, whatever ends the
	 * worker.
	 */
	do
	{
		s = s->ring.next;
		if (s == r || s->ring.cover == r)
			zkl_node_record(m, s);
	} while (s != r);
}

static void
enter(ZklManager *m, ZklRequest *r)
{
	zkl_list_append(uuid_bucket(m, &r->node.uuid), &r->node.by_uuid);
}

void
zkl_node_identify(ZklManager *m, ZklRequest *r)
{
	if (zkl_list_linked(&r->node.by_uuid))
		return;
	if (m->nodes.session != m->session.id)
		m->nodes.session_before = m->nodes.session;
	m->nodes.session = m->session.id;
	r->node.uuid = zkl_uuid_make(m->session.id, m->config.worker_start,
								 ++m->nodes.uuids);
	enter(m, r);
}

void
zkl_node_new(ZklManager *m, ZklRequest *r)
{
	ZKL_ASSERT(r->node.state == ZKL_NODE_NONE && r->ring.cover == NULL);
	zkl_list_remove(&r->node.by_uuid);
	r->node.state = ZKL_NODE_NEW;
	r->node.mode = r->mode;
	r->node.version = 0;
	r->node.seq = -1;
	r->node.czxid = 0;
	r->node.seen = 0;
	r->node.recreate = r->node.alone = false;
	zkl_write_pend(m, &r->node.write, &zkl_node_creation, ZKL_RANK_CREATE);
}

void
zkl_node_resend(ZklManager *m, ZklRequest *r)
{
	ZKL_ASSERT(r->node.state == ZKL_NODE_NEW);
	zkl_write_pend(m, &r->node.write, &zkl_node_creation, ZKL_RANK_RESEND);
}

void
zkl_node_delete(ZklManager *m, ZklRequest *r, ZklWriteRank rank)
{
	ZKL_ASSERT(r->node.state >= ZKL_NODE_EXISTS);
	r->node.state = ZKL_NODE_DELETE;
	zkl_write_pend(m, &r->node.write, &zkl_node_deletion, rank);
}

void
zkl_node_delete_held(ZklRequest *r)
{
	ZKL_ASSERT(r->node.state == ZKL_NODE_EXISTS);
	r->node.state = ZKL_NODE_DELETE;
	zkl_write_hold(&r->node.write, &zkl_node_deletion);
}

void
zkl_node_exists(ZklRequest *r, ZklSeq seq, int64_t czxid)
{
	ZKL_ASSERT(r->node.state == ZKL_NODE_NEW || r->node.state == ZKL_NODE_EXISTS);
	zkl_write_drop(&r->node.write);
	r->node.state = ZKL_NODE_EXISTS;
	r->node.seq = seq;
	r->node.czxid = czxid;
}

void
zkl_node_gone(ZklRequest *r)
{
	zkl_write_drop(&r->node.write);
	zkl_list_remove(&r->node.by_uuid);
	r->node.state = ZKL_NODE_NONE;
}

/* ---- look ---- */

/*
 * What we read of our own znodes: the watch on a node, its czxid, and the marks that
 * others leave there.
 */

void
zkl_look_init_all(ZklManager *m)
{
	zkl_list_init(&m->looks.unwatched);
	zkl_list_init(&m->looks.unseen);
}

static void
set_watch(ZklManager *m, ZklRequest *r, ZklWatchState state)
{
	zkl_reads_set_watch(m, &r->look.watch, state);
}

void
zkl_look_token(ZklManager *m, ZklRequest *r)
{
	ZKL_ASSERT(r->node.state == ZKL_NODE_EXISTS);
	if (r->look.token_sent)
		return;
	r->look.token_sent = true;
	zkl_operations_send(m, ZKL_OP_TOKEN, r->lock, r, ZKL_SEND_GET,
						zkl_node_path(m, r));
}

static int64_t
unseen_at(const ZklLink *link)
{
	return zkl_container(ZklRequest, look.unseen, link)->look.unseen_since;
}

static void
look_unseen(ZklManager *m, ZklRequest *r, int64_t since)
{
	ZklLink    *where;

	zkl_list_remove(&r->look.unseen);
	r->look.unseen_since = since;
	where = m->looks.unseen.head.prev;
	while (where != &m->looks.unseen.head && unseen_at(where) > since)
		where = where->prev;
	zkl_list_insert_after(&r->look.unseen, where);
}

/*
 * If a watch had not fired when a batch was acknowledged, the node changed
 * only after that batch was sent.
 */
void
zkl_look_soon(ZklManager *m, ZklRequest *r)
{
	zkl_list_remove(&r->look.unwatched);
	r->look.placed_at = 0;
	zkl_list_insert_after(&r->look.unwatched, &m->looks.unwatched.head);
	zkl_look_unknown(m, r);
}

void
zkl_look_unknown(ZklManager *m, ZklRequest *r)
{
	if (!zkl_list_linked(&r->look.unseen))
		look_unseen(m, r, m->batches.acknowledged_at);
}

void
zkl_look_later(ZklManager *m, ZklRequest *r, int64_t unseen_since)
{
	r->look.placed_at = m->now;
	zkl_list_append(&m->looks.unwatched, &r->look.unwatched);
	look_unseen(m, r, unseen_since);
}

void
zkl_look_again(ZklManager *m, ZklRequest *r)
{
	set_watch(m, r, ZKL_WATCH_NONE);
	zkl_look_soon(m, r);
}

void
zkl_look_if_unwatched(ZklManager *m, ZklRequest *r)
{
	if (r->look.watch == ZKL_WATCH_NONE && !zkl_list_linked(&r->look.unwatched))
		zkl_look_soon(m, r);
}

void
zkl_look_sent(ZklManager *m, ZklRequest *r)
{
	r->look.unseen_since = m->now;
}

void
zkl_look_placed(ZklManager *m, ZklRequest *r, int64_t sent_at)
{
	r->look.placed_at = sent_at;
	if (zkl_list_linked(&r->look.unseen))
		look_unseen(m, r, sent_at);
}

void
zkl_look_token_came(ZklRequest *r)
{
	r->look.token_sent = false;
}

void
zkl_look_unmarked(ZklManager *m, ZklRequest *r)
{
	if (zkl_list_linked(&r->look.unseen))
		look_unseen(m, r, m->batches.acknowledged_at);
	else
		r->look.unseen_since = m->batches.acknowledged_at;
}

void
zkl_look_answered(ZklManager *m, ZklRequest *r, bool found)
{
	set_watch(m, r, ZKL_WATCH_NONE);
	if (!found)
		return;
	r->look.verified = true;
	set_watch(m, r, ZKL_WATCH_ARMED);
	zkl_list_remove(&r->look.unseen);
}

void
zkl_look_set_verified(ZklRequest *r, bool verified)
{
	r->look.verified = verified;
}

void
zkl_look_stop(ZklRequest *r)
{
	zkl_list_remove(&r->look.unwatched);
}

void
zkl_look_left_queue(ZklRequest *r)
{
	zkl_list_remove(&r->look.unseen);
}

void
zkl_look_forget(ZklManager *m, ZklRequest *r)
{
	set_watch(m, r, ZKL_WATCH_NONE);
	r->look.token_sent = false;
}

/*
 * If an operator marks a node, the delete follows T later.  If the mark comes
 * before the watch is set, and the worker is held up before it has looked,
 * only the lease keeps the holder from going on.
 */
int64_t
zkl_look_lease_limit(const ZklManager *m)
{
	int64_t		timeout = (int64_t) m->session.timeout_ms * 1000;
	const ZklLink *link;

	for (link = m->looks.unseen.head.next; link != &m->looks.unseen.head;
		 link = link->next)
	{
		const ZklRequest *r = zkl_container(ZklRequest, look.unseen, link);

		if (r->demand == ZKL_DEMAND_GRANTED && !r->broken)
			return r->look.unseen_since + timeout - timeout / 500;
	}
	return INT64_MAX;
}

/*
 * If a request waits behind others, it has no watch: its node may have been
 * marked long ago.  A look at it is newer than the batch from which the lease
 * counts, so no lease outlasts the mark by too much.
 */
bool
zkl_look_is_recent(const ZklManager *m, const ZklRequest *r)
{
	int64_t		timeout = (int64_t) m->session.timeout_ms * 1000;

	return r->look.watch == ZKL_WATCH_ARMED || ZKL_MUTANT(DYING_SESSION) ||
		r->look.unseen_since + timeout - timeout / 500 >=
		m->session_lease.until;
}

/*
 * A request of a certain age gets a watch on its own node, which other
 * clients may delete or mark.  The get goes behind a beat, so its answer is
 * no older than that beat.  As there is a beat each T/6 at least, the watch
 * is armed at most T/4 after the node was created.
 */
void
zkl_look_send(ZklManager *m)
{
	int64_t		age = (int64_t) m->session.timeout_ms * 1000 / 12;

	if (m->connection.state != ZKL_CONNECTION_READY || ZKL_MUTANT(NO_OWN_WATCH))
		return;
	while (!zkl_list_empty(&m->looks.unwatched) && zkl_operations_may_read(m))
	{
		ZklRequest *r = zkl_container(ZklRequest, look.unwatched,
									  m->looks.unwatched.head.next);

		if (r->look.placed_at != 0 &&
			r->look.placed_at + age > m->batches.sent_at)
			return;
		ZKL_ASSERT(r->node.state == ZKL_NODE_EXISTS);
		ZKL_ASSERT(r->look.watch == ZKL_WATCH_NONE);
		zkl_list_remove(&r->look.unwatched);
		zkl_reads_set_watch(m, &r->look.watch, ZKL_WATCH_SENT);
		zkl_operations_read(m, ZKL_OP_WATCH_OWN, r->lock, r, ZKL_SEND_GET,
							zkl_node_path(m, r), true);
	}
}

/* ---- the marks that others leave in the data of our nodes ---- */

bool
zkl_look_mark_breaks(const ZklRequest *r, const ZklReply *reply)
{
	return zkl_dialect_marks(r->lock->dialect) &&
		zkl_node_data_breaking(reply->data, reply->data_length);
}

void
zkl_look_mark_new_node(ZklRequest *r)
{
	r->asked.early = false;
}

/*
 * A read that is under way, or that we have yet to send, will find the mark.
 */
void
zkl_look_mark_granted(ZklManager *m, ZklRequest *r)
{
	if (r->asked.early && r->look.watch == ZKL_WATCH_ARMED)
		zkl_look_again(m, r);
	r->asked.early = false;
}

/* What came to lean on r since r was asked has not been told of that. */
void
zkl_look_mark_stays(ZklManager *m, ZklRequest *r)
{
	if (r->asked.zxid != 0 && r->look.watch == ZKL_WATCH_ARMED)
		zkl_look_again(m, r);
}

/*
 * The client that asks takes the first in the queue for the holder; this
 * server may not have granted it yet.
 */
void
zkl_look_mark_request_release(ZklManager *m, ZklRequest *r, int64_t zxid,
							  const char *asker)
{
	ZklRequest *s = r;

	if (r->demand != ZKL_DEMAND_GRANTED)
		r->asked.early = true;
	if (r->demand != ZKL_DEMAND_GRANTED || r->broken)
		return;
	do
	{
		if ((s == r || s->ring.cover == r) && s->asked.zxid != zxid &&
			!zkl_keep_is_on(s) && !zkl_siblings_stays(s))
		{
			ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_RELEASE_REQUEST);

			action->request = s->id;
			action->asker = zkl_actions_join(m, asker, "", "");
			action->asked_zxid = zxid;
			s->asked.zxid = zxid;
		}
		s = s->ring.next;
	} while (s != r);
}

/* Whether a hold that r's node is for was told of this write */
static bool
look_mark_is_put(const ZklRequest *r, int64_t zxid)
{
	const ZklRequest *s = r;

	do
	{
		if ((s == r || s->ring.cover == r) && s->asked.zxid == zxid)
			return true;
		s = s->ring.next;
	} while (s != r);
	return false;
}

/* A write of ours has put the question of another write again. */
static void
look_mark_rewritten(ZklRequest *r, int64_t old, int64_t zxid)
{
	ZklRequest *s = r;

	do
	{
		if (s->asked.zxid == old)
			s->asked.zxid = zxid;
		s = s->ring.next;
	} while (s != r);
}

/* ---- rewrite: writes of our own to the data of our znodes ---- */

/*
 * A node is created with the data that is known then.  There are two reasons to
 * write it once more: the node says that its lock may be cached, which is over
 * (cache.c); or its request has waited, and the node does not say for how long.
 * The second reason has time: only a hold that has lasted for T/6 is worth a write.
 *
 * A write names the version that was read last, or that of the create.  So it never
 * goes over what others have written unseen.
 */

void
zkl_rewrite_init_all(ZklManager *m)
{
	zkl_list_init(&m->rewrites.late);
	zkl_list_init(&m->rewrites.wanted);
	zkl_list_init(&m->rewrites.refused);
}

void
zkl_rewrite_init(const ZklManager *m, ZklRequest *r, int64_t waited)
{
	r->rewrite.asked_at = m->now - waited;
}

/* Whether the node says what is over, or does not say what is known */
static bool
is_outdated(const ZklRequest *r)
{
	return r->cache.state == ZKL_CACHE_NONE &&
		(r->rewrite.marked || r->rewrite.lacks_wait);
}

/* ---- what is to be written, and when ---- */

static void
unlink_write(ZklRequest *r)
{
	zkl_list_remove(&r->rewrite.link);
	r->rewrite.late = false;
}

static void
want(ZklManager *m, ZklRequest *r)
{
	if (r->rewrite.writing ||
		(zkl_list_linked(&r->rewrite.link) && !r->rewrite.late))
		return;
	unlink_write(r);
	zkl_list_append(&m->rewrites.wanted, &r->rewrite.link);
}

static int64_t
due_of(const ZklLink *link)
{
	return zkl_container(ZklRequest, rewrite.link, link)->rewrite.due;
}

/* The node does not say how long r has waited: it will, when the hold is old enough. */
static void
want_late(ZklManager *m, ZklRequest *r, int64_t due)
{
	ZklLink    *where = m->rewrites.late.head.prev;

	r->rewrite.lacks_wait = true;
	r->rewrite.due = due;
	if (r->rewrite.writing || zkl_list_linked(&r->rewrite.link))
		return;
	r->rewrite.late = true;
	while (where != &m->rewrites.late.head && due_of(where) > due)
		where = where->prev;
	zkl_list_insert_after(&r->rewrite.link, where);
}

void
zkl_rewrite_set_marked(ZklRequest *r, bool marked)
{
	r->rewrite.marked = marked;
}

/* A delete or another create may be at hand; a read may have to come first. */
void
zkl_rewrite_unmark(ZklManager *m, ZklRequest *r)
{
	if (r->rewrite.marked && !ZKL_MUTANT(MARK_STAYS))
		want(m, r);
}

void
zkl_rewrite_granted(ZklManager *m, ZklRequest *r)
{
	int64_t		waited = (m->now - r->rewrite.asked_at) / 1000;

	if (waited < ZKL_LEAST_WAIT || !zkl_dialect_marks(r->lock->dialect))
		return;
	node_set_waited(r, waited);
	if (!ZKL_MUTANT(WAIT_UNTOLD))
		want_late(m, r, m->now + (int64_t) m->session.timeout_ms * 1000 / 6);
}

void
zkl_rewrite_forget(ZklRequest *r)
{
	unlink_write(r);
	r->rewrite.marked = r->rewrite.lacks_wait = r->rewrite.writing = false;
}

/* ---- the write ---- */

/*
 * Writes the data of the present holder over what was read in this version.  If it
 * puts a question again, "question" is the zxid of the write that put it first, and
 * 0 otherwise.
 */
static void
send_data(ZklManager *m, ZklRequest *r, int32_t version, const char *data,
		  size_t length, int64_t question)
{
	ZklMultiOp *op = (ZklMultiOp *) (void *)
	zkl_actions_text(m, sizeof(ZklMultiOp));
	char	   *text = zkl_actions_text(m, length + ZKL_NODE_DATA_TIMEOUT);
	ZklAction  *action;

	ZKL_ASSERT(r->node.state == ZKL_NODE_EXISTS && !r->rewrite.writing);
	memcpy(text, data, length);
	memset(op, 0, sizeof(*op));
	op->kind = ZKL_MULTI_SET;
	op->path = zkl_node_path(m, r);
	op->version = ZKL_MUTANT(WRITTEN_OVER) ? -1 : version;
	op->data = text;
	op->data_length = zkl_node_data_timeout(text, length,
											m->session.timeout_ms);
	r->rewrite.writing = true;
	r->rewrite.writes_wait = r->rewrite.lacks_wait;
	r->rewrite.question = question;
	action = zkl_operations_send(m, ZKL_OP_REWRITE, r->lock, r, ZKL_SEND_MULTI,
								 NULL);
	action->multi = op;
	action->nmulti = 1;
}

static void
want_what_is_due(ZklManager *m)
{
	while (!zkl_list_empty(&m->rewrites.refused) &&
		   m->now >= m->rewrites.retry_at)
	{
		ZklLink    *link = m->rewrites.refused.head.next;

		zkl_list_remove(link);
		zkl_list_append(&m->rewrites.wanted, link);
	}
	while (!zkl_list_empty(&m->rewrites.late) &&
		   m->now >= due_of(m->rewrites.late.head.next))
		want(m, zkl_container(ZklRequest, rewrite.link,
							  m->rewrites.late.head.next));
}

void
zkl_rewrite_send(ZklManager *m)
{
	ZklLink    *link,
			   *after;

	if (m->connection.state != ZKL_CONNECTION_READY)
		return;
	want_what_is_due(m);
	zkl_foreach(link, after, &m->rewrites.wanted)
	{
		ZklRequest *r = zkl_container(ZklRequest, rewrite.link, link);

		if (r->node.state < ZKL_NODE_EXISTS)
			continue;
		zkl_list_remove(link);
		if (r->node.state != ZKL_NODE_EXISTS || r->broken || !is_outdated(r) ||
			zkl_downgrade_is_on(r))
			continue;
		if (r->node.version == 0)
			send_data(m, r, 0, r->node.data, r->node.data_length, 0);
		else
			zkl_look_again(m, r);
	}
}

/* If r was granted the lock while the write was under way, another one tells its wait. */
static void
written(ZklManager *m, ZklRequest *r, const ZklReply *reply)
{
	bool		lacks = r->rewrite.lacks_wait && !r->rewrite.writes_wait;

	zkl_rewrite_forget(r);

	/* As in reads_reply.c: a question that was put again is yet to be told. */
	if (!r->asked.early)
		zkl_node_set_version(r, reply->stat.version);
	if (r->rewrite.question != 0)
		look_mark_rewritten(r, r->rewrite.question, reply->stat.mzxid);
	if (lacks)
		want_late(m, r, r->rewrite.due);
}

void
zkl_rewrite_written(ZklManager *m, ZklRequest *r, const ZklReply *reply)
{
	int32_t		rc = reply->rc;
	bool		outdated = is_outdated(r);

	if (!r->rewrite.writing)
		return;
	r->rewrite.writing = false;
	if (rc != ZKL_RC_OK && reply->nresults > 0)
		rc = reply->results[0].rc;
	if (r->node.state != ZKL_NODE_EXISTS || !outdated)
		return;
	if (rc == ZKL_RC_OK)
		written(m, r, reply);
	else if (rc == ZKL_RC_BADVERSION || rc == ZKL_RC_NONODE)
	{
		if (!zkl_downgrade_pending(r))
			zkl_look_again(m, r);
	}
	else
	{
		if (zkl_list_empty(&m->rewrites.refused))
			m->rewrites.retry_at = m->now + ZKL_RETRY_DELAY;
		zkl_list_append(&m->rewrites.refused, &r->rewrite.link);
	}
}

/*
 * What the node says of the wait may be r's own, or that of a hold before; unless
 * somebody else has put data of another kind there.
 */
static void
learn_wait(ZklManager *m, ZklRequest *r, const ZklReply *reply)
{
	ZklNodeData told;

	if (!zkl_node_data_parse(reply->data, reply->data_length, &told))
		return;
	if (told.waited_ms != 0)
	{
		if (r->rewrite.late)
			unlink_write(r);
		r->rewrite.lacks_wait = false;
	}
	else if (r->demand == ZKL_DEMAND_GRANTED && !r->rewrite.lacks_wait &&
			 !ZKL_MUTANT(WAIT_UNTOLD) &&
			 zkl_node_data_tells_wait(r->node.data, r->node.data_length))
		want_late(m, r, m->now);
}

/*
 * What others have written stays, unless the holder knows: a question to somebody
 * who has yet to be granted the lock.  One that was put is not written again, or
 * our write would put it once more; if it was put while that write was under way, the
 * write counts as put, too.  A later hold of this node belongs to the same
 * session, which has been asked.
 */
void
zkl_rewrite_read(ZklManager *m, ZklRequest *r, const ZklReply *reply)
{
	char		asker[ZKL_MAX_NODE_DATA];
	char		data[ZKL_MAX_NODE_DATA];
	size_t		length;

	if (r->rewrite.writing || r->node.state != ZKL_NODE_EXISTS ||
		!zkl_dialect_marks(r->lock->dialect))
		return;
	learn_wait(m, r, reply);
	if (r->rewrite.late && !r->rewrite.marked)
		return;
	unlink_write(r);
	if (!is_outdated(r) || r->broken ||
		zkl_downgrade_is_on(r) || ZKL_MUTANT(MARK_STAYS))
		return;
	if ((look_mark_is_put(r, reply->stat.mzxid) && !ZKL_MUTANT(ASKED_BY_OWN_WRITE)) ||
		!zkl_node_data_revoking(reply->data, reply->data_length, asker,
								sizeof(asker)) ||
		ZKL_MUTANT(QUESTION_UNMARKED))
	{
		send_data(m, r, reply->stat.version, r->node.data,
				  r->node.data_length, 0);
		return;
	}
	length = zkl_node_data_revoke(r->node.data, r->node.data_length, asker,
								  data);
	send_data(m, r, reply->stat.version, data, length, reply->stat.mzxid);
}

/* ---- the connection, and time ---- */

void
zkl_rewrite_disconnected(ZklManager *m)
{
	uint32_t	i;

	for (i = 0; i < m->config.max_requests; i++)
	{
		ZklRequest *r = &m->requests.all[i];

		if (!r->rewrite.writing)
			continue;
		r->rewrite.writing = false;
		if (!ZKL_MUTANT(MARK_STAYS))
			want(m, r);
	}
}

int64_t
zkl_rewrite_timer(const ZklManager *m)
{
	int64_t		due = -1;

	if (!zkl_list_empty(&m->rewrites.late))
		due = due_of(m->rewrites.late.head.next);
	if (!zkl_list_empty(&m->rewrites.refused) &&
		(due < 0 || m->rewrites.retry_at < due))
		due = m->rewrites.retry_at;
	return due;
}

/* ---- downgrade: an exclusive node becomes a shared one, without a gap ---- */

/*
 * If a session gives back an exclusive lock and still holds it shared, it gets
 * a shared node of the same number, in one transaction: the exclusive node is
 * marked, the shared one is created, the exclusive one is deleted.  So every
 * client always sees one of the two.  A watch on the exclusive node fires for
 * the mark first: each client that waits for the node then looks again, and
 * finds the shared one in its place (see zkl_contenders_ahead_gone; Curator
 * from 5.5 on does the same in several steps).
 *
 * The node EXISTS meanwhile.  If the answer is lost, a listing tells its name.  If it
 * is released before that is known, it is deleted as soon as it is, or under both names
 * if we may not list the directory.
 */

bool
zkl_downgrade_pending(const ZklRequest *r)
{
	return r->downgrade.write.state == ZKL_WRITE_BATCH ||
		zkl_downgrade_is_unsettled(r);
}

void
zkl_downgrade_want(ZklManager *m, ZklRequest *r)
{
	if (!zkl_siblings_stays(r) || r->node.state != ZKL_NODE_EXISTS ||
		r->node.mode != ZKL_EXCLUSIVE || zkl_downgrade_is_on(r) ||
		r->broken || !zkl_dialect_shares(r->lock->dialect) ||
		zkl_siblings_leaning(r)->mode == ZKL_EXCLUSIVE)
		return;
	zkl_write_pend(m, &r->downgrade.write, &zkl_downgrade_change, ZKL_RANK_CHANGE);
}

void
zkl_downgrade_give_up(ZklRequest *r)
{
	if (!zkl_downgrade_pending(r) && !ZKL_MUTANT(BROKEN_GOES_ON_AS_READER))
		zkl_downgrade_end(r);
}

void
zkl_downgrade_node_gone(ZklRequest *r)
{
	r->downgrade.either = false;
	zkl_downgrade_end(r);
}

void
zkl_downgrade_unknown(ZklRequest *r)
{
	zkl_look_stop(r);
	zkl_write_unsettle(&r->downgrade.write);
}

void
zkl_downgrade_end(ZklRequest *r)
{
	zkl_write_drop(&r->downgrade.write);
}

void
zkl_downgrade_delete_either(ZklManager *m, ZklRequest *r)
{
	ZKL_ASSERT(r->node.state == ZKL_NODE_DELETE);
	zkl_downgrade_end(r);
	r->downgrade.either = true;
	zkl_node_delete(m, r, ZKL_RANK_ALONE);
}

bool
zkl_downgrade_take_other_name(ZklRequest *r)
{
	if (!r->downgrade.either)
		return false;
	ZKL_ASSERT(r->node.mode == ZKL_EXCLUSIVE);
	r->downgrade.either = false;
	zkl_node_set_shared(r);
	return true;
}

/*
 * Other clients wait for the downgrade, and an armed watch has nothing to
 * tell.
 */
void
zkl_downgrade_want_later(ZklManager *m, ZklRequest *r)
{
	zkl_downgrade_want(m, r);

	/* Perhaps a mark has been read meanwhile. */
	if (r->downgrade.write.state == ZKL_WRITE_PENDING)
		zkl_write_stick(m, &r->downgrade.write, &zkl_downgrade_change,
						ZKL_RANK_CHANGE);
}
