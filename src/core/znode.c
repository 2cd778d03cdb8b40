/*
 * znode.c
 *	  Lock names, UUIDs and the names of znodes.
 *
 * Owns the rules for a lock's name and the text forms of what stands in a
 * lock's directory.  Pure functions of their arguments: every process may call
 * them (backends check names, the worker makes and reads znodes), they keep no
 * state and take no locks.  Must not know requests, queues, PostgreSQL or
 * ZooKeeper's client.  What stands inside a znode is nodedata.c's.
 */
#include <string.h>

#include "core/utf8.h"
#include "core/znode.h"

#define WRITER_MARK		"__WRIT__"
#define READER_MARK		"__READ__"
#define MARK_LENGTH		8
#define UUID_MARK		"_c_"
#define UUID_MARK_LENGTH 3
#define SEQ_DIGITS		10

typedef enum NameRule
{
	RULE_KEPT,
	RULE_LENGTH,
	RULE_START,
	RULE_ALONE,
	RULE_END,
	RULE_UTF8,
	RULE_CHARACTER,
	RULE_EMPTY_SEGMENT,
	RULE_DOT_SEGMENT,
	RULE_RESERVED_SEGMENT,
	RULE_CONTENDER
} NameRule;

static const char *const name_sentences[] = {
	[RULE_LENGTH] = "A lock name must have at most 255 bytes in UTF-8.",
	[RULE_START] = "A lock name must start with \"/\".",
	[RULE_ALONE] = "A lock name must have something after its first \"/\".",
	[RULE_END] = "A lock name must not end with \"/\".",
	[RULE_UTF8] = "A lock name must be valid UTF-8.",
	[RULE_CHARACTER] = "A lock name must not contain control characters or "
	"others that ZooKeeper refuses (U+0000 to U+001F, U+007F to U+009F, "
	"U+D800 to U+F8FF, U+FFF0 and above).",
	[RULE_EMPTY_SEGMENT] = "A lock name must not have an empty segment "
	"(\"//\").",
	[RULE_DOT_SEGMENT] = "A lock name must not have a segment \".\" or "
	"\"..\".",
	[RULE_RESERVED_SEGMENT] = "A lock name must not have a segment that starts "
	"with \".\".",
	[RULE_CONTENDER] = "A lock name must not have a segment that looks like a "
	"request in a lock's queue: \"-lock-\", \"__lock__\", \"__rlock__\", "
	"\"__READ__\" or \"__WRIT__\" and ten digits."
};

static const char *const root_sentences[] = {
	[RULE_LENGTH] = "The root must have at most 127 bytes in UTF-8.",
	[RULE_START] = "The root must start with \"/\".",
	[RULE_ALONE] = "The root must have something after its first \"/\".",
	[RULE_END] = "The root must not end with \"/\".",
	[RULE_UTF8] = "The root must be valid UTF-8.",
	[RULE_CHARACTER] = "The root must not contain control characters or "
	"others that ZooKeeper refuses (U+0000 to U+001F, U+007F to U+009F, "
	"U+D800 to U+F8FF, U+FFF0 and above).",
	[RULE_EMPTY_SEGMENT] = "The root must not have an empty segment "
	"(\"//\").",
	[RULE_DOT_SEGMENT] = "The root must not have a segment \".\" or \"..\".",
	[RULE_RESERVED_SEGMENT] = "The root must not have a segment that starts "
	"with \".\".",
	[RULE_CONTENDER] = "The root must not have a segment that looks like a "
	"request in a lock's queue: \"-lock-\", \"__lock__\", \"__rlock__\", "
	"\"__READ__\" or \"__WRIT__\" and ten digits."
};

/*
 * ZooKeeper checks paths as UTF-16 (PathUtils.validatePath) and refuses
 * surrogates, so every character past U+FFFF is refused as well.
 */
static bool
character_allowed(uint32_t code)
{
	return code > 0x1F &&
		!(code >= 0x7F && code <= 0x9F) &&
		!(code >= 0xD800 && code <= 0xF8FF) &&
		code < 0xFFF0;
}

