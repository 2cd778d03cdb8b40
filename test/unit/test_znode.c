/*
 * test_znode.c
 *	  Names, UUIDs, and the names of znodes: round trips, each rule with one
 *	  good and one bad name, what other clients write; and hostile bytes for
 *	  all that reads them.
 */
#include "text.h"
#include "unit.h"
#include "znode/node_data.h"
#include "znode/znode.h"

#define UUID_A "01234567-89ab-4def-8123-456789abcdef"
#define UUID_8 "01234567-89ab-8def-8123-456789abcdef"
#define HEX_A "0123456789ab4def8123456789abcdef"

static const char *
check_name(const char *name)
{
	size_t		length = strlen(name);
	char	   *copy = unit_copy(name, length);
	const char *rule = zkl_name_check(copy, length);

	free(copy);
	return rule;
}

/* "/" and then n times the letter a */
static char *
long_name(size_t n)
{
	char	   *name = malloc(n + 2);

	if (name == NULL)
		abort();
	memset(name, 'a', n + 1);
	name[0] = '/';
	name[n + 1] = '\0';
	return name;
}

/* Names, and a word of the rule that each breaks; NULL: it is good */
static void
name_rules(void)
{
	static const struct
	{
		const char *name;
		const char *rule;
	}			cases[] = {
		{"/a", NULL}, {"/batch/nightly", NULL}, {"/ ", NULL},
		{"", "start with"}, {"a", "start with"}, {"a/b", "start with"},
		{"/", "after its first"},
		{"/a/", "end with"}, {"/a/b/", "end with"},
		{"//", "empty"}, {"//a", "empty"}, {"/a//b", "empty"},
		{"/a//", "empty"},
		{"/.", "\"..\""}, {"/..", "\"..\""}, {"/a/./b", "\"..\""},
		{"/a/../b", "\"..\""}, {"/a/..", "\"..\""},
		{"/.a", "starts with"}, {"/.servers/x", "starts with"},
		{"/a/...", "starts with"}, {"/a.", NULL}, {"/a/b..", NULL},
		{"/a\tb", "control"}, {"/a\x7f", "control"}, {"/a\x1f", "control"},
		{"/\xc2\x80", "control"}, {"/\xc2\x9f", "control"},
		{"/\xc2\xa0", NULL}, {"/caf\xc3\xa9/\xe6\x97\xa5", NULL},
		{"/\xee\x80\x80", "control"}, {"/\xef\xa3\xbf", "control"},
		{"/\xef\xa4\x80", NULL}, {"/\xef\xbf\xaf", NULL},
		{"/\xef\xbf\xb0", "control"}, {"/\xef\xbf\xbd", "control"},
		{"/\xf0\x9f\x94\x92", "control"}, {"/\xf4\x8f\xbf\xbf", "control"},
		{"/\xc3", "UTF-8"}, {"/\xa9", "UTF-8"}, {"/\xc3/a", "UTF-8"},
		{"/\xc0\xaf", "UTF-8"}, {"/\xe0\x80\xaf", "UTF-8"},
		{"/\xf0\x80\x80\xaf", "UTF-8"}, {"/\xed\xa0\x80", "UTF-8"},
		{"/\xf4\x90\x80\x80", "UTF-8"}, {"/\xff", "UTF-8"},
		{"/a__WRIT__0000000001", "queue"}, {"/__READ__0000000001/b", "queue"},
		{"/a__READ__-2147483648", "queue"}, {"/a__READ__-000000001", "queue"},
		{"/a__WRIT__9999999999", "queue"}, {"/a__WRIT__00000000001", NULL},
		{"/a__WRIT__000000001", NULL}, {"/a__WRIT__0000000001x", NULL},
		{"/a-lock-0000000001", "queue"}, {"/-lock-0000000001", "queue"},
		{"/a-lock--2147483648", "queue"}, {"/a-lock-000000001", NULL},
		{"/a__lock__0000000001", "queue"}, {"/b/a__rlock__0000000001/c",
		"queue"}, {"/a__lock__-2147483648", "queue"},
		{"/a-turn-0000000001", NULL}, {"/0000000001", NULL},
		{"/a-0000000001", NULL}, {"/-000000001", NULL}
	};
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		const char *got = check_name(cases[i].name);
		const char *rule = cases[i].rule;

		CHECK_MSG(rule ? got && strstr(got, rule) : !got, "\"%s\": %s",
				  cases[i].name, got ? got : "good");
		if (got)
			CHECK_MSG(strncmp(got, "A lock name must ", 17) == 0 &&
					  got[strlen(got) - 1] == '.', "no sentence: %s", got);
	}
	CHECK(zkl_name_check("/a\0b", 4) != NULL);
}

