/*
 * search.c
 *	  What some waits of ours wait for, and what that waits for, and so on.
 *
 * Owns ZklSearch.  found.c reads.  Runs in the worker (and in tests), takes no
 * locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "deadlock/found.h"
#include "deadlock/publication.h"
#include "deadlock/search.h"
#include "deadlock/verdict.h"

/* ---- graph: which of the waits that a search is for are on a cycle ---- */

/*
 * It makes a graph of what the search has read, and has verdict.c search it.
 *
 * A contender gets edges to those that are nearest ahead only: with what these
 * wait for, that is the same.
 */

typedef struct Graph
{
	ZklDeadlock *d;
	ZklCycleGraph graph;
	uint32_t	room;			/* for edges */
	ZklStep    *steps;			/* of each node: where it stands */
	uint32_t   *path;			/* room for a cycle */
} Graph;

static ZklWait *asked(const ZklLink *link);
static void search_give_up(ZklDeadlock *d);

static ZklCycleEdge *
add_edge(Graph *g, uint32_t from, uint32_t to, ZklCycleKind kind)
{
	ZklCycleEdge *edge;

	ZKL_ASSERT(g->graph.nedges <= g->room);
	if (g->graph.nedges == g->room)
	{
		ZklCycleEdge *grown = zkl_found_alloc(g->d, 2 * g->room *
											  sizeof(ZklCycleEdge));

		memcpy(grown, g->graph.edges, g->room * sizeof(ZklCycleEdge));
		g->graph.edges = grown;
		g->room *= 2;
	}
	edge = zkl_cycle_add(&g->graph, from, to);
	edge->kind = kind;
	return edge;
}

static uint32_t
node_of(const ZklFoundDirectory *directory, const ZklStanding *standing)
{
	return directory->first + (uint32_t) (standing - directory->all);
}

static const ZklRequest *
own_request(const Graph *g, const ZklStanding *standing)
{
	return standing->has_uuid ? zkl_node_find(g->d->m, &standing->uuid) : NULL;
}

/*
 * Whether both are this server's, and the one ahead is given up.  It stays in the
 * queue until ZooKeeper deletes it, but none of ours waits for that.
 */
static bool
is_given_up(const Graph *g, const ZklStanding *ahead, const ZklStanding *wait)
{
	const ZklRequest *r = own_request(g, ahead);

	return r != NULL && own_request(g, wait) != NULL &&
		(r->node.state == ZKL_NODE_DELETE ||
		 r->demand == ZKL_DEMAND_ANSWERED || r->demand == ZKL_DEMAND_RELEASED);
}

/* Whether the session that waits as "wait" holds "ahead" */
static bool
is_of_waiter(const ZklStanding *ahead, const ZklStanding *wait)
{
	const ZklEntry *entry = ahead->entry;

	return entry != NULL && entry->state == ZKL_READ_DONE &&
		!entry->data->behind && wait->has_uuid &&
		zkl_uuid_equal(&entry->data->wait, &wait->uuid) &&
		!ZKL_MUTANT(OWN_CONTENDER_BLOCKS);
}

/* Whether "wait" waits until "ahead" is gone, if their modes conflict */
static bool
is_in_way(const Graph *g, const ZklStanding *ahead, const ZklStanding *wait)
{
	return !is_of_waiter(ahead, wait) && !is_given_up(g, ahead, wait);
}

/* Whom contender number i of a directory waits for in its queue */
static void
add_queue(Graph *g, const ZklFoundDirectory *directory, size_t i)
{
	const ZklStanding *wait = &directory->all[i];
	ptrdiff_t	at = wait->mode == ZKL_SHARED ? wait->writer :
	(ptrdiff_t) i - 1;

	if (ZKL_MUTANT(GRANTED_STILL_WAITS) && at < 0 && i + 1 < directory->n)
		(void) add_edge(g, node_of(directory, wait),
						node_of(directory, wait + 1), ZKL_CYCLE_QUEUE);
	if (ZKL_MUTANT(QUEUE_UNSEEN) && wait->mode == ZKL_SHARED && at > 0 &&
		directory->all[at].entry == NULL)
		return;
	while (at >= 0)
	{
		const ZklStanding *ahead = &directory->all[at];

		if (is_in_way(g, ahead, wait))
		{
			(void) add_edge(g, node_of(directory, wait),
							node_of(directory, ahead), ZKL_CYCLE_QUEUE);
			if (ahead->mode == ZKL_EXCLUSIVE)
				return;
		}
		at = wait->mode == ZKL_SHARED ? ahead->writer : at - 1;
	}
}

/* What the holder of a contender waits for */
static void
add_publication(Graph *g, const ZklFoundDirectory *directory,
				const ZklStanding *held)
{
	const ZklEntry *entry = held->entry;
	const ZklStanding *wait;
	ZklCycleEdge *edge;

	if (entry == NULL || entry->state != ZKL_READ_DONE ||
		entry->directory->state != ZKL_READ_DONE)
		return;
	wait = zkl_found_standing(entry->directory, &entry->data->wait);
	if (wait == NULL)
		return;
	edge = add_edge(g, node_of(directory, held),
					node_of(entry->directory, wait),
					entry->data->behind ? ZKL_CYCLE_DEPENDENT : ZKL_CYCLE_OWN);
	edge->czxid = entry->czxid;
	edge->id = entry->uuid;
}

