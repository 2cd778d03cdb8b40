/*
 * reads.h
 *	  Listings and watches: all reads go out here, at most a window's worth
 *	  at a time, and only on a proved connection.
 */
#ifndef ZKL_CORE_READS_H
#define ZKL_CORE_READS_H

#include "core/state.h"

/* Changes the state of a watch, and the count of those that are armed. */
extern void zkl_reads_set_watch(ZklManager *m, ZklWatchState *watch,
								ZklWatchState state);

/*
 * Notes that a create goes to the lock's directory.  If another one went
 * there lately, has the directory watched.
 */
extern void zkl_reads_visit(ZklManager *m, ZklLock *lock);

/* Puts the lock in line to read: it has list_wanted, or a watch is WANTED. */
extern void zkl_reads_want(ZklManager *m, ZklLock *lock);

/* Has the directory listed, unless a listing is under way. */
extern void zkl_reads_want_listing(ZklManager *m, ZklLock *lock);

/* Does the same, and has the children watched from that listing on. */
extern void zkl_reads_want_children(ZklManager *m, ZklLock *lock);

/* Watches the foreign contender i, instead of any other. */
extern void zkl_reads_watch_ahead(ZklManager *m, ZklLock *lock, size_t i);

/* Removes a watch on a contender or a directory, if it may still be set. */
extern void zkl_reads_unwatch_ahead(ZklManager *m, ZklLock *lock);
extern void zkl_reads_unwatch_directory(ZklManager *m, ZklLock *lock,
										bool shared);

/* Sends the wanted reads, as far as the window allows. */
extern void zkl_reads_send(ZklManager *m);

/* The connection is gone: so are the watches, and no answer will come. */
extern void zkl_reads_disconnected(ZklManager *m, ZklLock *lock);

#endif							/* ZKL_CORE_READS_H */
