/*
 * queueview.h
 *	  The worker's side of zk_queue(): reads a lock's directory and answers into
 *	  the asking backend's memory.  Worker only.
 *
 * One listing at a time, its nodes fetched a few at a time, so that it never
 * stands in the way of locks.
 */
#ifndef ZKL_WORKER_QUEUEVIEW_H
#define ZKL_WORKER_QUEUEVIEW_H

#include "core/manager.h"

/* Tags of its operations have this bit, which the core's do not. */
#define ZKL_QUEUEVIEW_TAG	(UINT64CONST(1) << 55)

/* Sends one read; the worker provides it. */
typedef void (*ZklQueueviewSend) (ZklSendKind send, uint64 tag,
								  const char *path);

extern void zkl_queueview_begin(ZklQueueviewSend send);

/* A slot of kind QUEUE was submitted. */
extern void zkl_queueview_submit(int slotno);

/* The backend no longer waits for it. */
extern void zkl_queueview_release(int slotno);

/* An answer to one of its reads.  ctime is in ms since 1970. */
extern void zkl_queueview_reply(uint64 tag, const ZklReply *reply, int64 ctime);

/* What was under way will not be answered: it begins again once ready. */
extern void zkl_queueview_disconnected(void);

/* Begins what waits, if reads can be believed now. */
extern void zkl_queueview_tick(bool ready, int64 now);

/* When to call tick at the latest, in µs of CLOCK_BOOTTIME; -1: no need. */
extern int64 zkl_queueview_timer(void);

#endif							/* ZKL_WORKER_QUEUEVIEW_H */
