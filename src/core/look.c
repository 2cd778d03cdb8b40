/*
 * look.c
 *	  What we read of our own znodes: the watch on a node, its czxid, and the
 *	  marks that others leave there.
 *
 * Owns ZklLook, ZklLooks and ZklAsked; reads.c counts the watches.  Runs in the worker
 * (and in tests), takes no locks.
 */
#include "core/actions.h"
#include "core/keep.h"
#include "core/look.h"
#include "core/node.h"
#include "core/operations.h"
#include "core/reads.h"
#include "core/siblings.h"

void
zkl_look_init_all(ZklManager *m)
{
	zkl_list_init(&m->looks.unwatched);
	zkl_list_init(&m->looks.unseen);
}

static void
set_watch(ZklManager *m, ZklRequest *r, ZklWatchState state)
{
	zkl_reads_set_watch(m, &r->look.watch, state);
}

void
zkl_look_token(ZklManager *m, ZklRequest *r)
{
	ZKL_ASSERT(r->node.state == ZKL_NODE_EXISTS);
	if (r->look.token_sent)
		return;
	r->look.token_sent = true;
	zkl_operations_send(m, ZKL_OP_TOKEN, r->lock, r, ZKL_SEND_GET,
						zkl_node_path(m, r));
}

static int64_t
unseen_at(const ZklLink *link)
{
	return zkl_container(ZklRequest, look.unseen, link)->look.unseen_since;
}

void
zkl_look_unseen(ZklManager *m, ZklRequest *r, int64_t since)
{
	ZklLink    *where;

	zkl_list_remove(&r->look.unseen);
	r->look.unseen_since = since;
	where = m->looks.unseen.head.prev;
	while (where != &m->looks.unseen.head && unseen_at(where) > since)
		where = where->prev;
	zkl_list_insert_after(&r->look.unseen, where);
}

/*
 * If a watch had not fired when a batch was acknowledged, the node changed
 * only after that batch was sent.
 */
void
zkl_look_soon(ZklManager *m, ZklRequest *r)
{
	zkl_list_remove(&r->look.unwatched);
	r->look.placed_at = 0;
	zkl_list_insert_after(&r->look.unwatched, &m->looks.unwatched.head);
	zkl_look_unknown(m, r);
}

void
zkl_look_unknown(ZklManager *m, ZklRequest *r)
{
	if (!zkl_list_linked(&r->look.unseen))
		zkl_look_unseen(m, r, m->batches.acknowledged_at);
}

void
zkl_look_later(ZklManager *m, ZklRequest *r, int64_t unseen_since)
{
	r->look.placed_at = m->now;
	zkl_list_append(&m->looks.unwatched, &r->look.unwatched);
	zkl_look_unseen(m, r, unseen_since);
}

void
zkl_look_again(ZklManager *m, ZklRequest *r)
{
	set_watch(m, r, ZKL_WATCH_NONE);
	zkl_look_soon(m, r);
}

void
zkl_look_if_unwatched(ZklManager *m, ZklRequest *r)
{
	if (r->look.watch == ZKL_WATCH_NONE && !zkl_list_linked(&r->look.unwatched))
		zkl_look_soon(m, r);
}

void
zkl_look_sent(ZklManager *m, ZklRequest *r)
{
	r->look.unseen_since = m->now;
}

void
zkl_look_placed(ZklManager *m, ZklRequest *r, int64_t sent_at)
{
	r->look.placed_at = sent_at;
	if (zkl_list_linked(&r->look.unseen))
		zkl_look_unseen(m, r, sent_at);
}

void
zkl_look_token_came(ZklRequest *r)
{
	r->look.token_sent = false;
}

void
zkl_look_unmarked(ZklManager *m, ZklRequest *r)
{
	if (zkl_list_linked(&r->look.unseen))
		zkl_look_unseen(m, r, m->batches.acknowledged_at);
	else
		r->look.unseen_since = m->batches.acknowledged_at;
}

void
zkl_look_answered(ZklManager *m, ZklRequest *r, bool found)
{
	set_watch(m, r, ZKL_WATCH_NONE);
	if (!found)
		return;
	r->look.verified = true;
	set_watch(m, r, ZKL_WATCH_ARMED);
	zkl_list_remove(&r->look.unseen);
}

void
zkl_look_set_verified(ZklRequest *r, bool verified)
{
	r->look.verified = verified;
}

void
zkl_look_stop(ZklRequest *r)
{
	zkl_list_remove(&r->look.unwatched);
}

void
zkl_look_left_queue(ZklRequest *r)
{
	zkl_list_remove(&r->look.unseen);
}

void
zkl_look_forget(ZklManager *m, ZklRequest *r)
{
	set_watch(m, r, ZKL_WATCH_NONE);
	r->look.token_sent = false;
}

/*
 * If an operator marks a node, the delete follows T later.  If the mark comes
 * before the watch is set, and the worker is held up before it has looked,
 * only the lease keeps the holder from going on.
 */
