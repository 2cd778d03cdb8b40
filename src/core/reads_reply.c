/*
 * reads_reply.c
 *	  What reads and watches tell, and tries that only look.
 *
 * Owns m->unanswered_until alone: it leads the answer to a read, and a watch event,
 * to the locks and requests concerned.  Runs in the worker (and in tests), takes no
 * locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "core/cache.h"
#include "core/contenders.h"
#include "core/host.h"
#include "core/janitor.h"
#include "core/lock.h"
#include "core/node.h"
#include "core/owner.h"
#include "core/reads.h"
#include "core/reads_reply.h"
#include "core/request.h"
#include "core/session.h"
#include "core/write.h"

#define MAX_ASKER	256

static void reads_reply_listing(ZklManager *m, ZklLock *lock, uint64_t order,
								const ZklReply *reply);
static void probe_reply(ZklManager *m, const ZklOp *op, const ZklReply *reply);
static void probe_mark_read(ZklManager *m, ZklLock *lock,
							const ZklReply *reply);

/*
 * Only a listing tells the name of the node: without the right to one, a hold is lost,
 * so that the lease can be renewed, and a node is deleted under both names.  The
 * connection is proved, so the downgrade is done or never will be.
 */
static void
end_unknown_downgrade(ZklManager *m, ZklRequest *r)
{
	if (r->demand == ZKL_DEMAND_GRANTED)
		zkl_loss_break(m, r, ZKL_FAILURE_UNREADABLE);
	else if (r->node.state == ZKL_NODE_DELETE)
		zkl_downgrade_delete_either(m, r);
}

/*
 * We may not read the directory.  Waiting requests cannot learn whether it is
 * their turn; unsettled nodes are settled later.
 */
static void
listing_refused(ZklManager *m, ZklLock *lock, int32_t rc)
{
	ZklLink    *link,
			   *after;
	bool		unsettled = false;

	zkl_recall_lock(m, lock, ZKL_RECALL_OVER);
	zkl_foreach(link, after, &lock->requests.all)
	{
		ZklRequest *r = zkl_container(ZklRequest, all, link);

		if (rc == ZKL_RC_NOAUTH &&
			zkl_downgrade_is_unsettled(r))
			end_unknown_downgrade(m, r);
		unsettled |= zkl_node_is_unsettled(r) ||
			zkl_downgrade_is_unsettled(r) ||
			(rc != ZKL_RC_NOAUTH && zkl_revived_is_open(r));
		if (r->demand == ZKL_DEMAND_WAITING &&
			(zkl_node_is_unsettled(r) ||
			 r->node.state == ZKL_NODE_EXISTS))
			zkl_request_fail(m, r, ZKL_FAILURE_ZOOKEEPER, rc);
	}
	if (rc == ZKL_RC_NOAUTH)
		zkl_revived_unlisted(m, lock);
	if (unsettled)
		zkl_reads_list_later(m, lock);
}

static void
listing_came(ZklManager *m, ZklLock *lock, const ZklOp *op,
			 const ZklReply *reply)
{
	ZklReply	empty;

	zkl_reads_listed(m, lock, op->order, reply->rc == ZKL_RC_OK);
	zkl_lock_touch(m, lock);

	/* A listing sent before this chain of beats may miss an unsettled node. */
	if (op->order < m->connection.proved_at)
		return;
	if (reply->rc == ZKL_RC_OK)
		reads_reply_listing(m, lock, op->order, reply);
	else if (reply->rc == ZKL_RC_NONODE)
	{
		memset(&empty, 0, sizeof(empty));
		reads_reply_listing(m, lock, op->order, &empty);
	}
	else
		listing_refused(m, lock, reply->rc);
}

static void
watched_ahead(ZklManager *m, ZklLock *lock, const ZklOp *op,
			  const ZklReply *reply)
{
	if (lock->ahead.watch != ZKL_WATCH_SENT || lock->ahead.order != op->order)
		return;
	zkl_lock_touch(m, lock);
	if (reply->rc == ZKL_RC_OK)
	{
		/*
		 * A node of ours that no request knows would be in the way for ever.
		 */
		if (reply->stat.ephemeral_owner == m->session.id)
			zkl_janitor_delete(m, zkl_actions_join(m, lock->path, "/",
												   lock->ahead.name));
		zkl_reads_ahead_watched(m, lock, reply);
		return;
	}
	zkl_reads_set_watch(m, &lock->ahead.watch, ZKL_WATCH_NONE);
	if (ZKL_MUTANT(EXISTS_WATCH) && reply->rc == ZKL_RC_NONODE)
		zkl_reads_set_watch(m, &lock->ahead.watch, ZKL_WATCH_ARMED);
	else if (reply->rc == ZKL_RC_NONODE && !ZKL_MUTANT(NONODE_FAILS))
		zkl_contenders_ahead_gone(m, lock, false);
	else if (lock->queue.waiting != NULL &&
			 !zkl_departed_is(m, lock, &lock->ahead.contender))
		zkl_request_fail(m, lock->queue.waiting, ZKL_FAILURE_ZOOKEEPER,
						 reply->rc);
}

