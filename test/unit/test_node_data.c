/*
 * test_node_data.c
 *	  The data of znodes: round trips, what other clients write, marks, and
 *	  texts that are cut, long or deep.
 */
#include "text.h"
#include "unit.h"
#include "znode/znode.h"

static bool
parse_data(const char *text, size_t length, ZklNodeData *data)
{
	char	   *copy = unit_copy(text, length);
	bool		good = zkl_node_data_parse(copy, length, data);

	free(copy);
	return good;
}

static bool
downgrading(const char *text, size_t length)
{
	char	   *copy = unit_copy(text, length);
	bool		marked = zkl_node_data_downgrading(copy, length);

	free(copy);
	return marked;
}

/* A string of valid characters, of which some need to be escaped */
static void
random_string(char *string, size_t size)
{
	static const uint32_t some[] = {
		'"', '\\', '/', '\n', 0x01, 0x1f, 0x7f, 0xe9, 0x2028, 0xfffd, 0x1f512,
		0x10ffff, '{', '}', ',', ':'
	};
	size_t		length = 0;
	size_t		want = unit_random_below((uint32_t) size);

	while (length + 4 < size && length < want)
		length += text_encode(unit_random() & 1 ? 'a' + unit_random_below(26) :
							  some[unit_random_below(16)], string + length);
	string[length] = '\0';
}

static bool
is_start_of(const char *start, const char *whole)
{
	return strncmp(start, whole, strlen(start)) == 0;
}

/* A number as they are in the optional members: 0 is left out */
static int64_t
random_above_0(void)
{
	return (int64_t) (unit_random() >> (1 + unit_random_below(63)));
}

static void
data_round_trips(void)
{
	int			i;

	for (i = 0; i < 20000; i++)
	{
		ZklNodeData data;
		ZklNodeData back;
		char		json[ZKL_MAX_NODE_DATA];
		size_t		length;

		memset(&data, 0, sizeof(data));
		random_string(data.server, sizeof(data.server));
		random_string(data.database, sizeof(data.database));
		random_string(data.usename, sizeof(data.usename));
		random_string(data.application_name, sizeof(data.application_name));
		random_string(data.lifetime, sizeof(data.lifetime));
		data.pid = (int32_t) unit_random();
		data.since = (int64_t) unit_random() >> unit_random_below(64);
		random_string(data.client, sizeof(data.client));
		data.backend_start = random_above_0();
		data.at_most_ms = random_above_0();
		data.waited_ms = random_above_0();
		length = zkl_node_data_format(&data, json, sizeof(json));
		CHECK(length < sizeof(json) && strlen(json) == length);
		CHECK(is_start_of("{\"zklock\":1,", json));
		CHECK(parse_data(json, length, &back));
		CHECK_INT(back.pid, data.pid);
		CHECK_INT(back.since, data.since);
		CHECK_INT(back.backend_start, data.backend_start);
		CHECK_INT(back.at_most_ms, data.at_most_ms);
		CHECK_INT(back.waited_ms, data.waited_ms);
		CHECK(is_start_of(back.client, data.client));
		CHECK_STR(back.lifetime, data.lifetime);
		CHECK(is_start_of(back.server, data.server));
		CHECK(is_start_of(back.database, data.database));
		CHECK(is_start_of(back.usename, data.usename));
		CHECK(is_start_of(back.application_name, data.application_name));
		CHECK(!downgrading(json, length));
	}
}

/* What a wait adds, once, and to nothing but such data */
static void
data_with_a_wait(void)
{
	ZklNodeData data = {.pid = 7,.since = 1};
	char		json[ZKL_MAX_NODE_DATA + ZKL_NODE_DATA_WAITED];
	char		revoke[] = "__REVOKE__";
	size_t		length = zkl_node_data_format(&data, json, ZKL_MAX_NODE_DATA);

	CHECK(!zkl_node_data_tells_wait(json, length));
	length = zkl_node_data_waited(json, length, 1500);
	CHECK(zkl_node_data_tells_wait(json, length));
	CHECK_INT((int64_t) zkl_node_data_waited(json, length, 7), (int64_t) length);
	CHECK(parse_data(json, length, &data));
	CHECK_INT(data.waited_ms, 1500);
	CHECK_INT(data.pid, 7);
	length = strlen(revoke);
	CHECK_INT((int64_t) zkl_node_data_waited(revoke, length, 7),
			  (int64_t) length);
	CHECK(!zkl_node_data_tells_wait(revoke, length));
}

