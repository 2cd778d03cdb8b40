/*
 * batch.c
 *	  The batch: all pending writes in one ZooKeeper transaction, and what became
 *	  of it.
 *
 * Owns nothing: it forms and sends a batch of writes, whatever they are, and leads
 * its answer to them.  write.c keeps the batches under way, and session.c the
 * version that the next beat expects.  Runs in the worker (and in tests), takes no
 * locks, knows neither PostgreSQL nor ZooKeeper.
 *
 * A batch is one multi: set(heartbeat, expected version k), then writes in the order
 * of their ranks, each of which fits as a whole or waits.  Each batch names the version
 * that the one before it left.  So a batch is applied at most once and in order,
 * however often it is sent.
 */
#include <string.h>

#include "core/batch.h"
#include "core/contenders.h"
#include "core/host.h"
#include "core/lock.h"
#include "core/node.h"
#include "core/reads.h"
#include "core/request.h"
#include "core/session.h"
#include "core/write.h"

#define ZKL_MAX_VERSION		(1 << 30)	/* then a new heartbeat node */

/* ---- forming ---- */

/* Takes pending writes into the batch, in the order of their ranks, while they fit. */
static void
gather(ZklManager *m, ZklBatch *batch)
{
	size_t		bytes = 0;
	ZklWriteRank rank;
	ZklLink    *link,
			   *after;

	for (rank = 0; rank < ZKL_RANK_ALONE; rank++)
	{
		zkl_foreach(link, after, &m->writes.pending[rank])
		{
			ZklWrite   *w = zkl_container(ZklWrite, link, link);

			bytes += w->by->bytes(w);
			if (batch->nseats > 0 &&
				(batch->nops + w->by->nops > m->batches.limit ||
				 bytes > m->config.batch_bytes))
				return;
			ZKL_ASSERT(batch->nseats < m->config.batch_operations);
			zkl_batches_add(batch, w);
		}
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
	zkl_actions_text(m, batch->nops * sizeof(ZklMultiOp));
	char	   *number = zkl_actions_text(m, 24);
	ZklForm		form = {.made = ""};
	uint32_t	i;

	memset(ops, 0, batch->nops * sizeof(ZklMultiOp));
	ops[0].kind = ZKL_MULTI_SET;
	ops[0].path = zkl_session_heartbeat(m, m->chain.number);
	ops[0].version = ZKL_MUTANT(LOOKUP_WITHOUT_CHAIN) ? -1 : batch->version;
	ops[0].data = number;
	ops[0].data_length = format_number(number, m->batches.number);
	for (i = 0; i < batch->nseats; i++)
	{
		ZklWrite   *w = batch->seats[i].write;

		form.index = batch->seats[i].index;
		ZKL_ASSERT(form.index + w->by->nops <= batch->nops);
		w->by->fill(m, w, &ops[form.index], &form);
	}
	return ops;
}

static void
send_behind(ZklManager *m, const ZklBatch *batch)
{
	uint32_t	i;

	for (i = 0; i < batch->nseats; i++)
	{
		ZklWrite   *w = batch->seats[i].write;

		if (w->by->behind != NULL)
			w->by->behind(m, w);
	}
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
		zkl_session_lease_beat(m);
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
		gather(m, batch);
	ops = form_operations(m, batch);
	action = zkl_operations_send(m, ZKL_OP_BATCH, NULL, NULL,
								 ZKL_SEND_MULTI, NULL);
	action->multi = ops;
	action->nmulti = batch->nops;
	zkl_batches_sent(m, batch);
	send_behind(m, batch);
}

/* ---- sending ---- */

static void
send_alone(ZklManager *m)
{
	const ZklList *list = &m->writes.pending[ZKL_RANK_ALONE];

	while (!zkl_list_empty(list))
	{
		ZklWrite   *w = zkl_container(ZklWrite, link, list->head.next);

		ZKL_ASSERT(w->by->alone != NULL);
		zkl_write_go_alone(m, w, w->by);
		w->by->alone(m, w);
	}
}

static void
retry_what_was_refused(ZklManager *m)
{
	if (m->now < m->stuck_until)
		return;
	zkl_session_sweep_again(m);
	zkl_write_retry(m);
	zkl_reads_retry(m);
}

static bool
work_at_hand(const ZklManager *m)
{
	int64_t		beat = next_beat(m);

	return m->batches.beat_wanted || (beat >= 0 && beat <= m->now) ||
		!zkl_list_empty(&m->writes.pending[ZKL_RANK_CREATE]) ||
		zkl_write_is_urgent(m) || zkl_batches_pace_due(m);
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
	ZKL_ASSERT(m->connection.state == ZKL_CONNECTION_READY);
	retry_what_was_refused(m);
	send_alone(m);
	want_lease(m);
	while (!m->batches.broken && zkl_batches_pace_missing(m) == 0 &&
		   m->batches.n < m->config.batches_in_flight && work_at_hand(m))
		send_batch(m);
}

int64_t
zkl_batch_timer(const ZklManager *m)
{
	int64_t		due = next_beat(m);
	int64_t		pace = zkl_batches_pace_timer(m);

	if (m->chain.needed)
		return -1;

	/* Gathering holds up a beat, too, but not for long. */
	if (zkl_batches_pace_missing(m) > 0)
		return pace;
	if (zkl_write_any_stuck(m) && (due < 0 || m->stuck_until < due))
		due = m->stuck_until;
	if (pace >= 0 && (due < 0 || pace < due))
		due = pace;
	return due;
}

/* ---- batch_reply: what became of a batch: the answer, or the lack of one ---- */

/*
 * It leads an answer to the writes in the batch.
 *
 * An answer has one of three outcomes:
 *
 *	  applied		rc 0: every write is done, and the beat's mzxid is the
 *					czxid of every node created in it
 *	  refused		the answer names one operation that failed, so nothing
 *					was applied; or BADVERSION behind a refused batch: the
 *					writes are sent again
 *	  unknown		anything else, silence included: a new chain of heartbeats
 *					makes sure that the batch can never be applied from then
 *					on, and listings tell whether it was
 */

/* The first beat proves the connection: from now on its reads count. */
static void
proved(ZklManager *m)
{
	uint32_t	i;

	zkl_session_proved(m);
	for (i = 0; i < m->config.max_requests; i++)
	{
		ZklRequest *r = &m->requests.all[i];

		if (r->demand == ZKL_DEMAND_UNUSED)
			continue;
		zkl_lock_touch(m, r->lock);
		if (ZKL_MUTANT(GRANT_AFTER_LOST_ANSWER) && r->lock->parents.guessed &&
			zkl_node_is_unsettled(r) && zkl_list_empty(&r->lock->queue.own))
		{
			zkl_contenders_account(m, r->lock, 0, m->zxid.seen);
			zkl_request_exists(m, r, 0, m->zxid.seen);
		}
		if (zkl_node_is_unsettled(r) || zkl_downgrade_is_unsettled(r))
			zkl_reads_list_again(m, r->lock);
		if (r->lock->ahead.watch == ZKL_WATCH_WANTED)
			zkl_reads_want(m, r->lock);
	}
}

static bool
holds_operation(const ZklSeat *seat, int i)
{
	int			first = (int) seat->index;

	return i >= first && i < first + (int) seat->write->by->nops;
}

/*
 * Tells each write in the batch what became of it; "failed" is the operation that
 * made it fail, if one did.
 */
static void
settle(ZklManager *m, const ZklBatch *batch, ZklOutcome *outcome, int failed,
	   const ZklReply *reply)
{
	uint32_t	i;

	for (i = 0; i < batch->nseats; i++)
	{
		const ZklSeat *seat = &batch->seats[i];

		if (seat->write == NULL)
			continue;
		ZKL_ASSERT(seat->write->seat == seat);
		ZKL_ASSERT(seat->index + seat->write->by->nops <= batch->nops);
		outcome->culprit = holds_operation(seat, failed);
		if (outcome->kind == ZKL_OUTCOME_APPLIED)
			outcome->results = &reply->results[seat->index];
		zkl_write_settle(m, seat->write, outcome);
	}
}

static void
batch_applied(ZklManager *m, ZklBatch *batch, const ZklReply *reply)
{
	int64_t		lease = zkl_session_lease_until(m, batch->sent_at);
	ZklOutcome	outcome = {
		.kind = ZKL_OUTCOME_APPLIED,.zxid = reply->stat.mzxid,
		.sent_at = batch->sent_at
	};

	zkl_batches_applied(m, batch);
	zkl_session_acknowledged(m, batch->version + 1);
	zkl_batches_pace_acknowledged(m);
	settle(m, batch, &outcome, -1, reply);

	/* A set does not check which session owns the node: do it here. */
	if (reply->stat.ephemeral_owner != m->session.id)
	{
		zkl_session_need_chain(m);
		return;
	}
	if (m->connection.state == ZKL_CONNECTION_PROVING &&
		zkl_session_zxid_is_of_later_election(m, reply->stat.mzxid))
		zkl_connection_elected(m, reply->stat.mzxid);
	zkl_session_zxid_believe(m, reply->stat.mzxid);
	if (lease > zkl_look_lease_limit(m))
		lease = zkl_look_lease_limit(m);
	zkl_session_lease_extend(m, lease);
	if (m->connection.state == ZKL_CONNECTION_PROVING)
		proved(m);
}

/* The operation that made a batch fail, or -1 if that cannot be told */
static int
failed_operation(const ZklBatch *batch, const ZklReply *reply)
{
	uint32_t	i;

	for (i = 0; i < reply->nresults && i < batch->nops; i++)
	{
		int32_t		rc = reply->results[i].rc;

		if (rc == ZKL_RC_OK)
			continue;
		if (!zkl_zkapi_is_definite(rc) || (i == 0 && rc != ZKL_RC_BADVERSION))
			return -1;
		return (int) i;
	}
	return -1;
}

/*
 * Nothing of the batch was applied, and operation "failed" is why (0: its
 * version was not the expected one).
 */
static void
batch_refused(ZklManager *m, ZklBatch *batch, int failed, int32_t rc)
{
	ZklOutcome	outcome = {
		.kind = ZKL_OUTCOME_REFUSED,.rc = rc,.beat = failed == 0
	};
	uint32_t	i;

	for (i = 0; i < batch->nseats; i++)
	{
		const ZklWrite *w = batch->seats[i].write;

		if (w == NULL || !holds_operation(&batch->seats[i], failed))
			continue;
		outcome.by = w->by;
		if (w->by->creates_in != NULL)
			outcome.directory = w->by->creates_in(w);
	}
	settle(m, batch, &outcome, failed, NULL);
	if (failed == 0 && !m->batches.broken &&
		ZKL_MUTANT(RESEND_AFTER_BADVERSION))
		zkl_session_set_version(m, batch->version + 1);
	else if (failed == 0 && !m->batches.broken)
		zkl_session_need_chain(m);
	else if (failed > 0)
		zkl_session_set_version(m, batch->version);
	zkl_batches_set_broken(m, true);
}

/* ZooKeeper may have applied the batch, or may yet do so. */
static void
batch_unknown(ZklManager *m, ZklBatch *batch)
{
	ZklOutcome	outcome = {.kind = ZKL_OUTCOME_UNKNOWN};

	settle(m, batch, &outcome, -1, NULL);
	zkl_batches_unknown(m, batch);
	if (!m->batches.broken && ZKL_MUTANT(RESEND_AFTER_BADVERSION))
		zkl_session_set_version(m, batch->version);
	if (!ZKL_MUTANT(LOOKUP_WITHOUT_CHAIN) &&
		!ZKL_MUTANT(RESEND_AFTER_BADVERSION))
		zkl_session_need_chain(m);
	zkl_batches_set_broken(m, true);
}

static void
settle_oldest(ZklManager *m, ZklBatch *batch, const ZklReply *reply)
{
	bool		good = reply->rc == ZKL_RC_OK &&
	reply->nresults == batch->nops;
	int			failed;

	if (good && zkl_session_zxid_is_absurd(m, reply->stat.mzxid))
	{
		batch_unknown(m, batch);
		zkl_session_give_up(m, ZKL_RC_ABSURD);
	}
	else if (good && zkl_session_zxid_went_back(m, reply->stat.mzxid))
	{
		batch_unknown(m, batch);
		zkl_session_give_up(m, ZKL_RC_WENT_BACK);
	}
	else if (good)
		batch_applied(m, batch, reply);
	else if ((failed = failed_operation(batch, reply)) >= 0)
	{
		zkl_batches_refused(m);
		batch_refused(m, batch, failed, reply->results[failed].rc);
	}
	else
	{
		zkl_batches_unanswered(m);
		batch_unknown(m, batch);
	}
}

/*
 * ZooKeeper answers in order.  If an answer overtakes an older one, ZooKeeper's client
 * has refused to send that batch: on a new connection none has an answer.
 */
void
zkl_batch_reply_take(ZklManager *m, const ZklOp *op, const ZklReply *reply)
{
	ZKL_ASSERT(m->batches.n > 0);
	if (op->order != zkl_batches_get(m, 0)->order &&
		!ZKL_MUTANT(ANSWER_OF_ANY_BATCH))
	{
		zkl_session_give_up(m, reply->rc);
		return;
	}
	settle_oldest(m, zkl_batches_take(m), reply);
	if (m->batches.n == 0)
		zkl_batches_set_broken(m, false);
}

void
zkl_batch_reply_parent(ZklManager *m, ZklLock *lock, int32_t rc)
{
	int32_t		why = lock != NULL ? lock->parents.rc : m->chain.rc;

	/*
	 * Only the first refusal counts.  If a parent is gone again, it was
	 * reaped just now, or is missing because of that refusal.  An answer
	 * about the session refuses nothing.
	 */
	if (why != 0 || rc == ZKL_RC_OK || rc == ZKL_RC_NODEEXISTS ||
		rc == ZKL_RC_NONODE || zkl_zkapi_is_of_session(rc))
		return;
	if (lock != NULL)
		zkl_directories_refused(lock, rc);
	else
		zkl_session_parent_refused(m, rc);
}

void
zkl_batch_reply_lost(ZklManager *m)
{
	if (m->batches.n > 0)
		zkl_batches_unanswered(m);
	while (m->batches.n > 0)
		batch_unknown(m, zkl_batches_take(m));
	zkl_batches_set_broken(m, false);
	zkl_batches_want_beat(m, false);
	zkl_write_lost(m);
}
