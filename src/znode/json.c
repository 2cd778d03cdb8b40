/*
 * json.c
 *	  JSON: reading what is of unknown origin, and writing; and characters of UTF-8.
 *
 * Owns nothing: functions of their arguments, called by the worker and by
 * backends that show a queue; they keep no state and take no locks.  Must not
 * know what any member is for.
 *
 * They read nothing outside of the reader's bounds, and no number in the text
 * makes them do so.
 */
#include <string.h>

#include "znode/json.h"

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

bool
zkl_json_skip_scalar(ZklJsonReader *r)
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
				 !zkl_json_skip_scalar(r))
			return false;
	} while (depth > 0);
	return true;
}

#define MAX_KEY		20			/* a known one, and what makes it another */

bool
zkl_json_object(const char *text, size_t length, ZklJsonMember member, void *to)
{
	ZklJsonReader r = {text, text + length};
	char		key[MAX_KEY];

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

void
zkl_json_put_bytes(char **at, const char *bytes, size_t length)
{
	memcpy(*at, bytes, length);
	*at += length;
}

void
zkl_json_put_number(char **at, int64_t number)
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
void
zkl_json_put_string(char **at, const char *key, const char *value, size_t size,
					size_t most)
{
	const char *end = memchr(value, '\0', size);
	size_t		length = end ? (size_t) (end - value) : size;
	size_t		written = 0;
	size_t		i = 0;

	zkl_json_put_bytes(at, key, strlen(key));
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
		zkl_json_put_bytes(at, escaped, n);
		written += n;
		i += bytes;
	}
	*(*at)++ = '"';
}
