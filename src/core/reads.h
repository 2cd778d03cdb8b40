/*
 * reads.h
 *	  Directories: listings and watches, and whether they are there.
 */
#ifndef ZKL_CORE_READS_H
#define ZKL_CORE_READS_H

#include "core/state.h"

extern void zkl_reads_init(ZklManager *m);

/* Changes the state of a watch, and the count of those that are armed. */
extern void zkl_reads_set_watch(ZklManager *m, ZklWatchState *watch,
								ZklWatchState state);

/*
 * Notes that a create goes to the lock's directory.  If another one went
 * there lately, has the directory watched.
 */
extern void zkl_reads_visit(ZklManager *m, ZklLock *lock);

/* Puts the lock in line to read: a listing or a watch is wanted. */
extern void zkl_reads_want(ZklManager *m, ZklLock *lock);

/* Has the directory listed, unless a listing is under way; or in any case. */
extern void zkl_reads_want_listing(ZklManager *m, ZklLock *lock);
extern void zkl_reads_list_again(ZklManager *m, ZklLock *lock);

/* A listing was refused: retry has the directory listed again. */
extern void zkl_reads_list_later(ZklManager *m, ZklLock *lock);
extern void zkl_reads_retry(ZklManager *m);

/*
 * Has the directory listed, unless a listing is under way, and has the children
 * watched from that listing on.
 */
extern void zkl_reads_want_children(ZklManager *m, ZklLock *lock);

/* Watches the foreign contender i, instead of any other. */
extern void zkl_reads_watch_ahead(ZklManager *m, ZklLock *lock, size_t i);

/* That watch is set, and the get that did it has read this. */
extern void zkl_reads_ahead_watched(ZklManager *m, ZklLock *lock,
									const ZklReply *reply);

/* Watches the directory; the answer to the get that sets the watch */
extern void zkl_reads_watch_directory(ZklManager *m, ZklLock *lock);
extern void zkl_reads_directory_watched(ZklManager *m, ZklLock *lock,
										const ZklReply *reply);

/* Removes a watch on a contender or a directory, if it may still be set. */
extern void zkl_reads_unwatch_ahead(ZklManager *m, ZklLock *lock);
extern void zkl_reads_unwatch_directory(ZklManager *m, ZklLock *lock,
										bool shared);

/* Sends the wanted reads, as far as the window allows. */
extern void zkl_reads_send(ZklManager *m);

/* The answer to the listing that was sent as number "order" */
extern void zkl_reads_listed(ZklManager *m, ZklLock *lock, uint64_t order,
							 bool found);

/* An idle lock needs no reads; a lock that is freed needs no memory, either. */
extern void zkl_reads_stop(ZklLock *lock);
extern void zkl_reads_forget(ZklManager *m, ZklLock *lock);

/* The connection is gone: so are the watches, and no answer will come. */
extern void zkl_reads_disconnected(ZklManager *m, ZklLock *lock);

/* ---- tries ---- */

/*
 * The tries that wait for a look at their lock's directory; see reads_reply.c.
 *
 * Has all that the core writes to ZklTries and to the link of a request in it, which are
 * its part's.
 */

static inline void
zkl_tries_add(ZklLock *lock, ZklRequest *r)
{
	zkl_list_append(&lock->tries.all, &r->trying);
}

/* Does nothing if r waits for no look. */
static inline void
zkl_tries_remove(ZklRequest *r)
{
	zkl_list_remove(&r->trying);
}

/* The look is sent; the sync ahead of it was refused; its answer is over. */
static inline void
zkl_tries_look_sent(ZklLock *lock)
{
	lock->tries.sent = true;
	lock->tries.stale = false;
}

static inline void
zkl_tries_look_stale(ZklLock *lock)
{
	lock->tries.stale = true;
}

/* Those that were submitted until then wait for what a node in their way says. */
static inline void
zkl_tries_wait_for_mark(ZklLock *lock, uint64_t until)
{
	lock->tries.until = until;
	lock->tries.sent = true;
}

static inline void
zkl_tries_look_over(ZklLock *lock)
{
	lock->tries.sent = false;
}

/* ---- directories ---- */

/*
 * The directories of locks: whether one is missing, and the end of those that nobody
 * else uses.
 */

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

/* It has one child, of ours, as far as we know. */
static inline bool
zkl_directories_is_new(const ZklLock *lock)
{
	return lock->parents.made && lock->parents.creates == 1;
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

/*
 * It is not to be deleted by us: another client is in it, and may expect that it stays;
 * or it was deleted, and another client may have made it again.
 */
extern void zkl_directories_disown(ZklLock *lock);

/* The lock is forgotten; a lock is made that may have been forgotten before. */
extern void zkl_directories_leave(ZklManager *m, const ZklLock *lock);
extern void zkl_directories_return(ZklManager *m, ZklLock *lock);

extern void zkl_directories_send(ZklManager *m);
extern int64_t zkl_directories_timer(const ZklManager *m);
extern void zkl_directories_deleted(ZklManager *m, const ZklReply *reply);
extern void zkl_directories_disconnected(ZklManager *m);

#endif							/* ZKL_CORE_READS_H */
