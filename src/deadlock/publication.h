/*
 * publication.h
 *	  Znodes that tell others of our long waits.
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

/*
 * Publishes that the owner of "held" waits for "wait"; "behind": in PostgreSQL's
 * own locks.  The id of held has no publication yet.
 */
extern void zkl_publication_make(ZklDeadlock *d, const ZklRequest *held,
								 ZklWait *wait, bool behind);

/* It is no longer true: it goes as soon as that can be done. */
extern void zkl_publication_retract(ZklDeadlock *d, ZklPublication *p);

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

#endif							/* ZKL_DEADLOCK_PUBLICATION_H */
