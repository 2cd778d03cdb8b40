/*
 * batch_reply.c
 *	  What became of a batch: the answer, or the lack of one.
 *
 * Owns nothing: it leads an answer to the requests in the batch.  Runs in the
 * worker (and in tests), takes no locks, knows neither PostgreSQL nor
 * ZooKeeper.
 *
 * An answer has one of three outcomes:
 *
 *	  applied		rc 0: every member is done, and the beat's mzxid is the
 *					czxid of every node created in it
 *	  refused		the answer names one operation that failed, so nothing
 *					was applied; or BADVERSION behind a refused batch: the
 *					members are sent again
 *	  unknown		anything else, silence included: a new chain of heartbeats
 *					makes sure that the batch can never be applied from then
 *					on, and listings tell whether it was
 */
#include "core/batch.h"
#include "core/batch_reply.h"
#include "core/batches.h"
#include "core/connection.h"
#include "core/contenders.h"
#include "core/downgrade.h"
#include "core/downgrade_reply.h"
#include "core/lock.h"
#include "core/look.h"
#include "core/node.h"
#include "core/pace.h"
#include "core/parents.h"
#include "deadlock/publication.h"
#include "core/reads.h"
#include "core/request.h"
#include "core/session.h"
#include "core/session_lease.h"
#include "core/stuck.h"
#include "core/zxid.h"

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
		if (r->node.state == ZKL_NODE_UNSETTLED ||
			r->downgrade.state == ZKL_DOWNGRADE_UNSETTLED)
		{
			zkl_reads_list_again(m, r->lock);
		}
		if (r->lock->ahead.watch == ZKL_WATCH_WANTED)
			zkl_reads_want(m, r->lock);
	}
}

/*
 * If a create comes back with a number that is not above all of ours, the
 * counter started again: the directory was deleted, with our nodes in it.
 */
static void
lose_older_incarnation(ZklManager *m, ZklLock *lock, ZklSeq seq)
{
	while (!zkl_list_empty(&lock->queue.own) &&
		   !ZKL_MUTANT(OLDER_INCARNATION_KEPT))
	{
		ZklRequest *last = zkl_container(ZklRequest, place.link,
										 lock->queue.own.head.prev);

		if (last->node.seq < seq)
			return;
		zkl_request_vanished(m, last);
	}
}

static void
create_applied(ZklManager *m, ZklRequest *r, const char *path, int64_t zxid,
			   int64_t sent_at)
{
	ZklSeq		seq = path != NULL ?
	zkl_znode_path_seq(r->lock->dialect, path) : ZKL_SEQ_NONE;
	bool		alone = false;

	if (seq == ZKL_SEQ_NONE)
	{
		zkl_node_unsettled(r);
		zkl_session_need_chain(m);
		return;
	}
	zkl_parents_found(r);
	if (seq < ZKL_SEQ_LIMIT)
	{
		lose_older_incarnation(m, r->lock, seq);
		alone = zkl_contenders_account(m, r->lock, seq, zxid);
	}
	zkl_node_created(m, r, alone);
	zkl_request_exists(m, r, seq, zxid);

	/* Since then another client may have deleted or marked it. */
	zkl_look_placed(m, r, sent_at);

	/* If the directory is new, the watch that was sent along found nothing. */
	if (r->lock->directory.visited &&
		r->lock->directory.watch == ZKL_WATCH_NONE)
		zkl_reads_watch_directory(m, r->lock);
}

