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
zkl_search_init_all(ZklManager *m)
{
	zkl_list_init(&m->search.asked);
	zkl_found_init(m);
}

static ZklRequest *
asked(const ZklLink *link)
{
	return zkl_container(ZklRequest, wait.wanted, link);
}

/* again: all that were asked for are to be asked for again */
static void
end(ZklManager *m, bool again)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &m->search.asked)
		zkl_waits_answered(m, asked(link), again);
	zkl_found_forget(m);
	m->search.state = ZKL_SEARCH_IDLE;
}

void
zkl_search_stop(ZklManager *m)
{
	if (m->search.state != ZKL_SEARCH_IDLE)
		end(m, true);
}

void
zkl_search_give_up(ZklManager *m)
{
	m->search.given_up++;
}

/* Something could not be read: there is another look soon. */
static void
plan_another(ZklManager *m)
{
	ZklLink    *link,
			   *after;

	zkl_foreach(link, after, &m->search.asked)
		zkl_waits_soon(m, asked(link));
}

static void
begin(ZklManager *m)
{
	ZklLink    *link,
			   *after;

	if (m->search.state != ZKL_SEARCH_IDLE || m->chain.needed ||
		m->verdict.state != ZKL_VERDICT_NONE)
		return;
	zkl_foreach(link, after, &m->waits.wanted)
	{
		ZklRequest *r = asked(link);

		if (zkl_list_empty(&r->wait.publications))
			zkl_list_remove(link);
		else if (zkl_waits_is_published(r))
			zkl_waits_ask(r, &m->search.asked);
	}
	if (zkl_list_empty(&m->search.asked))
		return;
	m->search.state = ZKL_SEARCH_LISTING;
	m->search.order = m->operations.order;
	m->search.n++;
	zkl_publication_want_list(m);
}

void
zkl_search_listed(ZklManager *m, const ZklOp *op, const ZklReply *reply,
				  bool good)
{
	if (m->search.state != ZKL_SEARCH_LISTING)
		return;
	if (op->order <= m->search.order)
	{
		zkl_publication_want_list(m);
		return;
	}
	if (!good)
	{
		plan_another(m);
		end(m, false);
		return;
	}
	m->search.state = ZKL_SEARCH_READING;
	zkl_found_begin(m, reply);
}

static void
go_on(ZklManager *m)
{
	if (!zkl_found_send(m))
		return;
	if (m->search.found.failed)
		plan_another(m);
	zkl_graph_judge(m);
	end(m, false);
}

/*
 * Past the lease others may have what we hold: we neither look nor decide until
 * it is renewed.
 */
void
zkl_search_send(ZklManager *m)
{
	if (m->connection.state != ZKL_CONNECTION_READY ||
		m->now >= m->session_lease.until)
		return;
	begin(m);
	if (m->search.state != ZKL_SEARCH_READING)
		return;
	go_on(m);

	/* If that was its end, nothing else may come to begin the next one. */
	begin(m);
}
