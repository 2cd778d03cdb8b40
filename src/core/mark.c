/*
 * mark.c
 *	  The marks that others leave in the data of our nodes.
 *
 * Decides what a mark means for the request whose node bears it.  Owns
 * asked_early and asked_zxid of a request; restore.c fills in what a slot
 * recorded, and request.c clears asked_early when a demand ends.  Runs in the
 * worker (and in tests), takes no locks, knows neither PostgreSQL nor
 * ZooKeeper.
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

/*
 * A read that is under way, or that we have yet to send, will find the mark.
 */
void
zkl_mark_granted(ZklManager *m, ZklRequest *r)
{
	if (r->asked_early && r->look.watch == ZKL_WATCH_ARMED)
		zkl_look_again(m, r);
	r->asked_early = false;
}

/*
 * The client that asks takes the first in the queue for the holder; this
 * server may not have granted it yet.
 */
void
zkl_mark_revoke(ZklManager *m, ZklRequest *r, int64_t zxid,
				const char *asker)
{
	ZklRequest *s = r;

	if (r->demand != ZKL_DEMAND_GRANTED)
		r->asked_early = true;
	if (r->demand != ZKL_DEMAND_GRANTED || r->broken)
		return;
	do
	{
		if ((s == r || s->cover == r) && s->asked_zxid != zxid &&
			!zkl_is_kept(s))
		{
			ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_REVOKE);

			action->request = s->id;
			action->asker = zkl_actions_join(m, asker, "", "");
			action->asked_zxid = zxid;
			s->asked_zxid = zxid;
		}
		s = s->sibling_next;
	} while (s != r);
}
