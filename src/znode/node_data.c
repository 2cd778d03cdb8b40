/*
 * node_data.c
 *	  What stands in znodes: JSON, and what zklock writes in it.
 *
 * Owns the format of the data: its writer, and what is looked for in data that any
 * client may have put there.  Functions of their arguments, called by the worker and
 * by backends that show a queue; they keep no state and take no locks.  Must not
 * know what the members mean to anybody, nor who stores the data.
 */
#include <string.h>

#include "znode/node_data.h"
#include "znode/znode.h"

/* ---- json ---- */

/*
 * JSON: reading what is of unknown origin, and writing; and characters of UTF-8.
 *
 * Functions of their arguments, called by the worker and by backends that show a
 * queue; they keep no state and take no locks.  Must not know what any member is
 * for.
 *
 * They read nothing outside of the reader's bounds, and no number in the text
 * makes them do so.
 */

size_t
zkl_json_character(const char *text, size_t left, uint32_t *code)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *byte = (const unsigned char *) text;
	size_t		length;
	size_t		i;

	if (left == 0)
		return 0;
	if (byte[0] < 0x80)
	{
		*code = byte[0];
		return 1;
	}
	if (byte[0] < 0xC0 || byte[0] > 0xF7)
		return 0;
	length = byte[0] < 0xE0 ? 2 : byte[0] < 0xF0 ? 3 : 4;
	if (left < length)
		return 0;
	*code = byte[0] & (0x7F >> length);
	for (i = 1; i < length; i++)
	{
		if ((byte[i] & 0xC0) != 0x80)
			return 0;
		*code = *code << 6 | (byte[i] & 0x3F);
	}
	if (*code < smallest[length] || *code > 0x10FFFF ||
		(*code >= 0xD800 && *code <= 0xDFFF))
		return 0;
	return length;
}

static void
skip_space(ZklJsonReader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' ||
							  *r->at == '\n' || *r->at == '\r'))
		r->at++;
}

bool
zkl_json_take(ZklJsonReader *r, char c)
{
	skip_space(r);
	if (r->at >= r->end || *r->at != c)
		return false;
	r->at++;
	skip_space(r);
	return true;
}

bool
zkl_json_word(ZklJsonReader *r, const char *word)
{
	size_t		length = strlen(word);

	if ((size_t) (r->end - r->at) < length ||
		memcmp(r->at, word, length) != 0)
		return false;
	r->at += length;
	return true;
}

static bool
read_hex4(ZklJsonReader *r, uint32_t *code)
{
	int			i;

	*code = 0;
	if (r->end - r->at < 4)
		return false;
	for (i = 0; i < 4; i++)
	{
		char		c = *r->at++;

		if (c >= '0' && c <= '9')
			*code = *code << 4 | (uint32_t) (c - '0');
		else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
			*code = *code << 4 | (uint32_t) ((c | 0x20) - 'a' + 10);
		else
			return false;
	}
	return true;
}

/* What follows "\u"; half a surrogate pair and U+0000 are refused */
static bool
read_escaped_code(ZklJsonReader *r, uint32_t *code)
{
	uint32_t	low;

	if (!read_hex4(r, code) || *code == 0)
		return false;
	if (*code < 0xD800 || *code > 0xDFFF)
		return true;
	if (*code > 0xDBFF || !zkl_json_word(r, "\\u") ||
		!read_hex4(r, &low) || low < 0xDC00 || low > 0xDFFF)
		return false;
	*code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
	return true;
}

/* One character of a string, escaped or not */
static bool
read_code(ZklJsonReader *r, uint32_t *code)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	const char *letter;
	size_t		bytes;

	if (!zkl_json_word(r, "\\"))
	{
		bytes = zkl_json_character(r->at, (size_t) (r->end - r->at), code);
		r->at += bytes;
		return bytes > 0 && *code >= 0x20;
	}
	if (r->at >= r->end)
		return false;
	if (zkl_json_word(r, "u"))
		return read_escaped_code(r, code);
	letter = memchr(from, *r->at, sizeof(from) - 1);
	if (letter == NULL)
		return false;
	*code = (uint32_t) to[letter - from];
	r->at++;
	return true;
}

