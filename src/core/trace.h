/*
 * trace.h
 *	  Tells, line by line, what happens to a manager and what it does about it.
 *
 * If the trace is on, each event of manager.h calls its function here before it
 * changes anything.
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

extern void zkl_trace_submit(ZklManager *m, uint32_t request,
							 const ZklDemand *demand);
extern void zkl_trace_restore(ZklManager *m, uint32_t request,
							  const ZklRestored *slot);

/* A time-out, a release or an overdue hold, by name; end: the release's, or NULL */
extern void zkl_trace_request(ZklManager *m, const char *what,
							  uint32_t request, const ZklEnd *end);

/* The host told which owners depend on that of a request. */
extern void zkl_trace_dependents(ZklManager *m, uint32_t request, size_t n);

/* What became of the connection; session: the one that it has, or NULL */
extern void zkl_trace_session(ZklManager *m, const char *what,
							  const ZklSession *session);
extern void zkl_trace_reply(ZklManager *m, uint64_t tag,
							const ZklReply *reply);
extern void zkl_trace_event(ZklManager *m, ZklEventKind kind,
							const char *path);

/* What an operation under way is for; ZKL_OP_FREE: unknown. */
extern const char *zkl_trace_op_name(ZklOpKind kind);

/* The actions since the last call */
extern void zkl_trace_actions(ZklManager *m);

/* The actions are cleared. */
extern void zkl_trace_cleared(ZklManager *m);

#endif							/* ZKL_CORE_TRACE_H */
