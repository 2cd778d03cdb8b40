/*
 * peer_key.h
 *	  The key with which the servers of a fleet sign what they tell each other.
 *	  Worker only.
 */
#ifndef ZKL_WORKER_PEER_KEY_H
#define ZKL_WORKER_PEER_KEY_H

/* Calls "done" each time that a key was read, or could not be. */
extern void zkl_peer_key_begin(void (*done) (void));

/* Whether there is to be a key: it is read from now on, or forgotten. */
extern void zkl_peer_key_want(bool wanted);

/* Reads it on each connection, once that is proved ("ready"). */
extern void zkl_peer_key_tick(bool ready);

/* What could not be read is read again at once. */
extern void zkl_peer_key_retry(void);

/* The watch on this path has fired: perhaps it is the key's. */
extern void zkl_peer_key_event(const char *path);

/*
 * Why it could not be read, with *hint; NULL: it was, or nothing is known.  Then there
 * is no key.
 */
extern const char *zkl_peer_key_fault(const char **hint);

/* Which one it is; 0: there is none */
extern int64 zkl_peer_key_number(void);

/*
 * Writes the MAC of a datagram, ZKL_PEER_MAC_BYTES for its first ZKL_PEER_SIGNED.
 * False: that is not possible, such as without a key.
 */
extern bool zkl_peer_key_sign(const uint8 *datagram, uint8 *mac);

#endif							/* ZKL_WORKER_PEER_KEY_H */