/*
 * r's node was read: acts on its data.  A broken hold is lost, a request that
 * waits begins again; a holder that is asked to give up the lock is told.
 */
static void
heed_mark(ZklManager *m, ZklRequest *r, const ZklReply *reply)
{
	char		asker[MAX_ASKER];

	if (!zkl_dialect_marks(r->lock->dialect))
		return;
	if (zkl_look_mark_breaks(r, reply))
	{
		zkl_recall_request(m, r, ZKL_RECALL_WANTED);
		if (r->demand == ZKL_DEMAND_GRANTED)
			zkl_loss_break(m, r, ZKL_FAILURE_BROKEN);
		else if (r->demand == ZKL_DEMAND_WAITING)
			zkl_request_requeue(m, r);
	}
	else if (zkl_node_data_revoking(reply->data, reply->data_length, asker,
									sizeof(asker)))
	{
		zkl_recall_request(m, r, ZKL_RECALL_WANTED);
		zkl_look_mark_request_release(m, r, reply->stat.mzxid, asker);
	}
}

/* Any read of r's node may show that others have written over the mark. */
static void
heed_unmarked(ZklManager *m, ZklRequest *r, const ZklReply *reply)
{
	if (zkl_cache_read(r, reply))
		zkl_recall_request(m, r, ZKL_RECALL_OVER);
}

static void
watched_own(ZklManager *m, ZklRequest *r, const ZklReply *reply)
{
	if (r->look.watch != ZKL_WATCH_SENT || r->node.state != ZKL_NODE_EXISTS)
		return;
	zkl_look_answered(m, r, reply->rc == ZKL_RC_OK);
	if (reply->rc == ZKL_RC_OK)
	{
		heed_mark(m, r, reply);

		/* Nothing of ours may write over a question that is yet to be told. */
		if (!r->asked.early)
			zkl_node_set_version(r, reply->stat.version);
		heed_unmarked(m, r, reply);
		zkl_rewrite_read(m, r, reply);
		if (r->node.state == ZKL_NODE_EXISTS && r->demand == ZKL_DEMAND_GRANTED)
			zkl_downgrade_want(m, r);
	}
	else if (reply->rc == ZKL_RC_NONODE)
		zkl_request_node_deleted(m, r);
	else
	{
		/*
		 * An operator may have marked it.  A hold's lease is not renewed
		 * before its node has been read, and a request that waits is not
		 * granted.  If we can never read the node, the hold is lost, so that
		 * the lease can be renewed.
		 */
		zkl_look_later(m, r, r->look.unseen_since);
		zkl_session_lease_doubt(m, r);
		if (r->demand == ZKL_DEMAND_WAITING)
			zkl_node_set_czxid(r, 0);
		zkl_recall_request(m, r, ZKL_RECALL_OVER);
		if (reply->rc == ZKL_RC_NOAUTH && r->demand == ZKL_DEMAND_GRANTED)
			zkl_loss_break(m, r, ZKL_FAILURE_UNREADABLE);
	}
}

static void
token_came(ZklManager *m, ZklRequest *r, const ZklReply *reply)
{
	zkl_look_token_came(r);
	if (reply->rc == ZKL_RC_OK)
		heed_unmarked(m, r, reply);
	if (r->node.state != ZKL_NODE_EXISTS || r->demand != ZKL_DEMAND_WAITING)
		return;
	if (reply->rc == ZKL_RC_OK && zkl_look_mark_breaks(r, reply))
		zkl_request_requeue(m, r);
	else if (reply->rc == ZKL_RC_OK &&
			 !zkl_session_zxid_is_known(m, reply->stat.czxid))
		zkl_session_give_up(m, ZKL_RC_ABSURD);
	else if (reply->rc == ZKL_RC_OK)
	{
		zkl_node_set_czxid(r, reply->stat.czxid);
		zkl_look_unmarked(m, r);
	}
	else if (reply->rc == ZKL_RC_NONODE)
		zkl_request_node_deleted(m, r);
	else
		zkl_request_fail(m, r, ZKL_FAILURE_ZOOKEEPER, reply->rc);
	zkl_lock_touch(m, r->lock);
}

