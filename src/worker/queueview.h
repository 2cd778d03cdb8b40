/*
 * queueview.h
 *	  The worker's side of zk_queue(): reads a lock's directory and answers into
 *	  the memory of the backend that asked.  Worker only.
 */
#ifndef ZKL_WORKER_QUEUEVIEW_H
#define ZKL_WORKER_QUEUEVIEW_H

#include "worker/operation.h"

extern ZklTaskOwner zkl_queueview_owner;

#endif							/* ZKL_WORKER_QUEUEVIEW_H */
