/*
 * peers.h
 *	  The messages between the workers of simulated servers.
 *
 * They go a way of their own, which may be cut when that to ZooKeeper is not, and the
 * other way round.  Each may be lost, late, doubled, or overtake another one.
 */
#ifndef SIM_PEERS_H
#define SIM_PEERS_H

#include "host.h"

extern void peers_begin(void);

/* A worker tells another one: an ASK or a WORD. */
extern void peers_send(const Host *h, const ZklAction *action);

extern Time peers_due(void);
extern Time *peers_first(void); /* of the message that is due; NULL: none is */
extern void peers_step(void);
extern void peers_lose(void);	/* that message */

/* The worker tells its core whether there are peers, and takes what has come. */
extern void peers_take(Host *h);

/* It is gone, and all that has come with it. */
extern void peers_forget(Host *h);

#endif							/* SIM_PEERS_H */