static void
name_lengths(void)
{
	size_t		n;

	for (n = 1; n < 300; n++)
	{
		char	   *name = long_name(n);

		CHECK((zkl_name_check(name, n + 1) == NULL) == (n + 1 <= 255));
		CHECK((zkl_name_check_root(name, n + 1) == NULL) == (n + 1 <= 127));
		free(name);
	}
}

static void
root_rules(void)
{
	CHECK(zkl_name_check_root("/zklock", 7) == NULL);
	CHECK(zkl_name_check_root("/a/b", 4) == NULL);
	CHECK_STR(zkl_name_check_root("/", 1),
			  "The root must have something after its first \"/\".");
	CHECK_STR(zkl_name_check_root("/a/..", 5),
			  "The root must not have a segment \".\" or \"..\".");
	CHECK_STR(zkl_name_check_root("/a/", 3), "The root must not end with \"/\".");
	CHECK_STR(zkl_name_check_root("", 0), "The root must start with \"/\".");
}

/* Every code point, against what PathUtils.validatePath of 3.8.0 says */
static void
name_characters(void)
{
	uint32_t	code;

	for (code = 0; code < 0x120000; code++)
	{
		char		name[8] = "/a";
		size_t		length = 2 + text_encode(code, name + 2);
		bool		refused = code <= 0x1F || (code >= 0x7F && code <= 0x9F) ||
		(code >= 0xD800 && code <= 0xF8FF) || code >= 0xFFF0;

		if (code == '/')
			continue;
		if ((zkl_name_check(name, length) != NULL) != refused)
			CHECK_MSG(false, "U+%04X", (unsigned) code);
	}
}

/* What is read as a character is the one encoding of it */
static void
utf8_strict(void)
{
	int			i;

	for (i = 0; i < 2000000; i++)
	{
		uint64_t	r = unit_random();
		char		in[4];
		char		out[4];
		uint32_t	code;
		size_t		left;
		size_t		length;

		/* a lead byte more often than chance would have it */
		in[0] = (char) (r & 1 ? 0xC0 | (r >> 8 & 63) : r >> 8);
		in[1] = (char) (r & 2 ? 0x80 | (r >> 16 & 63) : r >> 16);
		in[2] = (char) (r & 12 ? 0x80 | (r >> 24 & 63) : r >> 24);
		in[3] = (char) (r & 48 ? 0x80 | (r >> 32 & 63) : r >> 32);
		left = r >> 40 & 7 ? 4 : r >> 43 & 3;
		length = zkl_json_character(in, left, &code);
		if (length == 0)
			continue;
		if (length > left || code > 0x10FFFF ||
			(code >= 0xD800 && code <= 0xDFFF) ||
			text_encode(code, out) != length || memcmp(in, out, length) != 0)
			CHECK_MSG(false, "%08" PRIx64, r);
	}
}

static void
uuid_round_trips(void)
{
	int			i;

	for (i = 0; i < 20000; i++)
	{
		int64_t		session = (int64_t) unit_random();
		uint32_t	start = (uint32_t) unit_random();
		uint64_t	count = unit_random();
		ZklUuid		uuid = zkl_uuid_make(session, start, count);
		ZklUuid		back;
		ZklUuid		other;
		char		text[ZKL_UUID_TEXT + 1];

		zkl_uuid_format(&uuid, text);
		CHECK_INT((int64_t) strlen(text), ZKL_UUID_TEXT);
		CHECK(zkl_uuid_parse(text, &back));
		CHECK(memcmp(&uuid, &back, sizeof(uuid)) == 0);
		CHECK(zkl_uuid_is_zklock(&uuid));
		CHECK(text[14] == '8' && strchr("89ab", text[19]));

		/* each bit that counts makes another uuid, no other does */
		other = zkl_uuid_make(session ^ (int64_t) ((uint64_t) 1 << i % 64), start, count);
		CHECK(!zkl_uuid_equal(&uuid, &other));
		CHECK(!zkl_uuid_same_maker(&uuid, &other));
		other = zkl_uuid_make(session, start ^ (uint32_t) 1 << i % 32, count);
		CHECK(zkl_uuid_equal(&uuid, &other) == (i % 32 >= 18));
		CHECK(zkl_uuid_same_maker(&uuid, &other) == (i % 32 >= 18));
		other = zkl_uuid_make(session, start, count ^ (uint64_t) 1 << i % 64);
		CHECK(zkl_uuid_equal(&uuid, &other) == (i % 64 >= ZKL_UUID_COUNT_BITS));
		CHECK(zkl_uuid_same_maker(&uuid, &other));
	}
}

