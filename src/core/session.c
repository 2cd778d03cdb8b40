/*
 * session.c
 *	  The session's life as the core sees it: connections, the chain of heartbeat
 *	  nodes, the transaction ids that are believed, and the lease.
 *
 * Owns the manager's connection, session, chain and zxid; m->session_lease, that is
 * the lease, and when ZooKeeper heard of the session; ZklRevived,
 * ZklRequest.perhaps_overtaken, and ZklLock.checks_holds.  Runs in the worker (and
 * in tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
 *
 * Batches name the version of a heartbeat node.  If the answer to a batch is
 * lost, one transaction deletes that node and makes another.  From then on no
 * batch that names the old node can ever be applied, and a listing sent
 * afterwards tells for good whether it was.  A number is used again only if
 * ZooKeeper has refused to make its node.
 *
 * The chain also shows whether ZooKeeper still has all that it acknowledged.
 * An ensemble may lose its latest writes when a leader fails at a bad moment
 * (ZOOKEEPER-4643, -4646, -4925).  Then ZooKeeper shows an older version of the
 * heartbeat node than it had acknowledged, or none, and znodes may be back that
 * were deleted.  Nobody could get the locks of these until the session ends, so
 * the janitor looks for them.
 */
#include <string.h>

#include "core/batch.h"
#include "core/cache.h"
#include "core/contenders.h"
#include "core/host.h"
#include "core/janitor.h"
#include "core/lock.h"
#include "core/node.h"
#include "core/reads.h"
#include "core/reads_reply.h"
#include "core/request.h"
#include "core/session.h"
#include "core/write.h"

static void session_lease_begin(ZklManager *m, int64_t begun_at);
static void session_lease_end(ZklManager *m);
static void revived_connected(ZklManager *m, const ZklSession *session);
static void revived_disconnected(ZklManager *m);
static void revived_elected(ZklManager *m, int64_t zxid);

void
zkl_session_give_up(ZklManager *m, int32_t rc)
{
	zkl_actions_add(m, ZKL_ACTION_RECONNECT)->rc = rc;
	m->connection.state = ZKL_CONNECTION_DOWN;
}

static char *
servers_path(ZklManager *m)
{
	return zkl_actions_join(m, m->root, "/", ".servers");
}

char *
zkl_session_heartbeat(ZklManager *m, uint32_t chain)
{
	static const char digits[] = "0123456789abcdef";
	char		name[16 + 1 + 10 + 1];
	char		decimal[10];
	uint64_t	id = (uint64_t) m->session.id;
	size_t		n = 0,
				i;

	for (i = 0; i < 16; i++)
		name[i] = digits[id >> (60 - 4 * i) & 15];
	name[16] = '.';
	do
	{
		decimal[n++] = (char) ('0' + chain % 10);
		chain /= 10;
	} while (chain > 0);
	for (i = 0; i < n; i++)
		name[17 + i] = decimal[n - 1 - i];
	name[17 + n] = '\0';
	return zkl_actions_join(m, servers_path(m), "/", name);
}

/*
 * The first beat of a connection was refused, or there can be none: is the
 * heartbeat node at least as new as the last acknowledged batch left it?  The
 * write in front goes through the leader, so what follows is not read from a
 * server that lags.
 */
static void
send_check(ZklManager *m)
{
	ZklMultiOp *op = (ZklMultiOp *) (void *)
	zkl_actions_text(m, sizeof(ZklMultiOp));
	char	   *path = zkl_session_heartbeat(m, m->chain.in_use);
	ZklAction  *action;

	memset(op, 0, sizeof(*op));
	op->kind = ZKL_MULTI_CHECK;
	op->path = path;
	op->version = -1;
	m->chain.sent = true;
	action = zkl_operations_send(m, ZKL_OP_CHAIN_FENCE, NULL, NULL,
								 ZKL_SEND_MULTI, NULL);
	action->multi = op;
	action->nmulti = 1;
	zkl_operations_send(m, ZKL_OP_CHAIN_IN_USE, NULL, NULL, ZKL_SEND_GET, path);
}

/*
 * Whether a later one is there, which took the place of the one in use.  Numbers
 * have no leading zeros: the longer is the greater.
 */
