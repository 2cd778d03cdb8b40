/*
 * deadlock.c
 *	  The search for deadlocks across servers, as a wing of the core.
 *
 * Owns the table of its hooks.  Runs in the worker (and in tests), takes no locks,
 * knows neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "deadlock/found.h"
#include "deadlock/inspect.h"
#include "deadlock/publication.h"
#include "deadlock/search.h"
#include "deadlock/verdict.h"
#include "deadlock/waits.h"

static void *
begin_wing(ZklManager *m)
{
	ZklDeadlock *d = zkl_memory_alloc(m, sizeof(ZklDeadlock));

	memset(d, 0, sizeof(ZklDeadlock));
	d->m = m;
	zkl_waits_init_all(d);
	zkl_publication_init_all(d);
	zkl_search_init_all(d);
	return d;
}

static void
end_wing(void *wing)
{
	ZklDeadlock *d = wing;

	zkl_search_stop(d);
	zkl_verdict_forget(d);
	zkl_publication_free_all(d);
	zkl_waits_free_all(d);
	zkl_memory_release(d->m, d);
}

static void
connection_lost(void *wing)
{
	zkl_publication_disconnected(wing);
	zkl_search_stop(wing);
	zkl_verdict_disconnected(wing);
}

static void
session_lost(void *wing)
{
	zkl_publication_session_lost(wing);
	zkl_verdict_forget(wing);
}

/*
 * The listing of all publications.  A verdict learns what became of it before a
 * search goes on.
 */
static void
all_listed(ZklDeadlock *d, const ZklOp *op, const ZklReply *reply)
{
	bool		good = zkl_publication_listed(d, op, reply);

	if (good)
		zkl_verdict_listed(d);
	zkl_search_listed(d, op, reply, good);
}

static void
lead_reply(void *wing, const ZklOp *op, const ZklReply *reply)
{
	ZklDeadlock *d = wing;

	if (op->kind == ZKL_DEADLOCK_VERDICT)
		zkl_verdict_reply(d, reply);
	else if (!zkl_reads_reply_tells(d->m, reply))
		return;
	else if (op->kind == ZKL_DEADLOCK_LIST_ALL)
		all_listed(d, op, reply);
	else
		zkl_found_reply(d, op, reply);
}

static void
send_all(void *wing)
{
	zkl_search_send(wing);
	zkl_publication_send(wing);
}

static int64_t
next_timer(const void *wing)
{
	int64_t		look = zkl_waits_timer(wing);
	int64_t		list = zkl_publication_timer(wing);

	return look < 0 || (list >= 0 && list < look) ? list : look;
}

static const char *const operations[] = {
	"waits", "search-get", "search-list", "verdict"
};

/*
 * If ZooKeeper loses writes, a publication that is gone no longer shows that the
 * verdict without an answer was carried out: it is forgotten.
 */
const ZklWing zkl_deadlock_wing = {
	.operations = operations,
	.begin = begin_wing,
	.end = end_wing,
	.began = zkl_waits_init,
	.told = zkl_waits_told,
	.queued = zkl_waits_begin,
	.waited = zkl_waits_end,
	.hold_ended = zkl_waits_hold_ended,
	.disconnected = connection_lost,
	.session_lost = session_lost,
	.writes_lost = zkl_verdict_forget,
	.reply = lead_reply,
	.decide = zkl_waits_look,
	.send = send_all,
	.timer = next_timer,
	.found = zkl_publication_found,
	.disowns = zkl_publication_disowns,
	.may_tell = zkl_publication_may_exist,
	.dump = zkl_inspect_dump,
	.check = zkl_inspect_check
};

void
zkl_deadlock_count(const ZklManager *m, ZklDeadlockCounters *counters)
{
	const ZklDeadlock *d = zkl_hooks_find(m, &zkl_deadlock_wing);

	memset(counters, 0, sizeof(*counters));
	if (d == NULL)
		return;
	counters->deadlocks = d->verdict.deadlocks;
	counters->checks = d->search.n;
	counters->given_up = d->search.given_up;
	counters->unpublished = d->waits.unpublished;
}