static size_t
encode_utf8(uint32_t code, char *bytes)
{
	static const uint8_t first[] = {0, 0, 0xC0, 0xE0, 0xF0};
	size_t		length = code < 0x80 ? 1 : code < 0x800 ? 2 :
	code < 0x10000 ? 3 : 4;
	size_t		i;

	for (i = length - 1; i > 0; i--)
	{
		bytes[i] = (char) (0x80 | (code & 0x3F));
		code >>= 6;
	}
	bytes[0] = (char) (first[length] | code);
	return length;
}

bool
zkl_json_string(ZklJsonReader *r, char *buf, size_t size)
{
	size_t		length = 0;
	bool		cut = false;

	if (!zkl_json_word(r, "\""))
		return false;
	while (!zkl_json_word(r, "\""))
	{
		char		bytes[4];
		uint32_t	code;
		size_t		n;

		if (!read_code(r, &code))
			return false;
		n = encode_utf8(code, bytes);
		cut = cut || length + n >= size;
		if (!cut)
		{
			memcpy(buf + length, bytes, n);
			length += n;
		}
	}
	buf[length] = '\0';
	return true;
}

static size_t
skip_digits(ZklJsonReader *r)
{
	const char *start = r->at;

	while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
		r->at++;
	return (size_t) (r->at - start);
}

static bool
skip_number(ZklJsonReader *r)
{
	(void) zkl_json_word(r, "-");
	if (!zkl_json_word(r, "0") && skip_digits(r) == 0)
		return false;
	if (zkl_json_word(r, ".") && skip_digits(r) == 0)
		return false;
	if (zkl_json_word(r, "e") || zkl_json_word(r, "E"))
	{
		if (!zkl_json_word(r, "-"))
			(void) zkl_json_word(r, "+");
		return skip_digits(r) > 0;
	}
	return true;
}

bool
zkl_json_integer(ZklJsonReader *r, int64_t min, int64_t max, int64_t *number)
{
	const char *start = r->at;
	bool		negative;
	int64_t		value = 0;

	if (!skip_number(r))
		return false;
	negative = *start == '-';
	for (start += negative; start < r->at; start++)
	{
		int			digit = *start - '0';

		if (*start < '0' || *start > '9' || value < (INT64_MIN + digit) / 10)
			return false;
		value = value * 10 - digit;
	}
	if (!negative && value == INT64_MIN)
		return false;
	*number = negative ? value : -value;
	return *number >= min && *number <= max;
}

/* A string, a number or a word */
static bool
json_skip_scalar(ZklJsonReader *r)
{
	char		ignored[1];

	if (r->at >= r->end)
		return false;
	if (*r->at == '"')
		return zkl_json_string(r, ignored, sizeof(ignored));
	return zkl_json_word(r, "true") || zkl_json_word(r, "false") ||
		zkl_json_word(r, "null") || skip_number(r);
}

bool
zkl_json_skip_value(ZklJsonReader *r)
{
	size_t		depth = 0;

	do
	{
		skip_space(r);
		if (zkl_json_word(r, "{") || zkl_json_word(r, "["))
			depth++;
		else if (depth > 0 &&
				 (zkl_json_word(r, "}") || zkl_json_word(r, "]")))
			depth--;
		else if (!(depth > 0 &&
				   (zkl_json_word(r, ",") || zkl_json_word(r, ":"))) &&
				 !json_skip_scalar(r))
			return false;
	} while (depth > 0);
	return true;
}

#define MAX_COMPARED_KEY		20	/* a known one, and what makes it another */

bool
zkl_json_object(const char *text, size_t length, ZklJsonMember member, void *to)
{
	ZklJsonReader r = {text, text + length};
	char		key[MAX_COMPARED_KEY];

	if (!zkl_json_take(&r, '{'))
		return false;
	do
	{
		if (!zkl_json_string(&r, key, sizeof(key)) ||
			!zkl_json_take(&r, ':') || !member(&r, key, to))
			return false;
	} while (zkl_json_take(&r, ','));
	return zkl_json_take(&r, '}') && r.at == r.end;
}

static bool
read_int(ZklJsonReader *r, int32_t min, int32_t *to)
{
	int64_t		number;

	if (!zkl_json_integer(r, min, INT32_MAX, &number))
		return false;
	*to = (int32_t) number;
	return true;
}

