/*
 * ahead.h
 *	  The worker's side of the question what is ahead of a waiting request.
 *	  Worker only.
 */
#ifndef ZKL_WORKER_AHEAD_H
#define ZKL_WORKER_AHEAD_H

#include "worker/operation.h"

extern const ZklTaskOwner zkl_ahead_owner;

#endif							/* ZKL_WORKER_AHEAD_H */
