/*
 * reads.h
 *	  Listings and watches: all reads go out here, at most a window's worth
 *	  at a time, and only on a proved connection.
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

/* Whether we came to a directory lately; nobody will, as it is deleted. */
extern bool zkl_reads_has_visited(ZklManager *m, const char *path, size_t length);
extern void zkl_reads_forget_visit(ZklManager *m, const char *path, size_t length);

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

#endif							/* ZKL_CORE_READS_H */
