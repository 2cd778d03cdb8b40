/*
 * publication.h
 *	  Long waits of ours, and the znodes that tell others of them.
 */
#ifndef ZKL_DEADLOCK_PUBLICATION_H
#define ZKL_DEADLOCK_PUBLICATION_H

#include "deadlock/deadlock_state.h"

/* For a manager with nothing but its config, and at its end. */
extern void zkl_publication_init_all(ZklDeadlock *d);
extern void zkl_publication_free_all(ZklDeadlock *d);

/*
 * The one that tells of the holder of a znode, in whatever state; or NULL.  If
 * ZooKeeper has brought back another one, that is only to be deleted.
 */
extern ZklPublication *zkl_publication_of(const ZklDeadlock *d,
										  const ZklUuid *uuid);

/* The one of that name, or NULL */
extern ZklPublication *zkl_publication_find(const ZklDeadlock *d,
											const char *name);

/* Whether one of that name is neither known, nor of a hold of ours */
extern bool zkl_publication_disowns(const void *wing, const char *name);

/* Whether there may be one of that znode */
extern bool zkl_publication_may_exist(const void *wing, const ZklUuid *uuid);

/* The whole path of one, among the actions' strings. */
extern char *zkl_publication_path(ZklDeadlock *d, const char *name);

/* What creates one, and what deletes it */
extern const ZklWriter zkl_publication_creation;
extern const ZklWriter zkl_publication_retraction;

/* ---- in a verdict ---- */

/* It exists, and a verdict deletes it; what became of all such ones */
extern void zkl_publication_judge(ZklDeadlock *d, ZklPublication *p);
extern void zkl_publication_judged(ZklDeadlock *d, ZklOutcomeKind kind);

/* ---- the listing of all ---- */

extern void zkl_publication_want_list(ZklDeadlock *d);
extern void zkl_publication_send(ZklDeadlock *d);

/* When to send one that was refused; -1: no need. */
extern int64_t zkl_publication_timer(const ZklDeadlock *d);

/* Which of those exist whose write has no answer.  False: the listing does not tell. */
extern bool zkl_publication_listed(ZklDeadlock *d, const ZklOp *op,
								   const ZklReply *reply);

/*
 * The janitor has found a directory, as ZooKeeper has lost deletes.  If it is that of
 * the publications, those that are none are found, and deleted.
 */
extern void zkl_publication_found(void *wing, const char *path);

/* The connection is gone; the session is gone, and they with it. */
extern void zkl_publication_disconnected(ZklDeadlock *d);
extern void zkl_publication_session_lost(ZklDeadlock *d);

/* ---- waits: long waits: which are published, and when that is looked at again ---- */

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

#endif							/* ZKL_DEADLOCK_PUBLICATION_H */
