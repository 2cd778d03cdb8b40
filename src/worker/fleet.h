/*
 * fleet.h
 *	  This server's znode in the directory of the fleet.  Worker only.
 */
#ifndef ZKL_WORKER_FLEET_H
#define ZKL_WORKER_FLEET_H

/*
 * Sees to it that the znode tells what is true now; "ready" tells whether the
 * connection is proved.  It never needs to be called for its own sake.
 */
extern void zkl_fleet_tick(bool ready);

#endif							/* ZKL_WORKER_FLEET_H */
