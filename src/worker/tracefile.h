/*
 * tracefile.h
 *	  The file that the core's trace goes to: "zklock.trace".  Worker only.
 *
 * The file is in the data directory, and only the server's owner can read it.
 * When it is full, it replaces zklock.trace.old.  Both together take no more than
 * "zklock.trace_size": if that is lowered, a file that is too large is removed.
 */
#ifndef ZKL_WORKER_TRACEFILE_H
#define ZKL_WORKER_TRACEFILE_H

#include "core/manager.h"

/* The manager to trace, as the settings say now */
extern void zkl_tracefile_begin(ZklManager *manager);

/* The settings may have changed. */
extern void zkl_tracefile_reload(void);

/* Writes the lines that were collected. */
extern void zkl_tracefile_flush(void);

#endif							/* ZKL_WORKER_TRACEFILE_H */
