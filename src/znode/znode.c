/*
 * znode.c
 *	  Names: of locks, of znodes in each dialect, and the unique ids in them.
 *
 * Owns the text forms of what stands in a lock's directory.  Pure functions of their
 * arguments: every process may call them, they keep no state and take no locks.
 * Must not know requests, queues, PostgreSQL or ZooKeeper's client.  What stands
 * inside a znode is node_data.c's.
 */
#include <string.h>

#include "znode/node_data.h"
#include "znode/znode.h"

/* ---- uuid: UUIDs: the unique ids in the names of znodes ---- */

/*
 * Pure functions of their arguments: every process may call them, they keep no state
 * and take no locks.
 */

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

/* ---- name: the rules for names of locks, and for the root ---- */

/*
 * Pure functions of their arguments: every process may call them, they keep no
 * state and take no locks.  Must not know requests, queues, PostgreSQL or
 * ZooKeeper's client.
 */

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
	"request in a lock's queue: \"-lock-\", \"-latch-\", \"-lease-\", "
	"\"-member-\", \"__lock__\", \"__rlock__\", \"__READ__\" or \"__WRIT__\" "
	"and ten digits."
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
	"request in a lock's queue: \"-lock-\", \"-latch-\", \"-lease-\", "
	"\"-member-\", \"__lock__\", \"__rlock__\", \"__READ__\" or \"__WRIT__\" "
	"and ten digits."
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
	if (zkl_znode_is_like(segment, length))
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
		size_t		bytes = zkl_json_character(name + at, length - at, &code);

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
zkl_name_check_root(const char *root, size_t length)
{
	return root_sentences[check_path(root, length, ZKL_MAX_ROOT)];
}

/* ---- dialect: which dialect a lock has, by the beginning of its name ---- */

/*
 * Pure functions of their arguments: every process may call them, they keep no
 * state and take no locks.  What a dialect means is znode's.
 */

static const char *const names[ZKL_LOCK_DIALECTS] = {
	[ZKL_DIALECT_CURATOR_RW] = "curator_rw",
	[ZKL_DIALECT_CURATOR_MUTEX] = "curator_mutex",
	[ZKL_DIALECT_KAZOO] = "kazoo",
};

/* A piece of the list */
typedef struct Piece
{
	const char *start;
	size_t		length;
} Piece;

const char *
zkl_dialect_name(ZklDialect dialect)
{
	return names[dialect];
}

static Piece
trim(const char *start, const char *end)
{
	Piece		piece;

	while (start < end && *start == ' ')
		start++;
	while (start < end && end[-1] == ' ')
		end--;
	piece.start = start;
	piece.length = (size_t) (end - start);
	return piece;
}

static bool
same(Piece a, const char *b, size_t length)
{
	return a.length == length && memcmp(a.start, b, length) == 0;
}

/*
 * Takes the next entry off the list.  False: there is none.  A dialect that
 * does not exist is ZKL_LOCK_DIALECTS; an entry without "=" has no path.
 */
static bool
next_entry(const char **list, Piece *path, size_t *dialect)
{
	const char *start = *list;
	const char *end = start + strcspn(start, ",");
	const char *equals = end;
	Piece		word;

	if (*start == '\0')
		return false;
	*list = *end == ',' ? end + 1 : end;
	while (equals > start && equals[-1] != '=')
		equals--;
	word = trim(equals, end);
	*path = trim(start, equals > start ? equals - 1 : start);
	for (*dialect = 0; *dialect < ZKL_LOCK_DIALECTS; (*dialect)++)
	{
		if (same(word, names[*dialect], strlen(names[*dialect])))
			break;
	}
	return true;
}

/* Whether the path has an entry further on, too */
static bool
comes_again(const char *list, Piece path)
{
	Piece		other;
	size_t		dialect;

	while (next_entry(&list, &other, &dialect))
	{
		if (same(other, path.start, path.length))
			return true;
	}
	return false;
}

