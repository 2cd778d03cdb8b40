/*
 * surveys.h
 *	  The worker's side of zk_fleet_locks().  Worker only.
 */
#ifndef ZKL_WORKER_SURVEYS_H
#define ZKL_WORKER_SURVEYS_H

#include "worker/operation.h"

extern ZklTaskOwner zkl_surveys_owner;

#endif							/* ZKL_WORKER_SURVEYS_H */
