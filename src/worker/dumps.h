/*
 * dumps.h
 *	  The worker's side of zk_dump().  Worker only.
 */
#ifndef ZKL_WORKER_DUMPS_H
#define ZKL_WORKER_DUMPS_H

#include "worker/operation.h"

/* Answers slots of kind DUMP at once. */
extern const ZklTaskOwner zkl_dumps_owner;

#endif							/* ZKL_WORKER_DUMPS_H */
