/*
 * mark.c
 *	  The marks that others leave in the data of our nodes.
 *
 * Decides what a mark means for the request whose node it is on.  Runs in the
 * worker (and in tests), takes no locks, knows neither PostgreSQL nor
 * ZooKeeper.
 */
#include "core/mark.h"
#include "core/reads.h"
#include "core/request.h"
#include "core/siblings.h"

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
		zkl_siblings_revoke(m, r, zxid, asker);
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
			zkl_siblings_break(m, r, ZKL_FAILURE_BROKEN);
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
	if (r->asked_early && r->own_watch == ZKL_WATCH_ARMED)
	{
		zkl_reads_set_watch(m, &r->own_watch, ZKL_WATCH_NONE);
		zkl_reads_own(m, r);
	}
	r->asked_early = false;
}
