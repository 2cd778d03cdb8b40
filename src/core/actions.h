/*
 * actions.h
 *	  The actions for the host, in order.
 */
#ifndef ZKL_CORE_ACTIONS_H
#define ZKL_CORE_ACTIONS_H

#include "core/state.h"

/*
 * Adds an action, all zero but its kind; the pointer is good until the next.
 */
extern ZklAction *zkl_actions_add(ZklManager *m, ZklActionKind kind);

/* Memory for an action, until the actions are cleared; aligned to 16. */
extern char *zkl_actions_text(ZklManager *m, size_t size);
extern char *zkl_actions_join(ZklManager *m, const char *a, const char *b,
							  const char *c);

/* Forgets all actions and their strings, and gives the memory back. */
extern void zkl_actions_clear(ZklManager *m);
extern void zkl_actions_free(ZklManager *m);

#endif							/* ZKL_CORE_ACTIONS_H */