int64_t
zkl_look_lease_limit(const ZklManager *m)
{
	int64_t		timeout = (int64_t) m->session.timeout_ms * 1000;
	const ZklLink *link;

	for (link = m->looks.unseen.head.next; link != &m->looks.unseen.head;
		 link = link->next)
	{
		const ZklRequest *r = zkl_container(ZklRequest, look.unseen, link);

		if (r->demand == ZKL_DEMAND_GRANTED && !r->broken)
			return r->look.unseen_since + timeout - timeout / 500;
	}
	return INT64_MAX;
}

/*
 * If a request waits behind others, it has no watch: its node may have been
 * marked long ago.  A look at it is newer than the batch from which the lease
 * counts, so no lease outlasts the mark by too much.
 */
bool
zkl_look_is_recent(const ZklManager *m, const ZklRequest *r)
{
	int64_t		timeout = (int64_t) m->session.timeout_ms * 1000;

	return r->look.watch == ZKL_WATCH_ARMED || ZKL_MUTANT(DYING_SESSION) ||
		r->look.unseen_since + timeout - timeout / 500 >=
		m->session_lease.until;
}

/*
 * A request of a certain age gets a watch on its own node, which other
 * clients may delete or mark.  The get goes behind a beat, so its answer is
 * no older than that beat.  As there is a beat each T/6 at least, the watch
 * is armed at most T/4 after the node was created.
 */
void
zkl_look_send(ZklManager *m)
{
	int64_t		age = (int64_t) m->session.timeout_ms * 1000 / 12;

	if (m->connection.state != ZKL_CONNECTION_READY || ZKL_MUTANT(NO_OWN_WATCH))
		return;
	while (!zkl_list_empty(&m->looks.unwatched) && zkl_operations_may_read(m))
	{
		ZklRequest *r = zkl_container(ZklRequest, look.unwatched,
									  m->looks.unwatched.head.next);

		if (r->look.placed_at != 0 &&
			r->look.placed_at + age > m->batches.sent_at)
			return;
		ZKL_ASSERT(r->node.state == ZKL_NODE_EXISTS);
		ZKL_ASSERT(r->look.watch == ZKL_WATCH_NONE);
		zkl_list_remove(&r->look.unwatched);
		zkl_reads_set_watch(m, &r->look.watch, ZKL_WATCH_SENT);
		zkl_operations_read(m, ZKL_OP_WATCH_OWN, r->lock, r, ZKL_SEND_GET,
							zkl_node_path(m, r), true);
	}
}

/* ---- the marks that others leave in the data of our nodes ---- */

bool
zkl_look_mark_breaks(const ZklRequest *r, const ZklReply *reply)
{
	return zkl_dialect_marks(r->lock->dialect) &&
		zkl_node_data_breaking(reply->data, reply->data_length);
}

void
zkl_look_mark_new_node(ZklRequest *r)
{
	r->asked.early = false;
}

/*
 * A read that is under way, or that we have yet to send, will find the mark.
 */
void
zkl_look_mark_granted(ZklManager *m, ZklRequest *r)
{
	if (r->asked.early && r->look.watch == ZKL_WATCH_ARMED)
		zkl_look_again(m, r);
	r->asked.early = false;
}

/* What came to lean on r since r was asked has not been told of that. */
void
zkl_look_mark_stays(ZklManager *m, ZklRequest *r)
{
	if (r->asked.zxid != 0 && r->look.watch == ZKL_WATCH_ARMED)
		zkl_look_again(m, r);
}

/*
 * The client that asks takes the first in the queue for the holder; this
 * server may not have granted it yet.
 */
void
zkl_look_mark_request_release(ZklManager *m, ZklRequest *r, int64_t zxid,
							  const char *asker)
{
	ZklRequest *s = r;

	if (r->demand != ZKL_DEMAND_GRANTED)
		r->asked.early = true;
	if (r->demand != ZKL_DEMAND_GRANTED || r->broken)
		return;
	do
	{
		if ((s == r || s->ring.cover == r) && s->asked.zxid != zxid &&
			!zkl_keep_is_on(s) && !zkl_siblings_stays(s))
		{
			ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_RELEASE_REQUEST);

			action->request = s->id;
			action->asker = zkl_actions_join(m, asker, "", "");
			action->asked_zxid = zxid;
			s->asked.zxid = zxid;
		}
		s = s->ring.next;
	} while (s != r);
}

bool
zkl_look_mark_is_put(const ZklRequest *r, int64_t zxid)
{
	const ZklRequest *s = r;

	do
	{
		if ((s == r || s->ring.cover == r) && s->asked.zxid == zxid)
			return true;
		s = s->ring.next;
	} while (s != r);
	return false;
}

void
zkl_look_mark_rewritten(ZklRequest *r, int64_t old, int64_t zxid)
{
	ZklRequest *s = r;

	do
	{
		if (s->asked.zxid == old)
			s->asked.zxid = zxid;
		s = s->ring.next;
	} while (s != r);
}
