/*
 * probe.c
 *	  A try that is likely to fail looks before it creates.
 *
 * Owns nothing: tries.h has the tries that wait for a look, and reads.c sends
 * that.  Runs in the worker (and in tests), takes no locks, knows neither
 * PostgreSQL nor ZooKeeper.
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
#include "core/actions.h"
#include "core/batches.h"
#include "core/contenders.h"
#include "core/departed.h"
#include "core/directories.h"
#include "core/janitor.h"
#include "core/node.h"
#include "core/operations.h"
#include "core/probe.h"
#include "core/reads.h"
#include "core/request.h"
#include "core/session_lease.h"
#include "core/siblings.h"
#include "core/tries.h"

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
is_in_the_way(ZklManager *m, const ZklLock *lock, const char *child,
			  ZklLockMode *mode)
{
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;
	const ZklRequest *r;

	if (!zkl_znode_parse(lock->dialect, child, mode, &seq, &has_uuid, &uuid))
		return false;
	r = has_uuid ? zkl_node_find(m, &uuid) : NULL;
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
find_conflicts(ZklManager *m, const ZklLock *lock, const ZklReply *reply,
			   InTheWay *found)
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

void
zkl_probe_reply(ZklManager *m, const ZklOp *op, const ZklReply *reply)
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
 * If its lock may be cached, the try takes a place in the queue, where it learns
 * whether a session has the lock: then the mark goes, and the node stays.
 */
void
zkl_probe_mark_read(ZklManager *m, ZklLock *lock, const ZklReply *reply)
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
