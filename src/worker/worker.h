/*
 * worker.h
 *	  What the files of the worker share.  Worker only.
 */
#ifndef ZKL_WORKER_WORKER_H
#define ZKL_WORKER_WORKER_H

#include "core/manager.h"

/* The core; made before any other part of the worker begins */
extern ZklManager *zkl_core;

/* Tells it an event that happens now. */
extern void zkl_worker_tell(const ZklEvent *event);

#endif							/* ZKL_WORKER_WORKER_H */
