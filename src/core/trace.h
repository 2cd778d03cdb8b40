/*
 * trace.h
 *	  Tells, line by line, what happens to a manager and what it does about it.
 */
#ifndef ZKL_CORE_TRACE_H
#define ZKL_CORE_TRACE_H

#include "core/state.h"

static inline bool
zkl_trace_is_on(const ZklManager *m)
{
	return m->trace.write != NULL;
}

extern void zkl_trace_begin(ZklManager *m, ZklWriteLine write, void *context);

/* An event, before it changes anything */
extern void zkl_trace_event(ZklManager *m, const ZklEvent *event);

/* What a restarted worker finds in a slot */
extern void zkl_trace_restore(ZklManager *m, uint32_t request,
							  const ZklRestored *slot);

/* What an operation under way is for; ZKL_OP_FREE: unknown. */
extern const char *zkl_trace_op_name(const ZklManager *m, ZklOpKind kind);

/* The actions since the last call */
extern void zkl_trace_actions(ZklManager *m);

/* The actions are cleared. */
extern void zkl_trace_cleared(ZklManager *m);

#endif							/* ZKL_CORE_TRACE_H */
