/*
 * peer_key.h
 *	  The key with which the servers of a fleet sign what they tell each other.
 *	  Worker only.
 */
#ifndef ZKL_WORKER_PEER_KEY_H
#define ZKL_WORKER_PEER_KEY_H

/*
 * Makes the key of the secrets in "zklock.auth_file"; a key that was made of the same
 * ones stays.  Returns NULL; or what is wrong, for the log: then there is no key.
 */
extern const char *zkl_peer_key_make(const char *auth_file);

extern void zkl_peer_key_forget(void);

/*
 * Writes the MAC of a datagram, ZKL_PEER_MAC_BYTES for its first ZKL_PEER_SIGNED.
 * False: that is not possible, such as without a key.
 */
extern bool zkl_peer_key_sign(const uint8 *datagram, uint8 *mac);

#endif							/* ZKL_WORKER_PEER_KEY_H */
