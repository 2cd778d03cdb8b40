/*
 * peer.h
 *	  The datagram in which one server's worker tells another's something.
 *
 * It has one size and no parts of variable length.  Integers are big-endian:
 *
 *	  0  "zk", version, kind
 *	  4  number of the key (8 bytes), sessions of the sender (8), the receiver (8)
 *	 28  id of the znode (16), of the waiter (16)
 *	 60  HMAC-SHA-256 (32) of all before
 *
 * This file only lays out bytes: the caller makes and compares the MAC.
 */
#ifndef ZKL_WIRE_PEER_H
#define ZKL_WIRE_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZKL_PEER_VERSION	2
#define ZKL_PEER_ID_BYTES	16
#define ZKL_PEER_SIGNED		60	/* so many bytes the MAC vouches for */
#define ZKL_PEER_MAC_BYTES	32
#define ZKL_PEER_BYTES		(ZKL_PEER_SIGNED + ZKL_PEER_MAC_BYTES)

typedef enum ZklPeerKind
{
	ZKL_PEER_ASK = 1,
	ZKL_PEER_WORD,
	ZKL_PEER_ASK_ECHO,			/* an ask, which is to be echoed at once */
	ZKL_PEER_ECHO				/* such an ask was heard */
} ZklPeerKind;

typedef struct ZklPeerDatagram
{
	ZklPeerKind kind;
	int64_t		key;			/* which one it is signed with */
	int64_t		sender;			/* ZooKeeper sessions */
	int64_t		receiver;
	uint8_t		znode[ZKL_PEER_ID_BYTES];
	uint8_t		waiter[ZKL_PEER_ID_BYTES];
} ZklPeerDatagram;

/* What a datagram is before its MAC is compared; only GOOD ones are to be read. */
typedef enum ZklPeerSort
{
	ZKL_PEER_GOOD,
	ZKL_PEER_OTHER_KEY,			/* of another key, or another version of this
								 * format */
	ZKL_PEER_BAD				/* not of this format, or not for us */
} ZklPeerSort;

/* Writes the ZKL_PEER_SIGNED bytes before the MAC. */
extern void zkl_peer_put(uint8_t *bytes, const ZklPeerDatagram *datagram);

/*
 * Reads a datagram of "length" bytes, which should have this key and be for the session
 * "receiver" (0: there is none).
 */
extern ZklPeerSort zkl_peer_get(const uint8_t *bytes, size_t length, int64_t key,
								int64_t receiver, ZklPeerDatagram *datagram);

/* Compares two MACs in a time that does not depend on where they differ. */
extern bool zkl_peer_same_mac(const uint8_t *a, const uint8_t *b);

#endif							/* ZKL_WIRE_PEER_H */