static bool
read_field(ZklJsonReader *r, const ZklJsonField *field, void *to)
{
	switch (field->type)
	{
		case ZKL_JSON_STRING:
			return zkl_json_string(r, to, field->size);
		case ZKL_JSON_BOOL:
			*(bool *) to = zkl_json_word(r, "true");
			return *(bool *) to || zkl_json_word(r, "false");
		case ZKL_JSON_INT:
			return read_int(r, INT32_MIN, to);
		case ZKL_JSON_COUNT:
			return read_int(r, 0, to);
		case ZKL_JSON_INT64:
			return zkl_json_integer(r, INT64_MIN, INT64_MAX, to);
		case ZKL_JSON_COUNT64:
			return zkl_json_integer(r, 0, INT64_MAX, to);
	}
	return false;
}

bool
zkl_json_field(ZklJsonReader *r, const char *key, const ZklJsonField *fields,
			   size_t nfields, void *to, bool *known)
{
	size_t		i = 0;

	while (i < nfields && strcmp(fields[i].key, key) != 0)
		i++;
	*known = i < nfields;
	return *known && read_field(r, &fields[i], (char *) to + fields[i].offset);
}

/* ---- writing ---- */

/*
 * Each goes on at *at.  A string is at most "most" bytes once it is
 * escaped, key stands before it as it is, and the value ends at its NUL or after
 * "size" bytes.
 */
static void
json_put_bytes(char **at, const char *bytes, size_t length)
{
	memcpy(*at, bytes, length);
	*at += length;
}

static void
json_put_number(char **at, int64_t number)
{
	char		digits[20];
	int			n = 0;
	uint64_t	value = number < 0 ? 0 - (uint64_t) number : (uint64_t) number;

	if (number < 0)
		*(*at)++ = '-';
	do
	{
		digits[n++] = (char) ('0' + value % 10);
		value /= 10;
	} while (value > 0);
	while (n > 0)
		*(*at)++ = digits[--n];
}

/* The escaped form of one character; returns its length, at most six */
static size_t
escape_character(const char *text, size_t bytes, char *escaped)
{
	static const char hex[] = "0123456789abcdef";
	unsigned char c = (unsigned char) text[0];

	if (c == '"' || c == '\\')
	{
		escaped[0] = '\\';
		escaped[1] = (char) c;
		return 2;
	}
	if (c < 0x20)
	{
		memcpy(escaped, "\\u00", 4);
		escaped[4] = hex[c >> 4];
		escaped[5] = hex[c & 15];
		return 6;
	}
	memcpy(escaped, text, bytes);
	return bytes;
}

/*
 * At most "most" bytes once it is escaped.  Bytes that are no UTF-8 (a name that
 * was cut, say) become "?".
 */
static void
json_put_string(char **at, const char *key, const char *value, size_t size,
				size_t most)
{
	const char *end = memchr(value, '\0', size);
	size_t		length = end ? (size_t) (end - value) : size;
	size_t		written = 0;
	size_t		i = 0;

	json_put_bytes(at, key, strlen(key));
	*(*at)++ = '"';
	while (i < length)
	{
		char		escaped[6];
		uint32_t	code;
		size_t		bytes = zkl_json_character(value + i, length - i, &code);
		size_t		n;

		if (bytes == 0)
			n = escape_character("?", bytes = 1, escaped);
		else
			n = escape_character(value + i, bytes, escaped);
		if (written + n > most)
			break;
		json_put_bytes(at, escaped, n);
		written += n;
		i += bytes;
	}
	*(*at)++ = '"';
}

/* ---- node_data ---- */

/*
 * What zklock writes into a znode: flat JSON that tells whose request it is, with
 * marks on it, and what a publication tells of a long wait.
 */

#define CACHED_KEY		"cached"
#define WAITED_KEY		"waited"
#define MAX_KEY			20		/* a mark, and what makes it another word */
#define FORMAT_VERSION	ZKL_ZNODE_PROTOCOL

/*
 * Bytes that a string may take once escaped.  Three such, a server's name, a
 * lifetime (15 characters of at most six bytes), an address, the numbers and the keys
 * stay below ZKL_MAX_NODE_DATA; names of 63 bytes fit whole unless a fifth of them are
 * control characters, and a server's name always does (see settings.c).
 */
