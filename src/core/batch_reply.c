/*
 * batch_reply.c
 *	  What became of a batch: the answer, or the lack of one.
 *
 * Owns nothing: it leads an answer to the writes in the batch.  Runs in the
 * worker (and in tests), takes no locks, knows neither PostgreSQL nor
 * ZooKeeper.
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
#include "core/batch_reply.h"
#include "core/batches.h"
#include "core/connection.h"
#include "core/contenders.h"
#include "core/directories.h"
#include "core/downgrade.h"
#include "core/lock.h"
#include "core/look.h"
#include "core/node.h"
#include "core/reads.h"
#include "core/request.h"
#include "core/session.h"
#include "core/session_lease.h"
#include "core/write.h"

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