/*
 * Where the number at the end of a name of this length starts, as the server
 * writes it with %010d: ten digits, or "-" and nine or ten.  0: there is none.
 */
static size_t
number_start(const char *name, size_t length)
{
	size_t		start = length;
	size_t		digits;
	bool		negative;

	while (start > 0 && length - start <= SEQ_DIGITS &&
		   name[start - 1] >= '0' && name[start - 1] <= '9')
		start--;
	digits = length - start;
	negative = start > 0 && name[start - 1] == '-';
	if (digits == SEQ_DIGITS || (negative && digits == SEQ_DIGITS - 1))
		return negative ? start - 1 : start;
	return 0;
}

/* The value of such a number; false if the server's counter cannot have it */
static bool
number_read(const char *number, ZklSeq *seq)
{
	bool		negative = *number == '-';
	int64_t		value = 0;

	for (number += negative; *number != '\0'; number++)
		value = value * 10 + (*number - '0');
	if (value > (int64_t) INT32_MAX + negative)
		return false;
	*seq = (uint32_t) (negative ? -value : value);
	return true;
}

static bool
ends_with(const char *name, size_t length, const char *end)
{
	size_t		end_length = strlen(end);

	return length >= end_length &&
		memcmp(name + length - end_length, end, end_length) == 0;
}

/*
 * Whether a segment would be a contender where a lock's directory is, in this
 * dialect or another client's (Curator's, kazoo's).  A dash may be
 * the number's sign or, before ten digits, the last character of the mark.
 */
static bool
segment_is_contender(const char *segment, size_t length)
{
	static const char *const marks[] = {
		WRITER_MARK, READER_MARK, "-lock-", "__lock__", "__rlock__"
	};
	size_t		start = number_start(segment, length);
	size_t		i;

	if (start == 0)
		return false;
	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
	{
		if (ends_with(segment, start, marks[i]) ||
			(length - start > SEQ_DIGITS &&
			 ends_with(segment, start + 1, marks[i])))
			return true;
	}
	return false;
}

static NameRule
check_segment(const char *segment, size_t length)
{
	if (length == 0)
		return RULE_EMPTY_SEGMENT;
	if (segment[0] == '.')
	{
		if (length == 1 || (length == 2 && segment[1] == '.'))
			return RULE_DOT_SEGMENT;
		return RULE_RESERVED_SEGMENT;
	}
	if (segment_is_contender(segment, length))
		return RULE_CONTENDER;
	return RULE_KEPT;
}

static NameRule
check_characters(const char *name, size_t length)
{
	size_t		at = 0;

	while (at < length)
	{
		uint32_t	code;
		size_t		bytes = zkl_utf8_decode(name + at, length - at, &code);

		if (bytes == 0)
			return RULE_UTF8;
		if (!character_allowed(code))
			return RULE_CHARACTER;
		at += bytes;
	}
	return RULE_KEPT;
}

static NameRule
check_path(const char *name, size_t length, size_t max_length)
{
	NameRule	rule;
	size_t		start = 1;

	if (length == 0 || name[0] != '/')
		return RULE_START;
	if (length > max_length)
		return RULE_LENGTH;
	if (length == 1)
		return RULE_ALONE;
	rule = check_characters(name, length);

	while (rule == RULE_KEPT && start <= length)
	{
		const char *slash = memchr(name + start, '/', length - start);
		size_t		end = slash ? (size_t) (slash - name) : length;

		if (start == length)
			return RULE_END;
		rule = check_segment(name + start, end - start);
		start = end + 1;
	}
	return rule;
}

const char *
zkl_name_check(const char *name, size_t length)
{
	return name_sentences[check_path(name, length, ZKL_MAX_NAME)];
}

const char *
zkl_root_check(const char *root, size_t length)
{
	return root_sentences[check_path(root, length, ZKL_MAX_ROOT)];
}