static void
uuid_texts(void)
{
	static const char *const bad[] = {
		"", "0", "01234567-89ab-4def-8123-456789abcde",
		"01234567-89ab-4def-8123-456789abcdef0",
		"01234567-89AB-4def-8123-456789abcdef",
		"0123456789ab-4def-8123-456789abcdef-",
		"01234567-89ab-4def-8123-456789abcdeg",
		"01234567+89ab-4def-8123-456789abcdef"
	};
	ZklUuid		uuid;
	size_t		i;

	CHECK(zkl_uuid_parse(UUID_A, &uuid) && !zkl_uuid_is_zklock(&uuid));
	CHECK(zkl_uuid_parse(UUID_8, &uuid) && zkl_uuid_is_zklock(&uuid));
	CHECK(zkl_uuid_parse("01234567-89ab-8def-c123-456789abcdef", &uuid) &&
		  !zkl_uuid_is_zklock(&uuid));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		char	   *copy = unit_copy(bad[i], strlen(bad[i]) + 1);

		CHECK_MSG(!zkl_uuid_parse(copy, &uuid), "%s", bad[i]);
		free(copy);
	}
}

static void
znode_round_trips(void)
{
	int			i;

	for (i = 0; i < 50000; i++)
	{
		ZklUuid		uuid = zkl_uuid_make((int64_t) unit_random(), 0, unit_random());
		ZklLockMode mode = unit_random() & 1 ? ZKL_SHARED : ZKL_EXCLUSIVE;
		uint32_t	value = (uint32_t) (unit_random() >> unit_random_below(64));
		char		name[ZKL_MAX_ZNODE_NAME + 1];
		char		prefix[ZKL_MAX_ZNODE_NAME + 1];
		char		as_server[ZKL_MAX_ZNODE_NAME + 20];
		char		path[ZKL_MAX_PATH + 1];
		ZklLockMode got_mode;
		ZklSeq		seq;
		bool		has_uuid;
		ZklUuid		got_uuid;

		if (i % 16 == 0)
			value = (uint32_t) INT32_MAX + (uint32_t) (i / 16 % 9) - 4;
		zkl_znode_prefix(ZKL_DIALECT_CURATOR_RW, &uuid, mode, prefix);
		zkl_znode_name(ZKL_DIALECT_CURATOR_RW, &uuid, mode, value, name);
		snprintf(as_server, sizeof(as_server), "%s%010d", prefix,
				 (int) (int32_t) value);
		CHECK_STR(name, as_server);
		CHECK(zkl_znode_parse(ZKL_DIALECT_CURATOR_RW,
							  name, &got_mode, &seq, &has_uuid, &got_uuid));
		CHECK_INT(seq, value);
		CHECK_INT(got_mode, mode);
		CHECK(has_uuid && memcmp(&uuid, &got_uuid, sizeof(uuid)) == 0);
		snprintf(path, sizeof(path), "/zklock/a/%s", name);
		CHECK_INT(zkl_znode_path_seq(ZKL_DIALECT_CURATOR_RW, path), value);
		CHECK_INT(zkl_znode_path_seq(ZKL_DIALECT_CURATOR_RW, name), value);
	}
}

