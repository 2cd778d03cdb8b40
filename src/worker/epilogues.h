/*
 * epilogues.h
 *	  The worker's side of epilogues: writes ahead of a lock's release.  Worker
 *	  only.
 */
#ifndef ZKL_WORKER_EPILOGUES_H
#define ZKL_WORKER_EPILOGUES_H

#include "core/manager.h"
#include "worker/errands.h"

/* Tags of its operations have these bits; those of errands have not both. */
#define ZKL_EPILOGUES_TAG		(ZKL_ERRANDS_TAG | UINT64CONST(1) << 53)

/* Sends an operation; and is told which slot can be released now. */
extern void zkl_epilogues_begin(ZklErrandsSend send, void (*done) (int slotno));

/*
 * A slot of kind LOCK was released, perhaps by an earlier worker's time.  True:
 * it has an epilogue, and is released once that is written.
 */
extern bool zkl_epilogues_take(int slotno);

extern void zkl_epilogues_reply(uint64 tag, const ZklReply *reply,
								int32 version);
extern void zkl_epilogues_disconnected(void);

/* Begins what waits, if reads can be believed now. */
extern void zkl_epilogues_tick(bool ready, int64 now);

/* When to call tick at the latest, in µs of CLOCK_BOOTTIME; -1: no need. */
extern int64 zkl_epilogues_timer(void);

#endif							/* ZKL_WORKER_EPILOGUES_H */
