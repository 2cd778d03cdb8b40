/*
 * graph.h
 *	  Which of the waits that a search is for are on a cycle.
 */
#ifndef ZKL_DEADLOCK_GRAPH_H
#define ZKL_DEADLOCK_GRAPH_H

#include "deadlock/deadlock_state.h"

/* All that the search wanted is read: what follows for the waits */
extern void zkl_graph_judge(ZklDeadlock *d);

#endif							/* ZKL_DEADLOCK_GRAPH_H */