/* What is found in directories, and what it counts as */
static void
foreign_names(void)
{
	enum
	{
		X = ZKL_EXCLUSIVE, S = ZKL_SHARED, NO = 9
	};
	static const struct
	{
		const char *name;
		int			mode;
		int64_t		seq;
		bool		has_uuid;
	}			cases[] = {
		/* Curator */
		{"_c_" UUID_A "-__WRIT__0000000001", X, 1, true},
		{"_c_" UUID_A "-__READ__2147483647", S, 2147483647, true},
		{"_c_" UUID_A "-__READ__0000000000", S, 0, true},
		{"_c_" UUID_A "-lock-0000000001", NO, 0, false},
		{"_c_" UUID_A "-lease-0000000001", NO, 0, false},
		{"_c_" UUID_A "-latch-0000000001", NO, 0, false},
		{"locks", NO, 0, false}, {"leases", NO, 0, false},
		{UUID_A, NO, 0, false}, {"ready", NO, 0, false},
		/* kazoo: stock, and with other names for its nodes */
		{HEX_A "__lock__0000000001", NO, 0, false},
		{HEX_A "__rlock__0000000001", NO, 0, false},
		{HEX_A "__WRIT__0000000007", X, 7, false},
		{HEX_A "__READ__0000000007", S, 7, false},
		{HEX_A, NO, 0, false},
		/* go-zookeeper, the C recipe, menagerie */
		{"_c_" HEX_A "-lock-0000000001", NO, 0, false},
		{"x-72057594037927937-0000000001", NO, 0, false},
		{"lock-0000000001", NO, 0, false},
		{"readLock-0000000001", NO, 0, false},
		/* numbers */
		{"__WRIT__-2147483648", X, 2147483648, false},
		{"__WRIT__-2147483649", NO, 0, false},
		{"__WRIT__2147483648", NO, 0, false},
		{"__WRIT__9999999999", NO, 0, false},
		{"__WRIT__-000000001", X, 4294967295, false},
		{"__WRIT__-0000000001", X, 4294967295, false},
		{"__WRIT__-00000001", NO, 0, false},
		{"__WRIT__000000001", NO, 0, false},
		{"__WRIT__00000000001", NO, 0, false},
		{"__WRIT__-00000000001", NO, 0, false},
		{"__WRIT__+000000001", NO, 0, false},
		{"__WRIT__ 000000001", NO, 0, false},
		{"__WRIT__000000000x", NO, 0, false},
		{"__WRIT__0000000001 ", NO, 0, false},
		{"__WRIT__--000000001", NO, 0, false},
		{"__WRIT__", NO, 0, false}, {"", NO, 0, false},
		{"0000000001", NO, 0, false}, {"-0000000001", NO, 0, false},
		/* marks */
		{"__WRIT__0000000001", X, 1, false},
		{"a__WRIT__b__READ__0000000003", X, 3, false},
		{"a__READ__b__WRIT__0000000003", X, 3, false},
		{"__READ__0000000001__READ__0000000003", S, 3, false},
		{"__READ__0000000001__READ__", NO, 0, false},
		{"__WRIT__READ__0000000003", X, 3, false},
		{"__READ_0000000003", NO, 0, false},
		{"__READ__x0000000003", NO, 0, false},
		{"__read__0000000003", NO, 0, false},
		/* uuids */
		{"_c_" UUID_A "__WRIT__0000000001", X, 1, false},
		{"_c_" UUID_8 "-x-__WRIT__0000000001", X, 1, true},
		{"_C_" UUID_A "-__WRIT__0000000001", X, 1, false},
		{"_c_0123-__WRIT__0000000001", X, 1, false},
		{"_c_01234567-89ab-4def-8123-__WRIT__0000000001", X, 1, false}
	};
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		char	   *name = unit_copy(cases[i].name, strlen(cases[i].name) + 1);
		ZklLockMode mode;
		ZklSeq		seq;
		bool		has_uuid;
		ZklUuid		uuid;
		bool		counts;

		counts = zkl_znode_parse(ZKL_DIALECT_CURATOR_RW,
								 name, &mode, &seq, &has_uuid, &uuid);
		CHECK_MSG(counts == (cases[i].mode != NO), "%s", name);
		if (counts)
			CHECK_MSG((int) mode == cases[i].mode && seq == cases[i].seq &&
					  has_uuid == cases[i].has_uuid,
					  "%s: mode %d, number %" PRId64 ", uuid %d", name,
					  (int) mode, seq, has_uuid);
		CHECK_INT(zkl_znode_path_seq(ZKL_DIALECT_CURATOR_RW,
									 name), counts ? seq : ZKL_SEQ_NONE);
		free(name);
	}
}

