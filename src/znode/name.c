/*
 * name.c
 *	  The rules for names of locks, and for the root.
 *
 * Pure functions of their arguments: every process may call them, they keep no
 * state and take no locks.  Must not know requests, queues, PostgreSQL or
 * ZooKeeper's client.
 */
#include <string.h>

#include "znode/json.h"
#include "znode/znode.h"

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
