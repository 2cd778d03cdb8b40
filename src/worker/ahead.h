/*
 * ahead.h
 *	  The worker's side of the question what is ahead of a waiting request.
 *	  Worker only.
 */
#ifndef ZKL_WORKER_AHEAD_H
#define ZKL_WORKER_AHEAD_H

#include "core/manager.h"
#include "worker/operation.h"

extern ZklTaskOwner zkl_ahead_owner;

extern void zkl_ahead_begin(const ZklManager *manager);

#endif							/* ZKL_WORKER_AHEAD_H */
