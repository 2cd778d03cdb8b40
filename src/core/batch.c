/*
 * batch.c
 *	  The batch: all writes at hand in one ZooKeeper transaction.
 *
 * Owns the batches under way and the manager's lists of writes.  Runs in the
 * worker (and in tests), takes no locks, knows neither PostgreSQL nor
 * ZooKeeper.
 *
 * A batch is one multi: set(heartbeat, expected version k), then deletes,
 * then creates.  Because each names the version that the one before it left,
 * a batch is applied at most once and in order, whatever is sent again.
 * Its answer tells three kinds of outcome apart:
 *
 *	  applied		rc 0: every member is done, and the beat's mzxid is the
 *					czxid of every node created in it
 *	  refused		one operation failed by name, so nothing was applied; or
 *					BADVERSION behind a refused one: the members go again
 *	  unknown		anything else, silence included: a new chain of heartbeats
 *					makes sure that it can never be applied from then on, and
 *					listings tell what became of it
 */
#include <string.h>

#include "core/batch.h"
#include "core/lock.h"
#include "core/read.h"
#include "core/request.h"

#define ZKL_MAX_VERSION		(1 << 30)	/* then a new heartbeat node */
#define ZKL_RETRY_DELAY		1000000 /* µs until a refused delete is tried
									 * again */
#define ZKL_OP_OVERHEAD		64	/* bytes of an operation besides its strings */

/* ---- forming ---- */

static size_t
member_bytes(const ZklRequest *r, bool create)
{
	return r->lock->path_length + ZKL_MAX_ZNODE_NAME + ZKL_OP_OVERHEAD +
		(create ? r->data_length : 0);
}

/* Moves requests from a list of writes into the batch, while they fit. */
static void
gather(ZklManager *m, ZklBatch *batch, ZklList *list, bool create,
	   size_t *bytes)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, list)
	{
		ZklRequest *r = zkl_container(ZklRequest, work, link);

		*bytes += member_bytes(r, create);
		if (batch->nmembers + 1 >= m->batch_limit ||
			(batch->nmembers > 0 && *bytes > m->config.batch_bytes))
			return;
		zkl_unlink(link);
		r->node = create ? ZKL_NODE_SENT : ZKL_NODE_DELETING;
		batch->members[batch->nmembers++] = r;
		r->index = create ? batch->nmembers : r->index;
	}
}

/* Records each create's id, and makes the directories known to be missing. */
static void
prepare_creates(ZklManager *m, const ZklBatch *batch)
{
	const char *made = "";
	uint32_t	i;

	for (i = batch->ndeletes; i < batch->nmembers; i++)
	{
		ZklRequest *r = batch->members[i];
		ZklAction  *action = zkl_core_act(m, ZKL_ACTION_ZNODE);

		action->request = r->id;
		action->uuid = r->uuid;
		action->mode = r->node_mode;
		action->seq = -1;
		action->index = r->index;
		if (r->lock->make_parents)
		{
			r->lock->make_parents = false;
			zkl_chain_parents(m, r->lock, r->lock->path, made);
			made = r->lock->path;
		}
	}
}

/*
 * Behind the creates, in the same order that ZooKeeper keeps: list what is not
 * known, and watch the directory, so that it will be next time.
 */
static void
read_behind(ZklManager *m, const ZklBatch *batch)
{
	uint32_t	i;

	for (i = batch->ndeletes; i < batch->nmembers; i++)
	{
		ZklLock    *lock = batch->members[i]->lock;

		if (zkl_list_empty(&lock->own) && !lock->list_sent &&
			(lock->unknown_from != ZKL_SEQ_NONE || !zkl_lock_continuous(lock)))
			lock->list_wanted = true;
		if (lock->directory_watch == ZKL_WATCH_NONE)
			lock->directory_watch = ZKL_WATCH_WANTED;
		if (lock->list_wanted || lock->directory_watch == ZKL_WATCH_WANTED)
			zkl_read_want(m, lock);
	}
}

static size_t
format_number(char *text, uint64_t number)
{
	char		digits[24];
	size_t		n = 0,
				i;

	do
	{
		digits[n++] = (char) ('0' + number % 10);
		number /= 10;
	} while (number > 0);
	for (i = 0; i < n; i++)
		text[i] = digits[n - 1 - i];

	return n;
}

