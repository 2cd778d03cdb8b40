/*
 * verdict.h
 *	  The decision that a wait of ours ends for a deadlock.
 */
#ifndef ZKL_DEADLOCK_VERDICT_H
#define ZKL_DEADLOCK_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deadlock/found.h"
#include "znode/znode.h"

/* ---- cycle ---- */

/*
 * The decision which wait ends, if some wait for each other in a cycle.
 *
 * A graph has a node for each contender.  Its edges are of three kinds:
 *
 *	  QUEUE		a contender waits for one ahead of it in its queue
 *	  OWN		a contender holds its lock, and its session waits as another
 *				contender.  This is a publication.
 *	  DEPENDENT	the same, but its session waits in PostgreSQL's own locks for
 *				the session that waits as the other contender
 *
 * A contender waits for all that its edges lead to, so each cycle is a deadlock.
 * Publications have an order.  On a cycle without DEPENDENT the greatest one
 * leads to the victim: it was written last, so its server sees the whole cycle.
 * On a cycle with DEPENDENT it is the greatest one of these: its server can look
 * again whether it is still so.  Hence each cycle has exactly one victim.
 */

#define ZKL_NO_EDGE		UINT32_MAX

typedef enum ZklCycleKind
{
	ZKL_CYCLE_QUEUE,
	ZKL_CYCLE_OWN,
	ZKL_CYCLE_DEPENDENT
} ZklCycleKind;

typedef struct ZklCycleEdge
{
	uint32_t	from;
	uint32_t	to;
	uint32_t	next;			/* of those from the same node; or NO_EDGE */
	ZklCycleKind kind;
	int64_t		czxid;			/* of the publication; these two are the order */
	ZklUuid		id;
} ZklCycleEdge;

typedef struct ZklCycleGraph
{
	uint32_t	nnodes;
	uint32_t   *first;			/* edge of each node */
	ZklCycleEdge *edges;
	uint32_t	nedges;

	/* room for the search, for each node */
	uint32_t   *came;
	uint32_t   *queue;
} ZklCycleGraph;

/* For a graph whose arrays are there: it has no edges. */
extern void zkl_cycle_begin(ZklCycleGraph *graph, uint32_t nnodes);

/* The caller fills in kind, czxid and id. */
extern ZklCycleEdge *zkl_cycle_add(ZklCycleGraph *graph, uint32_t from,
								   uint32_t to);

/*
 * The shortest cycle whose victim is the wait "wait": the number of its edges,
 * which go to path[] in order, from that node on; it has room for as many as there
 * are nodes.  0: there is none.
 */
extern uint32_t zkl_cycle_find(const ZklCycleGraph *graph, uint32_t wait,
							   uint32_t *path);

/* ---- verdict ---- */

#define ZKL_MAX_CYCLE	100		/* steps; longer ones are given up */

/* A step on a cycle: from a contender to the next */
typedef struct ZklStep
{
	const ZklFoundDirectory *directory; /* where the contender stands */
	const ZklStanding *contender;
	const ZklEntry *entry;		/* NULL: it waits for the next in its queue */
} ZklStep;

/*
 * w is the victim of this cycle, which begins with w's own contender: has it
 * decided, if its time has come.  True: that is under way.
 */
extern bool zkl_verdict_begin(ZklDeadlock *d, ZklWait *w,
							  const ZklStep *steps, size_t n);

extern void zkl_verdict_reply(ZklDeadlock *d, const ZklReply *reply);

/* All publications were listed on a proved connection. */
extern void zkl_verdict_listed(ZklDeadlock *d);

/* The connection is gone; the session is gone, or ZooKeeper has lost writes. */
extern void zkl_verdict_disconnected(ZklDeadlock *d);
extern void zkl_verdict_forget(void *wing);

#endif							/* ZKL_DEADLOCK_VERDICT_H */
