/*
 * end.c
 *	  How a request ends: its backend has finished with it, or its time is over.
 *
 * Owns nothing: request.c and keep.c do what follows.  Runs in the worker (and
 * in tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include "core/actions.h"
#include "core/end.h"
#include "core/hooks.h"
#include "core/keep.h"
#include "core/request.h"
#include "core/siblings.h"
#include "core/words.h"

/* r is kept: nobody waits for its owner because of that lock. */
static void
keep(ZklManager *m, ZklRequest *r, int64_t until)
{
	const ZklRequest *s = r;

	zkl_keep_begin(m, r, until);
	do
	{
		ZKL_HOOKS(m, hold_ended, s);
		s = s->ring.next;
	} while (s != r);
}

void
zkl_end_release(ZklManager *m, uint32_t request, const ZklEnd *end)
{
	ZklRequest *r = &m->requests.all[request];

	if (end->epilogue && ZKL_MUTANT(WORD_BEFORE_EPILOGUE) &&
		r->node.state == ZKL_NODE_EXISTS)
		zkl_words_say(m, r);
	if (end->epilogue)
		zkl_keep_leave(m, r);
	else if (r->demand == ZKL_DEMAND_UNUSED)
		zkl_actions_add(m, ZKL_ACTION_FREE)->request = request;
	else if (r->demand == ZKL_DEMAND_GRANTED && end->keep_until > m->now &&
			 !zkl_siblings_stays(r))
	{
		if (zkl_keep_is_on(r))
			zkl_keep_change(m, r, end->keep_until);
		else
			keep(m, r, end->keep_until);
	}
	else
		zkl_request_release(m, r);
}

void
zkl_end_overdue(ZklManager *m, uint32_t request)
{
	ZklRequest *r = &m->requests.all[request];

	if (r->demand != ZKL_DEMAND_GRANTED || zkl_keep_is_on(r) ||
		zkl_siblings_stays(r))
		return;
	zkl_request_answered(m, r);
}

void
zkl_end_due(ZklManager *m)
{
	ZklRequest *r;

	while ((r = zkl_keep_due(m)) != NULL)
		zkl_request_release(m, r);
}