static bool
has_later(ZklManager *m, const ZklReply *list)
{
	char	   *path = zkl_session_heartbeat(m, m->chain.in_use);
	const char *name = strrchr(path, '/') + 1;
	size_t		stem = (size_t) (strchr(name, '.') - name) + 1;
	size_t		length = strlen(name);
	size_t		i;

	for (i = 0; i < list->nchildren; i++)
	{
		const char *child = list->children[i];

		if (strncmp(child, name, stem) == 0 &&
			(strlen(child) > length ||
			 (strlen(child) == length && strcmp(child, name) > 0)))
			return !ZKL_MUTANT(LATER_HEARTBEAT_UNSEEN);
	}
	return false;
}

/* All is answered; "sure": ZooKeeper has told whether writes are lost. */
static bool
end_check(ZklManager *m, bool lost, bool sure)
{
	m->chain.sent = false;
	m->chain.checked = true;
	if (lost && sure)
		zkl_actions_add(m, ZKL_ACTION_LOST_WRITES);
	return lost;
}

bool
zkl_session_check_reply(ZklManager *m, ZklOpKind kind, const ZklReply *reply)
{
	bool		there = reply->rc == ZKL_RC_OK;

	if (kind == ZKL_OP_CHAIN_LIST &&
		(there || reply->rc == ZKL_RC_NONODE || reply->rc == ZKL_RC_NOAUTH))
	{
		bool		lost = !there || !has_later(m, reply);
		bool		sure = !m->chain.old_gone && reply->rc != ZKL_RC_NOAUTH;

		m->chain.old_gone |= lost;
		return end_check(m, lost, sure);
	}
	if (!there && reply->rc != ZKL_RC_NONODE)
	{
		zkl_session_give_up(m, reply->rc);
		return false;
	}
	if (kind == ZKL_OP_CHAIN_FENCE)
		return false;
	if (there)
	{
		bool		lost = reply->stat.version < m->chain.acknowledged;

		m->chain.old_gone = false;
		m->chain.acknowledged = reply->stat.version;
		return end_check(m, lost, true);
	}
	zkl_operations_send(m, ZKL_OP_CHAIN_LIST, NULL, NULL, ZKL_SEND_LIST,
						servers_path(m));
	return false;
}

void
zkl_session_open_chain(ZklManager *m)
{
	bool		replaces = m->chain.in_use > 0 && !m->chain.old_gone;
	ZklMultiOp *ops,
			   *op;
	ZklAction  *action;

	m->connection.state = ZKL_CONNECTION_OPENING;
	if (m->chain.in_use > 0 && !m->chain.checked &&
		!ZKL_MUTANT(LOST_WRITES_UNNOTICED))
	{
		send_check(m);
		return;
	}

	/* Count until a beat succeeds: the other side may be no ZooKeeper. */
	if (m->chain.attempts++ >= ZKL_MAX_ATTEMPTS)
	{
		zkl_session_give_up(m, m->chain.rc != 0 ? m->chain.rc : m->chain.why);
		return;
	}
	if (m->chain.parents)
		zkl_directories_make(m, NULL, servers_path(m), "");
	ops = op = (ZklMultiOp *) (void *)
		zkl_actions_text(m, 2 * sizeof(ZklMultiOp));
	memset(ops, 0, 2 * sizeof(ZklMultiOp));
	if (replaces)
	{
		op->kind = ZKL_MULTI_DELETE;
		op->path = zkl_session_heartbeat(m, m->chain.in_use);
		op->version = -1;
		op++;
	}
	if (!m->chain.refused)
		m->chain.number += m->chain.number == 0 ||
			!ZKL_MUTANT(HEARTBEAT_REUSED);
	m->chain.refused = false;
	op->kind = ZKL_MULTI_CREATE_EPHEMERAL;
	op->path = zkl_session_heartbeat(m, m->chain.number);
	op->data = "0";
	op->data_length = 1;
	op++;
	m->chain.replaces = replaces;
	m->chain.sent = true;
	action = zkl_operations_send(m, ZKL_OP_CHAIN, NULL, NULL,
								 ZKL_SEND_MULTI, NULL);
	action->multi = ops;
	action->nmulti = (size_t) (op - ops);
}

/*
 * Heartbeat nodes of attempts in between, if they ever came to be, are deleted.
 * ZooKeeper answers these deletes before the first beat, which follows them.
 */
static void
sweep(ZklManager *m)
{
	uint32_t	old;

	m->chain.sweep_refused = false;
	for (old = m->chain.swept + 1; old < m->chain.in_use; old++)
		zkl_operations_send(m, ZKL_OP_SWEEP, NULL, NULL, ZKL_SEND_DELETE,
							zkl_session_heartbeat(m, old));
}

