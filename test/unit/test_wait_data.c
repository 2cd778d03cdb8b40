/*
 * test_wait_data.c
 *	  What is published of a wait, and its name: there and back, and all that is none.
 */
#include "unit.h"
#include "znode/znode.h"

static ZklWaitData
usual(void)
{
	ZklWaitData data = {
		.lock = "/batch/nightly \"x\"",.dialect = ZKL_DIALECT_LATCH,
		.mode = ZKL_SHARED,.behind = true,.server = "paris",
		.holder_pid = 4711,.waiter_pid = 815,.every_ms = 1000
	};

	data.wait = zkl_uuid_make(1, 0, 2);
	return data;
}

static void
there_and_back(void)
{
	ZklWaitData data = usual();
	ZklWaitData read;
	char		text[ZKL_MAX_WAIT_DATA];
	size_t		length = zkl_node_data_format_wait(&data, text);
	size_t		i;

	CHECK(zkl_node_data_parse_wait(text, length, &read));
	CHECK(memcmp(&data, &read, sizeof(data)) == 0);

	/* nothing less, and nothing behind it */
	for (i = 0; i < length; i++)
		CHECK_MSG(!zkl_node_data_parse_wait(text, i, &read), "%zu bytes do", i);
	text[length] = 'x';
	CHECK(!zkl_node_data_parse_wait(text, length + 1, &read));
}

/* The longest names, all of them to be escaped */
static void
room(void)
{
	ZklWaitData data = usual();
	ZklWaitData read;
	char		text[ZKL_MAX_WAIT_DATA];
	size_t		length;

	memset(data.lock + 1, '"', ZKL_MAX_NAME - 1);
	memset(data.server, '\\', ZKL_MAX_SERVER_NAME);
	data.holder_pid = data.waiter_pid = INT32_MIN;
	data.every_ms = INT32_MAX;
	length = zkl_node_data_format_wait(&data, text);
	CHECK(length < ZKL_MAX_WAIT_DATA);
	CHECK(zkl_node_data_parse_wait(text, length, &read));
	CHECK_STR(read.lock, data.lock);
	CHECK_STR(read.server, data.server);
}

#define WAIT	"\"wait\":\"00000000-0000-8000-8000-000000000001\""
#define REST	",\"lock\":\"/a\",\"dialect\":0,\"mode\":\"shared\",\"every\":5}"

static void
strictness(void)
{
	static const struct
	{
		const char *text;
		bool		good;
	}			cases[] = {
		{"{\"zklock\":1," WAIT REST, true},
		{" { \"zklock\" : 1 , " WAIT REST, true},
		{"{\"zklock\":1,\"later\":true," WAIT REST, true},
		{"{\"zklock\":2," WAIT REST, false},
		{"{" WAIT REST, false},
		{"{\"zklock\":1,\"wait\":\"1\"" REST, false},
		{"{\"zklock\":1" REST, false},
		{"{\"zklock\":1," WAIT ",\"lock\":\"a\",\"dialect\":0,"
		"\"mode\":\"shared\",\"every\":5}", false},
		{"{\"zklock\":1," WAIT ",\"lock\":\"/a\",\"dialect\":6,"
		"\"mode\":\"shared\",\"every\":5}", false},
		{"{\"zklock\":1," WAIT ",\"lock\":\"/a\",\"dialect\":0,"
		"\"mode\":\"mine\",\"every\":5}", false},
		{"{\"zklock\":1," WAIT ",\"lock\":\"/a\",\"dialect\":0,"
		"\"mode\":\"shared\",\"every\":-1}", false},
		{"__REVOKE__", false},
		{"", false},
	};
	ZklWaitData read;
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_MSG(zkl_node_data_parse_wait(cases[i].text, strlen(cases[i].text),
										   &read) == cases[i].good,
				  "%s", cases[i].text);
}

#define ID		"00000000-0000-8000-8000-000000000001"

/* Whatever makes it unique may become longer one day; an id alone is not unique. */
static void
names(void)
{
	static const struct
	{
		const char *name;
		bool		good;
	}			cases[] = {
		{ID ".1.1", true},
		{ID ".later", true},
		{ID, false},
		{ID "-1.1", false},
		{"_c_" ID ".1.1", false},
		{"00000000-0000-8000-8000-00000000000A.1.1", false},
		{ID ".ffffffff.ffffffffffffffff", true},
		{ID ".ffffffff.ffffffffffffffff0", false},
		{"", false},
	};
	ZklUuid		held = zkl_uuid_make(0, 0, 1);
	ZklUuid		read;
	char		name[ZKL_MAX_WAIT_NAME + 1];
	size_t		i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_MSG(zkl_znode_parse_wait(cases[i].name, &read) == cases[i].good &&
				  (!cases[i].good || zkl_uuid_equal(&read, &held)),
				  "%s", cases[i].name);
	zkl_znode_wait_name(&held, 0, 0x10a, name);
	CHECK_STR(name, ID ".0.10a");
	zkl_znode_wait_name(&held, UINT32_MAX, UINT64_MAX, name);
	CHECK_STR(name, ID ".ffffffff.ffffffffffffffff");
	CHECK_INT(strlen(name), ZKL_MAX_WAIT_NAME);
}

int
main(void)
{
	unit_start();
	RUN(names);
	RUN(there_and_back);
	RUN(room);
	RUN(strictness);
	return unit_finish();
}
