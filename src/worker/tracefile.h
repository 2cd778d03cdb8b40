/*
 * tracefile.h
 *	  The file that the core's trace goes to: "zklock.trace".  Worker only.
 *
 * It is in the data directory, for the server's owner alone, and together with
 * zklock.trace.old, which it becomes when it is full, it takes no more than
 * "zklock.trace_size".
 */
#ifndef ZKL_WORKER_TRACEFILE_H
#define ZKL_WORKER_TRACEFILE_H

#include "core/manager.h"

/* The manager to trace, as the settings say now */
extern void zkl_tracefile_begin(ZklManager *manager);

/* The settings may have changed. */
extern void zkl_tracefile_reload(void);

/* Writes what has come together. */
extern void zkl_tracefile_flush(void);

#endif							/* ZKL_WORKER_TRACEFILE_H */
