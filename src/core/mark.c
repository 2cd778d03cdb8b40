/*
 * mark.c
 *	  The marks that others leave in the data of our nodes.
 *
 * Decides what a mark means for the request whose node it is on.  Runs in the
 * worker (and in tests), takes no locks, knows neither PostgreSQL nor
 * ZooKeeper.
 */
#include "core/actions.h"
#include "core/keep.h"
#include "core/look.h"
#include "core/mark.h"
#include "core/request.h"

#define MAX_ASKER	256

bool
zkl_mark_breaks(const ZklRequest *r, const ZklReply *reply)
{
	return zkl_dialect_marks(r->lock->dialect) &&
		zkl_node_data_breaking(reply->data, reply->data_length);
}

/*
 * Who asks takes the first in the queue for the holder; it may not have been
 * granted here yet.
 */
static void
tell_holder(ZklManager *m, ZklRequest *r, int64_t zxid, const char *asker)
{
	if (r->demand == ZKL_DEMAND_GRANTED)
		zkl_mark_revoke(m, r, zxid, asker);
	else
		r->asked_early = true;
}

void
zkl_mark_heed(ZklManager *m, ZklRequest *r, const ZklReply *reply)
{
	char		asker[MAX_ASKER];

	if (!zkl_dialect_marks(r->lock->dialect))
		return;
	if (zkl_mark_breaks(r, reply))
	{
		if (r->demand == ZKL_DEMAND_GRANTED)
			zkl_request_break(m, r, ZKL_FAILURE_BROKEN);
		else
			zkl_request_again(m, r);
	}
	else if (zkl_node_data_revoking(reply->data, reply->data_length, asker,
									sizeof(asker)))
		tell_holder(m, r, reply->stat.mzxid, asker);
}

/* A read that is under way, or to be sent, will find it. */
void
zkl_mark_granted(ZklManager *m, ZklRequest *r)
{
	if (r->asked_early && r->look.watch == ZKL_WATCH_ARMED)
		zkl_look_again(m, r);
	r->asked_early = false;
}

void
zkl_mark_revoke(ZklManager *m, ZklRequest *r, int64_t zxid,
				const char *asker)
{
	ZklRequest *s = r;

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
