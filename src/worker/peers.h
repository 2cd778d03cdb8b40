/*
 * peers.h
 *	  Messages between this server's worker and those of other servers, by UDP.
 */
#ifndef ZKL_WORKER_PEERS_H
#define ZKL_WORKER_PEERS_H

#include "core/manager.h"
#include "shared/settings.h"
#include "wire/peer.h"

/* ---- peer_lookup ---- */

/*
 * Where the workers of other servers hear, by their ZooKeeper sessions.  Worker
 * only.
 */

typedef enum ZklPeerLookup
{
	ZKL_PEER_KNOWN,
	ZKL_PEER_SOUGHT,			/* it is being read */
	ZKL_PEER_UNKNOWN			/* the server tells none, or is gone */
} ZklPeerLookup;

/* ---- peers ---- */

/*
 * Messages between this server's worker and those of other servers, by UDP.  Worker
 * only.
 */

extern void zkl_peers_begin(void);

/*
 * A connection to ZooKeeper stands.  Our end of it has this address, in digits; empty:
 * it is not known.
 */
extern void zkl_peers_connected(const char *address, size_t length);

/* The settings may have changed. */
extern void zkl_peers_reload(void);

/*
 * Opens the socket, or closes it, as the settings are; tells the core what has
 * arrived, and whether messages can be sent.
 */
extern void zkl_peers_take(void);

/* When to call it at the latest, by boottime.h in µs; -1: no need. */
extern int64 zkl_peers_timer(void);

/*
 * Sends a message at once, or as soon as the address of its server has been read.
 * What cannot be sent is dropped and counted.
 */
extern void zkl_peers_send(ZklPeerKind kind, const ZklPeerMessage *message);

#endif							/* ZKL_WORKER_PEERS_H */
