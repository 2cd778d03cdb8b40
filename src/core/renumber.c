/*
 * renumber.c
 *	  The end of the sequence: if a directory's counter nears its end, the
 *	  directory empties, is deleted, and starts again.
 *
 * Owns ZklRenumber, and the steps from the begin to its last answer;
 * node.c keeps which requests are parked meanwhile.  Runs in the worker (and in
 * tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include "core/actions.h"
#include "core/contenders.h"
#include "core/lock.h"
#include "core/node.h"
#include "core/operations.h"
#include "core/renumber.h"
#include "core/request.h"
#include "core/siblings.h"

/* Whether r waits until the directory is deleted and made again */
static bool
is_parked(const ZklRequest *r)
{
	return r->demand == ZKL_DEMAND_WAITING &&
		(r->node.again || zkl_node_is_parked(r));
}

/*
 * If a shared holder waits for the exclusive lock, it would wait for itself.
 */
static void
refuse_parked_upgrades(ZklManager *m, ZklLock *lock)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &lock->requests.all)
	{
		ZklRequest *r = zkl_container(ZklRequest, all, link);

		if (is_parked(r) && zkl_siblings_upgraded(r) != NULL &&
			!ZKL_MUTANT(PARKED_UPGRADE_WAITS))
			zkl_request_fail(m, r, ZKL_FAILURE_DEADLOCK, 0);
	}
}

void
zkl_renumber_begin(ZklLock *lock, int64_t zxid)
{
	lock->renumber.wanted = true;
	lock->renumber.zxid = zxid;
}

void
zkl_renumber_session_lost(ZklLock *lock)
{
	lock->renumber.wanted = false;
}

void
zkl_renumber_again(ZklLock *lock)
{
	lock->renumber.sent = false;
}

void
zkl_renumber_start(ZklManager *m, ZklLock *lock)
{
	refuse_parked_upgrades(m, lock);
	if (lock->renumber.sent)
		return;
	lock->renumber.sent = true;
	zkl_operations_send(m, ZKL_OP_RENUMBER_DELETE, lock, NULL, ZKL_SEND_DELETE,
						zkl_actions_join(m, lock->path, "", ""));
}

/* The directory of old is gone: parked requests go into a new one. */
static void
renumbered(ZklManager *m, ZklLock *lock)
{
	ZklLink    *link,
			   *after;

	lock->renumber.wanted = false;
	zkl_contenders_forget(m, lock);
	zkl_foreach(link, after, &lock->requests.all)
	{
		ZklRequest *r = zkl_container(ZklRequest, all, link);

		if (zkl_node_is_parked(r))
			zkl_node_unpark(m, r);
	}
}

/* Numbers only grow in a directory: this one is another than that at its end. */
void
zkl_renumber_good(ZklManager *m, ZklLock *lock, int64_t zxid)
{
	if (lock->renumber.wanted && zxid > lock->renumber.zxid)
		renumbered(m, lock);
}

/* We may not delete the directory: the parked requests wait in vain. */
static void
renumber_refused(ZklManager *m, ZklLock *lock, int32_t rc)
{
	ZklLink    *link,
			   *after;

	lock->renumber.wanted = false;
	lock->renumber.sent = false;
	zkl_foreach(link, after, &lock->requests.all)
	{
		ZklRequest *r = zkl_container(ZklRequest, all, link);

		if (is_parked(r))
			zkl_request_fail(m, r, ZKL_FAILURE_ZOOKEEPER, rc);
	}
}

static bool
has_contender(const ZklLock *lock, const ZklReply *reply)
{
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;
	size_t		i;

	for (i = 0; i < reply->nchildren; i++)
	{
		if (zkl_znode_parse(lock->dialect, reply->children[i], &mode, &seq,
							&has_uuid, &uuid))
			return true;
	}
	return false;
}

void
zkl_renumber_reply(ZklManager *m, ZklLock *lock, ZklOpKind kind,
				   const ZklReply *reply)
{
	const char *path;

	if (!lock->renumber.wanted)
	{
		lock->renumber.sent = false;
		return;
	}
	if (kind == ZKL_OP_RENUMBER_DELETE && reply->rc == ZKL_RC_NOTEMPTY)
	{
		path = zkl_actions_join(m, lock->path, "", "");
		zkl_operations_send(m, ZKL_OP_RENUMBER_LIST, lock, NULL, ZKL_SEND_LIST,
							path)->watch = true;
		return;
	}

	/*
	 * A watch on the children brings us back here at their next change, if
	 * the directory is not yet another one.  But children that do not
	 * contend, such as the directory of a nested lock, may stay.
	 */
	if (kind == ZKL_OP_RENUMBER_LIST && reply->rc == ZKL_RC_OK &&
		reply->stat.czxid > lock->renumber.zxid)
	{
		lock->renumber.sent = false;
		renumbered(m, lock);
		return;
	}
	if (kind == ZKL_OP_RENUMBER_LIST && reply->rc == ZKL_RC_OK &&
		reply->nchildren > 0)
	{
		if (!has_contender(lock, reply))
			renumber_refused(m, lock, ZKL_RC_NOTEMPTY);
		return;
	}
	lock->renumber.sent = false;
	if (kind == ZKL_OP_RENUMBER_DELETE &&
		(reply->rc == ZKL_RC_OK || reply->rc == ZKL_RC_NONODE))
		renumbered(m, lock);
	else if (reply->rc == ZKL_RC_OK || reply->rc == ZKL_RC_NONODE)
		zkl_lock_touch(m, lock);
	else
		renumber_refused(m, lock, reply->rc);
}