static void
number_nodes(Graph *g)
{
	uint32_t	n = 0;
	ZklLink    *link,
			   *after;
	size_t		i;

	zkl_foreach(link, after, &g->d->search.found.directories)
	{
		ZklFoundDirectory *directory = zkl_container(ZklFoundDirectory, link, link);

		directory->first = n;
		n += (uint32_t) directory->n;
	}
	g->steps = zkl_found_alloc(g->d, (n + 1) * sizeof(ZklStep));
	g->graph.first = zkl_found_alloc(g->d, (n + 1) * sizeof(uint32_t));
	g->graph.came = zkl_found_alloc(g->d, (n + 1) * sizeof(uint32_t));
	g->graph.queue = zkl_found_alloc(g->d, (n + 1) * sizeof(uint32_t));
	g->path = zkl_found_alloc(g->d, (n + 1) * sizeof(uint32_t));
	g->room = 2 * n + 16;
	g->graph.edges = zkl_found_alloc(g->d, g->room * sizeof(ZklCycleEdge));
	zkl_cycle_begin(&g->graph, n);
	zkl_foreach(link, after, &g->d->search.found.directories)
	{
		const ZklFoundDirectory *directory = zkl_container(ZklFoundDirectory, link, link);

		for (i = 0; i < directory->n; i++)
			g->steps[directory->first + i] = (ZklStep)
		{
			directory, &directory->all[i], NULL
		};
	}
}

static void
make_graph(Graph *g)
{
	ZklLink    *link,
			   *after;
	size_t		i;

	number_nodes(g);
	zkl_foreach(link, after, &g->d->search.found.directories)
	{
		const ZklFoundDirectory *directory = zkl_container(ZklFoundDirectory, link, link);

		for (i = 0; i < directory->matter; i++)
		{
			add_queue(g, directory, i);
			add_publication(g, directory, &directory->all[i]);
		}
	}
}

/*
 * The node of the wait, if it stands in a queue and is published; or NO_EDGE.  If
 * somebody else has deleted its znode, it comes to light here: it has a watch only
 * while it is the first that waits.
 */
static uint32_t
find_node(const Graph *g, const ZklWait *w)
{
	const ZklRequest *r = w->r;
	const ZklFoundDirectory *directory =
	zkl_found_directory(g->d, r->lock->path, r->lock->dialect);
	const ZklStanding *standing = NULL;

	if (directory == NULL || !zkl_waits_is_published(w))
		return ZKL_NO_EDGE;
	standing = zkl_found_standing(directory, &r->node.uuid);
	if (standing == NULL)
	{
		zkl_reads_want_listing(g->d->m, r->lock);
		return ZKL_NO_EDGE;
	}
	return node_of(directory, standing);
}

/*
 * The number of edges from path[i] on that are one step: in a queue, those up to
 * the last contender that is itself in the way of the first.
 */
static uint32_t
length_of_step(const Graph *g, uint32_t i, uint32_t n)
{
	const ZklCycleEdge *edges = g->graph.edges;
	const ZklStanding *first = g->steps[edges[g->path[i]].from].contender;
	uint32_t	length = 1,
				j;

	for (j = i; j < n && edges[g->path[j]].kind == ZKL_CYCLE_QUEUE; j++)
	{
		const ZklStanding *ahead = g->steps[edges[g->path[j]].to].contender;

		if (zkl_mode_conflicts(first->mode, ahead->mode) &&
			is_in_way(g, ahead, first))
			length = j - i + 1;
	}
	return length;
}

/* The steps of a cycle of n edges; 0: there are too many. */
static size_t
make_steps(const Graph *g, uint32_t n, ZklStep *steps)
{
	size_t		nsteps = 0;
	uint32_t	i;

	for (i = 0; i < n; i += length_of_step(g, i, n))
	{
		const ZklCycleEdge *edge = &g->graph.edges[g->path[i]];

		if (nsteps == ZKL_MAX_CYCLE)
			return 0;
		steps[nsteps] = g->steps[edge->from];
		if (edge->kind != ZKL_CYCLE_QUEUE)
			steps[nsteps].entry = steps[nsteps].contender->entry;
		nsteps++;
	}
	return nsteps;
}

/* True: its end is being decided. */
static bool
judge_wait(const Graph *g, ZklWait *w)
{
	ZklStep		steps[ZKL_MAX_CYCLE];
	uint32_t	node = find_node(g, w);
	uint32_t	n = node != ZKL_NO_EDGE ?
	zkl_cycle_find(&g->graph, node, g->path) : 0;
	size_t		nsteps;

	if (n == 0)
		return false;
	nsteps = make_steps(g, n, steps);
	if (nsteps == 0)
	{
		search_give_up(g->d);
		return false;
	}
	return zkl_verdict_begin(g->d, w, steps, nsteps);
}

/* All that the search wanted is read: what follows for the waits */
static void
graph_judge(ZklDeadlock *d)
{
	Graph		g = {.d = d};
	bool		decided = false;
	ZklLink    *link,
			   *after;

	make_graph(&g);
	zkl_foreach(link, after, &d->search.asked)
	{
		ZklWait    *w = zkl_container(ZklWait, wanted, link);

		/* One at a time; the others are looked at again. */
		if (decided)
			zkl_waits_want(d, w);
		else
			decided = judge_wait(&g, w);
	}
}

/* ---- search ---- */

/*
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

/* Something was found that is too large to be decided. */
static void
search_give_up(ZklDeadlock *d)
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
	graph_judge(d);
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
