/*
 * peer_lookup.h
 *	  Where the workers of other servers hear, by their ZooKeeper sessions.  Worker
 *	  only.
 */
#ifndef ZKL_WORKER_PEER_LOOKUP_H
#define ZKL_WORKER_PEER_LOOKUP_H

#include "shared/settings.h"

typedef enum ZklPeerLookup
{
	ZKL_PEER_KNOWN,
	ZKL_PEER_SOUGHT,			/* it is being read */
	ZKL_PEER_UNKNOWN			/* the server tells none, or is gone */
} ZklPeerLookup;

/* Calls "done" each time that something was read, or could not be. */
extern void zkl_peer_lookup_begin(void (*done) (void));

/*
 * Finds the address of a session.  What is not known, or was read long ago, is read
 * from the directory of the fleet.  With KNOWN, *address is valid until the next call.
 */
extern ZklPeerLookup zkl_peer_lookup(int64 session, const ZklPeerAddress **address);

/* Forgets all addresses, and reads nothing any more. */
extern void zkl_peer_lookup_end(void);

#endif							/* ZKL_WORKER_PEER_LOOKUP_H */
