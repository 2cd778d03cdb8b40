/*
 * fuzz_peer.c
 *	  The reader of datagrams from other servers, under libFuzzer.
 *
 * Owns nothing.  The first byte chooses key and receiver.  What is taken must be what
 * zkl_peer_put writes, byte by byte.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/peer.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	ZklPeerDatagram datagram;
	uint8_t		again[ZKL_PEER_SIGNED];

	if (n == 0 ||
		zkl_peer_get(bytes + 1, n - 1, bytes[0], bytes[0], &datagram) != ZKL_PEER_GOOD)
		return 0;
	if (datagram.key != bytes[0] || datagram.receiver != bytes[0] || datagram.sender == 0)
		abort();
	zkl_peer_put(again, &datagram);
	if (memcmp(again, bytes + 1, sizeof(again)) != 0)
		abort();
	return 0;
}
