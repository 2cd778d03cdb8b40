/*
 * target.h
 *	  What the worker's START says: where to connect to, and as whom.
 */
#ifndef ZKL_SESSION_TARGET_H
#define ZKL_SESSION_TARGET_H

#include "session/zk.h"

/* Reads the body of START.  False: it is malformed. */
extern bool zkl_target_read(ZklZkTarget *target, ZklWireReader *body);

/*
 * Finds the name and the addresses of target->host, "host:port[/chroot]".  A host
 * that cannot be found is reported as unreachable; naddresses then stays 0.
 */
extern void zkl_target_resolve(ZklZkTarget *target);

#endif							/* ZKL_SESSION_TARGET_H */