bool
zkl_reads_reply_tells(ZklManager *m, const ZklReply *reply)
{
	/* What is read is not known, and this connection will not tell. */
	if (zkl_zkapi_is_of_session(reply->rc) &&
		!ZKL_MUTANT(SESSION_ANSWER_COUNTS))
	{
		zkl_session_give_up(m, reply->rc);
		return false;
	}

	/*
	 * This is no answer at all: another connection may tell.  If that one
	 * does not either, this counts as refused; a reconnect costs all others
	 * their time.
	 */
	if (reply->rc == ZKL_RC_UNKNOWN && m->now >= m->unanswered_until)
	{
		m->unanswered_until = m->now + ZKL_RETRY_DELAY;
		zkl_session_give_up(m, reply->rc);
		return false;
	}
	return true;
}

void
zkl_reads_reply_take(ZklManager *m, const ZklOp *op, const ZklReply *reply)
{
	bool		same = op->request != NULL &&
	op->request->submitted == op->submitted &&
	op->request->demand != ZKL_DEMAND_UNUSED;

	ZKL_ASSERT(op->lock != NULL || op->kind == ZKL_OP_IGNORE);
	ZKL_ASSERT(!same || op->request->lock == op->lock);
	if (!zkl_reads_reply_tells(m, reply))
		return;
	switch (op->kind)
	{
		case ZKL_OP_LIST:
			listing_came(m, op->lock, op, reply);
			break;
		case ZKL_OP_PROBE_SYNC:
			if (reply->rc != ZKL_RC_OK)
				zkl_tries_look_stale(op->lock);
			break;
		case ZKL_OP_PROBE:
			probe_reply(m, op, reply);
			break;
		case ZKL_OP_PROBE_MARK:
			probe_mark_read(m, op->lock, reply);
			break;
		case ZKL_OP_REWRITE:
			if (same)
				zkl_rewrite_written(m, op->request, reply);
			break;
		case ZKL_OP_WATCH_AHEAD:
			watched_ahead(m, op->lock, op, reply);
			break;
		case ZKL_OP_WATCH_DIRECTORY:
			zkl_reads_directory_watched(m, op->lock, reply);
			break;
		case ZKL_OP_WATCH_OWN:
			if (same)
				watched_own(m, op->request, reply);
			break;
		case ZKL_OP_TOKEN:
			if (same)
				token_came(m, op->request, reply);
			break;
		case ZKL_OP_REVIVED:
			if (same)
				zkl_revived_ahead_read(m, op->request, reply);
			break;
		default:
			break;
	}
}

/* ---- watch events ---- */

static void
directory_event(ZklManager *m, ZklLock *lock, ZklEventKind kind)
{
	if (lock->listing.watch >= ZKL_WATCH_SENT)
	{
		zkl_reads_set_watch(m, &lock->listing.watch, ZKL_WATCH_NONE);
		zkl_lock_touch(m, lock);
	}
	if (zkl_cache_directory_event(m, lock))
		zkl_recall_lock(m, lock, ZKL_RECALL_WANTED);
	if (kind == ZKL_EVENT_CHILDREN)
	{
		zkl_lock_touch(m, lock);
		return;
	}
	if (kind == ZKL_EVENT_DELETED)
		zkl_directories_disown(lock);
	zkl_reads_set_watch(m, &lock->directory.watch, ZKL_WATCH_NONE);
	zkl_contenders_directory_changed(lock);
	zkl_lock_settle_idle(m, lock);
}

static void
ahead_event(ZklManager *m, ZklLock *lock, ZklEventKind kind)
{
	bool		armed = lock->ahead.watch == ZKL_WATCH_ARMED;

	if (kind == ZKL_EVENT_DELETED || zkl_departed_is(m, lock, &lock->ahead.contender))
	{
		zkl_reads_set_watch(m, &lock->ahead.watch, ZKL_WATCH_NONE);
		if (kind == ZKL_EVENT_DELETED)
			zkl_contenders_ahead_gone(m, lock, armed && lock->ahead.plain);
		zkl_lock_touch(m, lock);
	}
	else if (armed)
	{
		zkl_reads_set_watch(m, &lock->ahead.watch, ZKL_WATCH_WANTED);
		zkl_reads_want(m, lock);
	}
}

