/*
 * znode.c
 *	  The names of znodes, in each dialect.
 *
 * Owns the text forms of what stands in a lock's directory.  Pure functions of
 * their arguments: every process may call them, they keep no state and take no
 * locks.  Must not know requests, queues, PostgreSQL or ZooKeeper's client.
 * What stands inside a znode is node_data.c's.
 */
#include <string.h>

#include "znode/znode.h"

#define SEQ_DIGITS		10
#define CURATOR_MARK	"_c_"	/* before the unique id */
#define CURATOR_MARK_LENGTH 3

/*
 * What stands between the unique id and the number.  The sharp end of each
 * mark is what other clients look for; all before it is anybody's.
 */
typedef struct Marks
{
	const char *written[2];		/* by mode */
	const char *counted[2];		/* by mode; NULL: no client has it */
	bool		dashes;			/* _c_<uuid with dashes>, else <hex> */
} Marks;

static const Marks marks[] = {
	[ZKL_DIALECT_CURATOR_RW] = {
		{"-__WRIT__", "-__READ__"}, {"__WRIT__", "__READ__"}, true
	},
	[ZKL_DIALECT_CURATOR_MUTEX] = {
		{"-lock-", "-lock-"}, {"lock-", NULL}, true
	},
	[ZKL_DIALECT_KAZOO] = {
		{"__lock__", "__rlock__"}, {"__lock__", "__rlock__"}, false
	},
	[ZKL_DIALECT_LATCH] = {
		{"-latch-", "-latch-"}, {"latch-", NULL}, true
	},
	[ZKL_DIALECT_PERMIT] = {
		{"-lease-", "-lease-"}, {"lease-", NULL}, true
	},
	[ZKL_DIALECT_MEMBER] = {
		{"-member-", "-member-"}, {NULL, "member-"}, true
	},
};

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
 * Where the number behind a mark starts, or NULL.  A dash before ten digits is
 * the number's sign, or the end of the mark.
 */
static const char *
number_behind(const char *name, size_t length, const char *mark)
{
	size_t		start = number_start(name, length);

	if (mark == NULL || start == 0)
		return NULL;
	if (ends_with(name, start, mark))
		return name + start;
	if (length - start > SEQ_DIGITS && ends_with(name, start + 1, mark))
		return name + start + 1;
	return NULL;
}

size_t
zkl_znode_shown_length(ZklDialect dialect, bool guard, const char *path)
{
	size_t		length = strlen(path);

	if (guard)
		return length - strlen(ZKL_SEMAPHORE_GUARD);
	if (dialect == ZKL_DIALECT_PERMIT)
		return length - strlen(ZKL_SEMAPHORE_PERMITS);
	return length;
}

bool
zkl_znode_is_like(const char *segment, size_t length)
{
	size_t		i;
	int			mode;

	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
	{
		for (mode = 0; mode < 2; mode++)
		{
			if (number_behind(segment, length, marks[i].written[mode] +
							  (i == ZKL_DIALECT_CURATOR_RW)))
				return true;
		}
	}
	return false;
}

static void
format_hex(const ZklUuid *uuid, char *text)
{
	char		dashed[ZKL_UUID_TEXT + 1];
	const char *c;

	zkl_uuid_format(uuid, dashed);
	for (c = dashed; *c != '\0'; c++)
	{
		if (*c != '-')
			*text++ = *c;
	}
	*text = '\0';
}

void
zkl_znode_prefix(ZklDialect dialect, const ZklUuid *uuid, ZklLockMode mode,
				 char *buf)
{
	if (marks[dialect].dashes)
	{
		memcpy(buf, CURATOR_MARK, CURATOR_MARK_LENGTH);
		zkl_uuid_format(uuid, buf + CURATOR_MARK_LENGTH);
	}
	else
		format_hex(uuid, buf);
	strcat(buf, marks[dialect].written[mode]);
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
zkl_znode_name(ZklDialect dialect, const ZklUuid *uuid, ZklLockMode mode,
			   ZklSeq seq, char *buf)
{
	zkl_znode_prefix(dialect, uuid, mode, buf);
	number_write(seq, buf + strlen(buf));
}

/* A dot, and the number in hexadecimal digits; returns its end. */
static char *
hex_append(char *buf, uint64_t number)
{
	int			shift = 60;

	while (shift > 0 && number >> shift == 0)
		shift -= 4;
	*buf++ = '.';
	for (; shift >= 0; shift -= 4)
		*buf++ = "0123456789abcdef"[number >> shift & 15];
	*buf = '\0';
	return buf;
}

void
zkl_znode_wait_name(const ZklUuid *held, uint32_t start, uint64_t count, char *buf)
{
	zkl_uuid_format(held, buf);
	(void) hex_append(hex_append(buf + ZKL_UUID_TEXT, start), count);
}

bool
zkl_znode_parse_wait(const char *name, ZklUuid *held)
{
	return zkl_uuid_parse_start(name, true, held) && name[ZKL_UUID_TEXT] == '.' &&
		strlen(name) <= ZKL_MAX_WAIT_NAME;
}

/* The unique id at the start of a name, as clients of the dialect write it */
static bool
find_uuid(ZklDialect dialect, const char *name, ZklUuid *uuid)
{
	if (marks[dialect].dashes)
		return strncmp(name, CURATOR_MARK, CURATOR_MARK_LENGTH) == 0 &&
			zkl_uuid_parse_start(name + CURATOR_MARK_LENGTH, true, uuid) &&
			name[CURATOR_MARK_LENGTH + ZKL_UUID_TEXT] == '-';
	return zkl_uuid_parse_start(name, false, uuid) && name[ZKL_UUID_HEX] == '_';
}

/*
 * To Curator a name with both of its marks is a writer for readers and
 * numbered by the last mark, so a writer's mark anywhere makes it exclusive.
 */
bool
zkl_znode_parse(ZklDialect dialect, const char *name, ZklLockMode *mode,
				ZklSeq *seq, bool *has_uuid, ZklUuid *uuid)
{
	const char *const *counted = marks[dialect].counted;
	size_t		length = strlen(name);
	const char *number = number_behind(name, length, counted[ZKL_EXCLUSIVE]);
	bool		shared = false;

	if (number == NULL)
	{
		number = number_behind(name, length, counted[ZKL_SHARED]);
		shared = dialect != ZKL_DIALECT_CURATOR_RW ||
			strstr(name, counted[ZKL_EXCLUSIVE]) == NULL;
	}
	if (number == NULL || !number_read(number, seq))
		return false;
	*mode = shared ? ZKL_SHARED : ZKL_EXCLUSIVE;
	*has_uuid = find_uuid(dialect, name, uuid);
	return true;
}

ZklSeq
zkl_znode_path_seq(ZklDialect dialect, const char *path)
{
	const char *slash = strrchr(path, '/');
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;

	if (!zkl_znode_parse(dialect, slash ? slash + 1 : path, &mode, &seq,
						 &has_uuid, &uuid))
		return ZKL_SEQ_NONE;
	return seq;
}
