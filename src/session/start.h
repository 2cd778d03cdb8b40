/*
 * start.h
 *	  What the worker's START says: where to connect to, and as whom.
 */
#ifndef ZKL_SESSION_START_H
#define ZKL_SESSION_START_H

#include "session/zk.h"

/* Reads the body of START.  False: it is malformed. */
extern bool zkl_start_read(ZklZkStart *start, ZklWireReader *body);

/*
 * Finds the name and the addresses of start->host, "host:port[/chroot]".  A host
 * that cannot be found is reported as unreachable; naddresses then stays 0.
 */
extern void zkl_start_resolve(ZklZkStart *start);

#endif							/* ZKL_SESSION_START_H */
