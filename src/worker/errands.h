/*
 * errands.h
 *	  The worker's side of errands: carries them out, and answers into the
 *	  asking backend's memory.  Worker only.
 */
#ifndef ZKL_WORKER_ERRANDS_H
#define ZKL_WORKER_ERRANDS_H

#include "core/manager.h"
#include "wire/wire.h"


/*
 * Tags of its operations have this bit, which the core's do not; bit 53 is the
 * that of epilogues.
 */
#define ZKL_ERRANDS_TAG		(UINT64CONST(1) << 54)

/* Sends one operation; the worker provides it. */
typedef void (*ZklErrandsSend) (const ZklAction *action);

extern void zkl_errands_begin(ZklErrandsSend send);

/* A slot of kind ERRAND was submitted. */
extern void zkl_errands_submit(int slotno);

/* Likewise, but an earlier worker may have done it, or be about to. */
extern void zkl_errands_restore(int slotno);

/* Its time is over: an AWAIT is answered as it is. */
extern void zkl_errands_expire(int slotno);

/* The backend no longer waits for it. */
extern void zkl_errands_release(int slotno);

extern void zkl_errands_reply(uint64 tag, const ZklReply *reply,
							  const ZklWireStat *stat);

/* The children of a directory have changed. */
extern void zkl_errands_event(const char *path);

extern void zkl_errands_disconnected(void);

/* Begins what waits, if reads can be believed now. */
extern void zkl_errands_tick(bool ready, int64 now);

/* When to call tick at the latest, in µs of CLOCK_BOOTTIME; -1: no need. */
extern int64 zkl_errands_timer(void);

/* A multi says how it went in the result of the operation that failed, or in all. */
extern int32 zkl_errands_rc(const ZklReply *reply);

#endif							/* ZKL_WORKER_ERRANDS_H */
