/*
 * test_wire.c
 *	  The codec of the link between worker and session process.
 *
 * What is put comes back; a frame cut short anywhere is never taken for a
 * whole one; a body cut short anywhere, or made of random bytes, is never read
 * past its end (each is a copy of exactly its size, for the sanitizer); the
 * buffer grows, moves and empties without losing a byte.
 */
#include "unit.h"
#include "wire/wire.h"

static const ZklWireStat sample_stat = {
	.czxid = INT64_MIN,
	.mzxid = INT64_MAX,
	.ctime = 1700000000123,
	.mtime = 1700000000456,
	.ephemeral_owner = -2,
	.version = INT32_MIN,
	.acl_version = INT32_MAX
};

/* One of each field; the same order as in get_sample. */
static void
put_sample(ZklWireBuffer *buf)
{
	size_t		frame = zkl_wire_begin(buf, ZKL_WIRE_REPLY, 4000000000u,
									   UINT64_MAX - 1, -101);

	zkl_wire_put_u8(buf, 255);
	zkl_wire_put_u32(buf, UINT32_MAX);
	zkl_wire_put_i32(buf, -7);
	zkl_wire_put_i64(buf, INT64_MIN + 1);
	zkl_wire_put_string(buf, "a\0b", 3);
	zkl_wire_put_string(buf, NULL, 0);
	zkl_wire_put_stat(buf, &sample_stat);
	zkl_wire_put_string(buf, "end", 3);
	zkl_wire_end(buf, frame);
}

/* Reads a body like that; the sum makes the compiler keep the reads. */
static uint64_t
get_sample(ZklWireReader *r, bool check)
{
	uint64_t	sum;
	uint32_t	length;
	const char *string;
	ZklWireStat stat;

	sum = zkl_wire_get_u8(r);
	CHECK(!check || sum == 255);
	sum += zkl_wire_get_u32(r);
	CHECK(!check || sum == 255 + (uint64_t) UINT32_MAX);
	sum = (uint64_t) zkl_wire_get_i32(r);
	CHECK(!check || (int64_t) sum == -7);
	sum = (uint64_t) zkl_wire_get_i64(r);
	CHECK(!check || (int64_t) sum == INT64_MIN + 1);
	string = zkl_wire_get_string(r, &length);
	CHECK(!check || (length == 3 && memcmp(string, "a\0b", 3) == 0));
	for (uint32_t i = 0; i < length; i++)
		sum += (unsigned char) string[i];
	string = zkl_wire_get_string(r, &length);
	CHECK(!check || (length == 0 && string != NULL));
	zkl_wire_get_stat(r, &stat);
	CHECK(!check || (stat.czxid == sample_stat.czxid &&
					 stat.mzxid == sample_stat.mzxid &&
					 stat.ctime == sample_stat.ctime &&
					 stat.mtime == sample_stat.mtime &&
					 stat.ephemeral_owner == sample_stat.ephemeral_owner &&
					 stat.version == sample_stat.version &&
					 stat.acl_version == sample_stat.acl_version));
	string = zkl_wire_get_string(r, &length);
	CHECK(!check || (length == 3 && memcmp(string, "end", 3) == 0));
	for (uint32_t i = 0; i < length; i++)
		sum += (unsigned char) string[i];
	return sum + (uint64_t) stat.czxid;
}

static void
test_round_trip(void)
{
	ZklWireBuffer buf = {0};
	ZklWireHeader header;
	ZklWireReader body;

	put_sample(&buf);
	CHECK(!buf.failed);
	CHECK_INT(zkl_wire_peek(&buf, &header, &body), 1);
	CHECK_INT(header.type, ZKL_WIRE_REPLY);
	CHECK_INT(header.generation, 4000000000u);
	CHECK_INT(header.rc, -101);
	CHECK(header.tag == UINT64_MAX - 1);
	CHECK_INT(header.length, buf.end - sizeof(header));

	get_sample(&body, true);
	CHECK(!body.bad);
	CHECK_INT(body.left, 0);

	/* Reading on is an error, and yields zeros. */
	CHECK_INT(zkl_wire_get_u8(&body), 0);
	CHECK(body.bad);

	zkl_wire_consume(&buf, sizeof(header) + header.length);
	CHECK_INT(buf.end - buf.start, 0);
	CHECK_INT(zkl_wire_peek(&buf, &header, &body), 0);
	zkl_wire_buffer_free(&buf);
	CHECK(buf.data == NULL && buf.capacity == 0);
}