/* The worst strings stay within the size; usual ones are never cut */
static void
data_extremes(void)
{
	ZklNodeData data;
	ZklNodeData back;
	char		json[ZKL_MAX_NODE_DATA + 1];
	size_t		length;

	memset(&data, 0x01, sizeof(data));	/* no NUL anywhere */
	data.pid = INT32_MIN;
	data.since = INT64_MIN;
	data.backend_start = data.at_most_ms = data.waited_ms = INT64_MAX;
	length = zkl_node_data_format(&data, json, ZKL_MAX_NODE_DATA);
	CHECK(length > 0 && length < ZKL_MAX_NODE_DATA);
	CHECK(parse_data(json, length, &back));
	CHECK_INT((int64_t) strlen(back.server), ZKL_MAX_SERVER_NAME / 6);
	CHECK_INT((int64_t) strlen(back.usename), 21);
	CHECK_INT((int64_t) strlen(back.client), ZKL_MAX_CLIENT / 6);
	CHECK_INT(back.waited_ms, INT64_MAX);
	CHECK_INT((int64_t) strlen(back.lifetime), 15);
	CHECK_INT(back.pid, INT32_MIN);
	CHECK_INT(back.since, INT64_MIN);

	memset(&data, '"', sizeof(data));
	length = zkl_node_data_format(&data, json, ZKL_MAX_NODE_DATA);
	CHECK(parse_data(json, length, &back));
	CHECK_INT((int64_t) strlen(back.usename), 63);

	/* a server's name is never cut, whatever else there is */
	memset(data.server, 'x', ZKL_MAX_SERVER_NAME);
	length = zkl_node_data_format(&data, json, ZKL_MAX_NODE_DATA);
	CHECK(length + ZKL_NODE_DATA_TIMEOUT <= ZKL_MAX_NODE_DATA);
	CHECK(parse_data(json, length, &back));
	CHECK_INT((int64_t) strlen(back.server), ZKL_MAX_SERVER_NAME);

	/* a name that was cut in the middle of a character */
	memset(&data, 0, sizeof(data));
	memcpy(data.usename, "ren\xc3", 5);
	length = zkl_node_data_format(&data, json, ZKL_MAX_NODE_DATA);
	CHECK(parse_data(json, length, &back));
	CHECK_STR(back.usename, "ren?");
	CHECK_STR(json, "{\"zklock\":1,\"server\":\"\",\"database\":\"\","
			  "\"user\":\"ren?\",\"application\":\"\",\"pid\":0,"
			  "\"lifetime\":\"\",\"since\":0}");

	CHECK_INT((int64_t) zkl_node_data_format(&data, json, 8), 0);
	CHECK_STR(json, "");
}

static void
data_truncated(void)
{
	static const char json[] =
	"{\"zklock\":1,\"server\":\"a\\u00e9\\ud83d\\ude00\\n\xc3\xa9\","
	"\"x\":-1.5e+10,\"y\":[1,{\"z\":null}],\"downgrading\":true}";
	static const char flat[] =
	" { \"pid\" : 7 , \"zklock\":1,\"b\":true,"
	"\"s\":\"\\\"\\\\\\/\\b\\f\\r\\t\","
	"\"user\":\"\\ud83d\\ude00\",\"c\":false,\"d\":null,\"e\":0.5E-3} ";
	ZklNodeData data;
	size_t		n;

	for (n = 0; n < sizeof(json) - 1; n++)
	{
		CHECK(!parse_data(json, n, &data));
		CHECK_MSG(downgrading(json, n) == (n == sizeof(json) - 2), "%zu", n);
	}
	for (n = 0; n < sizeof(flat) - 2; n++)
		CHECK_MSG(parse_data(flat, n, &data) == (n == sizeof(flat) - 2),
				  "%zu", n);
	CHECK(parse_data(flat, sizeof(flat) - 1, &data));
	CHECK_STR(data.usename, "\xf0\x9f\x98\x80");
	CHECK_INT(data.pid, 7);
}

