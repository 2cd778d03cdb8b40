/*
 * trace.h
 *	  Tells, line by line, what happens to a manager and what it does about it.
 *
 * The host calls this, for it has both in its hands: an event, before the manager
 * gets it, and the actions, before they are carried out.  The lines contain no
 * password, and no data of a znode.
 */
#ifndef ZKL_OBSERVE_TRACE_H
#define ZKL_OBSERVE_TRACE_H

#include "core/state.h"

/* Is handed one line of text, NUL terminated, without an end of line. */
typedef void (*ZklWriteLine) (void *context, const char *line);

typedef struct ZklTrace
{
	const ZklManager *m;
	ZklWriteLine write;			/* NULL: the trace is off */
	void	   *context;
	size_t		nactions;		/* that are told of those that there are */
} ZklTrace;

/* From now on */
extern void zkl_trace_begin(ZklTrace *t, const ZklManager *m,
							ZklWriteLine write, void *context);

extern void zkl_trace_event(ZklTrace *t, const ZklEvent *event);

/* The actions since the last call */
extern void zkl_trace_actions(ZklTrace *t);

/* The same, before they are cleared */
extern void zkl_trace_clear(ZklTrace *t);

/* What an operation is for; NULL: one that is not under way any more */
extern const char *zkl_trace_operation(const ZklManager *m, const ZklOp *op);

#endif							/* ZKL_OBSERVE_TRACE_H */
