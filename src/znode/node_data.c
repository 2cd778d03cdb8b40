/*
 * node_data.c
 *	  What zklock writes into a znode: flat JSON that tells whose request it is.
 *
 * Owns the format of the data: its writer, and what is looked for in data that
 * any client may have put there.  Pure functions of their arguments, called by
 * the worker and by backends that show a queue; they keep no state and take no
 * locks.  Must not know what the members mean to anybody, nor who stores the
 * data.
 */
#include <string.h>

#include "znode/json.h"
#include "znode/znode.h"

#define CACHED_KEY		"cached"
#define WAITED_KEY		"waited"
#define FORMAT_VERSION	ZKL_ZNODE_PROTOCOL

/*
 * Bytes that a string may take once escaped.  Three such, a server's name, a
 * lifetime (15 characters of at most six bytes), an address, the numbers and the keys
 * stay below ZKL_MAX_NODE_DATA; names of 63 bytes fit whole unless a fifth of them are
 * control characters, and a server's name always does (see server_name.c).
 */
#define MAX_ESCAPED		128
#define MAX_LIFETIME	90
#define MAX_ASKER		320		/* the same for who asks for a lock */

static void
put_member(char **at, const char *key, int64_t number)
{
	zkl_json_put_bytes(at, key, strlen(key));
	zkl_json_put_number(at, number);
}

/* What older releases neither write nor read */
static void
put_optional(char **at, const ZklNodeData *data)
{
	if (data->client[0] != '\0')
		zkl_json_put_string(at, ",\"client\":", data->client, sizeof(data->client),
							ZKL_MAX_CLIENT);
	if (data->backend_start != 0)
		put_member(at, ",\"backend_start\":", data->backend_start);
	if (data->at_most_ms != 0)
		put_member(at, ",\"at_most\":", data->at_most_ms);
	if (data->waited_ms != 0)
		put_member(at, ",\"" WAITED_KEY "\":", data->waited_ms);
}

size_t
zkl_node_data_format(const ZklNodeData *data, char *buf, size_t size)
{
	char	   *at = buf;

	if (size < ZKL_MAX_NODE_DATA)
	{
		if (size > 0)
			buf[0] = '\0';
		return 0;
	}
	put_member(&at, "{\"" ZKL_FORMAT_KEY "\":", FORMAT_VERSION);
	zkl_json_put_string(&at, ",\"server\":", data->server, sizeof(data->server),
						ZKL_MAX_SERVER_NAME);
	zkl_json_put_string(&at, ",\"database\":", data->database, sizeof(data->database),
						MAX_ESCAPED);
	zkl_json_put_string(&at, ",\"user\":", data->usename, sizeof(data->usename),
						MAX_ESCAPED);
	zkl_json_put_string(&at, ",\"application\":", data->application_name,
						sizeof(data->application_name), MAX_ESCAPED);
	put_member(&at, ",\"pid\":", data->pid);
	zkl_json_put_string(&at, ",\"lifetime\":", data->lifetime, sizeof(data->lifetime),
						MAX_LIFETIME);
	put_member(&at, ",\"since\":", data->since);
	put_optional(&at, data);
	*at++ = '}';
	*at = '\0';
	return (size_t) (at - buf);
}

/* The members that only newer releases write; false: key is none of these. */
static bool
read_optional(ZklJsonReader *r, const char *key, ZklNodeData *data, bool *good)
{
	if (strcmp(key, "client") == 0)
		*good = zkl_json_string(r, data->client, sizeof(data->client));
	else if (strcmp(key, "backend_start") == 0)
		*good = zkl_json_integer(r, 0, INT64_MAX, &data->backend_start);
	else if (strcmp(key, "at_most") == 0)
		*good = zkl_json_integer(r, 0, INT64_MAX, &data->at_most_ms);
	else if (strcmp(key, WAITED_KEY) == 0)
		*good = zkl_json_integer(r, 0, INT64_MAX, &data->waited_ms);
	else
		return false;
	return true;
}

typedef struct Reading
{
	ZklNodeData *data;
	bool		ours;
} Reading;

static bool
read_node_member(ZklJsonReader *r, const char *key, void *arg)
{
	Reading    *reading = arg;
	ZklNodeData *data = reading->data;
	int64_t		number;
	bool		good;

	if (read_optional(r, key, data, &good))
		return good;

	if (strcmp(key, ZKL_FORMAT_KEY) == 0)
		return reading->ours = zkl_json_integer(r, FORMAT_VERSION, FORMAT_VERSION,
												&number);
	if (strcmp(key, "server") == 0)
		return zkl_json_string(r, data->server, sizeof(data->server));
	if (strcmp(key, "database") == 0)
		return zkl_json_string(r, data->database, sizeof(data->database));
	if (strcmp(key, "user") == 0)
		return zkl_json_string(r, data->usename, sizeof(data->usename));
	if (strcmp(key, "application") == 0)
		return zkl_json_string(r, data->application_name,
							   sizeof(data->application_name));
	if (strcmp(key, "lifetime") == 0)
		return zkl_json_string(r, data->lifetime, sizeof(data->lifetime));
	if (strcmp(key, "since") == 0)
		return zkl_json_integer(r, INT64_MIN, INT64_MAX, &data->since);
	if (strcmp(key, "pid") == 0)
	{
		if (!zkl_json_integer(r, INT32_MIN, INT32_MAX, &number))
			return false;
		data->pid = (int32_t) number;
		return true;
	}
	if (strcmp(key, "timeout") == 0)
	{
		if (!zkl_json_integer(r, 0, INT32_MAX, &number))
			return false;
		data->timeout_ms = (int32_t) number;
		return true;
	}
	if (strcmp(key, CACHED_KEY) == 0 && zkl_json_word(r, "true"))
		return data->cached = true;
	return zkl_json_skip_scalar(r);
}

