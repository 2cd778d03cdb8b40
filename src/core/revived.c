/*
 * revived.c
 *	  Sessions whose end ZooKeeper has lost.
 *
 * Owns ZklRevived, ZklRequest.perhaps_overtaken, and ZklLock.checks_holds.  Runs in the worker
 * (and in tests), takes no locks.
 *
 * An ensemble may lose its latest writes when a leader fails at a bad moment.  If
 * the end of a session is among them, the session lives again, with its znodes in
 * their places, although others may have got its locks since.
 *
 * The lease ends before the session does.  So if a connection stood before the end
 * of the lease, nobody has got anything; and without an election nothing is lost.
 * If the lease had ended, and the first beat shows an election, then all that the
 * session had in queues is in doubt.  Before the lease begins again, each of these
 * queues is listed.  If a contender of another client is behind a znode of ours, and
 * conflicts, it may have got the lock, even if it has departed: a hold is lost, and a
 * request that waits takes a new place.  Those who have got it are right: ZooKeeper had
 * told them that our session was over, and they may have committed since.
 *
 * The doubt lasts until all of these listings have come.  Until then the host is told
 * the greatest transaction id from before the election, so it begins anew with the
 * next connection.
 *
 * A server that has got the lock sees the same from the other side: a conflicting
 * contender ahead of its hold, which an ensemble that keeps its promises never shows.
 * So after each election it lists the directories of its holds, and tells.  But a
 * hold that was granted on a word may have znodes of zklock ahead.
 */
#include "core/actions.h"
#include "core/loss.h"
#include "core/node.h"
#include "core/operations.h"
#include "core/reads.h"
#include "core/request.h"
#include "core/revived.h"
#include "core/session.h"
#include "core/session_lease.h"

/* Paths of listings that tell of holds only; others have room beside them. */
#define READ_WINDOW		4096

static bool
is_live(const ZklRequest *r)
{
	return r->demand == ZKL_DEMAND_WAITING || r->demand == ZKL_DEMAND_GRANTED;
}

/* ---- our own session ---- */

void
zkl_revived_connected(ZklManager *m, const ZklSession *session)
{
	m->revived.lapsed = session->id == m->session.id &&
		m->now >= m->session_lease.until;
}

void
zkl_revived_disconnected(ZklManager *m)
{
	uint32_t	i;

	if (m->revived.next < m->locks.by_path.nbuckets)
		m->revived.next = 0;
	for (i = 0; i < m->config.max_requests; i++)
		m->requests.all[i].perhaps_overtaken = false;
}

/*
 * The node of a request that waits may be of this very batch.  A hold without a node
 * leans on another one's.
 */
static bool
may_be_overtaken(const ZklRequest *r, int64_t zxid)
{
	if (r->demand == ZKL_DEMAND_WAITING)
		return (zkl_node_is_unsettled(r) && !ZKL_MUTANT(REVIVED_UNANSWERED)) ||
			(r->node.state == ZKL_NODE_EXISTS && r->node.czxid != zxid);
	return r->demand == ZKL_DEMAND_GRANTED && !r->broken;
}

void
zkl_revived_elected(ZklManager *m, int64_t zxid)
{
	uint32_t	i;

	m->revived.next = 0;
	if (!m->revived.lapsed || ZKL_MUTANT(REVIVED_UNNOTICED))
		return;
	for (i = 0; i < m->config.max_requests; i++)
	{
		ZklRequest *r = &m->requests.all[i];

		r->perhaps_overtaken = may_be_overtaken(r, zxid);
		if (!r->perhaps_overtaken)
			continue;
		zkl_reads_list_again(m, r->lock);
		zkl_session_lease_suspend(m);
		if (!ZKL_MUTANT(DOUBT_FORGOTTEN))
			zkl_session_zxid_hide(m);
	}
}

bool
zkl_revived_is_open(const ZklRequest *r)
{
	return r->perhaps_overtaken && is_live(r) && !r->broken;
}

/*
 * Whether a contender of another client is behind r, and r could have been in its
 * way.  Of a semaphore, those within the maximum were in nobody's.
 */
static bool
is_overtaken(const ZklLock *lock, const ZklRequest *r)
{
	bool		permit = lock->dialect == ZKL_DIALECT_PERMIT;
	size_t		i;

	if (permit && lock->requests.n + lock->foreign.n + lock->foreign.strangers <= r->max)
		return false;
	for (i = 0; i < lock->foreign.n; i++)
	{
		const ZklContender *c = &lock->foreign.all[i];

		if (c->seq > r->node.seq &&
			(permit || zkl_mode_conflicts(c->mode, r->node.mode)))
			return true;
	}
	return false;
}

