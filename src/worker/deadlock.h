/*
 * deadlock.h
 *	  Deadlocks across servers, in words.  Worker only.
 */
#ifndef ZKL_WORKER_DEADLOCK_H
#define ZKL_WORKER_DEADLOCK_H

#include "core/manager.h"

/*
 * The request of a slot fails because of a deadlock, which has edges: logs it,
 * and has a text ready for the backend.
 */
extern void zkl_deadlock_report(int slotno, const ZklAction *action);

#endif							/* ZKL_WORKER_DEADLOCK_H */