void
zkl_session_swept(ZklManager *m, int32_t rc)
{
	/* NONODE: that attempt never came to be. */
	if (rc == ZKL_RC_OK)
		zkl_batches_want_proof(m);
	if (rc == ZKL_RC_OK || rc == ZKL_RC_NONODE)
		return;
	zkl_write_retry_later(m);
	m->chain.sweep_refused = true;
}

void
zkl_session_sweep_again(ZklManager *m)
{
	if (m->chain.sweep_refused)
		sweep(m);
}

static void
chain_opened(ZklManager *m)
{
	m->chain.in_use = m->chain.number;
	m->chain.acknowledged = 0;
	sweep(m);
	m->chain.old_gone = false;
	m->chain.needed = false;
	m->chain.version = 0;
	zkl_batches_set_broken(m, false);
	m->connection.state = ZKL_CONNECTION_PROVING;
}

void
zkl_session_chain_reply(ZklManager *m, const ZklReply *reply)
{
	uint32_t	create = m->chain.replaces ? 1 : 0;
	bool		told = reply->nresults == create + 1;

	ZKL_ASSERT(m->chain.sent && m->connection.state == ZKL_CONNECTION_OPENING);
	ZKL_ASSERT(m->batches.n == 0);
	m->chain.sent = false;
	if (reply->rc == ZKL_RC_OK)
	{
		chain_opened(m);
		return;
	}
	m->chain.why = reply->rc;

	/*
	 * The node was not made and never will be, so its number may serve again.
	 */
	m->chain.refused = told && zkl_zkapi_is_definite(reply->rc) &&
		reply->results[create].rc != ZKL_RC_NODEEXISTS;
	if (told && m->chain.replaces &&
		reply->results[0].rc == ZKL_RC_NONODE)
		m->chain.old_gone = true;
	else if (told && reply->results[create].rc == ZKL_RC_NONODE)
		m->chain.parents = true;
	else if (!told || reply->results[create].rc != ZKL_RC_NODEEXISTS)
		zkl_session_give_up(m, reply->rc);
}

/* ---- connections ---- */

/* A connection stands; it is gone; the session is gone. */
static void
session_begin(ZklManager *m, const ZklSession *session)
{
	ZKL_ASSERT(m->session.id == 0 || session->id == m->session.id);
	if (session->id != m->session.id)
	{
		m->chain.number = m->chain.in_use = m->chain.swept = 0;
		m->chain.refused = false;
		m->chain.old_gone = false;
		m->chain.needed = true;
		m->chain.parents = true;
	}
	m->session = *session;
	m->chain.sent = false;
	m->chain.checked = false;
	m->chain.attempts = 0;
	m->chain.rc = 0;
	m->chain.why = ZKL_RC_UNKNOWN;
	m->connection.state = m->chain.needed ? ZKL_CONNECTION_OPENING :
		ZKL_MUTANT(READ_BEFORE_BEAT) ? ZKL_CONNECTION_READY :
		ZKL_CONNECTION_PROVING;
	if (!m->chain.needed)
		sweep(m);
}

static void
session_disconnected(ZklManager *m)
{
	m->connection.state = ZKL_CONNECTION_DOWN;
}

static void
session_end(ZklManager *m)
{
	m->session.id = 0;
	m->chain.needed = true;
}

/* The first beat proves the connection: from now on its reads count. */
void
zkl_session_proved(ZklManager *m)
{
	ZKL_ASSERT(m->connection.state == ZKL_CONNECTION_PROVING);
	ZKL_ASSERT(m->chain.in_use > 0);
	m->connection.state = ZKL_CONNECTION_READY;
	m->chain.checked = true;
	m->connection.proved_at = zkl_operations_next_order(m);
	m->chain.attempts = 0;
	if (!m->chain.sweep_refused)
		m->chain.swept = m->chain.in_use - 1;
}

/* ---- the chain as the batches see it ---- */

void
zkl_session_need_chain(ZklManager *m)
{
	m->chain.needed = true;
}

int32_t
zkl_session_next_version(ZklManager *m)
{
	ZKL_ASSERT(m->chain.in_use == m->chain.number && !m->chain.needed);
	return m->chain.version++;
}

void
zkl_session_set_version(ZklManager *m, int32_t version)
{
	m->chain.version = version;
}

