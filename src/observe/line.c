/*
 * line.c
 *	  Writes one line of text for a trace or a dump.
 *
 * Owns nothing, and allocates no memory.  Runs in the worker (and in tests),
 * takes no locks.  It must not know what the lines are about.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "observe/line.h"

const char *const zkl_line_modes[] = {
	[ZKL_EXCLUSIVE] = "EXCLUSIVE",
	[ZKL_SHARED] = "SHARED",
};

const char *const zkl_line_dialects[] = {
	[ZKL_DIALECT_CURATOR_RW] = "curator_rw",
	[ZKL_DIALECT_CURATOR_MUTEX] = "curator_mutex",
	[ZKL_DIALECT_KAZOO] = "kazoo",
	[ZKL_DIALECT_LATCH] = "latch",
	[ZKL_DIALECT_PERMIT] = "permit",
	[ZKL_DIALECT_MEMBER] = "member",
};

void
zkl_line_begin(ZklLine *line)
{
	line->length = 0;
	line->text[0] = '\0';
}

static void append(ZklLine *line, const char *format, va_list args)
			__attribute__((format(printf, 2, 0)));

static void
append(ZklLine *line, const char *format, va_list args)
{
	size_t		from = line->length + (line->length > 0);
	int			n = from >= ZKL_MAX_LINE ? 0 :
	vsnprintf(line->text + from, sizeof(line->text) - from, format, args);

	if (n <= 0)
		return;
	if (from > 0)
		line->text[line->length++] = ' ';
	for (; line->length < ZKL_MAX_LINE && line->text[line->length] != '\0';
		 line->length++)
	{
		char	   *c = &line->text[line->length];

		if ((unsigned char) *c < ' ' || *c == 0x7f)
			*c = '?';
	}
}

void
zkl_line_put(ZklLine *line, const char *format,...)
{
	va_list		args;

	va_start(args, format);
	append(line, format, args);
	va_end(args);
}

void
zkl_line_if(ZklLine *line, bool condition, const char *format,...)
{
	va_list		args;

	va_start(args, format);
	if (condition)
		append(line, format, args);
	va_end(args);
}

void
zkl_line_name(ZklLine *line, const char *key, const char *name)
{
	size_t		from;

	if (name == NULL)
		return;
	zkl_line_put(line, "%s%s", key, name);
	for (from = line->length - strlen(name); from < line->length; from++)
	{
		char	   *c = &line->text[from];

		*c = *c == '_' ? '-' : (char) (*c | 0x20);
	}
}

void
zkl_line_uuid(ZklLine *line, const ZklUuid *uuid)
{
	char		text[ZKL_UUID_TEXT + 1];

	zkl_uuid_format(uuid, text);
	zkl_line_put(line, "uuid=%s", text);
}

void
zkl_line_list(ZklLine *line, const char *key, const ZklList *list)
{
	const ZklLink *link;
	int			n = 0;

	for (link = list->head.next; link != &list->head; link = link->next)
		n++;
	zkl_line_if(line, n > 0, "%s=%d", key, n);
}
