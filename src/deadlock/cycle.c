/*
 * cycle.c
 *	  The decision which wait ends, if some wait for each other in a cycle.
 *
 * Owns nothing: the caller gives a graph, and room for the search.  Runs in the
 * worker (and in tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include <string.h>

#include "core/assert.h"
#include "deadlock/cycle.h"

void
zkl_cycle_begin(ZklCycleGraph *graph, uint32_t nnodes)
{
	graph->nnodes = nnodes;
	graph->nedges = 0;
	memset(graph->first, 0xff, nnodes * sizeof(uint32_t));
}

ZklCycleEdge *
zkl_cycle_add(ZklCycleGraph *graph, uint32_t from, uint32_t to)
{
	ZklCycleEdge *edge = &graph->edges[graph->nedges];

	ZKL_ASSERT(from < graph->nnodes && to < graph->nnodes);
	edge->from = from;
	edge->to = to;
	edge->next = graph->first[from];
	graph->first[from] = graph->nedges++;
	return edge;
}

static bool
is_smaller(const ZklCycleEdge *a, const ZklCycleEdge *b)
{
	if (a->czxid != b->czxid || ZKL_MUTANT(ORDER_BY_ZXID_ALONE))
		return a->czxid < b->czxid;
	return memcmp(a->id.bytes, b->id.bytes, ZKL_UUID_BYTES) < 0;
}

/* Whether "last" leads to the victim of a cycle that the edge is on, too */
static bool
may_be_on_cycle(const ZklCycleEdge *edge, const ZklCycleEdge *last)
{
	if (edge->kind == ZKL_CYCLE_QUEUE)
		return true;
	if (edge->kind == ZKL_CYCLE_OWN && last->kind == ZKL_CYCLE_DEPENDENT)
		return true;
	return edge->kind == last->kind && is_smaller(edge, last);
}

/* How many edges lead from "wait" to the beginning of "last"; 0: none do. */
static uint32_t
search(const ZklCycleGraph *graph, uint32_t wait, const ZklCycleEdge *last)
{
	uint32_t	head = 0,
				tail = 0,
				depth = 0,
				end_of_depth = 1;

	memset(graph->came, 0xff, graph->nnodes * sizeof(uint32_t));
	graph->queue[tail++] = wait;
	while (head < tail)
	{
		uint32_t	node = graph->queue[head++];
		uint32_t	i;

		for (i = graph->first[node]; i != ZKL_NO_EDGE; i = graph->edges[i].next)
		{
			const ZklCycleEdge *edge = &graph->edges[i];

			if (edge->to == wait || graph->came[edge->to] != ZKL_NO_EDGE ||
				!may_be_on_cycle(edge, last))
				continue;
			graph->came[edge->to] = i;
			if (edge->to == last->from)
				return depth + 1;
			graph->queue[tail++] = edge->to;
		}
		if (head == end_of_depth)
		{
			depth++;
			end_of_depth = tail;
		}
	}
	return 0;
}

uint32_t
zkl_cycle_find(const ZklCycleGraph *graph, uint32_t wait, uint32_t *path)
{
	uint32_t	shortest = 0,
				i;

	for (i = 0; i < graph->nedges; i++)
	{
		const ZklCycleEdge *last = &graph->edges[i];
		uint32_t	n;
		uint32_t	at;

		if (last->to != wait || last->kind == ZKL_CYCLE_QUEUE)
			continue;
		n = search(graph, wait, last);
		if (n == 0 || (shortest != 0 && n + 1 >= shortest))
			continue;
		shortest = n + 1;
		path[n] = i;
		for (at = last->from; n > 0; at = graph->edges[path[n]].from)
			path[--n] = graph->came[at];
	}
	return shortest;
}