static void
own_event(ZklManager *m, ZklRequest *r, ZklEventKind kind)
{
	if (r->node.state != ZKL_NODE_EXISTS || r->look.watch == ZKL_WATCH_NONE)
		return;

	/*
	 * We did this ourselves, or learn later that we did not.  Then it may
	 * have been an operator's mark, so the lease does not outlast that.
	 */
	if (zkl_downgrade_pending(r))
	{
		zkl_look_forget(m, r);
		zkl_look_unknown(m, r);
	}
	else if (kind == ZKL_EVENT_DELETED)
		zkl_request_node_deleted(m, r);
	else
		zkl_look_again(m, r);
}

/* What happened to a child of a lock's directory */
static void
child_event(ZklManager *m, ZklLock *lock, ZklEventKind kind, const char *name)
{
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;
	ZklRequest *r;

	if (lock->ahead.watch >= ZKL_WATCH_SENT &&
		strcmp(lock->ahead.name, name) == 0)
		ahead_event(m, lock, kind);
	else if (zkl_znode_parse(lock->dialect, name, &mode, &seq, &has_uuid,
							 &uuid) &&
			 has_uuid)
	{
		r = zkl_node_find(m, &uuid);
		if (r != NULL && r->lock == lock)
			own_event(m, r, kind);
	}
}

void
zkl_reads_reply_event(ZklManager *m, ZklEventKind kind, const char *path)
{
	size_t		length = strlen(path);
	const char *slash = path + length;
	ZklDialect	dialect;

	while (slash > path && *slash != '/')
		slash--;
	for (dialect = 0; dialect < ZKL_DIALECTS; dialect++)
	{
		ZklLock    *lock = zkl_lock_find(m, path, length, dialect);

		if (lock != NULL)
			directory_event(m, lock, kind);
		lock = zkl_lock_find(m, path, (size_t) (slash - path), dialect);
		if (lock != NULL)
			child_event(m, lock, kind, slash + 1);
	}
}

/* ---- the listing of a lock's directory ---- */

/* Settles what was unsettled about a listed node of ours. */
static void
note_own(ZklManager *m, ZklRequest *r, uint64_t order, ZklLockMode mode,
		 ZklSeq seq)
{
	zkl_node_set_seen(r, order);
	if (zkl_downgrade_is_unsettled(r))
		zkl_downgrade_reply_settle(m, r, mode == ZKL_SHARED);
	if (zkl_node_is_unsettled(r))
		zkl_request_exists(m, r, seq, ZKL_MUTANT(TOKEN_FROM_HEARTBEAT) ?
						   m->zxid.seen : 0);
}

static void
note_child(ZklManager *m, ZklLock *lock, uint64_t order, const char *child)
{
	ZklContender c;
	bool		has_uuid;
	ZklUuid		uuid;
	ZklRequest *r;

	if (!zkl_znode_parse(lock->dialect, child, &c.mode, &c.seq, &has_uuid,
						 &uuid))
	{
		zkl_contenders_add_stranger(lock);
		zkl_directories_disown(lock);
		return;
	}
	r = has_uuid ? zkl_node_find(m, &uuid) : NULL;
	if (r != NULL && r->lock == lock)
		note_own(m, r, order, c.mode, c.seq);
	else
	{
		c.zklock = has_uuid && zkl_uuid_is_zklock(&uuid);
		if (c.zklock)
			c.uuid = uuid;
		c.leftover = c.zklock && r == NULL && zkl_node_made_uuid(m, &uuid);
		zkl_contenders_add(lock, &c, child);
		zkl_directories_disown(lock);
	}
}

/* Our nodes that the listing did not show do not exist. */
static void
settle_unseen(ZklManager *m, ZklLock *lock, uint64_t order)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &lock->requests.all)
	{
		ZklRequest *r = zkl_container(ZklRequest, all, link);

		if (r->node.seen == order)
			continue;
		if (zkl_node_is_unsettled(r))
			zkl_request_node_never_was(m, r);
		else if (r->node.state == ZKL_NODE_EXISTS && !ZKL_MUTANT(DYING_SESSION))
			zkl_request_node_deleted(m, r);
		else if (zkl_downgrade_is_unsettled(r))
			zkl_downgrade_reply_refused(m, r, ZKL_RC_NONODE);
	}
}

