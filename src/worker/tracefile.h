/*
 * tracefile.h
 *	  The file of "zklock.trace": the core's trace, and what ZooKeeper's client
 *	  library says.  Worker only.
 *
 * The file is in the data directory, and only the server's owner can read it.
 * When it has 8 MB, it replaces zklock.trace.old.
 */
#ifndef ZKL_WORKER_TRACEFILE_H
#define ZKL_WORKER_TRACEFILE_H

#include "observe/trace.h"
#include "wire/wire.h"

extern ZklTrace zkl_tracefile;	/* of the core */

/* Traces the core, as the settings say now. */
extern void zkl_tracefile_begin(void);

/* The settings may have changed. */
extern void zkl_tracefile_reload(void);

/* What ZooKeeper's client library says, in a LOG frame of a session process */
extern void zkl_tracefile_take_log(ZklWireReader *body);

/* Writes the lines that were collected. */
extern void zkl_tracefile_flush(void);

#endif							/* ZKL_WORKER_TRACEFILE_H */
