/*
 * wait_data.c
 *	  What a server publishes of a long wait: flat JSON.
 *
 * Owns the format.  Pure functions of their arguments: every process may call
 * them, they keep no state and take no locks.  Must not know what deadlocks are.
 */
#include <string.h>

#include "znode/json.h"
#include "znode/wait_data.h"

#define MAX_WORD	10			/* of the mode */

/*
 * Bytes that the lock's name may take once escaped: it has no control characters,
 * but quotes and backslashes.
 */
#define MAX_ESCAPED_NAME	(2 * ZKL_MAX_NAME)

/* The members that a publication must have; the others are for people. */
typedef enum Member
{
	MEMBER_FORMAT = 1,
	MEMBER_WAIT = 2,
	MEMBER_LOCK = 4,
	MEMBER_DIALECT = 8,
	MEMBER_MODE = 16,
	MEMBER_EVERY = 32,
	ALL_MEMBERS = 63
} Member;

static void
put_key_number(char **at, const char *key, int64_t number)
{
	zkl_json_put_bytes(at, key, strlen(key));
	zkl_json_put_number(at, number);
}

size_t
zkl_wait_data_format(const ZklWaitData *data, char *buf)
{
	char	   *at = buf;
	char		uuid[ZKL_UUID_TEXT + 1];
	const char *mode = data->mode == ZKL_SHARED ? "shared" : "exclusive";

	zkl_uuid_format(&data->wait, uuid);
	put_key_number(&at, "{\"" ZKL_FORMAT_KEY "\":", ZKL_ZNODE_PROTOCOL);
	zkl_json_put_string(&at, ",\"wait\":", uuid, sizeof(uuid), ZKL_UUID_TEXT);
	zkl_json_put_string(&at, ",\"lock\":", data->lock, sizeof(data->lock),
						MAX_ESCAPED_NAME);
	put_key_number(&at, ",\"dialect\":", data->dialect);
	zkl_json_put_string(&at, ",\"mode\":", mode, MAX_WORD, MAX_WORD);
	put_key_number(&at, ",\"behind\":", data->behind);
	put_key_number(&at, ",\"every\":", data->every_ms);
	zkl_json_put_string(&at, ",\"server\":", data->server,
						sizeof(data->server), 2 * ZKL_MAX_SERVER_NAME);
	put_key_number(&at, ",\"holder\":", data->holder_pid);
	put_key_number(&at, ",\"waiter\":", data->waiter_pid);
	zkl_json_put_bytes(&at, "}", 1);
	return (size_t) (at - buf);
}

static bool
read_number(ZklJsonReader *r, int32_t min, int32_t max, int32_t *value)
{
	int64_t		number;

	if (!zkl_json_integer(r, min, max, &number))
		return false;
	*value = (int32_t) number;
	return true;
}

static bool
read_mode(ZklJsonReader *r, ZklLockMode *mode)
{
	char		word[MAX_WORD + 1];

	if (!zkl_json_string(r, word, sizeof(word)))
		return false;
	*mode = strcmp(word, "shared") == 0 ? ZKL_SHARED : ZKL_EXCLUSIVE;
	return *mode == ZKL_SHARED || strcmp(word, "exclusive") == 0;
}

/* For the members that must be there: false, unless they are right */
static bool
read_needed(ZklJsonReader *r, const char *key, ZklWaitData *data, Member *what)
{
	char		uuid[ZKL_UUID_TEXT + 2];
	int32_t		number;

	*what = 0;
	if (strcmp(key, ZKL_FORMAT_KEY) == 0)
		return *what = MEMBER_FORMAT, read_number(r, ZKL_ZNODE_PROTOCOL,
												  ZKL_ZNODE_PROTOCOL, &number);
	if (strcmp(key, "wait") == 0)
		return *what = MEMBER_WAIT, zkl_json_string(r, uuid, sizeof(uuid)) &&
			zkl_uuid_parse(uuid, &data->wait);
	if (strcmp(key, "lock") == 0)
		return *what = MEMBER_LOCK, zkl_json_string(r, data->lock,
													sizeof(data->lock)) &&
			data->lock[0] == '/' && data->lock[1] != '\0';
	if (strcmp(key, "dialect") == 0)
	{
		*what = MEMBER_DIALECT;
		if (!read_number(r, 0, ZKL_DIALECTS - 1, &number))
			return false;
		data->dialect = (ZklDialect) number;
		return true;
	}
	if (strcmp(key, "mode") == 0)
		return *what = MEMBER_MODE, read_mode(r, &data->mode);
	if (strcmp(key, "every") == 0)
		return *what = MEMBER_EVERY, read_number(r, 0, INT32_MAX,
												 &data->every_ms);
	return true;
}

typedef struct Reading
{
	ZklWaitData *data;
	int			seen;			/* of the members that must be there */
} Reading;

static bool
read_any(ZklJsonReader *r, const char *key, void *arg)
{
	Reading    *reading = arg;
	ZklWaitData *data = reading->data;
	Member		what;
	int32_t		number;

	if (!read_needed(r, key, data, &what))
		return false;
	reading->seen |= (int) what;
	if (what != 0)
		return true;
	if (strcmp(key, "behind") == 0)
	{
		if (!read_number(r, 0, 1, &number))
			return false;
		data->behind = number != 0;
		return true;
	}
	if (strcmp(key, "server") == 0)
		return zkl_json_string(r, data->server, sizeof(data->server));
	if (strcmp(key, "holder") == 0)
		return read_number(r, INT32_MIN, INT32_MAX, &data->holder_pid);
	if (strcmp(key, "waiter") == 0)
		return read_number(r, INT32_MIN, INT32_MAX, &data->waiter_pid);
	return zkl_json_skip_scalar(r);
}

bool
zkl_wait_data_parse(const char *text, size_t length, ZklWaitData *data)
{
	Reading		reading = {data, 0};

	memset(data, 0, sizeof(*data));
	return zkl_json_object(text, length, read_any, &reading) &&
		reading.seen == ALL_MEMBERS;
}