const char *
zkl_dialect_check_list(const char *list)
{
	Piece		path;
	size_t		dialect;
	const char *why;

	if (strlen(list) > ZKL_MAX_DIALECTS)
		return "The list must have at most 1000 bytes.";
	if (list[strspn(list, " ")] == '\0')
		return NULL;
	while (next_entry(&list, &path, &dialect))
	{
		if (path.length == 0)
			return "Each entry must be a path, \"=\" and a dialect, with commas "
				"between the entries.";
		if (dialect == ZKL_LOCK_DIALECTS)
			return "The dialects are \"curator_rw\", \"curator_mutex\" and "
				"\"kazoo\".";
		why = same(path, "/", 1) ? NULL :
			zkl_name_check(path.start, path.length);
		if (why != NULL)
			return why;
		if (comes_again(list, path))
			return "No path may have more than one entry.";
		if (list[0] == '\0' && list[-1] == ',')
			return "The list must not end with a comma.";
	}
	return NULL;
}

/* Whether the name is that path, or below it */
static bool
is_below(const char *name, Piece path)
{
	if (same(path, "/", 1))
		return true;
	return strncmp(name, path.start, path.length) == 0 &&
		(name[path.length] == '\0' || name[path.length] == '/');
}

ZklDialect
zkl_dialect_find(const char *list, const char *name)
{
	ZklDialect	found = ZKL_DIALECT_CURATOR_RW;
	size_t		longest = 0;
	Piece		path;
	size_t		dialect;

	while (next_entry(&list, &path, &dialect))
	{
		if (path.length > longest && is_below(name, path))
		{
			found = (ZklDialect) dialect;
			longest = path.length;
		}
	}
	return found;
}

/* ---- lists compared ---- */

/* In the order of bytes, so that a path comes before those below it */
static int
compare_paths(Piece path, const char *other)
{
	size_t		length = strlen(other);
	size_t		common = path.length < length ? path.length : length;
	int			order = memcmp(path.start, other, common);

	return order != 0 ? order :
		(path.length > length) - (path.length < length);
}

/*
 * Replaces "next" by the first path in the list that comes behind "last" and
 * before "next"; an empty one is none yet.
 */
static void
find_next_path(const char *list, const char *last, char *next)
{
	Piece		path;
	size_t		dialect;

	while (next_entry(&list, &path, &dialect))
	{
		if (path.length == 0 || path.length > ZKL_MAX_NAME ||
			compare_paths(path, last) <= 0 ||
			(next[0] != '\0' && compare_paths(path, next) >= 0))
			continue;
		memcpy(next, path.start, path.length);
		next[path.length] = '\0';
	}
}

void
zkl_dialect_normalize(const char *list, char *buf)
{
	char		path[ZKL_MAX_NAME + 1] = "";
	size_t		length = 0;

	buf[0] = '\0';
	for (;;)
	{
		char		next[ZKL_MAX_NAME + 1] = "";
		const char *pieces[] = {",", next, "=", NULL};
		ZklDialect	dialect;
		size_t		i;

		find_next_path(list, path, next);
		if (next[0] == '\0')
			return;
		memcpy(path, next, sizeof(path));
		dialect = zkl_dialect_find(list, path);
		if (dialect == zkl_dialect_find(buf, path))
			continue;
		pieces[3] = names[dialect];
		for (i = length == 0; i < 4; i++)
		{
			memcpy(buf + length, pieces[i], strlen(pieces[i]) + 1);
			length += strlen(pieces[i]);
		}
	}
}

bool
zkl_dialect_next_change(const char *a, const char *b, char *path)
{
	for (;;)
	{
		char		next[ZKL_MAX_NAME + 1] = "";

		find_next_path(a, path, next);
		find_next_path(b, path, next);
		if (next[0] == '\0')
			return false;
		memcpy(path, next, sizeof(next));
		if (zkl_dialect_find(a, path) != zkl_dialect_find(b, path))
			return true;
	}
}

bool
zkl_dialect_has_entry(const char *list, const char *path)
{
	Piece		entry;
	size_t		dialect;

	while (next_entry(&list, &entry, &dialect))
	{
		if (same(entry, path, strlen(path)))
			return true;
	}
	return false;
}

/* ---- znode: the names of znodes, in each dialect ---- */

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
