/*
 * report.h
 *	  What the server log and the statistics tell of locks and deadlocks.  Worker
 *	  only.
 */
#ifndef ZKL_WORKER_REPORT_H
#define ZKL_WORKER_REPORT_H

#include "deadlock/deadlock.h"
#include "shared/slot.h"

/* Counts what sessions had of a slot's lock without the worker. */
extern void zkl_report_uncounted(int slotno, const ZklSlot *slot);

/* A request was granted. */
extern void zkl_report_granted(int slotno);

/* A hold was lost. */
extern void zkl_report_lost(const ZklSlot *slot, ZklError error);

/* A RELEASED slot of a lock is about to be freed. */
extern void zkl_report_freed(const ZklSlot *slot);

/*
 * The request of a slot fails because of a deadlock across servers: logs it, and
 * has a text ready for the backend.
 */
extern void zkl_report_deadlock(int slotno, const ZklDeadlockSteps *steps);

#endif							/* ZKL_WORKER_REPORT_H */
