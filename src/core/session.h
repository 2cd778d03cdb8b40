/*
 * session.h
 *	  The session as the core sees it, and the chain of heartbeat nodes.
 */
#ifndef ZKL_CORE_SESSION_H
#define ZKL_CORE_SESSION_H

#include "core/state.h"

/* Makes the next heartbeat node, and the old one go. */
extern void zkl_session_open_chain(ZklManager *m);

/* The answer to the delete of an earlier heartbeat node; it is tried again. */
extern void zkl_session_swept(ZklManager *m, int32_t rc);
extern void zkl_session_sweep_again(ZklManager *m);
extern void zkl_session_chain_reply(ZklManager *m, const ZklReply *reply);

/* The path of heartbeat node number "chain", among the actions' strings. */
extern char *zkl_session_heartbeat(ZklManager *m, uint32_t chain);

/* Creates path and what is above it, but what "skip" has in common with it. */
extern void zkl_session_make_parents(ZklManager *m, ZklLock *lock,
									 const char *path,
									 const char *skip);

/* Gives this connection up. */
extern void zkl_session_give_up(ZklManager *m, int32_t rc);

/* A connection stands; it is gone; the session is gone. */
extern void zkl_session_begin(ZklManager *m, const ZklSession *session);
extern void zkl_session_disconnected(ZklManager *m);
extern void zkl_session_end(ZklManager *m);

#endif							/* ZKL_CORE_SESSION_H */
