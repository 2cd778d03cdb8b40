/*
 * directories.h
 *	  The directories of locks: whether one is missing, and the end of those that
 *	  nobody else uses.
 */
#ifndef ZKL_CORE_DIRECTORIES_H
#define ZKL_CORE_DIRECTORIES_H

#include "core/state.h"

/* For a manager with nothing but its config, and at its end. */
extern void zkl_directories_init_all(ZklManager *m);
extern void zkl_directories_free_all(ZklManager *m);

/* ---- made ahead of a create ---- */

/*
 * Creates path and its parents, except those that it shares with "skip".  It is
 * a lock's directory, or that of the heartbeat nodes if lock is NULL.
 */
extern void zkl_directories_make(ZklManager *m, ZklLock *lock, const char *path,
								 const char *skip);

/* Whether the lock's directory is probably missing, and its parent there */
extern bool zkl_directories_is_missing(ZklManager *m, const ZklLock *lock);

/*
 * The lock's first create is about to be sent: makes the directory alone, if it is
 * probably missing.
 */
extern void zkl_directories_guess(ZklManager *m, ZklLock *lock);

static inline bool
zkl_directories_is_guessed(const ZklLock *lock)
{
	return lock->parents.guessed;
}

/* A create was refused because the lock's directory is missing. */
extern void zkl_directories_missing(ZklLock *lock);

/* Whether a create that was refused for that reason is to be sent again */
extern bool zkl_directories_try_again(ZklRequest *r);

/* r was created with this number, so its directory is there. */
extern void zkl_directories_found(ZklManager *m, ZklRequest *r, ZklSeq seq);

/* This session has made it; it was there; or why it, or a parent, cannot be made. */
extern void zkl_directories_made(ZklLock *lock);
extern void zkl_directories_refused(ZklLock *lock, int32_t rc);

/* ---- deleted when it is not used any more ---- */

/* Another client is in it, and may expect that it stays. */
extern void zkl_directories_shared(ZklLock *lock);

/* The lock is forgotten; a lock is made that may have been forgotten before. */
extern void zkl_directories_leave(ZklManager *m, const ZklLock *lock);
extern void zkl_directories_return(ZklManager *m, ZklLock *lock);

extern void zkl_directories_send(ZklManager *m);
extern int64_t zkl_directories_timer(const ZklManager *m);
extern void zkl_directories_deleted(ZklManager *m, const ZklReply *reply);
extern void zkl_directories_disconnected(ZklManager *m);

#endif							/* ZKL_CORE_DIRECTORIES_H */
