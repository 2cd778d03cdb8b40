/*
 * nodedata.c
 *	  What zklock writes into a znode: flat JSON that tells who asks.
 *
 * Owns the format of the data: its writer, and a reader for what any client
 * may have put there.  Pure functions of their arguments, called by the worker
 * and by backends that show a queue; they keep no state and take no locks.
 * Must not know what the members mean to anybody, nor who stores the data.
 *
 * The reader sees bytes of unknown origin: it reads nothing outside of
 * [text, text + length), and no number in the text makes it do so.
 */
#include <string.h>

#include "core/utf8.h"
#include "core/znode.h"

#define FORMAT_KEY		"zklock"
#define FORMAT_VERSION	1
#define MAX_KEY			16		/* longer keys are none that we know */

/*
 * Bytes that a string may take once escaped.  Four such, a lifetime (15
 * characters of at most six bytes), the numbers and the keys stay below
 * ZKL_MAX_NODE_DATA; names of 63 bytes fit whole unless half of them are
 * control characters.
 */
#define MAX_ESCAPED		192

static void
put_bytes(char **at, const char *bytes, size_t length)
{
	memcpy(*at, bytes, length);
	*at += length;
}

static void
put_number(char **at, int64_t number)
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

/* Bytes that are no UTF-8 (a name that was cut, say) become "?" */
static void
put_string(char **at, const char *key, const char *value, size_t size)
{
	const char *end = memchr(value, '\0', size);
	size_t		length = end ? (size_t) (end - value) : size;
	size_t		written = 0;
	size_t		i = 0;

	put_bytes(at, key, strlen(key));
	*(*at)++ = '"';
	while (i < length)
	{
		char		escaped[6];
		uint32_t	code;
		size_t		bytes = zkl_utf8_decode(value + i, length - i, &code);
		size_t		n;

		if (bytes == 0)
			n = escape_character("?", bytes = 1, escaped);
		else
			n = escape_character(value + i, bytes, escaped);
		if (written + n > MAX_ESCAPED)
			break;
		put_bytes(at, escaped, n);
		written += n;
		i += bytes;
	}
	*(*at)++ = '"';
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
	put_bytes(&at, "{\"" FORMAT_KEY "\":", strlen("{\"" FORMAT_KEY "\":"));
	put_number(&at, FORMAT_VERSION);
	put_string(&at, ",\"server\":", data->server, sizeof(data->server));
	put_string(&at, ",\"database\":", data->database, sizeof(data->database));
	put_string(&at, ",\"user\":", data->usename, sizeof(data->usename));
	put_string(&at, ",\"application\":", data->application_name,
			   sizeof(data->application_name));
	put_bytes(&at, ",\"pid\":", strlen(",\"pid\":"));
	put_number(&at, data->pid);
	put_string(&at, ",\"lifetime\":", data->lifetime, sizeof(data->lifetime));
	put_bytes(&at, ",\"since\":", strlen(",\"since\":"));
	put_number(&at, data->since);
	*at++ = '}';
	*at = '\0';
	return (size_t) (at - buf);
}

/* What is still to be read */
typedef struct Reader
{
	const char *at;
	const char *end;
} Reader;

static void
skip_space(Reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' ||
							  *r->at == '\n' || *r->at == '\r'))
		r->at++;
}

/* Takes the character c, with white space around it; false: not there */
static bool
take(Reader *r, char c)
{
	skip_space(r);
	if (r->at >= r->end || *r->at != c)
		return false;
	r->at++;
	skip_space(r);
	return true;
}

static bool
take_word(Reader *r, const char *word)
{
	size_t		length = strlen(word);

	if ((size_t) (r->end - r->at) < length ||
		memcmp(r->at, word, length) != 0)
		return false;
	r->at += length;
	return true;
}

static bool
read_hex4(Reader *r, uint32_t *code)
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
read_escaped_code(Reader *r, uint32_t *code)
{
	uint32_t	low;

	if (!read_hex4(r, code) || *code == 0)
		return false;
	if (*code < 0xD800 || *code > 0xDFFF)
		return true;
	if (*code > 0xDBFF || !take_word(r, "\\u") || !read_hex4(r, &low) ||
		low < 0xDC00 || low > 0xDFFF)
		return false;
	*code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
	return true;
}

/* One character of a string, escaped or not */
static bool
read_code(Reader *r, uint32_t *code)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	const char *letter;
	size_t		bytes;

	if (!take_word(r, "\\"))
	{
		bytes = zkl_utf8_decode(r->at, (size_t) (r->end - r->at), code);
		r->at += bytes;
		return bytes > 0 && *code >= 0x20;
	}
	if (r->at >= r->end)
		return false;
	if (take_word(r, "u"))
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

/*
 * Reads a string into a buffer of this size, cut at a character if it is
 * longer.  The position is at its opening quote.
 */
