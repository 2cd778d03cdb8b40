/*
 * loss.c
 *	  A hold is lost, with all that share its node.
 *
 * Owns nothing.  Runs in the worker (and in tests), takes no locks, knows
 * neither PostgreSQL nor ZooKeeper.
 */
#include "core/actions.h"
#include "core/downgrade.h"
#include "core/hooks.h"
#include "core/keep.h"
#include "core/loss.h"
#include "core/node.h"
#include "core/request.h"
#include "core/siblings.h"

static void
tell_loss(ZklManager *m, const ZklRequest *r, ZklFailure failure)
{
	ZklAction  *action = zkl_actions_add(m, ZKL_ACTION_LOSE);

	action->request = r->id;
	action->failure = failure;
}

void
zkl_loss_begin(ZklManager *m, ZklRequest *r, ZklFailure failure)
{
	ZklRequest *s = r;

	ZKL_ASSERT(r->demand == ZKL_DEMAND_GRANTED && r->ring.cover == NULL);
	ZKL_ASSERT(r->node.state == ZKL_NODE_NONE);
	do
	{
		ZklRequest *next = s->ring.next;

		if (s == r || s->ring.cover == r)
		{
			/* Whoever keeps it, its host, has yet to release it. */
			if (zkl_keep_is_on(s) || (!s->broken && !zkl_siblings_stays(s)))
				tell_loss(m, s, failure);
			zkl_keep_end(s);
			zkl_request_lost(m, s);
			zkl_node_record(m, s);
		}
		s = next;
	} while (s != r);
}

void
zkl_loss_break(ZklManager *m, ZklRequest *r, ZklFailure failure)
{
	ZklRequest *s = r;

	if (r->demand != ZKL_DEMAND_GRANTED)
		return;
	zkl_downgrade_give_up(r);
	do
	{
		if ((s == r || s->ring.cover == r) && !s->broken)
		{
			if (!zkl_siblings_stays(s))
				tell_loss(m, s, failure);
			zkl_request_set_broken(s);
		}
		s = s->ring.next;
	} while (s != r);

	/* It goes without its holder: whoever waits for it does not wait for him. */
	if (!ZKL_MUTANT(BROKEN_STAYS_PUBLISHED))
		ZKL_HOOKS(m, hold_ended, r);
	zkl_keep_disown(m, r);
}
