/*
 * dumps.h
 *	  The worker's side of zk_dump().  Worker only.
 */
#ifndef ZKL_WORKER_DUMPS_H
#define ZKL_WORKER_DUMPS_H

#include "core/manager.h"
#include "worker/operation.h"

extern void zkl_dumps_begin(const ZklManager *manager);

/* Answers slots of kind DUMP at once. */
extern ZklTaskOwner zkl_dumps_owner;

#endif							/* ZKL_WORKER_DUMPS_H */
