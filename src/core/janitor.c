/*
 * janitor.c
 *	  Deletes the nodes of our session that no request claims.
 *
 * Owns m->janitor.  Runs in the worker (and in tests), takes no locks, knows
 * neither PostgreSQL nor ZooKeeper.
 *
 * A request keeps its slot until its node is known to be gone, so there should
 * be no such nodes.  But a single one would block all others until the session
 * ends.  Four paths lead here.  When ZooKeeper has lost deletes, or may have, a
 * worker walks once through all directories below the root, one question at a
 * time.  If a request has to wait behind a node, it looks whose node that is
 * (reads_reply.c).  And if a node whose id this manager made is in the way of a
 * try or of a permit, that node is looked at (reads_reply.c, decide.c).  A wing can have it
 * look at a znode
 * that it disowns.
 *
 * If a question gets an error for an answer, it is asked again after a while, as
 * often as it takes; only what we may not read is left out.  The walk is over when a
 * batch behind its last answer is acknowledged: if the connection ends before, it
 * begins again.
 */
#include <string.h>

#include "core/host.h"
#include "core/janitor.h"
#include "core/node.h"
#include "core/session.h"
#include "core/write.h"

struct ZklJanitorPath
{
	struct ZklJanitorPath *next;
	ZklSendKind kind;			/* LIST a directory, GET a znode, DELETE it */
	int			refused;		/* how often we had no right to that */
	char		path[];
};

/* Adds a question that is next, but behind the one under way. */
static void
push(ZklManager *m, struct ZklJanitorPath *item)
{
	struct ZklJanitorPath **where = &m->janitor.to_do;

	ZKL_ASSERT(!m->janitor.asking || m->janitor.to_do != NULL);
	if (m->janitor.asking)
		where = &m->janitor.to_do->next;
	item->next = *where;		/* NOLINT: the question under way is the first */
	*where = item;
}

static void
remember(ZklManager *m, const char *directory, const char *child,
		 ZklSendKind kind)
{
	size_t		n = strlen(directory);
	struct ZklJanitorPath *item =
	zkl_memory_alloc(m, sizeof(*item) + n + strlen(child) + 2);

	memcpy(item->path, directory, n);
	item->path[n] = '\0';
	if (child[0] != '\0')
	{
		item->path[n] = '/';
		memcpy(item->path + n + 1, child, strlen(child) + 1);
	}
	item->kind = kind;
	item->refused = 0;
	push(m, item);
}

static void
forget_all(ZklManager *m, struct ZklJanitorPath **list)
{
	while (*list != NULL)
	{
		struct ZklJanitorPath *item = *list;

		*list = item->next;
		zkl_memory_release(m, item);
	}
}

void
zkl_janitor_stop(ZklManager *m)
{
	forget_all(m, &m->janitor.to_do);
	forget_all(m, &m->janitor.later);
	m->janitor.asking = false;
}

void
zkl_janitor_disconnected(ZklManager *m)
{
	m->janitor.wanted |= m->janitor.to_do != NULL || m->janitor.later != NULL;
	zkl_janitor_stop(m);
}

static bool
is_remembered(const struct ZklJanitorPath *item, ZklSendKind kind,
			  const char *path)
{
	for (; item != NULL; item = item->next)
	{
		if (item->kind == kind && strcmp(item->path, path) == 0)
			return true;
	}
	return false;
}

/* However often a znode is met, it has one question of a kind. */
static void
remember_once(ZklManager *m, const char *path, ZklSendKind kind)
{
	if (!is_remembered(m->janitor.to_do, kind, path) &&
		!is_remembered(m->janitor.later, kind, path))
		remember(m, path, "", kind);
}

void
zkl_janitor_delete(ZklManager *m, const char *path)
{
	remember_once(m, path, ZKL_SEND_DELETE);
}

void
zkl_janitor_look(ZklManager *m, const char *directory, const char *child)
{
	/* If there is more to do, a later look is enough: so nothing piles up. */
	if (m->janitor.to_do == NULL)
		remember_once(m, zkl_actions_join(m, directory, "/", child), ZKL_SEND_GET);
}

/* The first question in the list is the one that awaits its answer. */
void
zkl_janitor_send(ZklManager *m)
{
	const struct ZklJanitorPath *item;

	if (m->connection.state != ZKL_CONNECTION_READY || m->janitor.asking)
		return;
	if (m->janitor.wanted)
	{
		m->janitor.wanted = false;
		remember(m, m->root, "", ZKL_SEND_LIST);
	}
	while (m->janitor.later != NULL && m->now >= m->janitor.later_at)
	{
		struct ZklJanitorPath *first = m->janitor.later;

		m->janitor.later = first->next;
		push(m, first);
	}
	item = m->janitor.to_do;
	if (item == NULL)
		return;
	m->janitor.asking = true;
	zkl_operations_send(m, ZKL_OP_JANITOR, NULL, NULL, item->kind,
						zkl_actions_join(m, item->path, "", ""));
}

int64_t
zkl_janitor_timer(const ZklManager *m)
{
	return m->janitor.later != NULL && !m->janitor.asking ?
		m->janitor.later_at : -1;
}

