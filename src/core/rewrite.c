/*
 * rewrite.c
 *	  Writes of our own to the data of our znodes.
 *
 * Owns ZklRewrite and ZklRewrites.  Runs in the worker (and in tests), takes no
 * locks, knows neither PostgreSQL nor ZooKeeper.
 *
 * A node is created with the data that is known then.  There are two reasons to
 * write it once more: the node says that its lock may be cached, which is over
 * (cache.c); or its request has waited, and the node does not say for how long.
 * The second reason has time: only a hold that has lasted for T/6 is worth a write.
 *
 * A write names the version that was read last, or that of the create.  So it never
 * goes over what others have written unseen.
 */
#include <string.h>

#include "core/actions.h"
#include "core/downgrade.h"
#include "core/look.h"
#include "core/node.h"
#include "core/operations.h"
#include "core/rewrite.h"

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
	zkl_node_set_waited(r, waited);
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
		zkl_look_mark_rewritten(r, r->rewrite.question, reply->stat.mzxid);
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
	if ((zkl_look_mark_is_put(r, reply->stat.mzxid) && !ZKL_MUTANT(ASKED_BY_OWN_WRITE)) ||
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
