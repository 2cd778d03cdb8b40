/*
 * deadlock.c
 *	  The search for deadlocks across servers, as a wing of the core.
 *
 * Owns the table of its hooks.  Runs in the worker (and in tests), takes no locks,
 * knows neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "deadlock/deadlock.h"
#include "deadlock/deadlock_state.h"
#include "deadlock/found.h"
#include "deadlock/publication.h"
#include "deadlock/search.h"
#include "deadlock/verdict.h"
#include "observe/inspect.h"
#include "observe/trace.h"

/* ---- inspect ---- */

/*
 * What the search for deadlocks believes, for people, and its invariants.
 *
 * Owns nothing, changes nothing, and walks everything.  See inspect.c of
 * observe/.
 */

/* ---- the dump ---- */

static void
dump_search(const ZklDeadlock *d, const ZklDump *to)
{
	ZklLine		line;

	zkl_line_begin(&line);
	zkl_line_list(&line, "publications", &d->publications.all);
	zkl_line_if(&line, d->publications.unsettled, "unsettled");
	zkl_line_list(&line, "want_search", &d->waits.wanted);
	zkl_line_list(&line, "in_search", &d->search.asked);
	zkl_line_if(&line, d->verdict.state == ZKL_VERDICT_SENT, "verdict-sent");
	zkl_line_if(&line, d->verdict.state == ZKL_VERDICT_UNSETTLED,
				"verdict-unsettled");
	if (line.length > 0)
		zkl_dump_item(to, NULL, "deadlocks", -1, &line);
}

static void
dump_wait(const ZklDump *to, const ZklWait *w)
{
	ZklLine		line;

	zkl_line_begin(&line);
	zkl_line_put(&line, "look_in_ms=%" PRId64, (w->due - to->now) / 1000);
	zkl_line_if(&line, w->ndependents > 0, "dependents=%zu", w->ndependents);
	zkl_dump_item(to, w->r->lock, "wait", w->r->id, &line);
}

/* What is published of a wait */
static void
dump_publications(const ZklDump *to, const ZklWait *w)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &w->publications)
	{
		const ZklPublication *p = zkl_container(ZklPublication, of_wait, link);
		ZklLine		line;

		zkl_line_begin(&line);
		zkl_line_put(&line, "name=%s", p->name);
		zkl_dump_place(&line, &p->write);
		zkl_line_put(&line, "czxid=0x%" PRIx64, p->czxid);
		zkl_dump_item(to, w->r->lock, "publication", w->r->id, &line);
	}
}

static void
inspect_dump(const void *wing, const ZklDump *dump)
{
	const ZklDeadlock *d = wing;
	uint32_t	i;

	dump_search(d, dump);
	for (i = 0; i < d->m->config.max_requests; i++)
	{
		const ZklWait *w = &d->waits.all[i];

		if (!zkl_list_linked(&w->by_due))
			continue;
		dump_wait(dump, w);
		dump_publications(dump, w);
	}
}

/* ---- invariants ---- */

static const char *
check_wait(const ZklRequest *r, const ZklWait *w)
{
	bool		waits = zkl_list_linked(&w->by_due);

	if (waits != (zkl_list_linked(&r->place.link) &&
				  r->demand == ZKL_DEMAND_WAITING && w->patience > 0 &&
				  r->lock->dialect != ZKL_DIALECT_PERMIT))
		return "the waits and the list of them differ";
	if (!waits && r->demand != ZKL_DEMAND_UNUSED &&
		(zkl_list_linked(&w->wanted) || w->ndependents > 0 ||
		 !zkl_list_empty(&w->publications)))
		return "something is published or wanted of what does not wait";
	return NULL;
}

/* What a wait has published, and the holds that are named */
static const char *
check_publication(const ZklDeadlock *d, const ZklPublication *p)
{
	const ZklRequest *held = zkl_node_find(d->m, &p->uuid);

	if (zkl_publication_find(d, p->name) != p)
		return "a publication cannot be found, or there are two of a name";
	if (p->wait != NULL && zkl_publication_of(d, &p->uuid) != p)
		return "a znode is published twice";
	if (!zkl_write_is_in_place(&p->write))
		return "the publications to be written and their lists differ";
	if (p->wait == NULL)
		return p->write.state == ZKL_WRITE_NONE ||
			(p->write.state == ZKL_WRITE_PENDING &&
			 p->write.by == &zkl_publication_creation) ?
			"a publication of no wait stays" : NULL;
	if (p->write.by == &zkl_publication_retraction &&
		(p->write.state == ZKL_WRITE_PENDING || p->write.state == ZKL_WRITE_BATCH))
		return "a publication is deleted although it is true";
	if (held == NULL || held->demand != ZKL_DEMAND_GRANTED ||
		held->node.state != ZKL_NODE_EXISTS)
		return "something is published of what is not held";
	if (zkl_keep_has_any(held))
		return "something is published of what is kept";
	return zkl_list_linked(&p->of_wait) ? NULL : "a publication's wait is unaware";
}

static const char *
check_publications(const ZklDeadlock *d)
{
	bool		unsettled = false,
				judged = false;
	const char *why = NULL;
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &d->publications.all)
	{
		const ZklPublication *p = zkl_container(ZklPublication, all, link);

		if (why == NULL)
			why = check_publication(d, p);
		unsettled |= p->write.state == ZKL_WRITE_UNSETTLED;
		judged |= p->write.state == ZKL_WRITE_ALONE;
	}
	if (why == NULL && unsettled && !d->publications.unsettled)
		why = "nothing will tell what became of a publication";
	if (why == NULL && judged != (d->verdict.state == ZKL_VERDICT_SENT))
		why = "publications wait for no verdict";
	return why;
}

/* Names an invariant that does not hold, or NULL. */
static const char *
inspect_check(const void *wing)
{
	const ZklDeadlock *d = wing;
	const char *why = NULL;
	uint32_t	i;

	for (i = 0; i < d->m->config.max_requests && why == NULL; i++)
		why = check_wait(&d->m->requests.all[i], &d->waits.all[i]);
	return why != NULL ? why : check_publications(d);
}

/* ---- deadlock ---- */

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
	.dump = inspect_dump,
	.check = inspect_check
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
