/*
 * renumber.h
 *	  The end of the sequence in a lock's directory.
 */
#ifndef ZKL_CORE_RENUMBER_H
#define ZKL_CORE_RENUMBER_H

#include "core/state.h"

/*
 * A number near the end has come, with a node created at zxid; the session is
 * gone, with all znodes.
 */
extern void zkl_renumber_begin(ZklLock *lock, int64_t zxid);
extern void zkl_renumber_session_lost(ZklLock *lock);

/* No answer will come, or a child has gone: the directory is tried again. */
extern void zkl_renumber_again(ZklLock *lock);

/* Tries to delete the directory of a lock that is renumbered. */
extern void zkl_renumber_start(ZklManager *m, ZklLock *lock);

/* A node with a good number was created at zxid; 0: it is not known when. */
extern void zkl_renumber_good(ZklManager *m, ZklLock *lock, int64_t zxid);

extern void zkl_renumber_reply(ZklManager *m, ZklLock *lock, ZklOpKind kind,
							   const ZklReply *reply);

#endif							/* ZKL_CORE_RENUMBER_H */
