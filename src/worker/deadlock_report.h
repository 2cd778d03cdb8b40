/*
 * deadlock_report.h
 *	  Deadlocks across servers, in words.  Worker only.
 */
#ifndef ZKL_WORKER_DEADLOCK_REPORT_H
#define ZKL_WORKER_DEADLOCK_REPORT_H

#include "deadlock/deadlock.h"

/*
 * The request of a slot fails because of a deadlock across servers: logs it, and
 * has a text ready for the backend.
 */
extern void zkl_deadlock_report(int slotno, const ZklDeadlockSteps *steps);

#endif							/* ZKL_WORKER_DEADLOCK_REPORT_H */
