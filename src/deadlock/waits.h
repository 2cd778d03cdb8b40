/*
 * waits.h
 *	  Long waits: which are published, and when that is looked at again.
 */
#ifndef ZKL_DEADLOCK_WAITS_H
#define ZKL_DEADLOCK_WAITS_H

#include "deadlock/deadlock_state.h"

/* For a manager with nothing but its config, and at its end. */
extern void zkl_waits_init_all(ZklDeadlock *d);
extern void zkl_waits_free_all(ZklDeadlock *d);

/* A request begins. */
extern void zkl_waits_init(void *wing, ZklRequest *r,
						   const ZklDemand *demand);

/* r waits in a queue from now on, or no longer. */
extern void zkl_waits_begin(void *wing, ZklRequest *r);
extern void zkl_waits_end(void *wing, ZklRequest *r);

/* Nobody waits for r's owner because of r's znode any more; see core/host.h. */
extern void zkl_waits_hold_ended(void *wing, const ZklRequest *r);

/* The host tells which owners wait for r's: ZklDependents. */
extern void zkl_waits_told(void *wing, ZklRequest *r, const void *news);

/* Looks at all waits that are due.  When the next one is due, or -1. */
extern void zkl_waits_look(void *wing);
extern int64_t zkl_waits_timer(const ZklDeadlock *d);

/* What is published is not as it should be: looks again soon. */
extern void zkl_waits_soon(ZklDeadlock *d, ZklWait *w);

/* ---- for publications, searches and verdicts ---- */

/* There is another publication of w. */
extern void zkl_waits_add(ZklWait *w, ZklLink *publication);

/* Whether all that is to be published of w is there */
extern bool zkl_waits_is_published(const ZklWait *w);

/* w wants a search; the one that has this list is for it. */
extern void zkl_waits_want(ZklDeadlock *d, ZklWait *w);
extern void zkl_waits_ask(ZklWait *w, ZklList *asked);

/* That search is over; w wants another one, or does if it wanted one meanwhile. */
extern void zkl_waits_answered(ZklDeadlock *d, ZklWait *w, bool again);

/* A verdict was refused. False: that is not to be tried again at once. */
extern bool zkl_waits_refused(ZklWait *w);

/*
 * w is on a cycle whose latest publication has this zxid.  True: the cycle has
 * been there for so many µs.
 */
extern bool zkl_waits_cycle_lasts(ZklDeadlock *d, ZklWait *w, int64_t zxid,
								  int64_t time);

/* Whether the owner holds this lock or waits for it; lock without the root */
extern bool zkl_waits_knows(const ZklDeadlock *d, uint64_t owner,
							const char *lock);

#endif							/* ZKL_DEADLOCK_WAITS_H */
