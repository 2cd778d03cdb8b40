/*
 * locklog.h
 *	  What the server log tells of locks: "zklock.log_locks".  Worker only.
 */
#ifndef ZKL_WORKER_LOCKLOG_H
#define ZKL_WORKER_LOCKLOG_H

#include "shared/slot.h"

/* A request was granted. */
extern void zkl_locklog_granted(int slotno);

/* A hold was lost. */
extern void zkl_locklog_lost(const ZklSlot *slot, ZklError error);

/* A slot is about to be freed. */
extern void zkl_locklog_freed(const ZklSlot *slot);

#endif							/* ZKL_WORKER_LOCKLOG_H */