static ZklMultiOp *
form_operations(ZklManager *m, const ZklBatch *batch)
{
	ZklMultiOp *ops = (ZklMultiOp *) (void *)
	zkl_core_text(m, (batch->nmembers + 1) * sizeof(ZklMultiOp));
	char	   *number = zkl_core_text(m, 24);
	uint32_t	i;

	memset(ops, 0, (batch->nmembers + 1) * sizeof(ZklMultiOp));
	ops[0].kind = ZKL_MULTI_SET;
	ops[0].path = zkl_chain_path(m, m->chain);
	ops[0].version = batch->version;
	ops[0].data = number;
	ops[0].data_length = format_number(number, ++m->batch_number);
	for (i = 0; i < batch->nmembers; i++)
	{
		const ZklRequest *r = batch->members[i];
		ZklMultiOp *op = &ops[i + 1];

		op->path = zkl_request_path(m, r);
		op->version = -1;
		op->kind = ZKL_MULTI_DELETE;
		if (i >= batch->ndeletes)
		{
			char	   *data = zkl_core_text(m, r->data_length + 1);

			memcpy(data, r->data, r->data_length);
			op->kind = ZKL_MULTI_CREATE;
			op->data = data;
			op->data_length = r->data_length;
		}
	}
	return ops;
}

static void
send_batch(ZklManager *m)
{
	ZklBatch   *batch = &m->batches[(m->batch_first + m->nbatches) %
									m->config.batches_in_flight];
	size_t		bytes = 0;
	ZklMultiOp *ops;
	ZklAction  *action;

	batch->version = m->version++;
	batch->sent_at = m->beat_sent_at = m->now;
	batch->nmembers = 0;
	gather(m, batch, &m->deletes, false, &bytes);
	batch->ndeletes = batch->nmembers;
	gather(m, batch, &m->resends, true, &bytes);
	if (zkl_list_empty(&m->resends))
		gather(m, batch, &m->creates, true, &bytes);
	m->beat_wanted = false;
	m->nbatches++;

	prepare_creates(m, batch);
	ops = form_operations(m, batch);
	action = zkl_core_send(m, zkl_core_op(m, ZKL_OP_BATCH, NULL, NULL),
						   ZKL_SEND_MULTI, NULL, false);
	action->multi = ops;
	action->nmulti = batch->nmembers + 1;
	read_behind(m, batch);
}

/* ---- sending ---- */

static void
send_lone_deletes(ZklManager *m)
{
	while (!zkl_list_empty(&m->lone_deletes))
	{
		ZklRequest *r = zkl_container(ZklRequest, work,
									  m->lone_deletes.head.next);
		ZklOp	   *op = zkl_core_op(m, ZKL_OP_DELETE, r->lock, r);

		zkl_unlink(&r->work);
		r->node = ZKL_NODE_DELETING;
		zkl_core_send(m, op, ZKL_SEND_DELETE, zkl_request_path(m, r), false);
	}
}

static void
retry_stuck_deletes(ZklManager *m)
{
	if (zkl_list_empty(&m->stuck_deletes) || m->now < m->stuck_until)
		return;
	while (!zkl_list_empty(&m->stuck_deletes))
		zkl_request_delete_again(zkl_container(ZklRequest, work,
											   m->stuck_deletes.head.next),
								 &m->lone_deletes);
}

static int64_t
next_beat(const ZklManager *m)
{
	if (m->nlive == 0)
		return -1;
	return m->beat_sent_at + (int64_t) m->session.timeout_ms * 1000 / 6;
}

static bool
work_at_hand(const ZklManager *m)
{
	int64_t		beat = next_beat(m);

	return m->beat_wanted || (beat >= 0 && beat <= m->now) ||
		!zkl_list_empty(&m->deletes) || !zkl_list_empty(&m->creates) ||
		!zkl_list_empty(&m->resends);
}

/* A hand-over that waits for the lease to be renewed must not wait for T/6. */
static void
want_lease(ZklManager *m)
{
	if (m->nbatches == 0 && m->now >= m->lease_until &&
		!zkl_list_empty(&m->dirty))
		m->beat_wanted = true;
}