static void
batch_applied(ZklManager *m, ZklBatch *batch, const ZklReply *reply)
{
	int64_t		lease = zkl_session_lease_until(m, batch->sent_at);
	uint32_t	i;

	zkl_batches_applied(m, batch);
	zkl_session_acknowledged(m, batch->version + 1);
	zkl_pace_acknowledged(m);
	for (i = batch->nsingle; i < batch->nmembers; i++)
	{
		if (batch->members[i] != NULL)
			zkl_downgrade_reply_settle(m, batch->members[i], true);
	}
	for (i = 0; i < batch->nsingle; i++)
	{
		ZklRequest *r = batch->members[i];

		if (i < batch->ndeletes)
			zkl_request_gone(m, r);
		else
			create_applied(m, r, reply->results[i + 1].path,
						   reply->stat.mzxid, batch->sent_at);
	}

	for (i = 0; i < batch->npublications; i++)
		zkl_publication_applied(m, batch->publications[i], reply->stat.mzxid);

	/* A set does not check which session owns the node: do it here. */
	if (reply->stat.ephemeral_owner != m->session.id)
	{
		zkl_session_need_chain(m);
		return;
	}
	if (m->connection.state == ZKL_CONNECTION_PROVING &&
		zkl_zxid_is_of_later_election(m, reply->stat.mzxid))
		zkl_connection_elected(m, reply->stat.mzxid);
	zkl_zxid_believe(m, reply->stat.mzxid);
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

	for (i = 0; i < reply->nresults && i < zkl_batch_operations(batch); i++)
	{
		int32_t		rc = reply->results[i].rc;

		if (rc == ZKL_RC_OK)
			continue;
		if (!zkl_result_is_definite(rc) || (i == 0 && rc != ZKL_RC_BADVERSION))
			return -1;
		return (int) i;
	}
	return -1;
}

/* "named": the answer itself names r, not only its lock. */
static void
create_refused(ZklManager *m, ZklRequest *r, int32_t rc, bool named)
{
	ZklLock    *lock = r->lock;

	/* Without the directory, none of our other nodes in it exists any more. */
	while (rc == ZKL_RC_NONODE && named && !zkl_list_empty(&lock->queue.own))
		zkl_request_vanished(m, zkl_container(ZklRequest, place.link,
											  lock->queue.own.head.next));
	if (rc == ZKL_RC_NONODE)
		zkl_parents_missing(lock);
	if (r->demand != ZKL_DEMAND_WAITING)
		zkl_request_gone(m, r);
	else if (rc == ZKL_RC_NONODE && zkl_parents_try_again(r))
		zkl_request_resend(m, r);
	else
	{
		if (rc == ZKL_RC_NONODE)
			zkl_request_fail(m, r, ZKL_FAILURE_PARENTS, lock->parents.rc);
		else
			zkl_request_fail(m, r, ZKL_FAILURE_ZOOKEEPER, rc);
		zkl_request_gone(m, r);
	}
}

void
zkl_batch_reply_deleted(ZklManager *m, ZklRequest *r, int32_t rc)
{
	bool		gone = rc == ZKL_RC_OK || rc == ZKL_RC_NONODE;

	if (r->node.state != ZKL_NODE_DELETING)
		return;
	if (gone)
		zkl_batches_want_proof(m);
	if (gone && zkl_downgrade_take_other_name(r))
		zkl_node_delete(m, r, ZKL_DELETE_ALONE);
	else if (gone ||
			 (ZKL_MUTANT(REFUSED_DELETE_IS_DONE) && zkl_result_is_definite(rc)))
		zkl_request_gone(m, r);
	else
	{
		zkl_stuck_begin(m);
		zkl_node_delete(m, r, ZKL_DELETE_STUCK);
	}
}

/*
 * Whether a create would be refused as well: it is for the same directory, or
 * its own directory could not be made either.  One by one, such creates would
 * take a round trip each.
 */
static bool
shares_fate(const ZklRequest *r, const ZklLock *culprit, int32_t rc)
{
	if (culprit == NULL)
		return false;
	if (rc != ZKL_RC_NONODE)
		return r->lock == culprit;
	return culprit->parents.rc != 0 && r->lock->parents.rc != 0;
}

/* Settles the refused downgrade; the others are sent again. */
static void
refuse_downgrades(ZklManager *m, const ZklBatch *batch, int failed, int32_t rc)
{
	uint32_t	i;

	for (i = batch->nsingle; i < batch->nmembers; i++)
	{
		ZklRequest *r = batch->members[i];
		int			first = (int) (batch->nsingle + 1 +
								   (i - batch->nsingle) * ZKL_DOWNGRADE_OPS);

		if (r == NULL)
			continue;
		if (failed >= first && failed < first + ZKL_DOWNGRADE_OPS)
			zkl_downgrade_reply_refused(m, r, rc);
		else
			zkl_downgrade_reply_settle(m, r, false);
	}
}