void
zkl_session_acknowledged(ZklManager *m, int32_t version)
{
	m->chain.acknowledged = version;
}

void
zkl_session_parent_refused(ZklManager *m, int32_t rc)
{
	m->chain.rc = rc;
}

/* ---- whether a transaction id that ZooKeeper answers can be believed ---- */

/*
 * Fencing tokens are made of these ids, so a server that has seen one refuses
 * all smaller ones for good.  But one absurd id (from a garbled answer, say)
 * must not make it refuse the whole ensemble from then on.  The upper 32 bits
 * count elections.  If an answer is many elections ahead of all earlier ones,
 * it does not count; the server believes it only if the next connection says
 * the like.
 */

/* The greatest that a token has room for */
#define GREATEST		(INT64_MAX / ZKL_TOKENS_PER_ZXID)

#define ELECTIONS(n)	((int64_t) (n) << 32)

/* How far the first answer may be ahead of the greatest seen id, or of 0 */
#define NEAR			ELECTIONS(64)
#define NEAR_NOTHING	ELECTIONS(65536)

bool
zkl_session_zxid_is_absurd(ZklManager *m, int64_t zxid)
{
	int64_t		near = m->zxid.seen != 0 ? NEAR : NEAR_NOTHING;
	bool		confirmed = m->zxid.unbelieved != 0 &&
	zxid >= m->zxid.unbelieved && zxid - m->zxid.unbelieved < NEAR;

	m->zxid.unbelieved = 0;
	if (zxid <= 0 || zxid > GREATEST)
		return true;
	if (zxid < m->zxid.seen || zxid - m->zxid.seen < near || confirmed)
		return false;
	m->zxid.unbelieved = zxid;
	return true;
}

bool
zkl_session_zxid_went_back(const ZklManager *m, int64_t zxid)
{
	return zxid < m->zxid.seen && !ZKL_MUTANT(BACKWARDS_ZXID);
}

bool
zkl_session_zxid_is_of_later_election(const ZklManager *m, int64_t zxid)
{
	return zxid / ELECTIONS(1) > m->zxid.seen / ELECTIONS(1);
}

static void
session_zxid_hide(ZklManager *m)
{
	if (!m->zxid.hidden)
		m->zxid.before = m->zxid.seen;
	m->zxid.hidden = true;
}

static void
session_zxid_show(ZklManager *m)
{
	m->zxid.hidden = false;
}

int64_t
zkl_session_zxid_shown(const ZklManager *m)
{
	return m->zxid.hidden ? m->zxid.before : m->zxid.seen;
}

bool
zkl_session_zxid_is_known(const ZklManager *m, int64_t zxid)
{
	return zxid > 0 && zxid <= m->zxid.seen;
}

void
zkl_session_zxid_believe(ZklManager *m, int64_t zxid)
{
	m->zxid.seen = zxid;
}

/* ---- connection ---- */

/*
 * What it means for all locks and requests when a connection stands or breaks, and
 * when a session ends.
 *
 * It calls the files concerned in order.
 */

void
zkl_connection_up(ZklManager *m, const ZklSession *session)
{
	bool		unproved = zkl_batches_take_unproved(m);

	if (session->id != m->session.id)
	{
		session_lease_end(m);
		zkl_batches_new_session(m);
	}
	else if (unproved)
		zkl_janitor_want(m);
	revived_connected(m, session);
	session_begin(m, session);
	session_zxid_show(m);
	zkl_session_zxid_believe(m, session->zxid_seen);
	session_lease_begin(m, session->begun_at);
}

/* Contenders that had gone may be back. */
static void
forget_contenders(ZklManager *m)
{
	size_t		i;
	ZklLink    *link,
			   *after;

	for (i = 0; i < m->locks.by_path.nbuckets; i++)
	{
		zkl_foreach(link, after, &m->locks.by_path.buckets[i])
			zkl_contenders_forget(m, zkl_container(ZklLock, by_path, link));
	}
}

void
zkl_connection_writes_lost(ZklManager *m)
{
	zkl_janitor_want(m);
	forget_contenders(m);
	ZKL_HOOKS(m, writes_lost);
}

void
zkl_connection_elected(ZklManager *m, int64_t zxid)
{
	forget_contenders(m);
	revived_elected(m, zxid);
}

