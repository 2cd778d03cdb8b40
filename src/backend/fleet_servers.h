/*
 * fleet_servers.h
 *	  Reading the directory of the fleet.
 */
#ifndef ZKL_BACKEND_FLEET_SERVERS_H
#define ZKL_BACKEND_FLEET_SERVERS_H

#include "shared/fleet.h"

typedef struct ZklFleetServer
{
	uint64		system;			/* identifier */
	int64		session_id;
	bool		readable;		/* else its entry is empty */
	ZklFleetEntry entry;
} ZklFleetServer;

/*
 * Calls fn for each server of the fleet, in the order of their system
 * identifiers and sessions.  Error 08006 if ZooKeeper does not answer.
 */
extern void zkl_fleet_servers_each(void (*fn) (void *arg, const ZklFleetServer *server),
								   void *arg);

#endif							/* ZKL_BACKEND_FLEET_SERVERS_H */