/* Texts, and whether they are read as zklock's */
static void
data_texts(void)
{
	static const struct
	{
		const char *text;
		bool		good;
	}			cases[] = {
		{"{\"zklock\":1}", true}, {"{}", false}, {"", false},
		{"192.168.0.1", false}, {"__REVOKE__", false}, {"null", false},
		{"{\"zklock\":2}", false}, {"{\"zklock\":\"1\"}", false},
		{"{\"zklock\":1.0}", false}, {"{\"zklock\":10}", false},
		{"{\"zklock\":1}x", false}, {"{\"zklock\":1,}", false},
		{"{\"zklock\":1 \"pid\":1}", false}, {"{zklock:1}", false},
		{"[\"zklock\",1]", false}, {"{\"zklock\":1}{}", false},
		{"{\"server\":\"a\"}", false}, {"{\"zklock\":01}", false},
		{"{\"server\":\"a\",\"zklock\":1}", true},
		{"{\"zklock\":1,\"new\":\"\xc3\xa9\"}", true},
		{"{\"zklock\":1,\"a very long key that nobody knows\":1}", true},
		{"{\"zklock\":1,\"a\":{}}", false}, {"{\"zklock\":1,\"a\":[]}", false},
		{"{\"zklock\":1,\"a\":+1}", false}, {"{\"zklock\":1,\"a\":.5}", false},
		{"{\"zklock\":1,\"a\":1.}", false}, {"{\"zklock\":1,\"a\":-}", false},
		{"{\"zklock\":1,\"a\":1e}", false}, {"{\"zklock\":1,\"a\":1e5}", true},
		{"{\"zklock\":1,\"a\":00}", false}, {"{\"zklock\":1,\"a\":tru}", false},
		{"{\"zklock\":1,\"a\":\"\xff\"}", false},
		{"{\"zklock\":1,\"a\":\"\n\"}", false},
		{"{\"zklock\":1,\"a\":\"\\x\"}", false},
		{"{\"zklock\":1,\"a\":\"\\u12g4\"}", false},
		{"{\"zklock\":1,\"a\":\"\\u0000\"}", false},
		{"{\"zklock\":1,\"a\":\"\\ud83d\"}", false},
		{"{\"zklock\":1,\"a\":\"\\ud83d\\u0041\"}", false},
		{"{\"zklock\":1,\"a\":\"\\ude00\\ud83d\"}", false},
		{"{\"zklock\":1,\"a\":\"\\uD83D\\uDE00\"}", true},
		{"{\"zklock\":1,\"pid\":2147483647}", true},
		{"{\"zklock\":1,\"pid\":2147483648}", false},
		{"{\"zklock\":1,\"pid\":-2147483648}", true},
		{"{\"zklock\":1,\"pid\":\"7\"}", false},
		{"{\"zklock\":1,\"pid\":7.5}", false},
		{"{\"zklock\":1,\"since\":9223372036854775807}", true},
		{"{\"zklock\":1,\"since\":9223372036854775808}", false},
		{"{\"zklock\":1,\"since\":-9223372036854775808}", true},
		{"{\"zklock\":1,\"since\":-9223372036854775809}", false},
		{"{\"zklock\":1,\"since\":99999999999999999999999}", false},
		{"{\"zklock\":1,\"server\":7}", false}
	};
	ZklNodeData data;
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_MSG(parse_data(cases[i].text, strlen(cases[i].text), &data) ==
				  cases[i].good, "%s", cases[i].text);
	CHECK(!parse_data("{\"zklock\":1}\0", 13, &data));
}

/* A longer string than ours is cut at a character */
static void
data_long_strings(void)
{
	char		json[400] = "{\"zklock\":1,\"user\":\"a";
	ZklNodeData data;
	int			i;

	for (i = 0; i < 40; i++)
		strcat(json, i & 1 ? "\xc3\xa9" : "\\u00e9");
	strcat(json, "z\",\"pid\":3}");
	CHECK(parse_data(json, strlen(json), &data));
	CHECK_INT((int64_t) strlen(data.usename), 63);
	CHECK_STR(data.usename + 59, "\xc3\xa9\xc3\xa9");
	CHECK_INT(data.pid, 3);
}

static void
downgrading_marks(void)
{
	static const struct
	{
		const char *text;
		bool		marked;
	}			cases[] = {
		{"{\"downgrading\":true}", true},
		{"{\"zklock\":1,\"server\":\"a\",\"downgrading\":true}", true},
		{"{\"zklock\":1,\"downgrading\" : true , \"b\":2}", true},
		{"{\"a\":[{},[]],\"b\":{\"c\":1},\"downgrading\":true}", true},
		{"{\"\\u0064owngrading\":true}", true},
		{"{\"downgrading\":false,\"downgrading\":true}", true},
		{"{\"downgrading\":true", true},
		{"{\"downgrading\":false}", false}, {"{\"downgrading\":1}", false},
		{"{\"downgrading\":\"true\"}", false},
		{"{\"a\":{\"downgrading\":true}}", false},
		{"{\"a\":[\"downgrading\",true]}", false},
		{"{\"a\":\"\\\"downgrading\\\":true\"}", false},
		{"{\"Downgrading\":true}", false}, {"\"downgrading\":true", false},
		{"downgrading", false}, {"", false}, {"{}", false},
		{"10.0.0.1", false}, {"[[[[[[[[", false}, {"{\"a\":]}", false}
	};
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_MSG(downgrading(cases[i].text, strlen(cases[i].text)) ==
				  cases[i].marked, "%s", cases[i].text);
}

