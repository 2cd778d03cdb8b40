/*
 * batch.c
 *	  The batch: all pending writes in one ZooKeeper transaction.
 *
 * Owns nothing: it forms and sends a batch.  batches.c keeps those under way,
 * batch_reply.c says what an answer means, and session.c keeps the version that
 * the next beat expects.  Runs in the worker (and in tests), takes no locks,
 * knows neither PostgreSQL nor ZooKeeper.
 *
 * A batch is one multi: set(heartbeat, expected version k), then deletes, then
 * creates, then downgrades, then publications that go or come.  Each batch names
 * the version that the one before it left.  So a batch is applied at most once and
 * in order, however often it is sent.
 */
#include <string.h>

#include "core/actions.h"
#include "core/batch.h"
#include "core/batches.h"
#include "core/cache.h"
#include "core/contenders.h"
#include "core/downgrade.h"
#include "core/look.h"
#include "core/node.h"
#include "core/operations.h"
#include "core/pace.h"
#include "core/parents.h"
#include "deadlock/publication.h"
#include "core/reads.h"
#include "core/session.h"
#include "core/session_lease.h"
#include "core/stuck.h"

#define ZKL_MAX_VERSION		(1 << 30)	/* then a new heartbeat node */
#define ZKL_OP_OVERHEAD		64	/* bytes of an operation, less its strings */

/* ---- forming ---- */

static size_t
member_bytes(const ZklRequest *r, bool create)
{
	return r->lock->path_length + ZKL_MAX_ZNODE_NAME + ZKL_OP_OVERHEAD +
		(create ? r->node.data_length + ZKL_NODE_DATA_CACHED : 0);
}

/* Moves requests from a list of writes into the batch, while they fit. */
static void
gather(ZklManager *m, ZklBatch *batch, const ZklList *list,
	   ZklMemberKind kind, size_t *bytes)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, list)
	{
		ZklRequest *r = zkl_container(ZklRequest, node.write, link);

		*bytes += member_bytes(r, kind == ZKL_MEMBER_CREATE);
		if (batch->nmembers + 1 >= m->batches.limit ||
			(batch->nmembers > 0 && *bytes > m->config.batch_bytes))
			return;
		zkl_batches_add(batch, r, kind);
		if (kind == ZKL_MEMBER_DELETE)
		{
			zkl_node_deleting(r);
			continue;
		}
		zkl_cache_choose(m, r);
		zkl_node_sent(r, batch->nmembers);
		zkl_look_sent(m, r);
	}
}

static void
gather_downgrades(ZklManager *m, ZklBatch *batch, size_t *bytes)
{
	ZklLink    *link,
			   *after;
	uint32_t	nops = batch->nmembers + 1;

	zkl_foreach(link, after, &m->downgrades.wanted)
	{
		ZklRequest *r = zkl_container(ZklRequest, downgrade.link, link);

		nops += ZKL_DOWNGRADE_OPS;
		*bytes += ZKL_DOWNGRADE_OPS * member_bytes(r, true);
		if (batch->nmembers > 0 &&
			(nops > m->batches.limit || *bytes > m->config.batch_bytes))
			return;
		zkl_batches_add(batch, r, ZKL_MEMBER_DOWNGRADE);
	}
}

/* Moves publications into the batch, while they fit behind all else. */
static void
gather_publications(ZklManager *m, ZklBatch *batch, const ZklList *list,
					size_t *bytes)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, list)
	{
		ZklPublication *p = zkl_container(ZklPublication, write, link);

		*bytes += ZKL_MAX_ROOT + ZKL_UUID_TEXT + p->data_length +
			ZKL_OP_OVERHEAD;
		if (zkl_batch_operations(batch) > 1 &&
			(zkl_batch_operations(batch) >= m->batches.limit ||
			 *bytes > m->config.batch_bytes))
			return;
		zkl_batches_add_publication(batch, p);
		zkl_publication_sent(m, p);
	}
}

/* Records each create's id, and makes the directories known to be missing. */
static void
prepare_creates(ZklManager *m, const ZklBatch *batch)
{
	const char *made = "";
	uint32_t	i;

	for (i = batch->ndeletes; i < batch->nsingle; i++)
	{
		ZklRequest *r = batch->members[i];

		zkl_node_record(m, r);
		if (r->lock->parents.missing)
		{
			zkl_parents_make(m, r->lock, r->lock->path, made);
			made = r->lock->path;
		}
	}
}

/*
 * Sends reads behind the creates, as ZooKeeper keeps the order: list unknown
 * directories, and watch those we often come to, so that next time they are
 * known.
 */
