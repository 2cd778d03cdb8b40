/*
 * fleet_entry.h
 *	  This server's znode in the directory of the fleet, and clones of this
 *	  server there.  Worker only.
 */
#ifndef ZKL_WORKER_FLEET_ENTRY_H
#define ZKL_WORKER_FLEET_ENTRY_H

/*
 * Sees to it that the znode tells what is true now; "ready" tells whether the
 * connection is proved.  It never needs to be called for its own sake.
 */
extern void zkl_fleet_entry_tick(bool ready);

/* The credentials may have changed: makes the znode anew. */
extern void zkl_fleet_entry_renew(void);

/*
 * The server stops, and leaves its session to expire: takes the znode back, so that the
 * next start does not take this one for a clone.  Whether it is gone.
 */
extern bool zkl_fleet_entry_take_back(void);

/* The children of this znode have changed: perhaps servers have come or gone. */
extern void zkl_fleet_entry_event(const char *path);

/* The address at which our worker hears from others; empty: it does not. */
extern void zkl_fleet_entry_set_peer(const char *address);

/* Whether there is one, and the znode of the present session has it. */
extern bool zkl_fleet_entry_tells_peer(void);

/*
 * Whether a new session is not to be relied on yet: it is not known whether there
 * is a clone of this server, or what looks like one may be about to expire.
 */
extern bool zkl_fleet_entry_is_undecided(void);

#endif							/* ZKL_WORKER_FLEET_ENTRY_H */