static void
test_empty_body(void)
{
	ZklWireBuffer buf = {0};
	ZklWireHeader header;
	ZklWireReader body;

	zkl_wire_end(&buf, zkl_wire_begin(&buf, ZKL_WIRE_PING, 1, 2, 0));
	CHECK_INT(buf.end, sizeof(header));
	CHECK_INT(zkl_wire_peek(&buf, &header, &body), 1);
	CHECK_INT(header.length, 0);
	CHECK_INT(body.left, 0);
	CHECK(!body.bad);
	zkl_wire_buffer_free(&buf);
}

static void
test_frame_cut_short(void)
{
	ZklWireBuffer whole = {0};
	ZklWireHeader header;
	ZklWireReader body;

	put_sample(&whole);
	for (size_t n = 0; n < whole.end; n++)
	{
		ZklWireBuffer part = {0};

		part.data = unit_copy(whole.data, n);
		part.end = part.capacity = n;
		CHECK_MSG(zkl_wire_peek(&part, &header, &body) == 0,
				  "%zu bytes were taken for a frame", n);
		zkl_wire_buffer_free(&part);
	}
	zkl_wire_buffer_free(&whole);
}

static void
test_body_cut_short(void)
{
	ZklWireBuffer whole = {0};
	size_t		length;

	put_sample(&whole);
	length = whole.end - sizeof(ZklWireHeader);
	for (size_t n = 0; n < length; n++)
	{
		char	   *copy = unit_copy(whole.data + sizeof(ZklWireHeader), n);
		ZklWireReader body = {copy, n, false};

		get_sample(&body, false);
		CHECK_MSG(body.bad, "%zu of %zu bytes were enough", n, length);

		/* Once bad, always bad, whatever is left. */
		CHECK_INT(zkl_wire_get_i64(&body), 0);
		CHECK(body.bad);
		free(copy);
	}
	zkl_wire_buffer_free(&whole);
}

static void
test_length_is_checked(void)
{
	static const uint32_t lengths[] = {ZKL_WIRE_MAX_BODY + 1, INT32_MAX,
	UINT32_MAX};
	ZklWireBuffer buf = {0};
	ZklWireHeader header;
	ZklWireReader body;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
	{
		zkl_wire_end(&buf, zkl_wire_begin(&buf, ZKL_WIRE_PING, 1, 2, 0));
		memcpy(buf.data + buf.start, &lengths[i], sizeof(lengths[i]));
		CHECK_INT(zkl_wire_peek(&buf, &header, &body), -1);
		zkl_wire_consume(&buf, buf.end - buf.start);
	}
	zkl_wire_buffer_free(&buf);
}

/* Frames of any bytes; what is read adds up to the body, or it is bad. */
static void
test_random_bytes(void)
{
	for (int round = 0; round < 20000; round++)
	{
		size_t		n = unit_random_below(200);
		char		bytes[200];
		ZklWireBuffer buf = {0};
		ZklWireHeader header;
		ZklWireReader body;

		for (size_t i = 0; i < n; i++)
			bytes[i] = (char) unit_random();

		/* Half of them with a length that may fit. */
		if (n >= 4 && round % 2 == 0)
		{
			uint32_t	length = unit_random_below(200);

			memcpy(bytes, &length, sizeof(length));
		}
		buf.data = unit_copy(bytes, n);
		buf.end = buf.capacity = n;
		if (zkl_wire_peek(&buf, &header, &body) == 1)
		{
			CHECK(sizeof(header) + header.length <= n);
			get_sample(&body, false);
			CHECK(body.left <= header.length);
		}
		zkl_wire_buffer_free(&buf);
	}
}

static void
check_frame(ZklWireBuffer *buf, uint64_t tag, size_t expected)
{
	ZklWireHeader header;
	ZklWireReader body;
	const char *string;
	uint32_t	length;
	bool		same = true;

	if (!CHECK(zkl_wire_peek(buf, &header, &body) == 1))
		return;
	CHECK_INT(header.tag, tag);
	string = zkl_wire_get_string(&body, &length);
	CHECK_INT(length, expected);
	for (uint32_t i = 0; i < length; i++)
		same = same && string[i] == (char) (tag + i);
	CHECK_MSG(same, "frame %" PRIu64 " has other bytes", tag);
	CHECK(!body.bad && body.left == 0);
	zkl_wire_consume(buf, sizeof(header) + header.length);
}

