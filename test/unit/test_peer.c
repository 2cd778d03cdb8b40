/*
 * test_peer.c
 *	  The layout of the datagram between the workers of two servers.
 *
 * What is put comes back, and stands where peer.h says; each other size, version,
 * kind and receiver is refused; every difference between two MACs is seen.
 */
#include "unit.h"
#include "wire/peer.h"

#define US		INT64_C(0x1122334455667788)
#define THEM	INT64_C(-2)

static ZklPeerDatagram
make_sample(ZklPeerKind kind)
{
	ZklPeerDatagram datagram = {.kind = kind,.sender = THEM,.receiver = US};

	for (int i = 0; i < ZKL_PEER_ID_BYTES; i++)
	{
		datagram.znode[i] = (uint8_t) (0x40 + i);
		datagram.waiter[i] = (uint8_t) (0x80 + i);
	}
	return datagram;
}

static void
put_sample(uint8_t *bytes)
{
	ZklPeerDatagram datagram = make_sample(ZKL_PEER_WORD);

	memset(bytes, 0, ZKL_PEER_BYTES);
	zkl_peer_put(bytes, &datagram);
}

static bool
is_taken(const uint8_t *bytes, size_t length, int64_t receiver)
{
	ZklPeerDatagram got;
	uint8_t    *copy = malloc(length + 1);	/* for the sanitizer */
	bool		taken;

	memcpy(copy + 1, bytes, length);
	taken = zkl_peer_get(copy + 1, length, receiver, &got);
	free(copy);
	return taken;
}

static void
test_round_trip(void)
{
	for (ZklPeerKind kind = ZKL_PEER_ASK; kind <= ZKL_PEER_WORD; kind++)
	{
		ZklPeerDatagram datagram = make_sample(kind);
		ZklPeerDatagram got;
		uint8_t		bytes[ZKL_PEER_BYTES];

		zkl_peer_put(bytes, &datagram);
		CHECK(zkl_peer_get(bytes, sizeof(bytes), US, &got));
		CHECK(got.kind == kind && got.sender == THEM && got.receiver == US);
		CHECK(memcmp(got.znode, datagram.znode, ZKL_PEER_ID_BYTES) == 0);
		CHECK(memcmp(got.waiter, datagram.waiter, ZKL_PEER_ID_BYTES) == 0);
	}
}

/* Another version of zklock has to find each byte where this one puts it. */
static void
test_layout(void)
{
	static const uint8_t begin[] = {'z', 'k', 1, 2,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
	0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x40, 0x41};
	uint8_t		bytes[ZKL_PEER_BYTES];

	put_sample(bytes);
	CHECK(memcmp(bytes, begin, sizeof(begin)) == 0);
	CHECK(bytes[36] == 0x80 && bytes[51] == 0x8f);
	CHECK(ZKL_PEER_SIGNED == 52 && ZKL_PEER_BYTES == 84);
	for (int i = ZKL_PEER_SIGNED; i < ZKL_PEER_BYTES; i++)
		CHECK(bytes[i] == 0);
}

static void
test_other_sizes(void)
{
	uint8_t		bytes[2 * ZKL_PEER_BYTES] = {0};

	put_sample(bytes);
	for (size_t length = 0; length <= sizeof(bytes); length++)
		CHECK_MSG(is_taken(bytes, length, US) == (length == ZKL_PEER_BYTES), "%zu bytes",
				  length);
}

/* Each bit before the ids counts, but for those that make another sender. */
static void
test_other_bits(void)
{
	uint8_t		bytes[ZKL_PEER_BYTES];

	put_sample(bytes);
	for (int bit = 0; bit < 20 * 8; bit++)
	{
		bool		of_sender = bit / 8 >= 4 && bit / 8 < 12;

		bytes[bit / 8] ^= (uint8_t) (1 << bit % 8);
		CHECK_MSG(is_taken(bytes, sizeof(bytes), US) == of_sender, "bit %d", bit);
		bytes[bit / 8] ^= (uint8_t) (1 << bit % 8);
	}
}

static void
test_sessions(void)
{
	uint8_t		bytes[ZKL_PEER_BYTES];
	ZklPeerDatagram datagram = make_sample(ZKL_PEER_ASK);

	put_sample(bytes);
	CHECK(is_taken(bytes, sizeof(bytes), US));
	CHECK(!is_taken(bytes, sizeof(bytes), THEM));
	datagram.receiver = 0;
	zkl_peer_put(bytes, &datagram);
	CHECK(!is_taken(bytes, sizeof(bytes), 0));
	datagram.receiver = datagram.sender;
	zkl_peer_put(bytes, &datagram);
	CHECK(!is_taken(bytes, sizeof(bytes), THEM));
	datagram.sender = 0;
	datagram.receiver = US;
	zkl_peer_put(bytes, &datagram);
	CHECK(!is_taken(bytes, sizeof(bytes), US));
}

static void
test_macs(void)
{
	uint8_t		a[ZKL_PEER_MAC_BYTES] = {0};
	uint8_t		b[ZKL_PEER_MAC_BYTES] = {0};

	CHECK(zkl_peer_same_mac(a, b));
	for (int bit = 0; bit < ZKL_PEER_MAC_BYTES * 8; bit++)
	{
		b[bit / 8] = (uint8_t) (1 << bit % 8);
		CHECK_MSG(!zkl_peer_same_mac(a, b), "bit %d", bit);
		b[bit / 8] = 0;
	}
}

int
main(void)
{
	unit_start();
	RUN(test_round_trip);
	RUN(test_layout);
	RUN(test_other_sizes);
	RUN(test_other_bits);
	RUN(test_sessions);
	RUN(test_macs);
	return unit_finish();
}
