/*
 * peer.c
 *	  The layout of the datagram between the workers of two servers.
 *
 * Owns no state, takes no locks.  Run by the worker and by tests; needs libc only.
 * It must not know the key.
 */
#include "wire/peer.h"

#include <string.h>

#define AT_VERSION	2
#define AT_KIND		3
#define AT_KEY		4
#define AT_SENDER	12
#define AT_RECEIVER 20
#define AT_ZNODE	28
#define AT_WAITER	44

static void
put_number(uint8_t *bytes, int64_t number)
{
	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8_t) ((uint64_t) number >> (56 - 8 * i));
}

static int64_t
get_number(const uint8_t *bytes)
{
	uint64_t	number = 0;

	for (int i = 0; i < 8; i++)
		number = number << 8 | bytes[i];
	return (int64_t) number;
}

void
zkl_peer_put(uint8_t *bytes, const ZklPeerDatagram *datagram)
{
	bytes[0] = 'z';
	bytes[1] = 'k';
	bytes[AT_VERSION] = ZKL_PEER_VERSION;
	bytes[AT_KIND] = (uint8_t) datagram->kind;
	put_number(bytes + AT_KEY, datagram->key);
	put_number(bytes + AT_SENDER, datagram->sender);
	put_number(bytes + AT_RECEIVER, datagram->receiver);
	memcpy(bytes + AT_ZNODE, datagram->znode, ZKL_PEER_ID_BYTES);
	memcpy(bytes + AT_WAITER, datagram->waiter, ZKL_PEER_ID_BYTES);
}

static bool
is_for(const ZklPeerDatagram *datagram, int64_t receiver)
{
	return datagram->kind >= ZKL_PEER_ASK && datagram->kind <= ZKL_PEER_ECHO &&
		receiver != 0 && datagram->receiver == receiver && datagram->sender != 0 &&
		datagram->sender != receiver;
}

ZklPeerSort
zkl_peer_get(const uint8_t *bytes, size_t length, int64_t key, int64_t receiver,
			 ZklPeerDatagram *datagram)
{
	if (length <= AT_VERSION || bytes[0] != 'z' || bytes[1] != 'k')
		return ZKL_PEER_BAD;
	if (bytes[AT_VERSION] != ZKL_PEER_VERSION)
		return ZKL_PEER_OTHER_KEY;
	if (length != ZKL_PEER_BYTES)
		return ZKL_PEER_BAD;
	datagram->kind = (ZklPeerKind) bytes[AT_KIND];
	datagram->key = get_number(bytes + AT_KEY);
	datagram->sender = get_number(bytes + AT_SENDER);
	datagram->receiver = get_number(bytes + AT_RECEIVER);
	memcpy(datagram->znode, bytes + AT_ZNODE, ZKL_PEER_ID_BYTES);
	memcpy(datagram->waiter, bytes + AT_WAITER, ZKL_PEER_ID_BYTES);
	if (!is_for(datagram, receiver))
		return ZKL_PEER_BAD;
	return datagram->key == key ? ZKL_PEER_GOOD : ZKL_PEER_OTHER_KEY;
}

bool
zkl_peer_same_mac(const uint8_t *a, const uint8_t *b)
{
	volatile uint8_t difference = 0;

	for (int i = 0; i < ZKL_PEER_MAC_BYTES; i++)
		difference = (uint8_t) (difference | (a[i] ^ b[i]));
	return difference == 0;
}