#define MAX_ESCAPED		128
#define MAX_LIFETIME	90
#define MAX_ASKER		320		/* the same for who asks for a lock */

static void
put_member(char **at, const char *key, int64_t number)
{
	json_put_bytes(at, key, strlen(key));
	json_put_number(at, number);
}

/* What older releases neither write nor read */
static void
put_optional(char **at, const ZklNodeData *data)
{
	if (data->client[0] != '\0')
		json_put_string(at, ",\"client\":", data->client, sizeof(data->client),
						ZKL_MAX_CLIENT);
	if (data->backend_start != 0)
		put_member(at, ",\"backend_start\":", data->backend_start);
	if (data->at_most_ms != 0)
		put_member(at, ",\"at_most\":", data->at_most_ms);
	if (data->waited_ms != 0)
		put_member(at, ",\"" WAITED_KEY "\":", data->waited_ms);
}

bool
zkl_node_data_has_no_session(const ZklNodeData *data)
{
	return strcmp(data->lifetime, "reservation") == 0 || strcmp(data->lifetime, "ticket") == 0;
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
	json_put_string(&at, ",\"server\":", data->server, sizeof(data->server),
					ZKL_MAX_SERVER_NAME);
	json_put_string(&at, ",\"database\":", data->database, sizeof(data->database),
					MAX_ESCAPED);
	json_put_string(&at, ",\"user\":", data->usename, sizeof(data->usename),
					MAX_ESCAPED);
	json_put_string(&at, ",\"application\":", data->application_name,
					sizeof(data->application_name), MAX_ESCAPED);
	put_member(&at, ",\"pid\":", data->pid);
	json_put_string(&at, ",\"lifetime\":", data->lifetime, sizeof(data->lifetime),
					MAX_LIFETIME);
	put_member(&at, ",\"since\":", data->since);
	put_optional(&at, data);
	*at++ = '}';
	*at = '\0';
	return (size_t) (at - buf);
}

#define NODE_FIELD(key, type, field)	ZKL_JSON_FIELD(key, type, ZklNodeData, field)

static const ZklJsonField node_fields[] = {
	NODE_FIELD("server", ZKL_JSON_STRING, server),
	NODE_FIELD("database", ZKL_JSON_STRING, database),
	NODE_FIELD("user", ZKL_JSON_STRING, usename),
	NODE_FIELD("application", ZKL_JSON_STRING, application_name),
	NODE_FIELD("lifetime", ZKL_JSON_STRING, lifetime),
	NODE_FIELD("client", ZKL_JSON_STRING, client),
	NODE_FIELD("pid", ZKL_JSON_INT, pid),
	NODE_FIELD("timeout", ZKL_JSON_COUNT, timeout_ms),
	NODE_FIELD("since", ZKL_JSON_INT64, since),
	NODE_FIELD("backend_start", ZKL_JSON_COUNT64, backend_start),
	NODE_FIELD("at_most", ZKL_JSON_COUNT64, at_most_ms),
	NODE_FIELD(WAITED_KEY, ZKL_JSON_COUNT64, waited_ms)
};

#define NODE_FIELDS	(sizeof(node_fields) / sizeof(node_fields[0]))

static bool
is_format(ZklJsonReader *r)
{
	int64_t		number;

	return zkl_json_integer(r, FORMAT_VERSION, FORMAT_VERSION, &number);
}

typedef struct NodeRead
{
	ZklNodeData *data;
	bool		ours;
} NodeRead;

static bool
read_node_member(ZklJsonReader *r, const char *key, void *to)
{
	NodeRead   *node = to;
	bool		known;
	bool		good = zkl_json_field(r, key, node_fields, NODE_FIELDS,
									  node->data, &known);

	if (known)
		return good;
	if (strcmp(key, ZKL_FORMAT_KEY) == 0)
		return node->ours = is_format(r);
	if (strcmp(key, CACHED_KEY) == 0 && zkl_json_word(r, "true"))
		return node->data->cached = true;
	return json_skip_scalar(r);
}