static void
forget_operations(ZklManager *m)
{
	uint32_t	next = 0;
	ZklOp		op;

	while (zkl_operations_abandon(m, &next, &op))
	{
		if (op.lock == NULL)
			continue;
		zkl_operations_unpin(op.lock);
		zkl_lock_settle_idle(m, op.lock);
	}
}

static void
disconnect_lock(ZklManager *m, ZklLock *lock)
{
	ZklLink    *link,
			   *after;

	zkl_contenders_disconnected(lock);
	zkl_reads_disconnected(m, lock);
	zkl_lock_counter_good(lock);
	zkl_foreach(link, after, &lock->queue.own)
		zkl_look_forget(m, zkl_container(ZklRequest, place.link, link));
	zkl_probe_disconnected(m, lock);
}

void
zkl_connection_down(ZklManager *m)
{
	size_t		i;
	uint32_t	id;
	ZklLink    *link,
			   *after;

	zkl_recall_all(m);
	zkl_rewrite_disconnected(m);
	session_disconnected(m);
	zkl_janitor_disconnected(m);
	zkl_directories_disconnected(m);
	zkl_batch_reply_lost(m);
	ZKL_HOOKS(m, disconnected);
	revived_disconnected(m);
	for (i = 0; i < m->locks.by_path.nbuckets; i++)
	{
		zkl_foreach(link, after, &m->locks.by_path.buckets[i])
		{
			ZklLock    *lock = zkl_container(ZklLock, by_path, link);

			disconnect_lock(m, lock);
		}
	}
	forget_operations(m);
	while (!zkl_list_empty(&m->locks.idle) && !ZKL_MUTANT(CONTINUITY_RECONNECT))
		zkl_lock_settle_idle(m, zkl_container(ZklLock, idle,
											  m->locks.idle.head.next));
	for (id = 0; id < m->config.max_requests; id++)
	{
		ZklRequest *r = &m->requests.all[id];

		zkl_look_stop(r);
		zkl_node_forget_version(r);
		if (r->node.state == ZKL_NODE_EXISTS && !zkl_downgrade_pending(r) &&
			(r->demand == ZKL_DEMAND_GRANTED || r->lock->queue.waiting == r))
			zkl_look_later(m, r, zkl_list_linked(&r->look.unseen) ?
						   r->look.unseen_since : m->batches.acknowledged_at);

		/*
		 * A mark may have come while there was no watch: look before the
		 * grant.
		 */
		if (r->demand == ZKL_DEMAND_WAITING && !ZKL_MUTANT(DYING_SESSION))
			zkl_node_set_czxid(r, 0);
	}
}

/* Appends all requests in use to "live", in order of submission. */
static uint32_t
sort_requests(ZklManager *m, ZklRequest **live)
{
	uint32_t	n = 0,
				gap,
				i,
				j;

	for (i = 0; i < m->config.max_requests; i++)
	{
		if (m->requests.all[i].demand != ZKL_DEMAND_UNUSED)
			live[n++] = &m->requests.all[i];
	}
	for (gap = n / 2; gap > 0; gap /= 2)
	{
		for (i = gap; i < n; i++)
		{
			ZklRequest *r = live[i];

			for (j = i; j >= gap && live[j - gap]->submitted > r->submitted;
				 j -= gap)
				live[j] = live[j - gap];
			live[j] = r;
		}
	}
	return n;
}

void
zkl_connection_session_lost(ZklManager *m)
{
	ZklRequest **live;
	uint32_t	n,
				i;
	size_t		bucket;
	ZklLink    *link,
			   *after;

	zkl_connection_down(m);
	session_end(m);
	session_lease_end(m);
	ZKL_HOOKS(m, session_lost);
	for (bucket = 0; bucket < m->locks.by_path.nbuckets; bucket++)
	{
		zkl_foreach(link, after, &m->locks.by_path.buckets[bucket])
			zkl_contenders_forget(m, zkl_container(ZklLock, by_path, link));
	}
	live = zkl_memory_alloc(m, m->config.max_requests * sizeof(ZklRequest *));
	n = sort_requests(m, live);
	for (i = 0; i < n; i++)
		zkl_request_session_lost(m, live[i]);
	zkl_memory_release(m, live);
}

/* ---- session_lease: how long the session surely lives: the rule of the lease ---- */

