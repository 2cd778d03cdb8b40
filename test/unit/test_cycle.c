/*
 * test_cycle.c
 *	  Which wait ends if some wait for each other: case by case, and against all
 *	  cycles of random graphs.
 */
#include "deadlock/verdict.h"
#include "unit.h"

#define MAX_NODES	256
#define MAX_EDGES	1024

static ZklCycleGraph graph;
static ZklCycleEdge edges[MAX_EDGES];
static uint32_t first[MAX_NODES];
static uint32_t came[MAX_NODES];
static uint32_t queue[MAX_NODES];
static uint32_t path[MAX_NODES];

static void
begin(uint32_t nodes)
{
	graph.edges = edges;
	graph.first = first;
	graph.came = came;
	graph.queue = queue;
	zkl_cycle_begin(&graph, nodes);
}

static void
add(uint32_t from, uint32_t to, ZklCycleKind kind, int64_t czxid, uint8_t id)
{
	ZklCycleEdge *edge = zkl_cycle_add(&graph, from, to);

	edge->kind = kind;
	edge->czxid = czxid;
	memset(&edge->id, id, sizeof(edge->id));
}

static void
wait_for(uint32_t from, uint32_t to)
{
	add(from, to, ZKL_CYCLE_QUEUE, 0, 0);
}

/*
 * Two sessions: 0 and 2 are their waits, 1 and 3 what they hold.  Wait 0 is behind
 * 3, wait 2 behind 1.
 */
static void
make_pair(ZklCycleKind kind0, int64_t czxid0, uint8_t id0,
		  ZklCycleKind kind2, int64_t czxid2, uint8_t id2)
{
	begin(4);
	wait_for(0, 3);
	wait_for(2, 1);
	add(1, 0, kind0, czxid0, id0);
	add(3, 2, kind2, czxid2, id2);
}

static void
pairs(void)
{
	make_pair(ZKL_CYCLE_OWN, 7, 1, ZKL_CYCLE_OWN, 5, 2);
	CHECK_INT(zkl_cycle_find(&graph, 0, path), 4);
	CHECK_INT(edges[path[0]].from, 0);
	CHECK_INT(edges[path[1]].from, 3);
	CHECK_INT(edges[path[2]].from, 2);
	CHECK_INT(edges[path[3]].from, 1);
	CHECK_INT(zkl_cycle_find(&graph, 2, path), 0);

	/* one batch wrote both */
	make_pair(ZKL_CYCLE_OWN, 7, 1, ZKL_CYCLE_OWN, 7, 2);
	CHECK_INT(zkl_cycle_find(&graph, 0, path), 0);
	CHECK_INT(zkl_cycle_find(&graph, 2, path), 4);

	/* who has an edge in PostgreSQL decides, however early it was written */
	make_pair(ZKL_CYCLE_OWN, 7, 1, ZKL_CYCLE_DEPENDENT, 5, 2);
	CHECK_INT(zkl_cycle_find(&graph, 0, path), 0);
	CHECK_INT(zkl_cycle_find(&graph, 2, path), 4);
	make_pair(ZKL_CYCLE_DEPENDENT, 7, 1, ZKL_CYCLE_DEPENDENT, 5, 2);
	CHECK_INT(zkl_cycle_find(&graph, 0, path), 4);
	CHECK_INT(zkl_cycle_find(&graph, 2, path), 0);
}

static void
no_cycle(void)
{
	begin(6);
	CHECK_INT(zkl_cycle_find(&graph, 0, path), 0);

	/* 4 waits for a cycle, and is on none */
	make_pair(ZKL_CYCLE_OWN, 7, 1, ZKL_CYCLE_OWN, 5, 2);
	graph.nnodes = 6;
	first[4] = first[5] = ZKL_NO_EDGE;
	wait_for(4, 3);
	add(5, 4, ZKL_CYCLE_OWN, 9, 3);
	CHECK_INT(zkl_cycle_find(&graph, 4, path), 0);
	CHECK_INT(zkl_cycle_find(&graph, 0, path), 4);
}

