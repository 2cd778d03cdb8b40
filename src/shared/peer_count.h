/*
 * peer_count.h
 *	  Whether other servers answer what this one asks them, in messages.
 *
 * A word may come late, or never, for good reasons.  So once in a second, an ask to a
 * server is to be echoed at once: that shows whether datagrams arrive there, and come
 * back.
 */
#ifndef ZKL_SHARED_PEER_COUNT_H
#define ZKL_SHARED_PEER_COUNT_H

/* So many servers are counted: those that were asked last. */
#define ZKL_MAX_PEER_COUNTS	256

typedef struct ZklPeerCount
{
	int64		session;		/* of the other server; 0: a free place */
	uint32		unanswered;		/* asks to be echoed, since it was last heard */
	int64		since_ms;		/* by boottime.h: the first of these */
	int64		asked_ms;		/* the last one, answered or not */
} ZklPeerCount;

/* Worker: a server is asked.  Whether it is to echo that, which is counted then. */
extern bool zkl_peer_count_ask(int64 session);

/* Worker: a server has answered, by an echo or a word. */
extern void zkl_peer_count_heard(int64 session);

/* Copies what is known of a server.  False: it was not asked lately. */
extern bool zkl_peer_count_copy(int64 session, ZklPeerCount *copy);

#endif							/* ZKL_SHARED_PEER_COUNT_H */
