/*
 * node_write.c
 *	  The creates and deletes of our nodes: what they say, and what follows from
 *	  their outcome.
 *
 * Owns nothing: node.c has the node, and request.c its request.  Runs in the worker
 * (and in tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "core/actions.h"
#include "core/batches.h"
#include "core/cache.h"
#include "core/contenders.h"
#include "core/directories.h"
#include "core/downgrade.h"
#include "core/lock.h"
#include "core/look.h"
#include "core/node.h"
#include "core/node_write.h"
#include "core/operations.h"
#include "core/reads.h"
#include "core/request.h"
#include "core/session.h"
#include "core/write.h"

static ZklRequest *
written_for(const ZklWrite *w)
{
	return zkl_container(ZklRequest, node.write, w);
}

static size_t
node_bytes(const ZklWrite *w)
{
	return zkl_node_bytes(written_for(w));
}

/* ---- a create ---- */

static const ZklLock *
creates_in(const ZklWrite *w)
{
	return written_for(w)->lock;
}

/* Gives it an id, records that, and makes the directory if that is missing. */
static void
announce(ZklManager *m, ZklRequest *r, ZklForm *form)
{
	zkl_node_set_index(r, form->index);
	zkl_node_identify(m, r);
	zkl_node_record(m, r);
	if (!r->lock->parents.missing)
	{
		zkl_directories_guess(m, r->lock);
		return;
	}
	zkl_directories_make(m, r->lock, r->lock->path, form->made);
	form->made = r->lock->path;
}

static void
fill_create(ZklManager *m, ZklWrite *w, ZklMultiOp *op, ZklForm *form)
{
	ZklRequest *r = written_for(w);
	char	   *data = zkl_actions_text(m, r->node.data_length +
										ZKL_NODE_DATA_TIMEOUT +
										ZKL_NODE_DATA_CACHED);

	ZKL_ASSERT(r->demand == ZKL_DEMAND_WAITING && r->node.state == ZKL_NODE_NEW);
	zkl_cache_choose(m, r);
	zkl_look_sent(m, r);
	announce(m, r, form);
	memcpy(data, r->node.data, r->node.data_length);
	op->kind = ZKL_MULTI_CREATE;
	op->path = zkl_node_path(m, r);
	op->version = -1;
	op->data = data;
	op->data_length = r->node.data_length;
	if (zkl_dialect_marks(r->lock->dialect))
		op->data_length = zkl_node_data_timeout(data, op->data_length,
												m->session.timeout_ms);
	op->data_length = zkl_cache_mark(r, data, op->data_length);
}

/*
 * Reads go behind the create, as ZooKeeper keeps the order: list a directory that is
 * unknown, or to which others came before our last create, as they may have come
 * again; and watch one that we often come to, so that it is known next time (to send a
 * create again is not to come again).  One that is new is known by the first number in
 * it.
 */
static void
read_behind(ZklManager *m, ZklWrite *w)
{
	ZklLock    *lock = written_for(w)->lock;

	if (zkl_list_empty(&lock->queue.own) && !zkl_directories_is_guessed(lock) &&
		(lock->foreign.unknown_from != ZKL_SEQ_NONE || lock->base.gap ||
		 !zkl_contenders_continuous(lock)))
		zkl_reads_want_listing(m, lock);
	if (lock->cached != NULL)
		zkl_reads_want_children(m, lock);
	if (w->rank != ZKL_RANK_RESEND)
		zkl_reads_visit(m, lock);
	if (lock->listing.wanted || lock->directory.watch == ZKL_WATCH_WANTED)
		zkl_reads_want(m, lock);
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
		zkl_request_node_deleted(m, last);
	}
}

static void
create_applied(ZklManager *m, ZklRequest *r, const ZklOutcome *o)
{
	const char *path = o->results[0].path;
	ZklSeq		seq = path != NULL ?
	zkl_znode_path_seq(r->lock->dialect, path) : ZKL_SEQ_NONE;
	bool		alone = false;

	if (seq == ZKL_SEQ_NONE)
	{
		zkl_session_need_chain(m);
		return;
	}
	if (seq < ZKL_SEQ_LIMIT)
	{
		zkl_lock_counter_good(r->lock);
		lose_older_incarnation(m, r->lock, seq);
		alone = zkl_contenders_account(m, r->lock, seq, o->zxid);
	}
	zkl_directories_found(m, r, seq);
	zkl_node_created(m, r, alone);
	zkl_request_exists(m, r, seq, o->zxid);

	/* Since then another client may have deleted or marked it. */
	zkl_look_placed(m, r, o->sent_at);

	/* If the directory is new, the watch that was sent along found nothing. */
	if (r->lock->directory.visited &&
		r->lock->directory.watch == ZKL_WATCH_NONE)
		zkl_reads_watch_directory(m, r->lock);
}

