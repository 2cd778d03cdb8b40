/*
 * test_dialect.c
 *	  Names of znodes in all dialects, and lists of dialects.
 */
#include <string.h>

#include "unit.h"

#include "znode/znode.h"

#define RW		ZKL_DIALECT_CURATOR_RW
#define MUTEX	ZKL_DIALECT_CURATOR_MUTEX
#define KAZOO	ZKL_DIALECT_KAZOO
#define X		ZKL_EXCLUSIVE
#define S		ZKL_SHARED
#define NO		(-1)
#define UUID	"01234567-89ab-8def-8123-456789abcdef"
#define HEX		"0123456789ab8def8123456789abcdef"

static void
names(void)
{
	static const struct
	{
		ZklDialect	dialect;
		const char *name;
		int			mode;
		ZklSeq		seq;
		bool		has_uuid;
	}			cases[] = {
		{MUTEX, "_c_" UUID "-lock-0000000001", X, 1, true},
		{MUTEX, "_c_" HEX "-lock-0000000001", X, 1, false},
		{MUTEX, "lock-0000000007", X, 7, false},
		{MUTEX, "lock--2147483648", X, 2147483648, false},
		{MUTEX, "x-lock--000000001", X, 4294967295, false},
		{MUTEX, "_c_" UUID "-lock-000000001", NO, 0, false},
		{MUTEX, "_c_" UUID "-lock-00000000001", NO, 0, false},
		{MUTEX, "_c_" UUID "-lock-2147483648", NO, 0, false},
		{MUTEX, "_c_" UUID "-__WRIT__0000000001", NO, 0, false},
		{MUTEX, HEX "__lock__0000000001", NO, 0, false},
		{MUTEX, "-0000000001", NO, 0, false},
		{MUTEX, "lock-", NO, 0, false},
		{KAZOO, HEX "__lock__0000000001", X, 1, true},
		{KAZOO, HEX "__rlock__0000000002", S, 2, true},
		{KAZOO, HEX "__lock__-2147483648", X, 2147483648, true},
		{KAZOO, HEX "x__lock__0000000001", X, 1, false},
		{KAZOO, "__rlock__0000000002", S, 2, false},
		{KAZOO, UUID "__lock__0000000001", X, 1, false},
		{KAZOO, "_c_" UUID "-lock-0000000001", NO, 0, false},
		{KAZOO, HEX "__lock__", NO, 0, false},
		{KAZOO, "x__lock____rlock__0000000003", S, 3, false},
		{RW, HEX "__lock__0000000001", NO, 0, false},
		{RW, "_c_" UUID "-lock-0000000001", NO, 0, false}
	};
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		const char *name = cases[i].name;
		ZklLockMode mode;
		ZklSeq		seq;
		bool		has_uuid;
		ZklUuid		uuid;
		bool		counts = zkl_znode_parse(cases[i].dialect, name, &mode,
											 &seq, &has_uuid, &uuid);

		CHECK_MSG(counts == (cases[i].mode != NO), "%s", name);
		if (!counts)
			continue;
		CHECK_MSG((int) mode == cases[i].mode, "%s", name);
		CHECK_INT(seq, cases[i].seq);
		CHECK_MSG(has_uuid == cases[i].has_uuid, "%s", name);
	}
}