/* Data, the mark put into it, and what is read back of it */
static void
revoking_marks(void)
{
	static const struct
	{
		const char *text;
		const char *who;		/* NULL: no mark */
	}			cases[] = {
		{"__REVOKE__", ""}, {"{\"revoke\":\"a\"}", "a"},
		{"{\"zklock\":1,\"revoke\":\"a \\\"b\\\"\"}", "a \"b\""},
		{"{\"revoke\":1,\"revoke\":\"a\"}", "a"},
		{"{\"breaking\":true,\"revoke\":\"\",\"zklock\":1}", ""},
		{"{\"revoke\":\"abcdefghijklmnopqrstuvwxyz\"}", "abcdefghijklmno"},
		{"__REVOKE__ ", NULL}, {"__REVOKE_", NULL}, {"\"revoke\"", NULL},
		{"{\"revoke\":true}", NULL}, {"{\"a\":{\"revoke\":\"a\"}}", NULL},
		{"{\"revoke\":\"\\x\"}", NULL}, {"{}", NULL}, {"", NULL}
	};
	char		who[16];
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		size_t		length = strlen(cases[i].text);
		char	   *copy = unit_copy(cases[i].text, length);
		bool		marked = zkl_node_data_revoking(copy, length, who,
													sizeof(who));

		CHECK_MSG(marked == (cases[i].who != NULL), "%s", cases[i].text);
		if (marked && cases[i].who != NULL)
			CHECK_STR(who, cases[i].who);
		free(copy);
	}
}

static void
revoke_as(const char *text, const char *who, const char *expected)
{
	size_t		length = strlen(text);
	char	   *copy = unit_copy(text, length);
	char	   *marked = malloc(ZKL_MAX_NODE_DATA);

	if (marked == NULL)
		abort();
	length = zkl_node_data_revoke(copy, length, who, marked);
	CHECK_MSG(length == strlen(expected) &&
			  memcmp(marked, expected, length) == 0,
			  "%s: %.*s", text, (int) length, marked);
	free(marked);
	free(copy);
}

static void
revoking_is_marked(void)
{
	char		text[ZKL_MAX_NODE_DATA + 1];
	char		expected[2 * ZKL_MAX_NODE_DATA];
	char		who[400];

	revoke_as("{\"zklock\":1}", "a", "{\"revoke\":\"a\",\"zklock\":1}");
	revoke_as("{\"revoke\":\"b, c\",\"zklock\":1}", "\"a\"",
			  "{\"revoke\":\"\\\"a\\\"\",\"zklock\":1}");
	revoke_as("{\"breaking\":true,\"zklock\":1}", "a",
			  "{\"revoke\":\"a\",\"breaking\":true,\"zklock\":1}");
	revoke_as("{\"revoke\":\"b\"}", "a", "{\"revoke\":\"a\"}");
	revoke_as("{}", "a", "{\"revoke\":\"a\"}");
	revoke_as("{", "a", "{\"revoke\":\"a\"}");
	revoke_as("", "a", "{\"revoke\":\"a\"}");
	revoke_as("__REVOKE__", "", "{\"revoke\":\"\"}");

	/* one that just fits, and one that does not */
	memset(text, ' ', sizeof(text));
	memcpy(text, "{\"zklock\":1", 11);
	strcpy(text + ZKL_MAX_NODE_DATA - 14, "}");
	strcpy(expected, "{\"revoke\":\"a\",");
	strcat(expected, text + 1);
	CHECK_INT((int64_t) strlen(expected), ZKL_MAX_NODE_DATA);
	revoke_as(text, "a", expected);
	revoke_as(text, "ab", "{\"revoke\":\"ab\"}");

	/* whoever asks, there is room */
	memset(who, '\n', sizeof(who) - 1);
	who[sizeof(who) - 1] = '\0';
	CHECK(zkl_node_data_revoke(text, strlen(text), who, expected) <
		  ZKL_MAX_NODE_DATA / 2);
}

/* A megabyte of brackets takes no stack */
static void
data_deep(void)
{
	size_t		length = 1024 * 1024;
	char	   *text = malloc(length);
	ZklNodeData data;

	if (text == NULL)
		abort();
	memset(text, '[', length);
	memcpy(text, "{\"a\":", 5);
	CHECK(!zkl_node_data_downgrading(text, length));
	CHECK(!zkl_node_data_parse(text, length, &data));
	free(text);
}

int
main(void)
{
	unit_start();
	RUN(data_round_trips);
	RUN(data_extremes);
	RUN(data_with_a_wait);
	RUN(data_truncated);
	RUN(data_texts);
	RUN(data_long_strings);
	RUN(downgrading_marks);
	RUN(revoking_marks);
	RUN(revoking_is_marked);
	RUN(data_deep);
	return unit_finish();
}
