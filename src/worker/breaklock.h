/*
 * breaklock.h
 *	  The worker's side of zk_break_lock(): removes the head of a lock's queue.
 *	  Worker only.
 */
#ifndef ZKL_WORKER_BREAKLOCK_H
#define ZKL_WORKER_BREAKLOCK_H

#include "core/manager.h"
#include "worker/queueview.h"

/* Tags of its operations have this bit beside that of zk_queue()'s. */
#define ZKL_BREAKLOCK_TAG	(ZKL_QUEUEVIEW_TAG | UINT64CONST(1) << 54)

/* Sends one operation; the worker provides it. */
typedef void (*ZklBreaklockSend) (const ZklAction *action);

extern void zkl_breaklock_begin(ZklBreaklockSend send);

/* A slot of kind BREAK was submitted. */
extern void zkl_breaklock_submit(int slotno);

/* The backend no longer waits for it. */
extern void zkl_breaklock_release(int slotno);

/* An answer to one of its operations.  version is that of the data read. */
extern void zkl_breaklock_reply(uint64 tag, const ZklReply *reply,
								int32 version);

/* What was under way will not be answered: it begins again once ready. */
extern void zkl_breaklock_disconnected(void);

/* Begins what waits, if reads can be believed now, and looks again. */
extern void zkl_breaklock_tick(bool ready, int64 now);

/* When to call tick at the latest, in µs of CLOCK_BOOTTIME; -1: no need. */
extern int64 zkl_breaklock_timer(void);

#endif							/* ZKL_WORKER_BREAKLOCK_H */
