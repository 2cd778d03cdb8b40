/*
 * words.h
 *	  What servers tell each other of their znodes, without ZooKeeper.
 *
 * A word: the znode supports no hold, and never will again.  The server that made
 * the znode says it, to those that have asked for it.
 */
#ifndef ZKL_CORE_WORDS_H
#define ZKL_CORE_WORDS_H

#include "core/state.h"

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

#endif							/* ZKL_CORE_WORDS_H */