/* What is written is read again, and belongs to one dialect alone. */
static void
round_trips(void)
{
	int			dialect,
				other,
				i;

	for (dialect = 0; dialect < ZKL_DIALECTS; dialect++)
	{
		for (i = 0; i < 200; i++)
		{
			ZklLockMode mode = dialect == ZKL_DIALECT_MEMBER || i % 2 ? S : X,
						got_mode;
			ZklUuid		uuid = zkl_uuid_make((int64_t) unit_random(), 0, unit_random()),
						got_uuid;
			ZklSeq		seq = (uint32_t) unit_random(),
						got_seq;
			bool		has_uuid;
			char		name[ZKL_MAX_ZNODE_NAME + 1];

			if (!zkl_dialect_shares((ZklDialect) dialect))
				mode = X;
			zkl_znode_name((ZklDialect) dialect, &uuid, mode, seq, name);
			CHECK(zkl_znode_is_like(name, strlen(name)));
			CHECK(zkl_znode_parse((ZklDialect) dialect, name, &got_mode,
								  &got_seq, &has_uuid, &got_uuid));
			CHECK(got_mode == mode && has_uuid);
			CHECK_INT(got_seq, seq);
			CHECK(memcmp(&uuid, &got_uuid, sizeof(uuid)) == 0);
			for (other = 0; other < ZKL_DIALECTS; other++)
				CHECK((other == dialect) ==
					  zkl_znode_parse((ZklDialect) other, name, &got_mode,
									  &got_seq, &has_uuid, &got_uuid));
		}
	}
}

static void
lists(void)
{
	static const struct
	{
		const char *list;
		const char *word;		/* of the rule that is broken; NULL: none */
	}			cases[] = {
		{"", NULL}, {"  ", NULL}, {"/=kazoo", NULL}, {"/a=kazoo", NULL},
		{" /a = kazoo , /b/c=curator_mutex,/d=curator_rw ", NULL},
		{"/a=b=kazoo", NULL}, {"/a b=kazoo", NULL},
		{"/a", "must be a path"}, {"kazoo", "must be a path"},
		{"=kazoo", "must be a path"}, {"/a=kazoo,,/b=kazoo", "must be a path"},
		{",", "must be a path"}, {"/a=kazoo,", "end with a comma"},
		{"/a=kazoo, ", "must be a path"},
		{"/a=", "The dialects are"}, {"/a=Kazoo", "The dialects are"},
		{"/a=zookeeper", "The dialects are"},
		{"a=kazoo", "start with"}, {"/a/=kazoo", "end with"},
		{"/a//b=kazoo", "empty segment"}, {"/../a=kazoo", "segment"},
		{"/a=kazoo, /a=curator_rw", "more than one"},
		{"/=kazoo, /b=kazoo, /=kazoo", "more than one"}
	};
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		const char *rule = zkl_dialect_check_list(cases[i].list);

		CHECK_MSG((rule == NULL) == (cases[i].word == NULL), "\"%s\": %s",
				  cases[i].list, rule ? rule : "good");
		CHECK_MSG(rule == NULL || cases[i].word == NULL ||
				  strstr(rule, cases[i].word) != NULL, "\"%s\": %s",
				  cases[i].list, rule ? rule : "good");
	}
}

static void
prefixes(void)
{
	static const char list[] =
	"/jobs=curator_mutex, /jobs/py=kazoo, /jobs/py/rw=curator_rw";
	static const struct
	{
		const char *name;
		ZklDialect	dialect;
	}			cases[] = {
		{"/jobs", MUTEX}, {"/jobs/a", MUTEX}, {"/jobsite", RW}, {"/job", RW},
		{"/jobs/py", KAZOO}, {"/jobs/pyx", MUTEX}, {"/jobs/py/a/b", KAZOO},
		{"/jobs/py/rw", RW}, {"/jobs/py/rw/a", RW}, {"/other", RW}
	};
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		CHECK_STR(zkl_dialect_name(zkl_dialect_find(list, cases[i].name)),
				  zkl_dialect_name(cases[i].dialect));
		CHECK(zkl_dialect_find("", cases[i].name) == RW);
		CHECK(zkl_dialect_find("/=kazoo", cases[i].name) == KAZOO);
	}
	CHECK(zkl_dialect_find("/=kazoo, /a=curator_rw", "/a/b") == RW);
	CHECK(zkl_dialect_find("/a=curator_rw, /=kazoo", "/a/b") == RW);
}

