/*
 * events.h
 *	  Events for the core: from the slots, from the link, and when a hold's time
 *	  is over.
 */
#ifndef ZKL_WORKER_EVENTS_H
#define ZKL_WORKER_EVENTS_H

#include "core/manager.h"
#include "shared/slot.h"

/* ---- from_slots ---- */

/*
 * From the slots to the core and to operation.c; offers and recalls of cached locks.
 * Worker only.
 */

/* For the core: see ZklOffer and ZklRecall. */
extern void zkl_from_slots_offer(void *host, uint32_t request);
extern bool zkl_from_slots_recall(void *host, uint32_t request,
								  int64_t idle_since, ZklRecalled *found);

/* Tells the core for how long locks may stay; "stop": no longer. */
extern void zkl_from_slots_set_cache_time(bool stop);

/* For a worker that knows no slot yet */
extern void zkl_from_slots_begin(void);

/* A worker before this one has left something in the slot: it is to be taken anew. */
extern void zkl_from_slots_take_over(int slotno);

/* Takes what changed in the slots. */
extern void zkl_from_slots_take(void);

/*
 * Writes what other servers may know of a slot's session, as data of a znode, into
 * ZKL_MAX_NODE_DATA bytes; returns its length.
 */
extern size_t zkl_from_slots_node_data(const ZklSlot *slot, char *buf);

/*
 * The core needs this slot no longer.  It is freed, unless it is a lost reservation's
 * whose role has yet to be told: then it is left until that is done, or its time is over.
 */
extern void zkl_from_slots_free(int slotno);
extern bool zkl_from_slots_is_left(int slotno);

/* ---- from_link ---- */

/* From the link to the core and to operation.c.  Worker only. */

/* Reads all frames that have arrived, and hands them on. */
extern void zkl_from_link_take(void);

/* ---- bounds ---- */

/*
 * Holds that end after some time, and locks that are kept for some time after their
 * release.  Worker only.
 */

extern void zkl_bounds_begin(void);

/* A slot was granted.  Does not call the core, whose action that was. */
extern void zkl_bounds_granted(int slotno);

/*
 * The end of a hold has changed, or its holder has ended a transaction.  If the
 * time is over, the slot becomes LOST, and the core learns when the znode may go.
 */
extern void zkl_bounds_look(int slotno);

/* Ends the holds whose time is over. */
extern void zkl_bounds_tick(void);

/* When to call tick at the latest, in µs of boottime.h; -1: no need. */
extern int64 zkl_bounds_timer(void);

#endif							/* ZKL_WORKER_EVENTS_H */
