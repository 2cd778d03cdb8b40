/*
 * janitor.h
 *	  Nodes of our session that no request claims.
 */
#ifndef ZKL_CORE_JANITOR_H
#define ZKL_CORE_JANITOR_H

#include "core/state.h"

/* Sends the next question of a walk, one at a time, once reads count. */
extern void zkl_janitor_send(ZklManager *m);

/* When to call that at the latest; -1: no need. */
extern int64_t zkl_janitor_timer(const ZklManager *m);
extern void zkl_janitor_reply(ZklManager *m, const ZklReply *reply);

/* A walk under way begins again on the next connection. */
extern void zkl_janitor_disconnected(ZklManager *m);

/* Deletes a node of our session that no request claims. */
extern void zkl_janitor_delete(ZklManager *m, const char *path);

/*
 * If there is nothing else to do: looks at a node that this manager made (for any
 * request or session) and no request claims, and deletes it if it belongs to our
 * session.
 */
extern void zkl_janitor_look(ZklManager *m, const char *directory,
							 const char *child);

/* Frees the memory of a walk. */
extern void zkl_janitor_stop(ZklManager *m);

/* Begins a walk through all directories once the connection is proved. */
extern void zkl_janitor_want(ZklManager *m);

/* Deletes a znode if it is of our session, and its wing disowns it. */
extern void zkl_janitor_ask(ZklManager *m, const char *path);

#endif							/* ZKL_CORE_JANITOR_H */
