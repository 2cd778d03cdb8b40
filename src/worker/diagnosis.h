/*
 * diagnosis.h
 *	  Says in words what is wrong with ZooKeeper, with a connection to it, or with
 *	  the lease.  Worker only.
 */
#ifndef ZKL_WORKER_DIAGNOSIS_H
#define ZKL_WORKER_DIAGNOSIS_H

#include "wire/wire.h"

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

#endif							/* ZKL_WORKER_DIAGNOSIS_H */