/* If one of them cannot be created, neither can the others. */
static void
refuse_publications(ZklManager *m, const ZklBatch *batch, int failed,
					int32_t rc)
{
	uint32_t	first = (uint32_t) zkl_batch_operations(batch) -
	batch->npublications;
	bool		create = failed >= (int) (first + batch->nretracted);
	uint32_t	i;

	for (i = 0; i < batch->npublications; i++)
		zkl_publication_refused(m, batch->publications[i],
								create || i < batch->nretracted ? rc : 0,
								failed == (int) (first + i));
}

/*
 * Nothing of the batch was applied, and operation "failed" is why (0: its
 * version was not the expected one).  A missing directory seldom comes alone:
 * the creates wait for all of theirs at once, and the deletes go on by
 * themselves.
 */
static void
batch_refused(ZklManager *m, ZklBatch *batch, int failed, int32_t rc)
{
	bool		create = failed > (int) batch->ndeletes &&
	failed <= (int) batch->nsingle;
	const ZklLock *culprit_lock = create ?
	batch->members[failed - 1]->lock : NULL;
	uint32_t	i;

	refuse_downgrades(m, batch, failed, rc);
	refuse_publications(m, batch, failed, rc);
	for (i = 0; i < batch->nsingle; i++)
	{
		ZklRequest *r = batch->members[i];
		bool		culprit = (int) i + 1 == failed;

		if (i < batch->ndeletes)
		{
			if (culprit)
				zkl_batch_reply_deleted(m, r, rc);
			else
				zkl_node_delete(m, r, failed > 0 ? ZKL_DELETE_ALONE :
								ZKL_DELETE_NOW);
			continue;
		}
		if (rc == ZKL_RC_NONODE && create &&
			zkl_list_empty(&r->lock->queue.own))
			zkl_parents_missing(r->lock);
		if (culprit || shares_fate(r, culprit_lock, rc))
			create_refused(m, r, rc, r->lock == culprit_lock);
		else
			zkl_request_resend(m, r);
	}
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
	uint32_t	i;

	for (i = 0; i < batch->nmembers; i++)
	{
		ZklRequest *r = batch->members[i];

		if (i >= batch->nsingle)
		{
			if (r != NULL)
				zkl_downgrade_unknown(r);
		}
		else if (i < batch->ndeletes)
			zkl_node_delete(m, r, ZKL_DELETE_ALONE);
		else if (ZKL_MUTANT(RESEND_UNKNOWN) ||
				 ZKL_MUTANT(RESEND_AFTER_BADVERSION))
			zkl_request_resend(m, r);
		else
			zkl_node_unsettled(r);
	}
	for (i = 0; i < batch->npublications; i++)
		zkl_publication_unknown(m, batch->publications[i]);
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
	reply->nresults == zkl_batch_operations(batch);
	int			failed;

	if (good && zkl_zxid_is_absurd(m, reply->stat.mzxid))
	{
		batch_unknown(m, batch);
		zkl_session_give_up(m, ZKL_RC_ABSURD);
	}
	else if (good && zkl_zxid_went_back(m, reply->stat.mzxid))
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
		rc == ZKL_RC_NONODE || zkl_result_is_of_session(rc))
		return;
	if (lock != NULL)
		zkl_parents_refused(lock, rc);
	else
		zkl_session_parent_refused(m, rc);
}

void
zkl_batch_reply_lost(ZklManager *m)
{
	uint32_t	i;

	if (m->batches.n > 0)
		zkl_batches_unanswered(m);
	while (m->batches.n > 0)
		batch_unknown(m, zkl_batches_take(m));
	zkl_batches_set_broken(m, false);
	zkl_batches_want_beat(m, false);

	/* Single deletes may have been done; a second one does no harm. */
	for (i = 0; i < m->config.max_requests; i++)
	{
		if (ZKL_MUTANT(DELETE_ONCE) &&
			m->requests.all[i].node.state == ZKL_NODE_DELETING)
			zkl_request_gone(m, &m->requests.all[i]);
		if (m->requests.all[i].node.state == ZKL_NODE_DELETING)
			zkl_node_delete(m, &m->requests.all[i], ZKL_DELETE_ALONE);
	}
}