/*
 * The leader ends a session T after it last heard of it.  A write that comes
 * through a follower does not count there: the leader hears of the sessions of
 * a follower only from its answers to pings, which the leader sends every half
 * tick (LearnerHandler.java, SessionTrackerImpl.java: checkSession does not
 * touch).  So when a batch is sent, the leader may know only of what came
 * before the latest such ping; if the follower is cut off right behind its
 * answer, that stays so.  T is at least two ticks, hence half a tick at most
 * T/4; a little more is for the way.  The leader has heard of everything that
 * was answered before that ping: each such answer is a contact, and counts
 * from when its question was sent.  The making of the connection is a contact,
 * too, because the leader is asked about it.
 *
 * The lease counts from the last contact that was early enough, and is at most
 * two thirds of T.  To have a lease when the first request comes, an idle
 * session reads its own heartbeat node every T/4, in place of the pings of
 * ZooKeeper's client.
 *
 * If something is held or awaited, a beat comes every T/6.  But programs outside of the
 * server end when what they know of the lease is over, and ask again every T/12: for
 * them beats come as often.  Then the last contact that counts is at most 7T/24 + T/12
 * older than the beat, so that a beat leaves 0.62 T; T/48 less among other batches.
 */

static int64_t
timeout_us(const ZklManager *m)
{
	return (int64_t) m->session.timeout_ms * 1000;
}

/* A connection stands; the attempt to make it began at begun_at. */
static void
session_lease_begin(ZklManager *m, int64_t begun_at)
{
	int64_t		limit;
	uint32_t	i;

	m->session_lease.connecting_since =
		ZKL_MUTANT(CONNECTION_FROM_ITS_END) ? m->now :
		begun_at;
	m->session_lease.ncontacts = 0;

	/* The connect restarts the session, with this timeout. */
	limit = begun_at + timeout_us(m) - timeout_us(m) / 500;
	if (m->session_lease.until > limit)
		m->session_lease.until = limit;
	m->session_lease.verified = true;
	for (i = 0; i < m->config.max_requests; i++)
	{
		ZklRequest *r = &m->requests.all[i];

		zkl_look_set_verified(r, r->demand != ZKL_DEMAND_GRANTED ||
							  r->node.state != ZKL_NODE_EXISTS);
		if (r->look.verified)
			continue;
		if (!zkl_downgrade_pending(r))
			zkl_look_soon(m, r);
		m->session_lease.verified = false;
	}
	m->session_lease.looking = !m->session_lease.verified;
}

void
zkl_session_lease_doubt(ZklManager *m, ZklRequest *r)
{
	zkl_look_set_verified(r, false);
	m->session_lease.verified &= r->demand != ZKL_DEMAND_GRANTED || r->broken;
}

/* It is not renewed before zkl_session_lease_verify() finds nothing open. */
static void
session_lease_suspend(ZklManager *m)
{
	m->session_lease.verified = false;
}

/*
 * While there was no connection, another client may have marked or deleted a
 * node unseen.  So the beats of a new connection renew the lease only when
 * all holds have seen their nodes on it; from then on watches tell before
 * beats do.  If the session may have ended meanwhile, revived has to look, too.
 */
void
zkl_session_lease_verify(ZklManager *m)
{
	uint32_t	i;

	if (m->session_lease.verified ||
		m->connection.state != ZKL_CONNECTION_READY)
		return;
	for (i = 0; i < m->config.max_requests; i++)
	{
		const ZklRequest *r = &m->requests.all[i];

		if (r->demand == ZKL_DEMAND_GRANTED &&
			r->node.state == ZKL_NODE_EXISTS &&
			!r->look.verified && !r->broken)
			return;
		if (zkl_revived_is_open(r))
			return;
	}
	m->session_lease.verified = true;
	m->session_lease.looking = false;
	session_zxid_show(m);
	zkl_batches_want_beat(m, true);
}

void
zkl_session_lease_contact(ZklManager *m, int64_t sent_at)
{
	ZklSessionLease *lease = &m->session_lease;
	uint32_t	last = (lease->ncontacts + ZKL_CONTACTS - 1) % ZKL_CONTACTS;

	ZKL_ASSERT(sent_at <= m->now);

	/* Contacts must reach back far enough; they need not be many. */
	if (lease->ncontacts > 0 &&
		sent_at - lease->contacts[last].sent_at < timeout_us(m) / ZKL_CONTACTS)
		return;
	last = lease->ncontacts++ % ZKL_CONTACTS;
	lease->contacts[last].sent_at = sent_at;
	lease->contacts[last].answered_at = m->now;
}

