/*
 * incoming.h
 *	  What the session process says.  Worker only.
 */
#ifndef ZKL_WORKER_INCOMING_H
#define ZKL_WORKER_INCOMING_H

#include "core/manager.h"

/* Reads what is there, and hands it on. */
extern void zkl_incoming_take(ZklManager *manager);

#endif							/* ZKL_WORKER_INCOMING_H */
