/*
 * mark.c
 *	  The marks that others leave in the data of our nodes.
 *
 * Owns ZklAsked: it decides what a mark means for the request whose node bears
 * it.  Runs in the worker (and in tests), takes no locks, knows neither
 * PostgreSQL nor ZooKeeper.
 */
#include "core/actions.h"
#include "core/keep.h"
#include "core/look.h"
#include "core/mark.h"

bool
zkl_mark_breaks(const ZklRequest *r, const ZklReply *reply)
{
	return zkl_dialect_marks(r->lock->dialect) &&
		zkl_node_data_breaking(reply->data, reply->data_length);
}

void
zkl_mark_restore(ZklRequest *r, int64_t zxid)
{
	r->asked.zxid = zxid;
}

void
zkl_mark_new_node(ZklRequest *r)
{
	r->asked.early = false;
}

/*
 * A read that is under way, or that we have yet to send, will find the mark.
 */
void
zkl_mark_granted(ZklManager *m, ZklRequest *r)
{
	if (r->asked.early && r->look.watch == ZKL_WATCH_ARMED)
		zkl_look_again(m, r);
	r->asked.early = false;
}

/*
 * The client that asks takes the first in the queue for the holder; this
 * server may not have granted it yet.
 */
void
zkl_mark_request_release(ZklManager *m, ZklRequest *r, int64_t zxid,
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
			!zkl_keep_is_on(s))
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
zkl_mark_is_put(const ZklRequest *r, int64_t zxid)
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
zkl_mark_rewritten(ZklRequest *r, int64_t old, int64_t zxid)
{
	ZklRequest *s = r;

	do
	{
		if (s->asked.zxid == old)
			s->asked.zxid = zxid;
		s = s->ring.next;
	} while (s != r);
}
