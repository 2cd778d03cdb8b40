/*
 * errands.h
 *	  What backends have the worker read of znodes and write to them: errands,
 *	  and epilogues of holds.
 */
#ifndef ZKL_WORKER_ERRANDS_H
#define ZKL_WORKER_ERRANDS_H

#include "core/manager.h"
#include "shared/errand_layout.h"
#include "wire/wire.h"
#include "worker/operation.h"

/* ---- epilogues ---- */

/*
 * The worker's side of epilogues: writes ahead of a lock's release.  Worker only.
 */

/* For released slots of kind LOCK that name a segment */
extern const ZklTaskOwner zkl_epilogues_owner;

/* ---- errands ---- */

/*
 * The worker's side of errands: carries them out, and answers into the memory of the
 * backend that asked.  Worker only.
 */

extern const ZklTaskOwner zkl_errands_owner;

/* The children of a directory have changed, or a watch on them has ended. */
extern void zkl_errands_event(const char *path);

#endif							/* ZKL_WORKER_ERRANDS_H */
