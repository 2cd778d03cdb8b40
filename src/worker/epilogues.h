/*
 * epilogues.h
 *	  The worker's side of epilogues: writes ahead of a lock's release.  Worker
 *	  only.
 */
#ifndef ZKL_WORKER_EPILOGUES_H
#define ZKL_WORKER_EPILOGUES_H

#include "worker/operation.h"

/* For released slots of kind LOCK that name a segment */
extern const ZklTaskOwner zkl_epilogues_owner;

#endif							/* ZKL_WORKER_EPILOGUES_H */