void
zkl_batch_send(ZklManager *m)
{
	if (m->connection == ZKL_CONNECTION_DOWN)
		return;
	if (m->chain_needed || m->version > ZKL_MAX_VERSION)
	{
		/* What is under way must be answered first, or the chain breaks. */
		if (m->nbatches == 0 && !m->chain_sent)
		{
			m->connection = ZKL_CONNECTION_OPENING;
			zkl_chain_open(m);
		}
		return;
	}
	if (m->connection == ZKL_CONNECTION_PROVING)
	{
		if (m->nbatches == 0)
			send_batch(m);
		return;
	}
	retry_stuck_deletes(m);
	send_lone_deletes(m);
	want_lease(m);
	while (!m->broken && m->nbatches < m->config.batches_in_flight &&
		   work_at_hand(m))
		send_batch(m);
}

int64_t
zkl_batch_timer(const ZklManager *m)
{
	int64_t		due = next_beat(m);

	if (!zkl_list_empty(&m->stuck_deletes) &&
		(due < 0 || m->stuck_until < due))
		due = m->stuck_until;
	return due;
}

/* ---- answers ---- */

/* The connection is as good as its first beat: now its reads count. */
static void
proved(ZklManager *m)
{
	uint32_t	i;

	m->connection = ZKL_CONNECTION_READY;
	m->proved_at = ++m->order;
	for (i = 0; i < m->config.max_requests; i++)
	{
		ZklRequest *r = &m->requests[i];

		if (r->demand == ZKL_DEMAND_UNUSED)
			continue;
		zkl_lock_touch(m, r->lock);
		if (r->node == ZKL_NODE_UNSETTLED)
		{
			r->lock->list_wanted = true;
			zkl_read_want(m, r->lock);
		}
		if (r->lock->ahead_watch == ZKL_WATCH_WANTED)
			zkl_read_want(m, r->lock);
	}
}

static void
create_applied(ZklManager *m, ZklRequest *r, const char *path, int64_t zxid)
{
	ZklSeq		seq = path != NULL ? zkl_znode_path_seq(path) : ZKL_SEQ_NONE;

	if (seq == ZKL_SEQ_NONE)
	{
		r->node = ZKL_NODE_UNSETTLED;
		m->chain_needed = true;
		return;
	}
	r->attempts = 0;
	if (seq < ZKL_SEQ_LIMIT)
		zkl_lock_account(m, r->lock, seq, zxid);
	zkl_request_exists(m, r, seq, zxid);
}

static void
batch_applied(ZklManager *m, ZklBatch *batch, const ZklReply *reply)
{
	int64_t		lease = batch->sent_at +
	(int64_t) m->session.timeout_ms * 1000 * 2 / 3;
	uint32_t	i;

	m->counters.batches++;
	m->unknown_streak = 0;
	if (m->batch_limit < m->config.batch_operations)
		m->batch_limit = m->batch_limit * 2 < m->config.batch_operations ?
			m->batch_limit * 2 : m->config.batch_operations;
	for (i = 0; i < batch->nmembers; i++)
	{
		ZklRequest *r = batch->members[i];

		if (i < batch->ndeletes)
			zkl_request_gone(m, r);
		else
			create_applied(m, r, reply->results[i + 1].path,
						   reply->stat.mzxid);
	}

	/* A set does not look at whose the node is: do it here. */
	if (reply->stat.ephemeral_owner != m->session.id)
	{
		m->chain_needed = true;
		return;
	}
	if (lease > m->lease_until)
		m->lease_until = lease;
	if (m->connection == ZKL_CONNECTION_PROVING)
		proved(m);
}

static bool
rc_is_definite(int32_t rc)
{
	/* ZooKeeper's API errors, but for those about the session */
	return rc <= -101 && rc != -112 && rc != -115 && rc != -116 && rc != -118;
}

/* The operation that made a batch fail, or -1 if that cannot be told */
static int
failed_operation(const ZklBatch *batch, const ZklReply *reply)
{
	uint32_t	i;

	for (i = 0; i < reply->nresults && i <= batch->nmembers; i++)
	{
		int32_t		rc = reply->results[i].rc;

		if (rc == ZKL_RC_OK)
			continue;
		if (!rc_is_definite(rc) || (i == 0 && rc != ZKL_RC_BADVERSION))
			return -1;
		return (int) i;
	}
	return -1;
}

static void
create_refused(ZklManager *m, ZklRequest *r, int32_t rc)
{
	if (r->demand != ZKL_DEMAND_WAITING)
		zkl_request_gone(m, r);
	else if (rc == ZKL_RC_NONODE && ++r->attempts < ZKL_MAX_ATTEMPTS)
		zkl_request_resend(m, r);
	else
	{
		r->node = ZKL_NODE_NONE;
		if (rc == ZKL_RC_NONODE)
			zkl_request_fail(m, r, ZKL_FAILURE_PARENTS, r->lock->parents_rc);
		else
			zkl_request_fail(m, r, ZKL_FAILURE_ZOOKEEPER, rc);
	}
}

