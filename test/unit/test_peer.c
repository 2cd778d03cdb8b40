/*
 * test_peer.c
 *	  The layout of the datagram between the workers of two servers.
 *
 * What is put comes back, and stands where peer.h says; each other size, kind and
 * receiver is refused; another version and another key are told apart from that; every
 * difference between two MACs is seen.
 */
#include "unit.h"
#include "wire/peer.h"

#define US		INT64_C(0x1122334455667788)
#define THEM	INT64_C(-2)
#define KEY		INT64_C(0x0000000500000033)

static ZklPeerDatagram
make_sample(ZklPeerKind kind)
{
	ZklPeerDatagram datagram = {.kind = kind,.key = KEY,.sender = THEM,.receiver = US};

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

static ZklPeerSort
sort_of(const uint8_t *bytes, size_t length, int64_t receiver)
{
	ZklPeerDatagram got;
	uint8_t    *copy = malloc(length + 1);	/* for the sanitizer */
	ZklPeerSort sort;

	memcpy(copy + 1, bytes, length);
	sort = zkl_peer_get(copy + 1, length, KEY, receiver, &got);
	free(copy);
	return sort;
}

static bool
is_taken(const uint8_t *bytes, size_t length, int64_t receiver)
{
	return sort_of(bytes, length, receiver) == ZKL_PEER_GOOD;
}

static void
test_round_trip(void)
{
	for (ZklPeerKind kind = ZKL_PEER_ASK; kind <= ZKL_PEER_ECHO; kind++)
	{
		ZklPeerDatagram datagram = make_sample(kind);
		ZklPeerDatagram got;
		uint8_t		bytes[ZKL_PEER_BYTES];

		zkl_peer_put(bytes, &datagram);
		CHECK(zkl_peer_get(bytes, sizeof(bytes), KEY, US, &got) == ZKL_PEER_GOOD);
		CHECK(got.kind == kind && got.key == KEY && got.sender == THEM && got.receiver == US);
		CHECK(memcmp(got.znode, datagram.znode, ZKL_PEER_ID_BYTES) == 0);
		CHECK(memcmp(got.waiter, datagram.waiter, ZKL_PEER_ID_BYTES) == 0);
	}
}

/* Another version of zklock has to find each byte where this one puts it. */
static void
test_layout(void)
{
	static const uint8_t begin[] = {'z', 'k', 2, 2,
		0, 0, 0, 5, 0, 0, 0, 0x33,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
	0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x40, 0x41};
	uint8_t		bytes[ZKL_PEER_BYTES];

	put_sample(bytes);
	CHECK(memcmp(bytes, begin, sizeof(begin)) == 0);
	CHECK(bytes[44] == 0x80 && bytes[59] == 0x8f);
	CHECK(ZKL_PEER_SIGNED == 60 && ZKL_PEER_BYTES == 92);
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

/* Each bit before the ids counts, but for those that make another sender or kind. */
static void
test_other_bits(void)
{
	uint8_t		bytes[ZKL_PEER_BYTES];

	put_sample(bytes);
	for (int bit = 0; bit < 28 * 8; bit++)
	{
		int			at = bit / 8;
		ZklPeerSort expected = ZKL_PEER_BAD;

		if ((at >= 12 && at < 20) || bit == 3 * 8)
			expected = ZKL_PEER_GOOD;
		else if (at == 2 || (at >= 4 && at < 12))
			expected = ZKL_PEER_OTHER_KEY;
		bytes[at] ^= (uint8_t) (1 << bit % 8);
		CHECK_MSG(sort_of(bytes, sizeof(bytes), US) == expected, "bit %d", bit);
		bytes[at] ^= (uint8_t) (1 << bit % 8);
	}
}

/* Another version may have another size, and no other key makes it good. */
static void
test_other_versions(void)
{
	static const uint8_t first[84] = {'z', 'k', 1, 1};
	uint8_t		bytes[ZKL_PEER_BYTES];
	ZklPeerDatagram datagram = make_sample(ZKL_PEER_ASK);

	for (size_t length = 0; length <= sizeof(first); length++)
		CHECK_MSG(sort_of(first, length, US) ==
				  (length < 3 ? ZKL_PEER_BAD : ZKL_PEER_OTHER_KEY), "%zu bytes", length);
	datagram.key = 0;
	datagram.receiver = THEM - 1;
	zkl_peer_put(bytes, &datagram);
	CHECK(sort_of(bytes, sizeof(bytes), US) == ZKL_PEER_BAD);
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
	RUN(test_other_versions);
	RUN(test_sessions);
	RUN(test_macs);
	return unit_finish();
}