/* A wait behind itself, through PostgreSQL only, or through others in a queue */
static void
short_cycles(void)
{
	begin(3);
	wait_for(0, 1);
	add(1, 0, ZKL_CYCLE_DEPENDENT, 5, 1);
	CHECK_INT(zkl_cycle_find(&graph, 0, path), 2);
	begin(3);
	wait_for(0, 2);
	wait_for(2, 1);
	add(1, 0, ZKL_CYCLE_DEPENDENT, 5, 1);
	CHECK_INT(zkl_cycle_find(&graph, 0, path), 3);

	/* the shorter one of two */
	wait_for(0, 1);
	CHECK_INT(zkl_cycle_find(&graph, 0, path), 2);
}

static void
one_cycle(uint32_t sessions)
{
	uint32_t	i;

	begin(2 * sessions);
	for (i = 0; i < sessions; i++)
	{
		wait_for(2 * i, 2 * ((i + 1) % sessions) + 1);
		add(2 * i + 1, 2 * i, ZKL_CYCLE_OWN, 1000 - i, 1);
	}
}

static void
long_cycles(void)
{
	one_cycle(MAX_NODES / 2);
	CHECK_INT(zkl_cycle_find(&graph, 0, path), MAX_NODES);
	CHECK_INT(zkl_cycle_find(&graph, 2, path), 0);
}

/* ---- against all cycles ---- */

static uint32_t walked[MAX_NODES];
static uint32_t shortest[MAX_NODES];	/* of those whose victim a node is */

static void
note_cycle(uint32_t n)
{
	const ZklCycleEdge *last = NULL;
	uint32_t	i;

	for (i = 0; i < n; i++)
	{
		const ZklCycleEdge *edge = &edges[walked[i]];

		if (edge->kind == ZKL_CYCLE_QUEUE)
			continue;
		if (last == NULL || edge->kind > last->kind ||
			(edge->kind == last->kind &&
			 (edge->czxid > last->czxid ||
			  (edge->czxid == last->czxid &&
			   edge->id.bytes[0] > last->id.bytes[0]))))
			last = edge;
	}
	if (last != NULL && (shortest[last->to] == 0 || n < shortest[last->to]))
		shortest[last->to] = n;
}

static void
walk(uint32_t start, uint32_t at, uint32_t n, bool *been)
{
	uint32_t	i;

	for (i = first[at]; i != ZKL_NO_EDGE; i = edges[i].next)
	{
		walked[n] = i;
		if (edges[i].to == start)
			note_cycle(n + 1);
		else if (edges[i].to > start && !been[edges[i].to])
		{
			been[edges[i].to] = true;
			walk(start, edges[i].to, n + 1, been);
			been[edges[i].to] = false;
		}
	}
}

/* Even nodes wait; odd ones hold, each published for one wait. */
static void
make_random(uint32_t nodes)
{
	uint32_t	i;
	int			n;

	begin(nodes);
	for (i = 0; i < nodes; i++)
	{
		if (i % 2 == 1)
			add(i, 2 * unit_random_below(nodes / 2),
				unit_random_below(3) == 0 ? ZKL_CYCLE_DEPENDENT : ZKL_CYCLE_OWN,
				unit_random_below(4), (uint8_t) i);
		else
			for (n = (int) unit_random_below(3); n >= 0; n--)
				wait_for(i, 1 + 2 * unit_random_below(nodes / 2));
	}
}

static void
against_all_cycles(void)
{
	int			round;
	uint32_t	i;

	for (round = 0; round < 3000; round++)
	{
		bool		been[MAX_NODES] = {false};

		make_random(2 * (1 + unit_random_below(5)));
		memset(shortest, 0, sizeof(shortest));
		for (i = 0; i < graph.nnodes; i++)
			walk(i, i, 0, been);
		for (i = 0; i < graph.nnodes; i++)
			CHECK_INT(zkl_cycle_find(&graph, i, path), shortest[i]);
	}
}

int
main(void)
{
	unit_start();
	RUN(pairs);
	RUN(no_cycle);
	RUN(short_cycles);
	RUN(long_cycles);
	RUN(against_all_cycles);
	return unit_finish();
}