static void
read_behind(ZklManager *m, const ZklBatch *batch)
{
	uint32_t	i;

	for (i = batch->ndeletes; i < batch->nsingle; i++)
	{
		ZklLock    *lock = batch->members[i]->lock;

		if (zkl_list_empty(&lock->queue.own) &&
			(lock->foreign.unknown_from != ZKL_SEQ_NONE ||
			 !zkl_contenders_continuous(lock)))
			zkl_reads_want_listing(m, lock);
		if (lock->cached != NULL)
			zkl_reads_want_children(m, lock);
		zkl_reads_visit(m, lock);
		if (lock->listing.wanted || lock->directory.watch == ZKL_WATCH_WANTED)
			zkl_reads_want(m, lock);
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

size_t
zkl_batch_operations(const ZklBatch *batch)
{
	return 1 + batch->nsingle +
		ZKL_DOWNGRADE_OPS * (batch->nmembers - batch->nsingle) +
		batch->npublications;
}

static void
form_publications(ZklManager *m, const ZklBatch *batch, ZklMultiOp *op)
{
	uint32_t	i;

	for (i = 0; i < batch->npublications; i++, op++)
	{
		const ZklPublication *p = batch->publications[i];
		char	   *data;

		op->path = zkl_publication_path(m, &p->uuid);
		op->version = -1;
		op->kind = ZKL_MULTI_DELETE;
		if (i < batch->nretracted)
			continue;
		data = zkl_actions_text(m, p->data_length);
		memcpy(data, p->data, p->data_length);
		op->kind = ZKL_MULTI_CREATE_EPHEMERAL;
		op->data = data;
		op->data_length = p->data_length;
	}
}

static ZklMultiOp *
form_operations(ZklManager *m, const ZklBatch *batch)
{
	size_t		nops = zkl_batch_operations(batch);
	ZklMultiOp *ops = (ZklMultiOp *) (void *)
	zkl_actions_text(m, nops * sizeof(ZklMultiOp));
	char	   *number = zkl_actions_text(m, 24);
	uint32_t	i;

	memset(ops, 0, nops * sizeof(ZklMultiOp));
	ops[0].kind = ZKL_MULTI_SET;
	ops[0].path = zkl_session_heartbeat(m, m->chain.number);
	ops[0].version = ZKL_MUTANT(LOOKUP_WITHOUT_CHAIN) ? -1 : batch->version;
	ops[0].data = number;
	ops[0].data_length = format_number(number, m->batches.number);
	for (i = 0; i < batch->nsingle; i++)
	{
		const ZklRequest *r = batch->members[i];
		ZklMultiOp *op = &ops[i + 1];

		op->path = zkl_node_path(m, r);
		op->version = -1;
		op->kind = ZKL_MULTI_DELETE;
		if (i >= batch->ndeletes)
		{
			char	   *data = zkl_actions_text(m, r->node.data_length +
												ZKL_NODE_DATA_TIMEOUT +
												ZKL_NODE_DATA_CACHED);

			memcpy(data, r->node.data, r->node.data_length);
			op->kind = ZKL_MULTI_CREATE;
			op->data = data;
			op->data_length = r->node.data_length;
			if (zkl_dialect_marks(r->lock->dialect))
				op->data_length = zkl_node_data_timeout(data, op->data_length,
														m->session.timeout_ms);
			op->data_length = zkl_cache_mark(r, data, op->data_length);
		}
	}
	for (; i < batch->nmembers; i++)
		zkl_downgrade_send(m, batch->members[i], &ops[1 + batch->nsingle +
													  ZKL_DOWNGRADE_OPS *
													  (i - batch->nsingle)]);
	form_publications(m, batch, &ops[nops - batch->npublications]);
	return ops;
}

static int64_t
next_beat(const ZklManager *m)
{
	/*
	 * The answer to a batch under way does as well, unless the batch is
	 * refused: only one that was applied renews the lease.
	 */
	if (m->requests.nlive == 0 || m->batches.n > 0)
		return -1;
	return (m->batches.refused ? m->batches.acknowledged_at : m->batches.sent_at) +
		(int64_t) m->session.timeout_ms * 1000 / 6;
}

static void
gather_all(ZklManager *m, ZklBatch *batch)
{
	size_t		bytes = 0;

	gather(m, batch, &m->nodes.deletes[ZKL_DELETE_NOW], ZKL_MEMBER_DELETE,
		   &bytes);
	gather(m, batch, &m->nodes.deletes[ZKL_DELETE_LATE], ZKL_MEMBER_DELETE,
		   &bytes);
	gather(m, batch, &m->nodes.resends, ZKL_MEMBER_CREATE, &bytes);
	if (zkl_list_empty(&m->nodes.resends))
		gather(m, batch, &m->nodes.creates, ZKL_MEMBER_CREATE, &bytes);
	gather_downgrades(m, batch, &bytes);
	gather_publications(m, batch, &m->publications.deletes, &bytes);
	gather_publications(m, batch, &m->publications.creates, &bytes);
}

/* If writes that were refused have held up a beat, it goes alone. */
static void
send_batch(ZklManager *m)
{
	int64_t		beat = next_beat(m);
	bool		goes_alone = m->batches.refused && beat >= 0 && beat <= m->now;
	ZklBatch   *batch = zkl_batches_begin(m, zkl_session_next_version(m));
	ZklMultiOp *ops;
	ZklAction  *action;

	if (!goes_alone)
		gather_all(m, batch);
	prepare_creates(m, batch);
	if (batch->npublications > batch->nretracted)
		zkl_publication_make_directory(m);
	ops = form_operations(m, batch);
	action = zkl_operations_send(m, ZKL_OP_BATCH, NULL, NULL,
								 ZKL_SEND_MULTI, NULL);
	action->multi = ops;
	action->nmulti = zkl_batch_operations(batch);
	zkl_batches_sent(m, batch);
	read_behind(m, batch);
}

/* ---- sending ---- */

static void
send_lone_deletes(ZklManager *m)
{
	const ZklList *list = &m->nodes.deletes[ZKL_DELETE_ALONE];

	while (!zkl_list_empty(list))
	{
		ZklRequest *r = zkl_container(ZklRequest, node.write, list->head.next);

		zkl_node_deleting(r);
		zkl_operations_send(m, ZKL_OP_DELETE, r->lock, r, ZKL_SEND_DELETE,
							zkl_node_path(m, r));
	}
}

static void
retry_what_was_refused(ZklManager *m)
{
	const ZklList *stuck = &m->nodes.deletes[ZKL_DELETE_STUCK];

	if (m->now < m->stuck_until)
		return;
	zkl_session_sweep_again(m);
	zkl_downgrade_retry(m);
	while (!zkl_list_empty(stuck))
		zkl_node_delete(m, zkl_container(ZklRequest, node.write,
										 stuck->head.next),
						ZKL_DELETE_ALONE);
	zkl_reads_retry(m);
}

static bool
work_at_hand(const ZklManager *m)
{
	int64_t		beat = next_beat(m);

	return m->batches.beat_wanted || (beat >= 0 && beat <= m->now) ||
		!zkl_list_empty(&m->nodes.deletes[ZKL_DELETE_NOW]) ||
		!zkl_list_empty(&m->nodes.creates) ||
		!zkl_list_empty(&m->nodes.resends) ||
		!zkl_list_empty(&m->downgrades.wanted) ||
		zkl_publication_pending(m) || zkl_pace_due(m);
}

/*
 * If a hand-over waits for the lease, it must not wait T/6 for the next beat.
 * But after a silence one beat is not enough.
 */
static void
want_lease(ZklManager *m)
{
	if (m->batches.n == 0 && m->now >= m->session_lease.until &&
		!zkl_list_empty(&m->locks.dirty) && m->session_lease.verified &&
		zkl_session_lease_until(m, m->now) > m->now)
		zkl_batches_want_beat(m, true);
}

void
zkl_batch_send(ZklManager *m)
{
	if (m->connection.state == ZKL_CONNECTION_DOWN)
		return;
	if (m->chain.needed || m->chain.version > ZKL_MAX_VERSION)
	{
		/* Batches under way must be answered first, or the chain breaks. */
		if (m->batches.n == 0 && !m->chain.sent)
			zkl_session_open_chain(m);
		return;
	}
	if (m->connection.state == ZKL_CONNECTION_PROVING)
	{
		if (m->batches.n == 0)
			send_batch(m);
		return;
	}
	retry_what_was_refused(m);
	send_lone_deletes(m);
	want_lease(m);
	while (!m->batches.broken && zkl_pace_missing(m) == 0 &&
		   m->batches.n < m->config.batches_in_flight && work_at_hand(m))
		send_batch(m);
}

int64_t
zkl_batch_timer(const ZklManager *m)
{
	int64_t		due = next_beat(m);
	int64_t		pace = zkl_pace_timer(m);

	if (m->chain.needed)
		return -1;

	/* Gathering holds up a beat, too, but not for long. */
	if (zkl_pace_missing(m) > 0)
		return pace;
	if (zkl_stuck_any(m) && (due < 0 || m->stuck_until < due))
		due = m->stuck_until;
	if (pace >= 0 && (due < 0 || pace < due))
		due = pace;
	return due;
}