/* "named": the answer itself names r, not only its lock. */
static void
create_failed(ZklManager *m, ZklRequest *r, int32_t rc, bool named)
{
	ZklLock    *lock = r->lock;

	/* Without the directory, none of our other nodes in it exists any more. */
	while (rc == ZKL_RC_NONODE && named && !zkl_list_empty(&lock->queue.own))
		zkl_request_node_deleted(m, zkl_container(ZklRequest, place.link,
												  lock->queue.own.head.next));
	if (rc == ZKL_RC_NONODE)
		zkl_directories_missing(lock);
	if (r->demand != ZKL_DEMAND_WAITING)
		zkl_request_node_gone(m, r);
	else if (rc == ZKL_RC_NONODE && zkl_directories_try_again(r))
		zkl_request_resend(m, r);
	else
	{
		if (rc == ZKL_RC_NONODE)
			zkl_request_fail(m, r, ZKL_FAILURE_PARENTS, lock->parents.rc);
		else
			zkl_request_fail(m, r, ZKL_FAILURE_ZOOKEEPER, rc);
		zkl_request_node_gone(m, r);
	}
}

/*
 * Whether a create would be refused as well: it is for the same directory, or
 * its own directory could not be made either.  One by one, such creates would
 * take a round trip each.
 */
static bool
shares_fate(const ZklRequest *r, const ZklOutcome *o)
{
	if (o->directory == NULL)
		return false;
	if (o->rc != ZKL_RC_NONODE)
		return r->lock == o->directory;
	return o->directory->parents.rc != 0 && r->lock->parents.rc != 0;
}

/*
 * A missing directory seldom comes alone: the creates wait for all of theirs at
 * once.
 */
static void
create_refused(ZklManager *m, ZklRequest *r, const ZklOutcome *o)
{
	if (o->rc == ZKL_RC_NONODE && o->directory != NULL &&
		zkl_list_empty(&r->lock->queue.own))
		zkl_directories_missing(r->lock);
	if (o->culprit || shares_fate(r, o))
		create_failed(m, r, o->rc, r->lock == o->directory);
	else
		zkl_request_resend(m, r);
}

static void
settle_create(ZklManager *m, ZklWrite *w, const ZklOutcome *o)
{
	ZklRequest *r = written_for(w);

	ZKL_ASSERT(r->node.state == ZKL_NODE_NEW);
	if (o->kind == ZKL_OUTCOME_APPLIED)
		create_applied(m, r, o);
	else if (o->kind == ZKL_OUTCOME_REFUSED)
		create_refused(m, r, o);
	else if (ZKL_MUTANT(RESEND_UNKNOWN) || ZKL_MUTANT(RESEND_AFTER_BADVERSION))
		zkl_request_resend(m, r);
}

const ZklWriter zkl_node_creation = {
	.nops = 1,.bytes = node_bytes,.fill = fill_create,.behind = read_behind,
	.creates_in = creates_in,.settle = settle_create
};

/* ---- a delete ---- */

static void
fill_delete(ZklManager *m, ZklWrite *w, ZklMultiOp *op, ZklForm *form)
{
	(void) form;
	ZKL_ASSERT(written_for(w)->node.state == ZKL_NODE_DELETE);
	op->kind = ZKL_MULTI_DELETE;
	op->path = zkl_node_path(m, written_for(w));
	op->version = -1;
}

static void
delete_alone(ZklManager *m, ZklWrite *w)
{
	ZklRequest *r = written_for(w);

	zkl_operations_send(m, ZKL_OP_DELETE, r->lock, r, ZKL_SEND_DELETE,
						zkl_node_path(m, r));
}

static void
delete_answered(ZklManager *m, ZklRequest *r, int32_t rc)
{
	bool		gone = rc == ZKL_RC_OK || rc == ZKL_RC_NONODE;

	if (gone)
		zkl_batches_want_proof(m);
	if (gone && zkl_downgrade_take_other_name(r))
		zkl_node_delete(m, r, ZKL_RANK_ALONE);
	else if (gone ||
			 (ZKL_MUTANT(REFUSED_DELETE_IS_DONE) && zkl_zkapi_is_definite(rc)))
		zkl_request_node_gone(m, r);
	else
		zkl_write_stick(m, &r->node.write, &zkl_node_deletion, ZKL_RANK_ALONE);
}

/*
 * If the batch was refused for another write, it goes on by itself.  If the answer
 * is lost, it may have been done: a second one does no harm.
 */
static void
settle_delete(ZklManager *m, ZklWrite *w, const ZklOutcome *o)
{
	ZklRequest *r = written_for(w);

	ZKL_ASSERT(r->node.state == ZKL_NODE_DELETE);
	if (o->kind == ZKL_OUTCOME_APPLIED ||
		(o->kind == ZKL_OUTCOME_UNKNOWN && ZKL_MUTANT(DELETE_ONCE)))
		zkl_request_node_gone(m, r);
	else if (o->culprit)
		delete_answered(m, r, o->rc);
	else
		zkl_node_delete(m, r, o->beat ? ZKL_RANK_DELETE : ZKL_RANK_ALONE);
}

void
zkl_node_write_deleted(ZklManager *m, ZklRequest *r, int32_t rc)
{
	if (r->node.write.state == ZKL_WRITE_ALONE)
		delete_answered(m, r, rc);
}

const ZklWriter zkl_node_deletion = {
	.nops = 1,.bytes = node_bytes,.fill = fill_delete,.alone = delete_alone,
	.settle = settle_delete
};