bool
zkl_node_data_parse(const char *text, size_t length, ZklNodeData *data)
{
	NodeRead	node = {data, false};

	memset(data, 0, sizeof(*data));
	if (zkl_json_object(text, length, read_node_member, &node) && node.ours)
		return true;
	memset(data, 0, sizeof(*data));
	return false;
}

/* ---- marks ---- */

/*
 * Finds the value of a member, up to which the text must be an object.  Believing a
 * mark that is none costs a listing, missing one costs the lock: so this reads past
 * values that zkl_node_data_parse refuses, and takes what it finds whatever follows.
 * *next: where to look for a further one.
 */
static bool
find_value(ZklJsonReader *next, const char *mark, ZklJsonReader *value)
{
	char		key[MAX_KEY];

	while (zkl_json_string(next, key, sizeof(key)) && zkl_json_take(next, ':'))
	{
		bool		found = strcmp(key, mark) == 0;

		*value = *next;
		if (!zkl_json_skip_value(next) || !zkl_json_take(next, ','))
			next->at = next->end;
		if (found)
			return true;
	}
	return false;
}

static bool
has_mark(const char *text, size_t length, const char *mark)
{
	ZklJsonReader r;
	ZklJsonReader value;

	/* Then the text may be NULL. */
	if (length == 0)
		return false;
	r.at = text;
	r.end = text + length;
	if (!zkl_json_take(&r, '{'))
		return false;
	while (find_value(&r, mark, &value))
	{
		if (zkl_json_word(&value, "true"))
			return true;
	}
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

	who[0] = '\0';
	if (length == strlen(ZKL_REVOKE_MESSAGE) &&
		memcmp(text, ZKL_REVOKE_MESSAGE, length) == 0)
		return true;
	if (!zkl_json_take(&r, '{'))
		return false;
	while (find_value(&r, "revoke", &value))
	{
		if (zkl_json_string(&value, who, size))
			return true;
	}
	who[0] = '\0';
	return false;
}

