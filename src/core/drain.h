/*
 * drain.h
 *	  The end of the sequence in a lock's directory.
 */
#ifndef ZKL_CORE_DRAIN_H
#define ZKL_CORE_DRAIN_H

#include "core/state.h"

/* Tries to delete the directory of a lock that is draining. */
extern void zkl_drain_start(ZklManager *m, ZklLock *lock);

extern void zkl_drain_reply(ZklManager *m, ZklLock *lock, ZklOpKind kind,
							const ZklReply *reply);

#endif							/* ZKL_CORE_DRAIN_H */