int64_t
zkl_session_lease_until(const ZklManager *m, int64_t sent_at)
{
	int64_t		early = sent_at - timeout_us(m) * 7 / 24;
	int64_t		heard = m->session_lease.connecting_since;
	int64_t		longest = sent_at + timeout_us(m) * 2 / 3;
	int64_t		expiry;
	uint32_t	i;

	for (i = 0; i < ZKL_CONTACTS && i < m->session_lease.ncontacts; i++)
	{
		const ZklContact *contact = &m->session_lease.contacts[i];

		if (contact->answered_at <= early && contact->sent_at > heard)
			heard = contact->sent_at;
	}
	if (ZKL_MUTANT(LEASE_FROM_REPLY))
		return m->now + timeout_us(m) * 2 / 3;
	if (ZKL_MUTANT(LEASE_OF_TIMEOUT))
		return sent_at + timeout_us(m);
	if (ZKL_MUTANT(LEASE_WITHOUT_CONTACT))
		return longest;

	/* Clock rates differ by 0.1 % at most: twice that is taken off. */
	expiry = heard + timeout_us(m) - timeout_us(m) / 500;
	if (ZKL_MUTANT(LEASE_WITHOUT_RATES))
		expiry = heard + timeout_us(m);
	return expiry < longest ? expiry : longest;
}

int64_t
zkl_session_lease_timer(const ZklManager *m)
{
	if (m->connection.state != ZKL_CONNECTION_READY || m->requests.nlive > 0 ||
		m->chain.needed)
		return -1;
	return m->operations.sent_at +
		timeout_us(m) / (ZKL_MUTANT(LEASE_WITHOUT_CONTACT) ? 3 : 4);
}

void
zkl_session_lease_send(ZklManager *m)
{
	int64_t		due = zkl_session_lease_timer(m);

	if (due < 0 || due > m->now)
		return;
	zkl_operations_send(m, ZKL_OP_IGNORE, NULL, NULL, ZKL_SEND_GET,
						zkl_session_heartbeat(m, m->chain.number));
}

void
zkl_session_lease_prove(ZklManager *m)
{
	m->session_lease.asked_at = m->now;
}

int64_t
zkl_session_lease_beat(const ZklManager *m)
{
	bool		asked = m->session_lease.asked_at != 0 &&
	m->now < m->session_lease.asked_at + timeout_us(m) / 4;

	return timeout_us(m) / (asked ? 12 : 6);
}

/* The session is gone. */
static void
session_lease_end(ZklManager *m)
{
	m->session_lease.until = 0;
}

/*
 * The host publishes the lease before it tells a session that it has lost its hold,
 * and may be held up in between.  Then only the lease keeps that session from going
 * on, so a batch that is answered together with such news does not extend it.
 */
void
zkl_session_lease_extend(ZklManager *m, int64_t until)
{
	if (m->session_lease.verified && m->actions.nlosses == 0 &&
		until > m->session_lease.until)
		m->session_lease.until = until;
}

/*
 * While the first looks of a connection last, no batch extends the lease.  So what
 * they find out is not out of date when it ends.
 */
bool
zkl_session_lease_note_lapse(ZklManager *m)
{
	bool		valid = m->now < m->session_lease.until;
	bool		lapsed = m->session_lease.relied && m->locks.nqueued > 0 &&
	!valid;

	m->session_lease.relied = valid && m->locks.nqueued > 0;
	return lapsed && !m->session_lease.looking;
}

/* ---- revived: sessions whose end ZooKeeper has lost ---- */

/*
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

/* Paths of listings that tell of holds only; others have room beside them. */
#define READ_WINDOW		4096

static bool
is_live(const ZklRequest *r)
{
	return r->demand == ZKL_DEMAND_WAITING || r->demand == ZKL_DEMAND_GRANTED;
}

/* ---- our own session ---- */

/* A connection of that session is about to stand; the lease is as it was before. */
static void
revived_connected(ZklManager *m, const ZklSession *session)
{
	m->revived.lapsed = session->id == m->session.id &&
		m->now >= m->session_lease.until;
}

static void
revived_disconnected(ZklManager *m)
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

/*
 * The first beat of a connection shows an election; "zxid" is of the batch that it
 * opened.
 */
static void
revived_elected(ZklManager *m, int64_t zxid)
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
		session_lease_suspend(m);
		if (!ZKL_MUTANT(DOUBT_FORGOTTEN))
			session_zxid_hide(m);
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
