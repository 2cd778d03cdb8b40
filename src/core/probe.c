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
 * met no other contender, the try creates at once, and mostly gets the lock.
 * It also creates at once if we could not be sure of a "false".
 *
 * A sync goes ahead of the listing, so that no server, not even a slow one,
 * answers from before the try.  A leader that was deposed and does not know it
 * may still do so, but no longer than the lease lasts, and after that no try
 * is denied (ZOOKEEPER-1675, and "sync" in ZooKeeper's programmer's guide).
 */
#include "core/batches.h"
#include "core/contenders.h"
#include "core/janitor.h"
#include "core/node.h"
#include "core/probe.h"
#include "core/reads.h"
#include "core/request.h"
#include "core/session_lease.h"
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

	if (!r->timed_out || r->ring.next != r || lock->drain.wanted ||
		lock->dialect == ZKL_DIALECT_PERMIT || likely_free(lock) ||
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
	if (r == NULL && has_uuid)
		zkl_janitor_look(m, lock->path, child, &uuid);
	return r == NULL || ZKL_MUTANT(PROBE_OF_RELEASED) ||
		r->demand == ZKL_DEMAND_WAITING ||
		r->demand == ZKL_DEMAND_GRANTED;
}

/* What the listing puts in the way of a shared and of an exclusive try */
static void
find_conflicts(ZklManager *m, const ZklLock *lock, const ZklReply *reply,
			   bool *conflicts)
{
	size_t		i;

	conflicts[ZKL_SHARED] = conflicts[ZKL_EXCLUSIVE] = false;
	for (i = 0; i < reply->nchildren; i++)
	{
		ZklLockMode mode;

		if (!is_in_the_way(m, lock, reply->children[i], &mode))
			continue;
		conflicts[ZKL_EXCLUSIVE] = true;
		conflicts[ZKL_SHARED] |= mode == ZKL_EXCLUSIVE;
	}
}

void
zkl_probe_reply(ZklManager *m, const ZklOp *op, const ZklReply *reply)
{
	ZklLock    *lock = op->lock;
	bool		conflicts[2];
	ZklLink    *link,
			   *after;

	zkl_tries_look_over(lock);
	find_conflicts(m, lock, reply, conflicts);
	zkl_foreach(link, after, &lock->tries.all)
	{
		ZklRequest *r = zkl_container(ZklRequest, trying, link);

		if (r->submitted > op->submitted)
		{
			zkl_reads_want(m, lock);
			return;
		}
		zkl_tries_remove(r);
		if (reply->rc == ZKL_RC_OK && !lock->tries.stale &&
			conflicts[r->mode] && may_deny(m))
			zkl_request_deny(m, r);
		else
			zkl_request_create(m, r);
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