/* Takes over a listing that was sent as number "order". */
static void
reads_reply_listing(ZklManager *m, ZklLock *lock, uint64_t order,
					const ZklReply *reply)
{
	size_t		others,
				i;

	zkl_contenders_begin(m, lock, reply);
	for (i = 0; i < reply->nchildren; i++)
		note_child(m, lock, order, reply->children[i]);
	settle_unseen(m, lock, order);
	zkl_revived_listed(m, lock);
	zkl_contenders_drop_departed(m, lock);
	others = lock->foreign.n;
	zkl_contenders_end(m, lock, order);
	zkl_askers_ask_again(lock);
	if (zkl_cache_listed(m, lock, order, others))
		zkl_recall_lock(m, lock, ZKL_RECALL_WANTED);
	zkl_lock_touch(m, lock);
}

/* ---- probe: a try that is likely to fail looks before it creates ---- */

/*
 * reads.h has the tries that wait for a look, and reads.c sends that.
 *
 * A try that must not wait fails if any contender is in the way.  To find that
 * out by a place in the queue takes two writes, a create and a delete.  A
 * listing tells as well, and all pending tries share it.  If our last create
 * met no other contender, or the directory is probably missing, the try creates at
 * once, and mostly gets the lock.
 * It also creates at once if we could not be sure of a "false", or if its own session
 * may be in the way, with a hold that was broken, say.
 *
 * A sync goes ahead of the listing, so that no server, not even a slow one,
 * answers from before the try.  A leader that was deposed and does not know it
 * may still do so, but no longer than the lease lasts, and after that no try
 * is denied (ZOOKEEPER-1675, and "sync" in ZooKeeper's programmer's guide).
 */

static bool
likely_free(const ZklLock *lock)
{
	return zkl_contenders_continuous(lock) && lock->foreign.n == 0 &&
		lock->foreign.unknown_from == ZKL_SEQ_NONE && !lock->foreign.tainted;
}

static bool
may_deny(const ZklManager *m)
{
	return m->connection.state == ZKL_CONNECTION_READY &&
		m->now < m->session_lease.until;
}

/*
 * An idle server has let its lease pass.  A beat goes ahead of the look, and
 * is answered first.  But after a silence one beat is not enough.
 */
static bool
may_deny_soon(ZklManager *m)
{
	if (m->connection.state != ZKL_CONNECTION_READY)
		return false;
	if (m->now < m->session_lease.until)
		return true;
	if (zkl_session_lease_until(m, m->now) <= m->now)
		return false;
	zkl_batches_want_beat(m, true);
	return true;
}

bool
zkl_probe_begin(ZklManager *m, ZklRequest *r)
{
	ZklLock    *lock = r->lock;

	if (!r->timed_out || r->ring.next != r ||
		lock->dialect == ZKL_DIALECT_PERMIT || likely_free(lock) ||
		zkl_directories_is_missing(m, lock) || zkl_siblings_count(m, r) > 0 ||
		!may_deny_soon(m))
		return false;
	zkl_tries_add(lock, r);
	zkl_reads_want(m, lock);
	return true;
}

/*
 * Whether a child contends, and is not a leftover of ours.  If no request
 * claims a node of ours, no one may wait behind it: the janitor looks at it.
 */
static bool
is_in_the_way(ZklManager *m, ZklLock *lock, const char *child, ZklLockMode *mode)
{
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;
	const ZklRequest *r;

	if (!zkl_znode_parse(lock->dialect, child, mode, &seq, &has_uuid, &uuid))
	{
		zkl_directories_disown(lock);
		return false;
	}
	r = has_uuid ? zkl_node_find(m, &uuid) : NULL;
	if (r == NULL)
		zkl_directories_disown(lock);
	if (r != NULL && zkl_node_mode(r) == ZKL_SHARED)
		*mode = ZKL_SHARED;
	if (r == NULL && has_uuid && zkl_node_made_uuid(m, &uuid))
		zkl_janitor_look(m, lock->path, child);
	if (r == NULL && has_uuid && zkl_departed_has(m, lock, &uuid))
		return ZKL_MUTANT(PROBE_OF_DEPARTED);
	return r == NULL || ZKL_MUTANT(PROBE_OF_RELEASED) ||
		r->demand == ZKL_DEMAND_WAITING ||
		r->demand == ZKL_DEMAND_GRANTED;
}

/* Only its data tells whether it is a lock that is held. */
static bool
is_another_servers(const ZklManager *m, const ZklLock *lock, const char *child)
{
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;

	return zkl_znode_parse(lock->dialect, child, &mode, &seq, &has_uuid,
						   &uuid) &&
		has_uuid && zkl_uuid_is_zklock(&uuid) &&
		zkl_node_find(m, &uuid) == NULL && zkl_dialect_marks(lock->dialect);
}