static bool
read_string(Reader *r, char *buf, size_t size)
{
	size_t		length = 0;
	bool		cut = false;

	if (!take_word(r, "\""))
		return false;
	while (!take_word(r, "\""))
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
skip_digits(Reader *r)
{
	const char *start = r->at;

	while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
		r->at++;
	return (size_t) (r->at - start);
}

static bool
skip_number(Reader *r)
{
	(void) take_word(r, "-");
	if (!take_word(r, "0") && skip_digits(r) == 0)
		return false;
	if (take_word(r, ".") && skip_digits(r) == 0)
		return false;
	if (take_word(r, "e") || take_word(r, "E"))
	{
		if (!take_word(r, "-"))
			(void) take_word(r, "+");
		return skip_digits(r) > 0;
	}
	return true;
}

/* An integer from min to max; a fraction or an exponent makes it none */
static bool
read_integer(Reader *r, int64_t min, int64_t max, int64_t *number)
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

static bool
skip_scalar(Reader *r)
{
	char		ignored[1];

	if (r->at >= r->end)
		return false;
	if (*r->at == '"')
		return read_string(r, ignored, sizeof(ignored));
	return take_word(r, "true") || take_word(r, "false") ||
		take_word(r, "null") || skip_number(r);
}

/* A value of any kind; of arrays and objects only the nesting is checked */
static bool
skip_value(Reader *r)
{
	size_t		depth = 0;

	do
	{
		skip_space(r);
		if (take_word(r, "{") || take_word(r, "["))
			depth++;
		else if (depth > 0 && (take_word(r, "}") || take_word(r, "]")))
			depth--;
		else if (!(depth > 0 && (take_word(r, ",") || take_word(r, ":"))) &&
				 !skip_scalar(r))
			return false;
	} while (depth > 0);
	return true;
}

static bool
read_member(Reader *r, const char *key, ZklNodeData *data, bool *ours)
{
	int64_t		number;

	if (strcmp(key, FORMAT_KEY) == 0)
		return *ours = read_integer(r, FORMAT_VERSION, FORMAT_VERSION, &number);
	if (strcmp(key, "server") == 0)
		return read_string(r, data->server, sizeof(data->server));
	if (strcmp(key, "database") == 0)
		return read_string(r, data->database, sizeof(data->database));
	if (strcmp(key, "user") == 0)
		return read_string(r, data->usename, sizeof(data->usename));
	if (strcmp(key, "application") == 0)
		return read_string(r, data->application_name,
						   sizeof(data->application_name));
	if (strcmp(key, "lifetime") == 0)
		return read_string(r, data->lifetime, sizeof(data->lifetime));
	if (strcmp(key, "since") == 0)
		return read_integer(r, INT64_MIN, INT64_MAX, &data->since);
	if (strcmp(key, "pid") == 0)
	{
		if (!read_integer(r, INT32_MIN, INT32_MAX, &number))
			return false;
		data->pid = (int32_t) number;
		return true;
	}
	if (strcmp(key, "timeout") == 0)
	{
		if (!read_integer(r, 0, INT32_MAX, &number))
			return false;
		data->timeout_ms = (int32_t) number;
		return true;
	}
	return skip_scalar(r);
}

/* Reads a key and its colon, up to the value */
static bool
read_key(Reader *r, char *key)
{
	return read_string(r, key, MAX_KEY) && take(r, ':');
}

static bool
read_object(Reader *r, ZklNodeData *data)
{
	bool		ours = false;
	char		key[MAX_KEY];

	if (!take(r, '{'))
		return false;
	do
	{
		if (!read_key(r, key) || !read_member(r, key, data, &ours))
			return false;
	} while (take(r, ','));
	return take(r, '}') && r->at == r->end && ours;
}

bool
zkl_node_data_parse(const char *text, size_t length, ZklNodeData *data)
{
	Reader		r = {text, text + length};

	memset(data, 0, sizeof(*data));
	if (read_object(&r, data))
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
	Reader		r = {text, text + length};
	char		key[MAX_KEY];

	if (!take(&r, '{'))
		return false;
	do
	{
		if (!read_key(&r, key))
			return false;
		if (strcmp(key, mark) == 0 && take_word(&r, "true"))
			return true;
		if (!skip_value(&r))
			return false;
	} while (take(&r, ','));
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
size_t
zkl_node_data_break(const char *text, size_t length, char *buf, size_t size)
{
	static const char mark[] = "{\"breaking\":true";
	size_t		n = sizeof(mark) - 1;

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

size_t
zkl_node_data_timeout(char *text, size_t length, uint32_t timeout_ms)
{
	static const char key[] = ",\"timeout\":";
	char	   *at = text + length - 1;

	if (length < 3 || *at != '}')
		return length;
	put_bytes(&at, key, sizeof(key) - 1);
	put_number(&at, timeout_ms);
	*at++ = '}';
	return (size_t) (at - text);
}
