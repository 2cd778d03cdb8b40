/*
 * uuid.c
 *	  UUIDs: the unique ids in the names of znodes.
 *
 * Owns their text form.  Pure functions of their arguments: every process may
 * call them, they keep no state and take no locks.
 */
#include "znode/uuid.h"

/* The first eight bytes have 60 bits of the session, and those behind the other four. */
ZklUuid
zkl_uuid_make(int64_t session, uint32_t start, uint64_t count)
{
	ZklUuid		uuid;
	uint64_t	hi = (uint64_t) session >> 4;
	uint64_t	lo = ((uint64_t) session << 58 & UINT64_MAX >> 2) |
	((uint64_t) start << ZKL_UUID_COUNT_BITS & UINT64_MAX >> 6) |
	(count & UINT64_MAX >> (64 - ZKL_UUID_COUNT_BITS));
	uint64_t	first = (hi & 0xFFFFFFFFFFFF000) << 4 | 0x8000 | (hi & 0xFFF);
	uint64_t	second = lo | (uint64_t) 1 << 63;
	int			i;

	for (i = 0; i < 8; i++)
	{
		uuid.bytes[i] = (uint8_t) (first >> (56 - 8 * i));
		uuid.bytes[8 + i] = (uint8_t) (second >> (56 - 8 * i));
	}
	return uuid;
}

int64_t
zkl_uuid_session(const ZklUuid *uuid)
{
	uint64_t	first = 0;
	int			i;

	for (i = 0; i < 8; i++)
		first = first << 8 | uuid->bytes[i];
	return (int64_t) ((first >> 4 & 0xFFFFFFFFFFFF000) << 4 | (first & 0xFFF) << 4 |
					  (uuid->bytes[8] >> 2 & 0xF));
}

bool
zkl_uuid_same_maker(const ZklUuid *a, const ZklUuid *b)
{
	return memcmp(a->bytes, b->bytes,
				  ZKL_UUID_BYTES - ZKL_UUID_COUNT_BITS / 8) == 0;
}

/* Whether a dash stands before byte i in the text form of a UUID */
static bool
dash_before(int i)
{
	return i == 4 || i == 6 || i == 8 || i == 10;
}

void
zkl_uuid_format(const ZklUuid *uuid, char *text)
{
	static const char hex[] = "0123456789abcdef";
	int			i;

	for (i = 0; i < ZKL_UUID_BYTES; i++)
	{
		if (dash_before(i))
			*text++ = '-';
		*text++ = hex[uuid->bytes[i] >> 4];
		*text++ = hex[uuid->bytes[i] & 15];
	}
	*text = '\0';
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

bool
zkl_uuid_parse_start(const char *text, bool dashes, ZklUuid *uuid)
{
	int			i;

	for (i = 0; i < ZKL_UUID_BYTES; i++)
	{
		int			high;
		int			low;

		if (dashes && dash_before(i) && *text++ != '-')
			return false;
		high = hex_digit(text[0]);
		low = high < 0 ? -1 : hex_digit(text[1]);
		if (low < 0)
			return false;
		uuid->bytes[i] = (uint8_t) (high << 4 | low);
		text += 2;
	}
	return true;
}

bool
zkl_uuid_parse(const char *text, ZklUuid *uuid)
{
	return zkl_uuid_parse_start(text, true, uuid) && text[ZKL_UUID_TEXT] == '\0';
}

bool
zkl_uuid_is_zklock(const ZklUuid *uuid)
{
	return uuid->bytes[6] >> 4 == 8 && uuid->bytes[8] >> 6 == 2;
}