ZklUuid
zkl_uuid_make(uint64_t hi, uint64_t lo)
{
	ZklUuid		uuid;
	uint64_t	first = (hi & 0xFFFFFFFFFFFF000) << 4 | 0x8000 | (hi & 0xFFF);
	uint64_t	second = (lo & (UINT64_MAX >> 2)) | (uint64_t) 1 << 63;
	int			i;

	for (i = 0; i < 8; i++)
	{
		uuid.bytes[i] = (uint8_t) (first >> (56 - 8 * i));
		uuid.bytes[8 + i] = (uint8_t) (second >> (56 - 8 * i));
	}
	return uuid;
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

/*
 * Reads the UUID at the start of text, in the form that we and Curator write:
 * a name in capitals is another name to ZooKeeper, so it is none.
 */
static bool
uuid_parse_start(const char *text, ZklUuid *uuid)
{
	int			i;

	for (i = 0; i < ZKL_UUID_BYTES; i++)
	{
		int			high;
		int			low;

		if (dash_before(i) && *text++ != '-')
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
	return uuid_parse_start(text, uuid) && text[ZKL_UUID_TEXT] == '\0';
}

bool
zkl_uuid_is_zklock(const ZklUuid *uuid)
{
	return uuid->bytes[6] >> 4 == 8 && uuid->bytes[8] >> 6 == 2;
}

void
zkl_znode_prefix(const ZklUuid *uuid, ZklLockMode mode, char *buf)
{
	memcpy(buf, UUID_MARK, UUID_MARK_LENGTH);
	buf += UUID_MARK_LENGTH;
	zkl_uuid_format(uuid, buf);
	buf += ZKL_UUID_TEXT;
	*buf++ = '-';
	memcpy(buf, mode == ZKL_EXCLUSIVE ? WRITER_MARK : READER_MARK,
		   MARK_LENGTH + 1);
}

/* Writes the number as the server does, with %010d */
static void
number_write(ZklSeq seq, char *buf)
{
	bool		negative = (uint32_t) seq > INT32_MAX;
	uint32_t	value = negative ? 0 - (uint32_t) seq : (uint32_t) seq;
	int			digits = SEQ_DIGITS;
	int			i;

	if (negative)
	{
		*buf++ = '-';
		if (value < 1000000000)
			digits--;
	}
	for (i = digits - 1; i >= 0; i--)
	{
		buf[i] = (char) ('0' + value % 10);
		value /= 10;
	}
	buf[digits] = '\0';
}

void
zkl_znode_name(const ZklUuid *uuid, ZklLockMode mode, ZklSeq seq, char *buf)
{
	zkl_znode_prefix(uuid, mode, buf);
	number_write(seq, buf + UUID_MARK_LENGTH + ZKL_UUID_TEXT + 1 + MARK_LENGTH);
}

/*
 * To Curator a name with both marks is a writer for readers and numbered by
 * the last mark, so a writer's mark anywhere makes it exclusive.
 */
bool
zkl_znode_parse(const char *name, ZklLockMode *mode, ZklSeq *seq,
				bool *has_uuid, ZklUuid *uuid)
{
	size_t		start = number_start(name, strlen(name));

	if (ends_with(name, start, WRITER_MARK))
		*mode = ZKL_EXCLUSIVE;
	else if (ends_with(name, start, READER_MARK))
		*mode = strstr(name, WRITER_MARK) ? ZKL_EXCLUSIVE : ZKL_SHARED;
	else
		return false;
	if (!number_read(name + start, seq))
		return false;

	*has_uuid = strncmp(name, UUID_MARK, UUID_MARK_LENGTH) == 0 &&
		uuid_parse_start(name + UUID_MARK_LENGTH, uuid) &&
		name[UUID_MARK_LENGTH + ZKL_UUID_TEXT] == '-';
	return true;
}

ZklSeq
zkl_znode_path_seq(const char *path)
{
	const char *slash = strrchr(path, '/');
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;

	if (!zkl_znode_parse(slash ? slash + 1 : path, &mode, &seq, &has_uuid,
						 &uuid))
		return ZKL_SEQ_NONE;
	return seq;
}