static void
normal_forms(void)
{
	static const struct
	{
		const char *list;
		const char *normal;
	}			cases[] = {
		{"", ""}, {"  ", ""}, {"/=curator_rw", ""}, {"/a=curator_rw", ""},
		{" /py = kazoo , /jobs=curator_mutex ", "/jobs=curator_mutex,/py=kazoo"},
		{"/jobs/a=kazoo,/jobs=kazoo", "/jobs=kazoo"},
		{"/jobs/a/b=kazoo,/jobs=kazoo,/jobs/a=curator_rw",
		"/jobs=kazoo,/jobs/a=curator_rw,/jobs/a/b=kazoo"},
		{"/a=curator_rw,/=kazoo", "/=kazoo,/a=curator_rw"},
		{"/a-b=kazoo,/a/b=kazoo,/a=kazoo", "/a=kazoo,/a-b=kazoo"},
		{"/a=b=kazoo", "/a=b=kazoo"}
	};
	char		normal[ZKL_MAX_DIALECTS + 1];
	char		again[ZKL_MAX_DIALECTS + 1];
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		zkl_dialect_normalize(cases[i].list, normal);
		CHECK_STR(normal, cases[i].normal);
		CHECK(zkl_dialect_check_list(normal) == NULL);
		zkl_dialect_normalize(normal, again);
		CHECK_STR(again, normal);
	}
}

static void
longest_lists(void)
{
	char		list[ZKL_MAX_DIALECTS + 2];
	char		normal[ZKL_MAX_DIALECTS + 1];
	size_t		length = 0;
	int			i;

	for (i = 0; length + 11 <= ZKL_MAX_DIALECTS; i++)
		length += (size_t) snprintf(list + length, sizeof(list) - length,
									"%s/%03d=kazoo", i > 0 ? "," : "", 999 - i);
	CHECK(zkl_dialect_check_list(list) == NULL);
	zkl_dialect_normalize(list, normal);
	CHECK(strlen(normal) == length);
	CHECK(strncmp(normal, "/9", 2) == 0);
	memset(list, ' ', ZKL_MAX_DIALECTS + 1);
	memcpy(list, "/a=kazoo", 8);
	list[ZKL_MAX_DIALECTS + 1] = '\0';
	CHECK(zkl_dialect_check_list(list) != NULL);
	list[ZKL_MAX_DIALECTS] = '\0';
	CHECK(zkl_dialect_check_list(list) == NULL);
}

static void
changes(void)
{
	static const struct
	{
		const char *a;
		const char *b;
		const char *paths;		/* each with a space behind it */
	}			cases[] = {
		{"", "", ""}, {"/a=kazoo", "/a=kazoo", ""},
		{"", "/a=kazoo", "/a "}, {"/a=kazoo", "", "/a "},
		{"/=kazoo", "/b=kazoo", "/ "},
		{"/a=kazoo,/b=kazoo", "/b=kazoo,/c=curator_mutex", "/a /c "},
		{"/a=kazoo,/a/b=curator_rw", "/a=curator_rw,/a/b=curator_rw", "/a "},
		{"/a=kazoo", "/a=kazoo,/a/b=curator_mutex", "/a/b "}
	};
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		char		path[ZKL_MAX_NAME + 1] = "";
		char		paths[100] = "";

		while (zkl_dialect_next_change(cases[i].a, cases[i].b, path))
			strcat(strcat(paths, path), " ");
		CHECK_STR(paths, cases[i].paths);
	}
	CHECK(zkl_dialect_has_entry("/a=kazoo,/b=kazoo", "/b"));
	CHECK(!zkl_dialect_has_entry("/a/b=kazoo", "/a"));
}

int
main(void)
{
	unit_start();
	RUN(names);
	RUN(round_trips);
	RUN(lists);
	RUN(prefixes);
	RUN(normal_forms);
	RUN(longest_lists);
	RUN(changes);
	return unit_finish();
}