/* An object's members, with its end, but for a mark that they begin with */
static const char *
find_members(const char *text, size_t *length)
{
	ZklJsonReader r = {text, text + *length};
	const char *members;
	char		key[MAX_KEY];

	if (!zkl_json_take(&r, '{') || r.at == r.end)
		return NULL;
	members = r.at;
	if (zkl_json_string(&r, key, sizeof(key)) && zkl_json_take(&r, ':') &&
		strcmp(key, "revoke") == 0)
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

	json_put_string(&at, "{\"revoke\":", who, strlen(who) + 1, MAX_ASKER);
	if (members != NULL &&
		(size_t) (at - buf) + 1 + length <= ZKL_MAX_NODE_DATA)
	{
		*at++ = ',';
		json_put_bytes(&at, members, length);
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

/* Adds a member at the end of an object that is not empty; the new length */
static size_t
add_member(char *text, size_t length, const char *key, int64_t number)
{
	char	   *at = text + length - 1;

	if (length < 3 || *at != '}')
		return length;
	put_member(&at, key, number);
	*at++ = '}';
	return (size_t) (at - text);
}

size_t
zkl_node_data_timeout(char *text, size_t length, uint32_t timeout_ms)
{
	return add_member(text, length, ",\"timeout\":", timeout_ms);
}

size_t
zkl_node_data_waited(char *text, size_t length, int64_t ms)
{
	return zkl_node_data_tells_wait(text, length) ? length :
		add_member(text, length, ",\"" WAITED_KEY "\":", ms);
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

/* ---- publications ---- */

#define MAX_MODE	10			/* bytes of a mode's name */

/*
 * Bytes that the lock's name may take once escaped: it has no control characters,
 * but quotes and backslashes.
 */
#define MAX_ESCAPED_NAME	(2 * ZKL_MAX_NAME)

size_t
zkl_node_data_format_wait(const ZklWaitData *data, char *buf)
{
	char	   *at = buf;
	char		uuid[ZKL_UUID_TEXT + 1];
	const char *mode = data->mode == ZKL_SHARED ? "shared" : "exclusive";

	zkl_uuid_format(&data->wait, uuid);
	put_member(&at, "{\"" ZKL_FORMAT_KEY "\":", ZKL_ZNODE_PROTOCOL);
	json_put_string(&at, ",\"wait\":", uuid, sizeof(uuid), ZKL_UUID_TEXT);
	json_put_string(&at, ",\"lock\":", data->lock, sizeof(data->lock),
					MAX_ESCAPED_NAME);
	put_member(&at, ",\"dialect\":", data->dialect);
	json_put_string(&at, ",\"mode\":", mode, MAX_MODE + 1, MAX_MODE);
	put_member(&at, ",\"behind\":", data->behind);
	put_member(&at, ",\"every\":", data->every_ms);
	json_put_string(&at, ",\"server\":", data->server,
					sizeof(data->server), 2 * ZKL_MAX_SERVER_NAME);
	put_member(&at, ",\"holder\":", data->holder_pid);
	put_member(&at, ",\"waiter\":", data->waiter_pid);
	json_put_bytes(&at, "}", 1);
	return (size_t) (at - buf);
}

#define WAIT_FIELD(key, type, field)	ZKL_JSON_FIELD(key, type, ZklWaitData, field)

static const ZklJsonField wait_fields[] = {
	WAIT_FIELD("lock", ZKL_JSON_STRING, lock),
	WAIT_FIELD("server", ZKL_JSON_STRING, server),
	WAIT_FIELD("dialect", ZKL_JSON_COUNT, dialect),
	WAIT_FIELD("every", ZKL_JSON_COUNT, every_ms),
	WAIT_FIELD("holder", ZKL_JSON_INT, holder_pid),
	WAIT_FIELD("waiter", ZKL_JSON_INT, waiter_pid)
};

#define WAIT_FIELDS	(sizeof(wait_fields) / sizeof(wait_fields[0]))

/* The members that a publication must have; the others are for people. */
static const char *const needed[] = {
	ZKL_FORMAT_KEY, "wait", "lock", "dialect", "mode", "every"
};

#define NEEDED	(sizeof(needed) / sizeof(needed[0]))

typedef struct WaitRead
{
	ZklWaitData *data;
	bool		seen[NEEDED];
} WaitRead;

static bool
read_uuid(ZklJsonReader *r, ZklUuid *uuid)
{
	char		text[ZKL_UUID_TEXT + 5];	/* and what makes it none */

	return zkl_json_string(r, text, sizeof(text)) && zkl_uuid_parse(text, uuid);
}

static bool
read_mode(ZklJsonReader *r, ZklLockMode *mode)
{
	*mode = zkl_json_word(r, "\"shared\"") ? ZKL_SHARED : ZKL_EXCLUSIVE;
	return *mode == ZKL_SHARED || zkl_json_word(r, "\"exclusive\"");
}

static bool
read_flag(ZklJsonReader *r, bool *flag)
{
	*flag = zkl_json_word(r, "1");
	return *flag || zkl_json_word(r, "0");
}

static bool
read_wait_member(ZklJsonReader *r, const char *key, void *to)
{
	WaitRead   *wait = to;
	bool		known;
	bool		good = zkl_json_field(r, key, wait_fields, WAIT_FIELDS,
									  wait->data, &known);
	size_t		i;

	for (i = 0; i < NEEDED; i++)
		wait->seen[i] |= strcmp(key, needed[i]) == 0;
	if (known)
		return good;
	if (strcmp(key, ZKL_FORMAT_KEY) == 0)
		return is_format(r);
	if (strcmp(key, "wait") == 0)
		return read_uuid(r, &wait->data->wait);
	if (strcmp(key, "mode") == 0)
		return read_mode(r, &wait->data->mode);
	if (strcmp(key, "behind") == 0)
		return read_flag(r, &wait->data->behind);
	return json_skip_scalar(r);
}

bool
zkl_node_data_parse_wait(const char *text, size_t length, ZklWaitData *data)
{
	WaitRead	wait = {data, {false}};
	size_t		i;

	memset(data, 0, sizeof(*data));
	if (!zkl_json_object(text, length, read_wait_member, &wait))
		return false;
	for (i = 0; i < NEEDED; i++)
	{
		if (!wait.seen[i])
			return false;
	}
	return data->lock[0] == '/' && data->lock[1] != '\0' &&
		data->dialect < ZKL_DIALECTS;
}
