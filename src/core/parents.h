/*
 * parents.h
 *	  Directories that are missing, and are made ahead of a create.
 */
#ifndef ZKL_CORE_PARENTS_H
#define ZKL_CORE_PARENTS_H

#include "core/state.h"

/*
 * Creates path and its parents, except those that it shares with "skip".  It is
 * a lock's directory, or that of the heartbeat nodes if lock is NULL.
 */
extern void zkl_parents_make(ZklManager *m, ZklLock *lock, const char *path,
							 const char *skip);

/* A create was refused because the lock's directory is missing. */
extern void zkl_parents_missing(ZklLock *lock);

/* Whether a create that was refused for that reason is to be sent again */
extern bool zkl_parents_try_again(ZklRequest *r);

/* r was created, so its directory is there; or why that cannot be made. */
extern void zkl_parents_found(ZklRequest *r);
extern void zkl_parents_refused(ZklLock *lock, int32_t rc);

#endif							/* ZKL_CORE_PARENTS_H */