static void
judge_doubted(ZklManager *m, ZklLock *lock)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &lock->requests.all)
	{
		ZklRequest *r = zkl_container(ZklRequest, all, link);
		bool		open = zkl_revived_is_open(r);

		r->perhaps_overtaken = false;
		if (!open || r->node.state != ZKL_NODE_EXISTS || !is_overtaken(lock, r))
			continue;
		if (r->demand == ZKL_DEMAND_GRANTED)
			zkl_loss_break(m, r, ZKL_FAILURE_OVERTAKEN);
		else if (!ZKL_MUTANT(REVIVED_KEEPS_PLACE))
			zkl_request_requeue(m, r);
	}
}

/*
 * If we may not list the directory, a hold is lost, so that the lease can be renewed;
 * the caller has refused what waits.  Nobody can have overtaken a znode that is yet to
 * be made.
 */
void
zkl_revived_unlisted(ZklManager *m, ZklLock *lock)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &lock->requests.all)
	{
		ZklRequest *r = zkl_container(ZklRequest, all, link);

		if (zkl_revived_is_open(r))
			zkl_loss_break(m, r, ZKL_FAILURE_UNREADABLE);
		r->perhaps_overtaken = false;
	}
}

/* ---- those of others ---- */

static bool
has_granted_node(const ZklRequest *r)
{
	return r->demand == ZKL_DEMAND_GRANTED && !r->broken &&
		r->node.state == ZKL_NODE_EXISTS;
}

/* Reads the first conflicting contender of another client ahead of a hold of ours. */
static void
read_ahead(ZklManager *m, ZklLock *lock)
{
	ZklLink    *link,
			   *after;
	size_t		i;

	zkl_foreach(link, after, &lock->queue.own)
	{
		ZklRequest *r = zkl_container(ZklRequest, place.link, link);

		for (i = 0; i < lock->foreign.n && has_granted_node(r); i++)
		{
			const ZklContender *c = &lock->foreign.all[i];

			if (c->seq > r->node.seq || !zkl_mode_conflicts(c->mode, r->node.mode) ||
				(r->by_word && c->zklock))
				continue;
			zkl_operations_send(m, ZKL_OP_REVIVED, lock, r, ZKL_SEND_GET,
								zkl_actions_join(m, lock->path, "/",
												 lock->foreign.names + c->name));
			return;
		}
	}
}

void
zkl_revived_listed(ZklManager *m, ZklLock *lock)
{
	judge_doubted(m, lock);
	if (lock->checks_holds && lock->dialect != ZKL_DIALECT_PERMIT)
		read_ahead(m, lock);
	lock->checks_holds = false;
}

void
zkl_revived_send(ZklManager *m)
{
	ZklLink    *link,
			   *after;

	if (m->connection.state != ZKL_CONNECTION_READY || !m->session_lease.verified)
		return;
	while (m->revived.next < m->locks.by_path.nbuckets &&
		   m->operations.read_bytes < READ_WINDOW)
	{
		zkl_foreach(link, after, &m->locks.by_path.buckets[m->revived.next])
		{
			ZklLock    *lock = zkl_container(ZklLock, by_path, link);

			if (lock->queue.nheld == 0)
				continue;
			lock->checks_holds = true;
			zkl_reads_list_again(m, lock);
		}
		m->revived.next++;
		zkl_reads_send(m);
	}
}

/*
 * If an operator has marked it, its server knows; if it is our own, the janitor
 * deletes it.
 */
void
zkl_revived_ahead_read(ZklManager *m, ZklRequest *r, const ZklReply *reply)
{
	ZklNodeData data;
	ZklAction  *action;

	if (reply->rc != ZKL_RC_OK || !has_granted_node(r) ||
		reply->stat.ephemeral_owner == m->session.id ||
		zkl_node_data_breaking(reply->data, reply->data_length))
		return;
	(void) zkl_node_data_parse(reply->data, reply->data_length, &data);
	action = zkl_actions_add(m, ZKL_ACTION_REVIVED);
	action->request = r->id;
	action->asker = zkl_actions_join(m, data.server, "", "");
}