/* What a listing puts in the way of tries */
typedef struct InTheWay
{
	size_t		n;				/* contenders */
	size_t		nexclusive;		/* of these */
	const char *exclusive;		/* one of them, of another zklock server;
								 * NULL: there is none */
} InTheWay;

static void
find_conflicts(ZklManager *m, ZklLock *lock, const ZklReply *reply, InTheWay *found)
{
	size_t		i;

	found->n = found->nexclusive = 0;
	found->exclusive = NULL;
	for (i = 0; i < reply->nchildren; i++)
	{
		ZklLockMode mode;

		if (!is_in_the_way(m, lock, reply->children[i], &mode))
			continue;
		found->n++;
		if (mode != ZKL_EXCLUSIVE)
			continue;
		found->nexclusive++;
		if (is_another_servers(m, lock, reply->children[i]))
			found->exclusive = reply->children[i];
	}
}

/*
 * Whether the only contender in the way may be a lock that its server has cached.
 * If there are more, somebody has the lock or stands before the try.
 */
static bool
may_be_cached(const InTheWay *found, ZklLockMode mode)
{
	return found->exclusive != NULL && found->nexclusive == 1 &&
		(mode == ZKL_SHARED || found->n == 1) && !ZKL_MUTANT(TRY_IGNORES_MARK);
}

static void
answer_try(ZklManager *m, ZklRequest *r, bool conflict)
{
	ZKL_ASSERT(r->demand == ZKL_DEMAND_WAITING && r->node.state == ZKL_NODE_NONE);
	zkl_tries_remove(r);
	if (conflict && !r->lock->tries.stale && may_deny(m))
		zkl_request_deny(m, r);
	else
		zkl_request_create(m, r);
}

static void
read_mark(ZklManager *m, ZklLock *lock, const ZklOp *op, const char *name)
{
	ZKL_ASSERT(name != NULL);
	zkl_tries_wait_for_mark(lock, op->submitted);
	zkl_operations_send(m, ZKL_OP_PROBE_MARK, lock, NULL, ZKL_SEND_GET,
						zkl_actions_join(m, lock->path, "/", name));
}

static void
probe_reply(ZklManager *m, const ZklOp *op, const ZklReply *reply)
{
	ZklLock    *lock = op->lock;
	InTheWay	found;
	bool		left = false;
	ZklLink    *link,
			   *after;

	zkl_tries_look_over(lock);
	find_conflicts(m, lock, reply, &found);
	zkl_foreach(link, after, &lock->tries.all)
	{
		ZklRequest *r = zkl_container(ZklRequest, trying, link);

		if (r->submitted > op->submitted)
		{
			zkl_reads_want(m, lock);
			break;
		}
		if (reply->rc == ZKL_RC_OK && may_be_cached(&found, r->mode))
			left = true;
		else
			answer_try(m, r, reply->rc == ZKL_RC_OK &&
					   (r->mode == ZKL_EXCLUSIVE ? found.n : found.nexclusive) > 0);
	}
	if (left)
		read_mark(m, lock, op, found.exclusive);
}

/*
 * The only node in the way of tries was read.
 *
 * If its lock may be cached, the try takes a place in the queue, where it learns
 * whether a session has the lock: then the mark goes, and the node stays.
 */
static void
probe_mark_read(ZklManager *m, ZklLock *lock, const ZklReply *reply)
{
	bool		conflict = reply->rc == ZKL_RC_OK &&
	!zkl_node_data_is_cached(reply->data, reply->data_length);
	ZklLink    *link,
			   *after;

	zkl_tries_look_over(lock);
	zkl_foreach(link, after, &lock->tries.all)
	{
		ZklRequest *r = zkl_container(ZklRequest, trying, link);

		if (r->submitted > lock->tries.until)
		{
			zkl_reads_want(m, lock);
			return;
		}
		answer_try(m, r, conflict);
	}
}

/*
 * The tries take a place in the queue instead, where we can be sure of an
 * answer again.
 */
void
zkl_probe_disconnected(ZklManager *m, ZklLock *lock)
{
	ZklLink    *link,
			   *after;

	zkl_tries_look_over(lock);
	zkl_foreach(link, after, &lock->tries.all)
	{
		ZklRequest *r = zkl_container(ZklRequest, trying, link);

		zkl_tries_remove(r);
		zkl_request_create(m, r);
	}
}
