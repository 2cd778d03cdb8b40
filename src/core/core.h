/*
 * core.h
 *	  What all files of the core need: memory, actions, operations under way.
 */
#ifndef ZKL_CORE_CORE_H
#define ZKL_CORE_CORE_H

#include "core/state.h"

/* For a manager with nothing but its config, and at its end. */
extern void zkl_core_begin(ZklManager *m);
extern void zkl_core_end(ZklManager *m);

extern void *zkl_core_alloc(ZklManager *m, size_t size);
extern void zkl_core_release(ZklManager *m, void *pointer);

/* Memory for an action, until the actions are cleared; aligned to 16. */
extern char *zkl_core_text(ZklManager *m, size_t size);
extern char *zkl_core_join(ZklManager *m, const char *a, const char *b,
						   const char *c);

/* Another action, all zero but for its kind; good until the next one. */
extern ZklAction *zkl_core_act(ZklManager *m, ZklActionKind kind);

/* Changes the state of a watch, and the count of those that are armed. */
extern void zkl_core_watch(ZklManager *m, ZklWatchState *watch,
						   ZklWatchState state);

/* Forgets all actions, and their strings. */
extern void zkl_core_clear(ZklManager *m);

/*
 * Another operation; good until the next one.  Its lock, if any, is pinned
 * until somebody who has taken the answer unpins it.
 */
extern ZklOp *zkl_core_op(ZklManager *m, ZklOpKind kind, ZklLock *lock,
						  ZklRequest *request);
extern uint64_t zkl_core_tag(const ZklManager *m, const ZklOp *op);
extern ZklAction *zkl_core_send(ZklManager *m, ZklOp *op, ZklSendKind send,
								const char *path, bool watch);

/* The operation with this tag ends; a copy of it.  False: there is none. */
extern bool zkl_core_answered(ZklManager *m, uint64_t tag, ZklOp *op);

/* None of the operations under way will be answered. */
extern void zkl_core_forget_ops(ZklManager *m);

/* Gives this connection up. */
extern void zkl_core_reconnect(ZklManager *m, int32_t rc);

/* Whether something was refused that is to be tried again after stuck_until */
extern bool zkl_core_is_stuck(const ZklManager *m);

/* Before something of that kind is noted */
extern void zkl_core_retry_later(ZklManager *m);

#endif							/* ZKL_CORE_CORE_H */