void
zkl_batch_delete_reply(ZklManager *m, ZklRequest *r, int32_t rc)
{
	if (r->node != ZKL_NODE_DELETING)
		return;
	if (rc == ZKL_RC_OK || rc == ZKL_RC_NONODE)
		zkl_request_gone(m, r);
	else if (!rc_is_definite(rc))
		zkl_request_delete_again(r, &m->lone_deletes);
	else
	{
		zkl_request_delete_again(r, &m->stuck_deletes);
		m->stuck_until = m->now + ZKL_RETRY_DELAY;
	}
}

/*
 * Nothing of the batch was applied, "failed" being why (0: its version was not
 * the one expected).  A missing directory seldom comes alone: the creates wait
 * for all of theirs at once, and the deletes go on by themselves.
 */
static void
batch_refused(ZklManager *m, ZklBatch *batch, int failed, int32_t rc)
{
	uint32_t	i;

	for (i = 0; i < batch->nmembers; i++)
	{
		ZklRequest *r = batch->members[i];
		bool		culprit = (int) i + 1 == failed;

		if (i < batch->ndeletes)
		{
			if (culprit)
				zkl_batch_delete_reply(m, r, rc);
			else
				zkl_request_delete_again(r, failed > 0 ? &m->lone_deletes :
										 &m->deletes);
			continue;
		}
		if (rc == ZKL_RC_NONODE && failed > (int) batch->ndeletes &&
			zkl_list_empty(&r->lock->own))
			r->lock->make_parents = true;
		if (culprit)
			create_refused(m, r, rc);
		else
			zkl_request_resend(m, r);
	}
	if (failed == 0 && !m->broken)
		m->chain_needed = true;
	else
		m->version = failed > 0 ? batch->version : m->version;
	m->broken = true;
}

/*
 * It may have been applied, or yet be.  Unknown twice in a row: it may be too
 * large for the server, so the next are smaller.
 */
static void
batch_unknown(ZklManager *m, ZklBatch *batch)
{
	uint32_t	i;

	for (i = 0; i < batch->nmembers; i++)
	{
		ZklRequest *r = batch->members[i];

		if (i < batch->ndeletes)
			zkl_request_delete_again(r, &m->lone_deletes);
		else
			r->node = ZKL_NODE_UNSETTLED;
	}
	if (++m->unknown_streak >= 2 && batch->nmembers > 0)
	{
		m->batch_limit = (batch->nmembers + 1) / 2 + 1;
		if (m->batch_limit < 2)
			m->batch_limit = 2;
	}
	m->chain_needed = true;
	m->broken = true;
}

static ZklBatch *
pop_batch(ZklManager *m)
{
	ZklBatch   *batch = &m->batches[m->batch_first];

	m->batch_first = (m->batch_first + 1) % m->config.batches_in_flight;
	m->nbatches--;
	return batch;
}

void
zkl_batch_reply(ZklManager *m, const ZklReply *reply)
{
	ZklBatch   *batch = pop_batch(m);
	int			failed;

	if (reply->rc == ZKL_RC_OK && reply->nresults == batch->nmembers + 1)
		batch_applied(m, batch, reply);
	else if ((failed = failed_operation(batch, reply)) >= 0)
		batch_refused(m, batch, failed, reply->results[failed].rc);
	else
		batch_unknown(m, batch);
	if (m->nbatches == 0)
		m->broken = false;
}

void
zkl_batch_parent_reply(ZklManager *m, ZklLock *lock, int32_t rc)
{
	int32_t    *why = lock != NULL ? &lock->parents_rc : &m->chain_rc;

	if (rc != ZKL_RC_OK && rc != ZKL_RC_NODEEXISTS)
		*why = rc;
}

void
zkl_batch_disconnected(ZklManager *m)
{
	uint32_t	i;

	while (m->nbatches > 0)
		batch_unknown(m, pop_batch(m));
	m->broken = false;
	m->beat_wanted = false;

	/* Single deletes may have been done: doing them again does no harm. */
	for (i = 0; i < m->config.max_requests; i++)
	{
		if (m->requests[i].node == ZKL_NODE_DELETING)
			zkl_request_delete_again(&m->requests[i], &m->lone_deletes);
	}
}