bool
zkl_node_data_parse(const char *text, size_t length, ZklNodeData *data)
{
	Reading		reading = {data, false};

	memset(data, 0, sizeof(*data));
	if (zkl_json_object(text, length, read_node_member, &reading) && reading.ours)
		return true;
	memset(data, 0, sizeof(*data));
	return false;
}

/*
 * Believing a mark that is none costs a listing, missing one costs the lock,
 * so this reads past values that zkl_node_data_parse refuses, and takes the
 * mark whatever follows it.
 */
static bool
has_mark(const char *text, size_t length, const char *mark)
{
	ZklJsonReader r = {text, text + length};
	char		key[ZKL_JSON_KEY];

	if (!zkl_json_take(&r, '{'))
		return false;
	do
	{
		if (!zkl_json_key(&r, key))
			return false;
		if (strcmp(key, mark) == 0 && zkl_json_word(&r, "true"))
			return true;
		if (!zkl_json_skip_value(&r))
			return false;
	} while (zkl_json_take(&r, ','));
	return false;
}

bool
zkl_node_data_downgrading(const char *text, size_t length)
{
	return has_mark(text, length, "downgrading");
}

bool
zkl_node_data_breaking(const char *text, size_t length)
{
	return has_mark(text, length, "breaking");
}

/* The mark comes first, so that no text behind it can hide it. */
static size_t
add_mark(const char *mark, const char *text, size_t length, char *buf,
		 size_t size)
{
	size_t		n = strlen(mark);

	memcpy(buf, mark, n);
	if (length >= 2 && text[0] == '{' && text[1] != '}' &&
		n + length <= size)
	{
		buf[n++] = ',';
		memcpy(buf + n, text + 1, length - 1);
		return n + length - 1;
	}
	buf[n++] = '}';
	return n;
}

bool
zkl_node_data_revoking(const char *text, size_t length, char *who, size_t size)
{
	ZklJsonReader r = {text, text + length};
	ZklJsonReader value;
	char		key[ZKL_JSON_KEY];

	who[0] = '\0';
	if (length == strlen(ZKL_REVOKE_MESSAGE) &&
		memcmp(text, ZKL_REVOKE_MESSAGE, length) == 0)
		return true;
	if (!zkl_json_take(&r, '{'))
		return false;
	do
	{
		if (!zkl_json_key(&r, key))
			return false;
		value = r;
		if (strcmp(key, "revoke") == 0 && zkl_json_string(&value, who, size))
			return true;
		who[0] = '\0';
		if (!zkl_json_skip_value(&r))
			return false;
	} while (zkl_json_take(&r, ','));
	return false;
}

/* An object's members, with its end, but for a mark that they begin with */
static const char *
find_members(const char *text, size_t *length)
{
	ZklJsonReader r = {text, text + *length};
	const char *members;
	char		key[ZKL_JSON_KEY];

	if (!zkl_json_take(&r, '{') || r.at == r.end)
		return NULL;
	members = r.at;
	if (zkl_json_key(&r, key) && strcmp(key, "revoke") == 0)
	{
		if (!zkl_json_skip_value(&r) || !zkl_json_take(&r, ','))
			return NULL;
		members = r.at;
	}
	*length -= (size_t) (members - text);
	return *members != '}' ? members : NULL;
}

size_t
zkl_node_data_revoke(const char *text, size_t length, const char *who,
					 char *buf)
{
	const char *members = find_members(text, &length);
	char	   *at = buf;

	zkl_json_put_string(&at, "{\"revoke\":", who, strlen(who) + 1, MAX_ASKER);
	if (members != NULL &&
		(size_t) (at - buf) + 1 + length <= ZKL_MAX_NODE_DATA)
	{
		*at++ = ',';
		zkl_json_put_bytes(&at, members, length);
	}
	else
		*at++ = '}';
	return (size_t) (at - buf);
}

size_t
zkl_node_data_break(const char *text, size_t length, char *buf, size_t size)
{
	return add_mark("{\"breaking\":true", text, length, buf, size);
}

size_t
zkl_node_data_downgrade(const char *text, size_t length, char *buf,
						size_t size)
{
	return add_mark("{\"downgrading\":true", text, length, buf, size);
}

size_t
zkl_node_data_waited(char *text, size_t length, int64_t ms)
{
	char	   *at = text + length - 1;

	if (length < 3 || *at != '}' || zkl_node_data_tells_wait(text, length))
		return length;
	put_member(&at, ",\"" WAITED_KEY "\":", ms);
	*at++ = '}';
	return (size_t) (at - text);
}

bool
zkl_node_data_tells_wait(const char *text, size_t length)
{
	ZklNodeData data;

	return zkl_node_data_parse(text, length, &data) && data.waited_ms != 0;
}

size_t
zkl_node_data_cached(char *text, size_t length)
{
	static const char member[] = ",\"" CACHED_KEY "\":true}";

	if (length < 3 || text[length - 1] != '}')
		return length;
	memcpy(text + length - 1, member, sizeof(member) - 1);
	return length - 1 + sizeof(member) - 1;
}

bool
zkl_node_data_is_cached(const char *text, size_t length)
{
	return has_mark(text, length, CACHED_KEY) &&
		!zkl_node_data_breaking(text, length);
}

size_t
zkl_node_data_timeout(char *text, size_t length, uint32_t timeout_ms)
{
	static const char key[] = ",\"timeout\":";
	char	   *at = text + length - 1;

	if (length < 3 || *at != '}')
		return length;
	zkl_json_put_bytes(&at, key, sizeof(key) - 1);
	zkl_json_put_number(&at, timeout_ms);
	*at++ = '}';
	return (size_t) (at - text);
}
