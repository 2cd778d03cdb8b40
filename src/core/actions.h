/*
 * actions.h
 *	  What the host is to do, in this order.
 */
#ifndef ZKL_CORE_ACTIONS_H
#define ZKL_CORE_ACTIONS_H

#include "core/state.h"

/* Another action, all zero but for its kind; good until the next one. */
extern ZklAction *zkl_actions_add(ZklManager *m, ZklActionKind kind);

/* Memory for an action, until the actions are cleared; aligned to 16. */
extern char *zkl_actions_text(ZklManager *m, size_t size);
extern char *zkl_actions_join(ZklManager *m, const char *a, const char *b,
							  const char *c);

/* Forgets all actions, and their strings; gives their memory back. */
extern void zkl_actions_clear(ZklManager *m);
extern void zkl_actions_free(ZklManager *m);

#endif							/* ZKL_CORE_ACTIONS_H */