static void
endless_names(void)
{
	static const char tail[] = "__READ__0000000042";
	size_t		length = 65536;
	char	   *name = long_name(length);
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;

	CHECK(!zkl_znode_parse(ZKL_DIALECT_CURATOR_RW,
						   name, &mode, &seq, &has_uuid, &uuid));
	CHECK(zkl_name_check(name, length + 1) != NULL);
	memcpy(name + length + 2 - sizeof(tail), tail, sizeof(tail));
	CHECK(zkl_znode_parse(ZKL_DIALECT_CURATOR_RW,
						  name, &mode, &seq, &has_uuid, &uuid));
	CHECK_INT(seq, 42);
	memset(name, '7', length + 1);
	CHECK(!zkl_znode_parse(ZKL_DIALECT_CURATOR_RW,
						   name, &mode, &seq, &has_uuid, &uuid));
	CHECK_INT(zkl_znode_path_seq(ZKL_DIALECT_CURATOR_RW, name), ZKL_SEQ_NONE);
	memset(name, '_', length + 1);
	CHECK(!zkl_znode_parse(ZKL_DIALECT_CURATOR_RW,
						   name, &mode, &seq, &has_uuid, &uuid));
	free(name);
}

/* Fills with bytes that come up in what the parsers look for */
static size_t
random_text(char *text, size_t max)
{
	static const char *const pieces[] = {
		"__WRIT__", "__READ__", "-lock-", "_c_", UUID_8, "0000000001", "-",
		"/", ".", "{", "}", "[", "]", ":", ",", "\"", "\\", "\\u", "d83d",
		"\\ude00", "\"zklock\":1", "\"downgrading\":true", "\"pid\":", "1e5",
		"-9223372036854775808", "true", "null", "\xf0\x9f", "\xc3\xa9", " "
	};
	size_t		length = 0;
	uint32_t	n = unit_random_below(12);

	while (n-- > 0)
	{
		const char *piece;
		char		byte[2] = {(char) unit_random(), '\0'};

		piece = unit_random_below(4) == 0 ? byte :
			pieces[unit_random_below(sizeof(pieces) / sizeof(pieces[0]))];
		if (length + strlen(piece) > max)
			break;
		memcpy(text + length, piece, strlen(piece));
		length += strlen(piece);
	}
	return length;
}

static void
fuzz_parsers(void)
{
	int			i;

	for (i = 0; i < 100000; i++)
	{
		char		text[400];
		size_t		length = random_text(text, sizeof(text) - 1);
		char	   *copy = unit_copy(text, length);
		char	   *string;
		ZklNodeData data;
		ZklLockMode mode;
		ZklSeq		seq;
		bool		has_uuid;
		ZklUuid		uuid;

		(void) zkl_name_check(copy, length);
		(void) zkl_name_check_root(copy, length);
		(void) zkl_node_data_downgrading(copy, length);
		if (!zkl_node_data_parse(copy, length, &data))
			CHECK(data.server[0] == '\0' && data.pid == 0 && data.since == 0);
		free(copy);

		text[length] = '\0';
		string = unit_copy(text, strlen(text) + 1);
		(void) zkl_uuid_parse(string, &uuid);
		if (zkl_znode_parse(ZKL_DIALECT_CURATOR_RW,
							string, &mode, &seq, &has_uuid, &uuid))
			CHECK(seq >= 0 && seq <= UINT32_MAX);
		(void) zkl_znode_path_seq(ZKL_DIALECT_CURATOR_RW, string);
		free(string);
	}
}

int
main(void)
{
	unit_start();
	RUN(name_rules);
	RUN(name_lengths);
	RUN(root_rules);
	RUN(name_characters);
	RUN(utf8_strict);
	RUN(uuid_round_trips);
	RUN(uuid_texts);
	RUN(znode_round_trips);
	RUN(foreign_names);
	RUN(endless_names);
	RUN(fuzz_parsers);
	return unit_finish();
}
