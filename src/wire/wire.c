/*
 * wire.c
 *	  Messages between the worker and zklock_session: the codec.
 *
 * Owns the layout of frames; buffers and readers belong to the caller.  Runs in
 * the worker and in the session process.  Takes no locks.
 * It must not know PostgreSQL (no palloc, no ereport), ZooKeeper, or the
 * descriptor that the bytes travel over.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

/* The first allocation, and the most that an empty buffer keeps */
#define MIN_CAPACITY	((size_t) 4096)
#define KEEP_CAPACITY	((size_t) 1024 * 1024)

void
zkl_wire_buffer_free(ZklWireBuffer *buf)
{
	free(buf->data);
	memset(buf, 0, sizeof(*buf));
}

void
zkl_wire_consume(ZklWireBuffer *buf, size_t n)
{
	if (n < buf->end - buf->start)
	{
		buf->start += n;
		return;
	}
	buf->start = 0;
	buf->end = 0;

	/* Do not keep the memory of one huge listing for ever. */
	if (buf->capacity > KEEP_CAPACITY)
	{
		free(buf->data);
		buf->data = NULL;
		buf->capacity = 0;
	}
}

bool
zkl_wire_reserve(ZklWireBuffer *buf, size_t n)
{
	size_t		live = buf->end - buf->start;
	size_t		capacity = buf->capacity;
	char	   *data;

	if (buf->failed)
		return false;
	if (n <= capacity - buf->end)
		return true;
	if (n > SIZE_MAX / 4 || live > SIZE_MAX / 4)
	{
		buf->failed = true;
		return false;
	}

	if (buf->start > 0)
	{
		memmove(buf->data, buf->data + buf->start, live);
		buf->start = 0;
		buf->end = live;
	}

	/*
	 * Moving is enough only if it frees half of the buffer: otherwise the
	 * bytes of an almost full buffer would be moved for every few new ones.
	 */
	if (n <= capacity - live && live <= capacity / 2)
		return true;

	if (capacity < MIN_CAPACITY)
		capacity = MIN_CAPACITY;
	while (capacity - live < n || live > capacity / 2)
		capacity *= 2;

	data = realloc(buf->data, capacity);
	if (data == NULL)
	{
		buf->failed = true;
		return false;
	}
	buf->data = data;
	buf->capacity = capacity;
	return true;
}

static void
append_bytes(ZklWireBuffer *buf, const void *bytes, size_t n)
{
	if (n == 0 || !zkl_wire_reserve(buf, n))
		return;
	memcpy(buf->data + buf->end, bytes, n);
	buf->end += n;
}

size_t
zkl_wire_begin(ZklWireBuffer *buf, ZklWireType type, uint32_t generation,
			   uint64_t tag, int32_t rc)
{
	size_t		frame = buf->end - buf->start;
	ZklWireHeader header;

	memset(&header, 0, sizeof(header));
	header.type = type;
	header.generation = generation;
	header.tag = tag;
	header.rc = rc;
	append_bytes(buf, &header, sizeof(header));
	return frame;
}

void
zkl_wire_put_u8(ZklWireBuffer *buf, uint8_t value)
{
	append_bytes(buf, &value, sizeof(value));
}

void
zkl_wire_put_u32(ZklWireBuffer *buf, uint32_t value)
{
	append_bytes(buf, &value, sizeof(value));
}

void
zkl_wire_put_i32(ZklWireBuffer *buf, int32_t value)
{
	append_bytes(buf, &value, sizeof(value));
}

void
zkl_wire_put_i64(ZklWireBuffer *buf, int64_t value)
{
	append_bytes(buf, &value, sizeof(value));
}

void
zkl_wire_put_string(ZklWireBuffer *buf, const char *bytes, size_t length)
{
	if (length > ZKL_WIRE_MAX_BODY)
	{
		buf->failed = true;
		return;
	}
	zkl_wire_put_u32(buf, (uint32_t) length);
	append_bytes(buf, bytes, length);
}

void
zkl_wire_put_text(ZklWireBuffer *buf, const char *text)
{
	zkl_wire_put_string(buf, text, strlen(text));
}

void
zkl_wire_put_stat(ZklWireBuffer *buf, const ZklWireStat *stat)
{
	zkl_wire_put_i64(buf, stat->czxid);
	zkl_wire_put_i64(buf, stat->mzxid);
	zkl_wire_put_i64(buf, stat->ctime);
	zkl_wire_put_i64(buf, stat->mtime);
	zkl_wire_put_i64(buf, stat->ephemeral_owner);
	zkl_wire_put_i32(buf, stat->version);
	zkl_wire_put_i32(buf, stat->acl_version);
}

void
zkl_wire_end(ZklWireBuffer *buf, size_t frame)
{
	size_t		length;
	uint32_t	field;

	if (buf->failed)
		return;

	length = buf->end - buf->start - frame - sizeof(ZklWireHeader);
	if (length > ZKL_WIRE_MAX_BODY)
	{
		/* The other end would reject it. */
		buf->failed = true;
		return;
	}
	field = (uint32_t) length;
	memcpy(buf->data + buf->start + frame + offsetof(ZklWireHeader, length),
		   &field, sizeof(field));
}

int
zkl_wire_peek(const ZklWireBuffer *buf, ZklWireHeader *header,
			  ZklWireReader *body)
{
	size_t		live = buf->end - buf->start;

	if (live < sizeof(*header))
		return 0;
	memcpy(header, buf->data + buf->start, sizeof(*header));
	if (header->length > ZKL_WIRE_MAX_BODY)
		return -1;
	if (live - sizeof(*header) < header->length)
		return 0;

	body->next = buf->data + buf->start + sizeof(*header);
	body->left = header->length;
	body->bad = false;
	return 1;
}

static void
get_bytes(ZklWireReader *r, void *bytes, size_t n)
{
	if (r->bad || r->left < n)
	{
		r->bad = true;
		memset(bytes, 0, n);
		return;
	}
	memcpy(bytes, r->next, n);
	r->next += n;
	r->left -= n;
}

uint8_t
zkl_wire_get_u8(ZklWireReader *r)
{
	uint8_t		value;

	get_bytes(r, &value, sizeof(value));
	return value;
}

uint32_t
zkl_wire_get_u32(ZklWireReader *r)
{
	uint32_t	value;

	get_bytes(r, &value, sizeof(value));
	return value;
}

int32_t
zkl_wire_get_i32(ZklWireReader *r)
{
	int32_t		value;

	get_bytes(r, &value, sizeof(value));
	return value;
}

int64_t
zkl_wire_get_i64(ZklWireReader *r)
{
	int64_t		value;

	get_bytes(r, &value, sizeof(value));
	return value;
}

const char *
zkl_wire_get_string(ZklWireReader *r, uint32_t *length)
{
	uint32_t	n = zkl_wire_get_u32(r);
	const char *bytes;

	if (r->bad || r->left < n)
	{
		r->bad = true;
		*length = 0;
		return "";
	}
	bytes = r->next;
	r->next += n;
	r->left -= n;
	*length = n;
	return bytes;
}

void
zkl_wire_get_stat(ZklWireReader *r, ZklWireStat *stat)
{
	memset(stat, 0, sizeof(*stat));
	stat->czxid = zkl_wire_get_i64(r);
	stat->mzxid = zkl_wire_get_i64(r);
	stat->ctime = zkl_wire_get_i64(r);
	stat->mtime = zkl_wire_get_i64(r);
	stat->ephemeral_owner = zkl_wire_get_i64(r);
	stat->version = zkl_wire_get_i32(r);
	stat->acl_version = zkl_wire_get_i32(r);
}