/*
 * Whether this is the writer's znode of a request whose znode became a reader's:
 * ZooKeeper has lost the downgrade.
 */
static bool
is_downgraded(const ZklRequest *r, const char *name)
{
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;

	return r->node.mode == ZKL_SHARED &&
		zkl_znode_parse(r->lock->dialect, name, &mode, &seq, &has_uuid,
						&uuid) && mode == ZKL_EXCLUSIVE;
}

/* Whether a request claims a znode that is named like a zklock contender */
static bool
is_claimed(ZklManager *m, const char *name, bool *contends)
{
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;
	int			dialect;

	*contends = zkl_znode_is_like(name, strlen(name));
	for (dialect = 0; dialect < ZKL_DIALECTS; dialect++)
	{
		if (zkl_znode_parse((ZklDialect) dialect, name, &mode, &seq,
							&has_uuid, &uuid) &&
			has_uuid && zkl_uuid_is_zklock(&uuid))
		{
			const ZklRequest *r = zkl_node_find(m, &uuid);

			return r != NULL && !is_downgraded(r, name);
		}
	}
	return true;
}

/* A heartbeat node of this session, neither the one in use nor the next */
static bool
is_old_heartbeat(ZklManager *m, const char *path)
{
	const char *used = zkl_session_heartbeat(m, m->chain.in_use);
	const char *next = zkl_session_heartbeat(m, m->chain.number);
	size_t		stem = (size_t) (strrchr(used, '.') - used) + 1;

	return strncmp(path, used, stem) == 0 && strcmp(path, used) != 0 &&
		strcmp(path, next) != 0;
}

static void
visit_children(ZklManager *m, const char *directory, const ZklReply *reply)
{
	const char *servers = zkl_actions_join(m, m->root, "/", ".servers");
	const char *once = zkl_actions_join(m, m->root, ZKL_ONCE_DIRECTORY, "");
	bool		heartbeats = strcmp(directory, servers) == 0;
	size_t		i;

	for (i = 0; i < reply->nchildren; i++)
	{
		const char *child = reply->children[i];
		const char *path = zkl_actions_join(m, directory, "/", child);
		bool		contends;
		bool		claimed = is_claimed(m, child, &contends);

		if (child[0] == '.')
			ZKL_HOOKS(m, found, path);
		if (heartbeats ? is_old_heartbeat(m, path) : !claimed)
			remember(m, directory, child, ZKL_SEND_GET);
		else if (!heartbeats && !contends &&
				 strlen(path) <= ZKL_MAX_DIRECTORY &&
				 (child[0] != '.' || strcmp(path, servers) == 0 ||
				  strcmp(path, once) == 0))
			remember(m, directory, child, ZKL_SEND_LIST);
	}
}

/*
 * The question got an error.  It is asked again after the others, or on the
 * next connection, unless we may not read there.
 */
static void
ask_later(ZklManager *m, struct ZklJanitorPath *item, int32_t rc)
{
	if (rc == ZKL_RC_NOAUTH && item->kind != ZKL_SEND_DELETE &&
		item->refused++ >= ZKL_MAX_ATTEMPTS)
	{
		zkl_memory_release(m, item);
		return;
	}
	if (m->janitor.later == NULL)
		m->janitor.later_at = m->now + ZKL_RETRY_DELAY;
	item->next = m->janitor.later;
	m->janitor.later = item;
}

/* A znode of our session that no request claims */
static bool
is_to_go(ZklManager *m, const char *path, const ZklReply *reply)
{
	bool		contends;
	const char *name = strrchr(path, '/') + 1;

	return reply->stat.ephemeral_owner == m->session.id &&
		(is_old_heartbeat(m, path) || !is_claimed(m, name, &contends) ||
		 zkl_hooks_disown(m, name));
}

static void
take_answer(ZklManager *m, struct ZklJanitorPath *item, const ZklReply *reply)
{
	if (reply->rc == ZKL_RC_OK && item->kind == ZKL_SEND_LIST)
		visit_children(m, item->path, reply);
	else if (reply->rc == ZKL_RC_OK && item->kind == ZKL_SEND_GET &&
			 is_to_go(m, item->path, reply))
		remember(m, item->path, "", ZKL_SEND_DELETE);
	zkl_memory_release(m, item);
}

void
zkl_janitor_reply(ZklManager *m, const ZklReply *reply)
{
	struct ZklJanitorPath *item = m->janitor.to_do;

	ZKL_ASSERT(m->janitor.asking && item != NULL);
	m->janitor.asking = false;
	m->janitor.to_do = item->next;
	if (reply->rc != ZKL_RC_OK && reply->rc != ZKL_RC_NONODE)
		ask_later(m, item, reply->rc);
	else
		take_answer(m, item, reply);

	/* If another client deleted a node, ZooKeeper may still lose that delete. */
	if (m->janitor.to_do == NULL && m->janitor.later == NULL)
		zkl_batches_want_proof(m);
}

void
zkl_janitor_ask(ZklManager *m, const char *path)
{
	remember_once(m, path, ZKL_SEND_GET);
}

void
zkl_janitor_want(ZklManager *m)
{
	m->janitor.wanted = true;
}
