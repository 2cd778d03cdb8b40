/*
 * report.h
 *	  What the worker says in logs: of locks and deadlocks, of ZooKeeper and its
 *	  connection; and the statistics.
 */
#ifndef ZKL_WORKER_REPORT_H
#define ZKL_WORKER_REPORT_H

#include "deadlock/deadlock.h"
#include "observe/trace.h"
#include "shared/slot.h"
#include "wire/wire.h"

/* ---- tracefile ---- */

/*
 * The file of "zklock.trace": the core's trace, and what ZooKeeper's client library
 * says.  Worker only.
 *
 * The file is in the data directory, and only the server's owner can read it.
 * When it has 8 MB, it replaces zklock.trace.old.
 */

extern ZklTrace zkl_tracefile;	/* of the core */

/* Traces the core, as the settings say now. */
extern void zkl_tracefile_begin(void);

/* The settings may have changed. */
extern void zkl_tracefile_reload(void);

/* What ZooKeeper's client library says, in a LOG frame of a session process */
extern void zkl_tracefile_take_log(ZklWireReader *body);

/* Writes the lines that were collected; the last ones. */
extern void zkl_tracefile_flush(void);
extern void zkl_tracefile_end(void);

/* ---- diagnosis ---- */

/*
 * Says in words what is wrong with ZooKeeper, with a connection to it, or with the
 * lease.  Worker only.
 */

/* Why the core gives up a connection to that host: "rc" is the core's code. */
extern const char *zkl_diagnosis_of(int32 rc, const char *host);

/*
 * Logs, once for each host, that a ZooKeeper server of this version can lose
 * writes, if it can.
 */
extern void zkl_diagnosis_check_version(const char *version, const char *host);

/*
 * An attempt to connect has come to that step only, when its time was over or its
 * session process ended.
 */
extern const char *zkl_diagnosis_of_late(ZklWireStep last, const char *host);
extern const char *zkl_diagnosis_of_crash(ZklWireStep last);

/* Why a session process has ended: the rest of its frame GONE, behind the reason */
extern const char *zkl_diagnosis_of_gone(ZklWireGone reason,
										 ZklWireReader *body);

/*
 * Warns that ZooKeeper has lost writes, and tells what that means for locks and
 * what to do.
 */
extern void zkl_diagnosis_warn_of_lost_writes(void);

/*
 * The same if another server, or client (an empty name), may hold a lock beside this
 * server.  The path is shown up to "length".
 */
extern void zkl_diagnosis_warn_of_other_holder(const char *path, int length,
											   const char *other);

/*
 * Warns once for each session if its timeout is too short for the ensemble's
 * ticks.
 */
extern void zkl_diagnosis_check_timeout(uint32 timeout_ms, uint32 generation);

/* Logs the beginning and the end of each outage. */
extern void zkl_diagnosis_tick(void);

/* When to call tick at the latest, in µs of boottime.h; -1: no need. */
extern int64_t zkl_diagnosis_timer(void);

/* ---- report ---- */

/*
 * What the server log and the statistics tell of locks and deadlocks.  Worker only.
 */

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
