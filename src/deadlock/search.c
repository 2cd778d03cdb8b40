/*
 * search.c
 *	  What some waits of ours wait for, and what that waits for, and so on.
 *
 * Owns ZklSearch.  Runs in the worker (and in tests), takes no locks, knows
 * neither PostgreSQL nor ZooKeeper.  found.c reads, graph.c draws the
 * conclusions.
 *
 * A search reads outward from the waits: first it lists all publications, then
 * the directories in which the waits stand, then the publications of those ahead,
 * the directories of what these wait for, and so on, each once.  If a contender
 * has no publication, its holder can go on.  All of it is read behind the
 * publications of the waits themselves, on the same connection, or behind the
 * first beat of a later one: so it is at least as new as these.
 *
 * There is one search at a time, for all waits that want one.  Those that come
 * meanwhile share the next.
 */
#include "deadlock/found.h"
#include "deadlock/graph.h"
#include "deadlock/publication.h"
#include "deadlock/search.h"
#include "deadlock/waits.h"

void
zkl_search_init_all(ZklDeadlock *d)
{
	zkl_list_init(&d->search.asked);
	zkl_found_init(d);
}

static ZklWait *
asked(const ZklLink *link)
{
	return zkl_container(ZklWait, wanted, link);
}

/* again: all that were asked for are to be asked for again */
static void
end(ZklDeadlock *d, bool again)
{
	ZklLink    *link,
			   *after;

	ZKL_ASSERT(d->search.state != ZKL_SEARCH_IDLE);
	zkl_foreach(link, after, &d->search.asked)
		zkl_waits_answered(d, asked(link), again);
	zkl_found_forget(d);
	d->search.state = ZKL_SEARCH_IDLE;
}

void
zkl_search_stop(ZklDeadlock *d)
{
	if (d->search.state != ZKL_SEARCH_IDLE)
		end(d, true);
}

void
zkl_search_give_up(ZklDeadlock *d)
{
	d->search.given_up++;
}

/* Something could not be read: there is another look soon. */
static void
plan_another(ZklDeadlock *d)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &d->search.asked)
		zkl_waits_soon(d, asked(link));
}

static void
begin(ZklDeadlock *d)
{
	ZklLink    *link,
			   *after;

	if (d->search.state != ZKL_SEARCH_IDLE || d->m->chain.needed ||
		d->verdict.state != ZKL_VERDICT_NONE)
		return;
	zkl_foreach(link, after, &d->waits.wanted)
	{
		ZklWait    *w = asked(link);

		if (zkl_list_empty(&w->publications))
			zkl_list_remove(link);
		else if (zkl_waits_is_published(w))
			zkl_waits_ask(w, &d->search.asked);
	}
	if (zkl_list_empty(&d->search.asked))
		return;
	d->search.state = ZKL_SEARCH_LISTING;
	d->search.order = d->m->operations.order;
	d->search.n++;
	zkl_publication_want_list(d);
}

void
zkl_search_listed(ZklDeadlock *d, const ZklOp *op, const ZklReply *reply,
				  bool good)
{
	if (d->search.state != ZKL_SEARCH_LISTING)
		return;
	if (op->order <= d->search.order)
	{
		zkl_publication_want_list(d);
		return;
	}
	if (!good)
	{
		plan_another(d);
		end(d, false);
		return;
	}
	d->search.state = ZKL_SEARCH_READING;
	zkl_found_begin(d, reply);
}

static void
go_on(ZklDeadlock *d)
{
	if (!zkl_found_send(d))
		return;
	ZKL_ASSERT(d->search.found.under_way == 0);
	if (d->search.found.failed)
		plan_another(d);
	zkl_graph_judge(d);
	end(d, false);
}

/*
 * Past the lease others may have what we hold: we neither look nor decide until
 * it is renewed.
 */
void
zkl_search_send(ZklDeadlock *d)
{
	if (d->m->connection.state != ZKL_CONNECTION_READY ||
		d->m->now >= d->m->session_lease.until)
		return;
	begin(d);
	if (d->search.state != ZKL_SEARCH_READING)
		return;
	go_on(d);

	/* If that was its end, nothing else may come to begin the next one. */
	begin(d);
}
