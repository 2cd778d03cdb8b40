/*
 * session.c
 *	  The session's life as the core sees it: connections, the chain of
 *	  heartbeat nodes, and the transaction ids that are believed.
 *
 * Owns the manager's connection, session, chain and zxid.  Runs in the worker
 * (and in tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
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

#include "core/actions.h"
#include "core/batches.h"
#include "core/directories.h"
#include "core/node.h"
#include "core/operations.h"
#include "core/session.h"
#include "core/write.h"

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

void
zkl_session_begin(ZklManager *m, const ZklSession *session)
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

void
zkl_session_disconnected(ZklManager *m)
{
	m->connection.state = ZKL_CONNECTION_DOWN;
}

void
zkl_session_end(ZklManager *m)
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

void
zkl_session_zxid_hide(ZklManager *m)
{
	if (!m->zxid.hidden)
		m->zxid.before = m->zxid.seen;
	m->zxid.hidden = true;
}

void
zkl_session_zxid_show(ZklManager *m)
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
