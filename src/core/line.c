/*
 * line.c
 *	  Writes one line of text for a trace or a dump.
 *
 * Owns nothing, and allocates no memory.  Runs in the worker (and in tests),
 * takes no locks.  It must not know what the lines are about.
 */
#include <string.h>

#include "core/line.h"

static void
put_character(ZklLine *line, char c)
{
	if (line->length == ZKL_MAX_LINE)
		return;
	if ((unsigned char) c < ' ' || c == 0x7f)
		c = '?';
	line->text[line->length++] = c;
	line->text[line->length] = '\0';
}

static void
append_text(ZklLine *line, const char *text)
{
	while (*text != '\0')
		put_character(line, *text++);
}

static void
put_digits(ZklLine *line, uint64_t value, unsigned base)
{
	char		digits[20];
	int			n = 0;

	do
	{
		digits[n++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value > 0);
	while (n > 0)
		put_character(line, digits[--n]);
}

static void
begin_pair(ZklLine *line, const char *key)
{
	zkl_line_word(line, key);
	put_character(line, '=');
}

void
zkl_line_begin(ZklLine *line)
{
	line->length = 0;
	line->text[0] = '\0';
}

void
zkl_line_word(ZklLine *line, const char *word)
{
	zkl_line_path(line, word, "");
}

void
zkl_line_flag(ZklLine *line, const char *word, bool condition)
{
	if (condition)
		zkl_line_word(line, word);
}

void
zkl_line_path(ZklLine *line, const char *begin, const char *end)
{
	if (line->length > 0 && (begin[0] != '\0' || end[0] != '\0'))
		put_character(line, ' ');
	append_text(line, begin);
	append_text(line, end);
}

void
zkl_line_text(ZklLine *line, const char *key, const char *value)
{
	begin_pair(line, key);
	append_text(line, value);
}

void
zkl_line_number(ZklLine *line, const char *key, int64_t value)
{
	begin_pair(line, key);
	if (value < 0)
		put_character(line, '-');
	put_digits(line, value < 0 ? 0 - (uint64_t) value : (uint64_t) value, 10);
}

void
zkl_line_hex(ZklLine *line, const char *key, uint64_t value)
{
	begin_pair(line, key);
	append_text(line, "0x");
	put_digits(line, value, 16);
}

void
zkl_line_session(ZklLine *line, int64_t id)
{
	int			shift;

	begin_pair(line, "session");
	append_text(line, "0x");
	for (shift = 60; shift >= 0; shift -= 4)
		put_digits(line, (uint64_t) id >> shift & 0xf, 16);
}

void
zkl_line_uuid(ZklLine *line, const char *key, const ZklUuid *uuid)
{
	char		text[ZKL_UUID_TEXT + 1];

	zkl_uuid_format(uuid, text);
	zkl_line_text(line, key, text);
}

const char *
zkl_line_mode(ZklLockMode mode)
{
	return mode == ZKL_SHARED ? "shared" : "exclusive";
}

const char *
zkl_line_dialect(ZklDialect dialect)
{
	static const char *const names[ZKL_DIALECTS] = {
		[ZKL_DIALECT_CURATOR_RW] = "curator_rw",
		[ZKL_DIALECT_CURATOR_MUTEX] = "curator_mutex",
		[ZKL_DIALECT_KAZOO] = "kazoo",
		[ZKL_DIALECT_LATCH] = "latch",
		[ZKL_DIALECT_PERMIT] = "permit",
		[ZKL_DIALECT_MEMBER] = "member",
	};

	return names[dialect];
}
