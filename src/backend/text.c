/*
 * text.c
 *	  Text between the database's encoding and the UTF-8 of names and znodes.
 *
 * Owns nothing.  Run by backends inside a transaction, unless a function says
 * otherwise (conversions are found in the catalog).  Takes no locks.
 *
 * The databases of a server may differ in their encodings, the worker has none,
 * and ZooKeeper's is UTF-8.  So backends convert on entry and on display.
 *
 * Must not know what the strings are for, except that names have rules.
 */
#include "postgres.h"

#include "access/xact.h"
#include "backend/text.h"
#include "catalog/namespace.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "znode/znode.h"

/* No encoding takes more than four times the bytes of UTF-8. */
#define MAX_NAME_ANY_ENCODING	(4 * ZKL_MAX_NAME)

/* How much of a bad name an error message repeats */
#define MAX_QUOTED_NAME			100

static bool
database_is_utf8(void)
{
	/* SQL_ASCII means bytes of unknown meaning: taken for UTF-8 */
	return GetDatabaseEncoding() == PG_UTF8 ||
		GetDatabaseEncoding() == PG_SQL_ASCII;
}

/*
 * Converts between the database's encoding and UTF-8, as far as it goes.
 * Returns a palloc'd string; *converted tells how many bytes went into it.
 */
static char *
convert(const char *from, int length, int from_encoding, int to_encoding,
		int *converted)
{
	Size		size = (Size) length * MAX_CONVERSION_GROWTH + 1;
	char	   *to = palloc0(size);
	Oid			proc = FindDefaultConversionProc(from_encoding, to_encoding);

	*converted = 0;
	if (OidIsValid(proc))
		*converted = pg_do_encoding_conversion_buf(proc,
												   from_encoding, to_encoding,
												   (unsigned char *) unconstify(char *, from),
												   length,
												   (unsigned char *) to,
												   (int) size, true);
	return to;
}

static void
bad_name(const char *name, int length, const char *rule)
{
	int			shown = pg_mbcliplen(name, length, MAX_QUOTED_NAME);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid lock name: \"%.*s%s\"",
					shown, name, shown < length ? "..." : ""),
			 errdetail("%s", rule),
			 errhint("A lock name is a path, such as \"/batch/nightly\".")));
}

char *
zkl_text_name_to_utf8(const char *name, int length)
{
	char	   *utf8 = pnstrdup(name, length);
	const char *rule;

	if (!database_is_utf8() && length <= MAX_NAME_ANY_ENCODING)
	{
		int			converted;

		utf8 = convert(name, length, GetDatabaseEncoding(), PG_UTF8,
					   &converted);
		if (converted < length)
			bad_name(name, length,
					 "A lock name must have an equivalent in UTF-8.");
	}
	rule = zkl_name_check(utf8, strlen(utf8));
	if (rule != NULL)
		bad_name(name, length, rule);
	return utf8;
}

void
zkl_text_copy_to_utf8(char *to, size_t size, const char *from)
{
	int			length = (int) strlen(from);
	const char *utf8 = from;
	size_t		used = 0;

	if (!database_is_utf8())
	{
		int			converted;

		utf8 = convert(from, length, GetDatabaseEncoding(), PG_UTF8,
					   &converted);
		length = (int) strlen(utf8);
	}
	while (length > 0)
	{
		int			bytes = pg_encoding_verifymbchar(PG_UTF8, utf8, length);
		bool		good = bytes > 0;

		if (!good)
			bytes = 1;
		if (used + bytes >= size)
			break;
		memcpy(to + used, good ? utf8 : "?", bytes);
		used += bytes;
		utf8 += bytes;
		length -= bytes;
	}
	to[used] = '\0';
}

static void
append_escaped(StringInfo buf, const char *text, int length)
{
	int			i;

	for (i = 0; i < length; i++)
		appendStringInfo(buf, "\\x%02x", (unsigned char) text[i]);
}

/* Appends one character of UTF-8 that takes more than a byte. */
static void
append_character(StringInfo buf, const char *text, int length)
{
	char	   *local;
	int			converted;

	if (database_is_utf8())
	{
		appendBinaryStringInfo(buf, text, length);
		return;
	}
	local = convert(text, length, PG_UTF8, GetDatabaseEncoding(), &converted);
	if (converted == length)
		appendStringInfoString(buf, local);
	else
		append_escaped(buf, text, length);
	pfree(local);
}

char *
zkl_text_to_display(const char *text, int length)
{
	StringInfoData buf;

	initStringInfo(&buf);
	while (length > 0)
	{
		unsigned char first = (unsigned char) *text;
		int			bytes = 1;

		if (first >= 0x20 && first < 0x7f)
			appendStringInfoChar(&buf, first);
		else if (first < 0x80 ||
				 (bytes = pg_encoding_verifymbchar(PG_UTF8, text, length)) < 0)
			append_escaped(&buf, text, bytes = 1);
		else
			append_character(&buf, text, bytes);
		text += bytes;
		length -= bytes;
	}
	return buf.data;
}

void
zkl_text_to_ascii(const char *name, size_t length, char *buf, size_t size)
{
	static const char hex[] = "0123456789ABCDEF";
	const char *end = name + length;
	char	   *at = buf;

	for (; name < end && size - (size_t) (at - buf) > 4; name++)
	{
		unsigned char c = (unsigned char) *name;

		if (c < 0x80)
			*at++ = *name;
		else
		{
			*at++ = '\\';
			*at++ = 'x';
			*at++ = hex[c >> 4];
			*at++ = hex[c & 15];
		}
	}
	*at = '\0';
}

static bool
is_ascii(const char *text)
{
	while ((unsigned char) *text - 1U < 0x7f)
		text++;
	return *text == '\0';
}

/* Whether PostgreSQL can send a text to the client for sure */
static bool
client_can_show(const char *text)
{
	int			client = pg_get_client_encoding();
	int			length = (int) strlen(text);
	int			converted;

	if (client == GetDatabaseEncoding() || client == PG_SQL_ASCII ||
		is_ascii(text))
		return true;
	if (GetDatabaseEncoding() == PG_SQL_ASCII)
		return pg_verify_mbstr(client, text, length, true);
	if (!IsTransactionState())
		return false;
	pfree(convert(text, length, GetDatabaseEncoding(), client, &converted));
	return converted == length;
}

const char *
zkl_text_for_client(const char *text)
{
	Size		length = strlen(text);
	Size		size = 4 * (MAX_CONVERSION_GROWTH * length + 1);
	char	   *utf8;
	char	   *ascii;

	if (client_can_show(text))
		return text;
	utf8 = palloc(size);
	ascii = palloc(size);
	if (IsTransactionState())
		zkl_text_copy_to_utf8(utf8, size, text);
	else
		strlcpy(utf8, text, size);
	zkl_text_to_ascii(utf8, strlen(utf8), ascii, size);
	pfree(utf8);
	return ascii;
}
