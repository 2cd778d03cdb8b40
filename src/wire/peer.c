/*
 * peer.c
 *	  The layout of the datagram between the workers of two servers.
 *
 * Owns no state, takes no locks.  Run by the worker and by tests; needs libc only.
 * It must not know the key.
 */
#include "wire/peer.h"

#include <string.h>

#define AT_SENDER	4
#define AT_RECEIVER 12
#define AT_ZNODE	20
#define AT_WAITER	36

static const uint8_t magic[] = {'z', 'k', ZKL_PEER_VERSION};

static void
put_id_of_session(uint8_t *bytes, int64_t session)
{
	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8_t) ((uint64_t) session >> (56 - 8 * i));
}

static int64_t
get_id_of_session(const uint8_t *bytes)
{
	uint64_t	session = 0;

	for (int i = 0; i < 8; i++)
		session = session << 8 | bytes[i];
	return (int64_t) session;
}

void
zkl_peer_put(uint8_t *bytes, const ZklPeerDatagram *datagram)
{
	memcpy(bytes, magic, sizeof(magic));
	bytes[sizeof(magic)] = (uint8_t) datagram->kind;
	put_id_of_session(bytes + AT_SENDER, datagram->sender);
	put_id_of_session(bytes + AT_RECEIVER, datagram->receiver);
	memcpy(bytes + AT_ZNODE, datagram->znode, ZKL_PEER_ID_BYTES);
	memcpy(bytes + AT_WAITER, datagram->waiter, ZKL_PEER_ID_BYTES);
}

bool
zkl_peer_get(const uint8_t *bytes, size_t length, int64_t receiver,
			 ZklPeerDatagram *datagram)
{
	if (length != ZKL_PEER_BYTES || memcmp(bytes, magic, sizeof(magic)) != 0)
		return false;
	datagram->kind = (ZklPeerKind) bytes[sizeof(magic)];
	datagram->sender = get_id_of_session(bytes + AT_SENDER);
	datagram->receiver = get_id_of_session(bytes + AT_RECEIVER);
	memcpy(datagram->znode, bytes + AT_ZNODE, ZKL_PEER_ID_BYTES);
	memcpy(datagram->waiter, bytes + AT_WAITER, ZKL_PEER_ID_BYTES);
	return (datagram->kind == ZKL_PEER_ASK || datagram->kind == ZKL_PEER_WORD) &&
		receiver != 0 && datagram->receiver == receiver && datagram->sender != 0 &&
		datagram->sender != receiver;
}

bool
zkl_peer_same_mac(const uint8_t *a, const uint8_t *b)
{
	volatile uint8_t difference = 0;

	for (int i = 0; i < ZKL_PEER_MAC_BYTES; i++)
		difference = (uint8_t) (difference | (a[i] ^ b[i]));
	return difference == 0;
}