/* A queue of frames of all sizes, filled and drained at random. */
static void
test_buffer_as_queue(void)
{
	ZklWireBuffer buf = {0};
	static char bytes[300000];
	static size_t sizes[4000];
	uint64_t	put = 0;
	uint64_t	got = 0;

	while (got < 4000)
	{
		bool		fill = put < 4000 && unit_random_below(2) == 0;

		if (fill)
		{
			bool		large = unit_random_below(100) == 0;
			size_t		n = unit_random_below(large ? sizeof(bytes) : 300);
			size_t		frame;

			for (size_t i = 0; i < n; i++)
				bytes[i] = (char) (put + i);
			sizes[put] = n;
			frame = zkl_wire_begin(&buf, ZKL_WIRE_LOG, 1, put, 0);
			zkl_wire_put_string(&buf, bytes, n);
			zkl_wire_end(&buf, frame);
			put++;
		}
		else if (got < put)
		{
			check_frame(&buf, got, sizes[got]);
			got++;
		}
	}
	CHECK(!buf.failed);
	CHECK_INT(buf.end - buf.start, 0);
	zkl_wire_buffer_free(&buf);
}

/* Bytes arrive one at a time, as a socket may deliver them. */
static void
test_byte_by_byte(void)
{
	ZklWireBuffer from = {0};
	ZklWireBuffer to = {0};
	ZklWireHeader header;
	ZklWireReader body;
	int			frames = 0;

	for (int i = 0; i < 3; i++)
		put_sample(&from);
	for (size_t i = 0; i < from.end; i++)
	{
		if (!CHECK(zkl_wire_reserve(&to, 1)))
			break;
		to.data[to.end++] = from.data[i];
		if (zkl_wire_peek(&to, &header, &body) != 1)
			continue;
		frames++;
		get_sample(&body, true);
		zkl_wire_consume(&to, sizeof(header) + header.length);
	}
	CHECK_INT(frames, 3);
	CHECK_INT(to.end, 0);
	zkl_wire_buffer_free(&from);
	zkl_wire_buffer_free(&to);
}

static void
test_huge_buffer_is_given_back(void)
{
	ZklWireBuffer buf = {0};

	CHECK(zkl_wire_reserve(&buf, 8 * 1024 * 1024));
	CHECK(buf.capacity >= 8 * 1024 * 1024);
	memset(buf.data, 1, 8 * 1024 * 1024);
	buf.end = 8 * 1024 * 1024;
	zkl_wire_consume(&buf, buf.end);
	CHECK_INT(buf.capacity, 0);
	put_sample(&buf);
	CHECK(!buf.failed && buf.end > 0);
	zkl_wire_buffer_free(&buf);
}

/* A frame that the other end would refuse must not leave. */
static void
test_too_large_fails(void)
{
	ZklWireBuffer buf = {0};
	char	   *bytes = calloc(1, ZKL_WIRE_MAX_BODY);
	size_t		frame;
	size_t		before;

	if (!CHECK(bytes != NULL))
		return;
	frame = zkl_wire_begin(&buf, ZKL_WIRE_LOG, 1, 1, 0);
	zkl_wire_put_string(&buf, bytes, ZKL_WIRE_MAX_BODY - 4);
	zkl_wire_end(&buf, frame);
	CHECK(!buf.failed);

	frame = zkl_wire_begin(&buf, ZKL_WIRE_LOG, 1, 1, 0);
	zkl_wire_put_string(&buf, bytes, ZKL_WIRE_MAX_BODY - 3);
	zkl_wire_end(&buf, frame);
	CHECK(buf.failed);

	/* From here on puts do nothing. */
	before = buf.end;
	put_sample(&buf);
	CHECK_INT(buf.end, before);
	CHECK(!zkl_wire_reserve(&buf, 1));
	zkl_wire_buffer_free(&buf);

	CHECK(!zkl_wire_reserve(&buf, SIZE_MAX - 10));
	CHECK(buf.failed);
	zkl_wire_buffer_free(&buf);
	free(bytes);
}

int
main(void)
{
	unit_start();
	RUN(test_round_trip);
	RUN(test_empty_body);
	RUN(test_frame_cut_short);
	RUN(test_body_cut_short);
	RUN(test_length_is_checked);
	RUN(test_random_bytes);
	RUN(test_buffer_as_queue);
	RUN(test_byte_by_byte);
	RUN(test_huge_buffer_is_given_back);
	RUN(test_too_large_fails);
	return unit_finish();
}
