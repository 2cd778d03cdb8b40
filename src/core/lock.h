/*
 * lock.h
 *	  One lock, its local queue, and what servers tell each other of its znodes.
 */
#ifndef ZKL_CORE_LOCK_H
#define ZKL_CORE_LOCK_H

#include "core/state.h"

/* For a manager with nothing but its config, and at its end. */
extern void zkl_lock_init_all(ZklManager *m);
extern void zkl_lock_free_all(ZklManager *m);

/*
 * The lock of a directory; find returns NULL if there is none.  One directory
 * is one lock per dialect: clients of different dialects do not see each
 * other's nodes.
 */
extern ZklLock *zkl_lock_find(ZklManager *m, const char *path, size_t length,
							  ZklDialect dialect);
extern ZklLock *zkl_lock_get(ZklManager *m, const char *name,
							 ZklDialect dialect);

/*
 * Sets aside or frees a lock without requests; but frees none that an
 * operation refers to.
 */
extern void zkl_lock_settle_idle(ZklManager *m, ZklLock *lock);

/* Has the lock decided at the next flush, which takes one by one; or NULL. */
extern void zkl_lock_touch(ZklManager *m, ZklLock *lock);
extern ZklLock *zkl_lock_next_touched(ZklManager *m);

/*
 * A create of ours got a number past the end; or the last one got a good one, or it
 * is not known.
 */
extern void zkl_lock_counter_ended(ZklLock *lock);
extern void zkl_lock_counter_good(ZklLock *lock);

/* Whether a node of ours may exist in the directory */
extern bool zkl_lock_has_node(const ZklLock *lock);

/*
 * A node of ours is gone.  If it was the last one in a directory whose counter has
 * ended, the directory is to be deleted, and with it the counter.
 */
extern void zkl_lock_left(ZklManager *m, ZklLock *lock);

/* Adds a request whose node EXISTS to the queue; removes it. */
extern void zkl_lock_enqueue(ZklManager *m, ZklLock *lock, ZklRequest *r);
extern void zkl_lock_dequeue(ZklManager *m, ZklLock *lock, ZklRequest *r);

/* Marks a request in the queue as granted. */
extern void zkl_lock_hold(ZklManager *m, ZklLock *lock, ZklRequest *r);

/* A hold's exclusive node has become a shared one of the same number. */
extern void zkl_lock_downgrade(ZklLock *lock, ZklRequest *r);

/* Whether r would have to wait for a local holder right now. */
extern bool zkl_lock_blocked_by_holder(const ZklManager *m, const ZklLock *lock,
									   const ZklRequest *r);

/* ---- words: what servers tell each other of their znodes, without ZooKeeper ---- */

/*
 * A word: the znode supports no hold, and never will again.  The server that made
 * the znode says it, to those that have asked for it.
 */

/* ---- what we ask, and hear ---- */

/* Messages can be sent from now on, or no longer. */
extern void zkl_words_set_peers(ZklManager *m, bool peers);

/*
 * r, the first that waits, is behind others: asks the servers of the nearest ones
 * that conflict for their words, unless that was done and nothing is new since.
 */
extern void zkl_words_ask(ZklManager *m, ZklLock *lock, const ZklRequest *r);

/* A word has come. */
extern void zkl_words_heard(ZklManager *m, const ZklPeerMessage *word);

/* ---- what others ask, and we say ---- */

/*
 * Another server has asked for a znode of ours.  Returns the request of a lock that
 * is to be recalled, if it may be cached; or NULL.
 */
extern ZklRequest *zkl_words_asked(ZklManager *m, const ZklPeerMessage *ask);

/*
 * Whether r's node, which is in the queue, may have a word once its demand is over;
 * says the word, now that it is so.
 */
extern bool zkl_words_may_be_said(const ZklManager *m, const ZklRequest *r);
extern void zkl_words_say(ZklManager *m, ZklRequest *r);

#endif							/* ZKL_CORE_LOCK_H */
