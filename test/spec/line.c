/*
 * line.c
 *	  Takes a line of a trace apart, and the names of znodes in it.
 *
 * Reads text, and knows no rule.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "line.h"

void
line_parse(Line *line, const char *text)
{
	const char *p = text;

	line->text = text;
	line->n = 0;
	while (*p != '\0' && line->n < MOST_WORDS)
	{
		Word	   *w = &line->words[line->n];

		while (*p == ' ')
			p++;
		if (*p == '\0')
			break;
		w->text = p;
		while (*p != '\0' && *p != ' ')
			p++;
		w->length = (size_t) (p - w->text);
		line->n++;
	}
}

static bool
is_word(const Word *w, const char *text)
{
	return strlen(text) == w->length && memcmp(w->text, text, w->length) == 0;
}

bool
line_is(const Line *line, int word, const char *text)
{
	return word < line->n && is_word(&line->words[word], text);
}

bool
line_has(const Line *line, const char *word)
{
	int			i;

	for (i = 0; i < line->n; i++)
		if (is_word(&line->words[i], word))
			return true;
	return false;
}

/* The n-th value of a key; NULL: there is none. */
static const char *
find(const Line *line, const char *key, int n, size_t *length)
{
	size_t		k = strlen(key);
	int			i;

	for (i = 0; i < line->n; i++)
	{
		const Word *w = &line->words[i];

		if (w->length <= k || w->text[k] != '=' || memcmp(w->text, key, k) != 0 || n-- > 0)
			continue;
		*length = w->length - k - 1;
		return w->text + k + 1;
	}
	return NULL;
}

int64_t
line_number(const Line *line, const char *key, int64_t missing)
{
	size_t		length;
	const char *value = find(line, key, 0, &length);

	if (value == NULL)
		return missing;
	return value[0] == '0' && value[1] == 'x' ? (int64_t) strtoull(value, NULL, 16) :
		strtoll(value, NULL, 10);
}

bool
line_value(const Line *line, const char *key, int n, char *buf, size_t size)
{
	size_t		length;
	const char *value = find(line, key, n, &length);

	if (value == NULL || length >= size)
		return false;
	memcpy(buf, value, length);
	buf[length] = '\0';
	return true;
}

static bool
is_pair(const Word *w)
{
	size_t		i;

	for (i = 0; i < w->length && (islower((unsigned char) w->text[i]) || w->text[i] == '_'); i++)
		;
	return i > 0 && i < w->length && w->text[i] == '=';
}

/* Names of locks may have blanks: what comes behind a path ends it. */
static bool
ends_path(const Word *w)
{
	static const char *const words[] = {
		"exclusive", "shared", "watch", "solitary", "no-longer", "epilogue", "held", "cached", "ended"
	};
	size_t		i;

	if (is_pair(w))
		return true;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (is_word(w, words[i]))
			return true;
	return false;
}

static bool
copy(const char *from, const char *end, char *buf, size_t size)
{
	size_t		length = (size_t) (end - from);

	if (length >= size)
		length = size - 1;
	memcpy(buf, from, length);
	buf[length] = '\0';
	return true;
}

bool
line_path(const Line *line, char *buf, size_t size)
{
	int			i = 0,
				last;

	while (i < line->n && line->words[i].text[0] != '/')
		i++;
	if (i == line->n)
		return false;
	for (last = i; last + 1 < line->n && !ends_path(&line->words[last + 1]); last++)
		;
	return copy(line->words[i].text, line->words[last].text + line->words[last].length,
				buf, size);
}

void
line_rest(const Line *line, int n, char *buf, size_t size)
{
	const char *from = n < line->n ? line->words[n].text : "";

	copy(from, from + strlen(from), buf, size);
}

/* ---- names of znodes ---- */

static const struct
{
	const char *name;
	const char *exclusive;
	const char *shared;
	bool		dashes;			/* in the id, behind _c_ */
}			dialects[DIALECTS] = {
	[CURATOR_RW] = {"curator_rw", "__WRIT__", "__READ__", true},
	[CURATOR_MUTEX] = {"curator_mutex", "lock-", NULL, true},
	[KAZOO] = {"kazoo", "__lock__", "__rlock__", false},
	[LATCH] = {"latch", "latch-", NULL, true},
	[PERMIT] = {"permit", "lease-", NULL, true},
	[MEMBER] = {"member", NULL, "member-", true}
};

Dialect
name_dialect(const Line *line)
{
	int			d = 0;

	while (d < DIALECTS && !line_has(line, dialects[d].name))
		d++;
	return (Dialect) d;
}

static bool
ends_with(const char *text, size_t length, const char *end)
{
	size_t		n = strlen(end);

	return n <= length && memcmp(text + length - n, end, n) == 0;
}

/*
 * The number behind this mark, as ZooKeeper's servers write it: %010d of a signed counter
 * that goes on below zero past its end.  It grows as an unsigned one.
 */
static bool
number_behind(const char *child, const char *mark, int64_t *seq)
{
	size_t		length = strlen(child);
	size_t		start = length;
	size_t		digits;
	bool		sign;
	int64_t		value;

	while (start > 0 && isdigit((unsigned char) child[start - 1]))
		start--;
	digits = length - start;
	if (mark == NULL || digits < 9 || digits > 10)
		return false;
	sign = digits == 9 || !ends_with(child, start, mark);
	if (sign && (start == 0 || child[--start] != '-' || !ends_with(child, start, mark)))
		return false;
	value = strtoll(child + start, NULL, 10);
	if (value < INT32_MIN || value > INT32_MAX)
		return false;
	*seq = (uint32_t) value;
	return true;
}

bool
name_uuid(Dialect dialect, const char *child, char *uuid)
{
	bool		dashes = dialects[dialect].dashes;
	size_t		i;

	if (dashes && strncmp(child, "_c_", 3) != 0)
		return false;
	if (dashes)
		child += 3;
	for (i = 0; i < UUID_TEXT; i++)
	{
		bool		dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash)
			uuid[i] = '-';
		if (dash && !dashes)
			continue;
		if (dash ? *child != '-' :
			!isdigit((unsigned char) *child) && (*child < 'a' || *child > 'f'))
			return false;
		uuid[i] = *child++;
	}
	uuid[UUID_TEXT] = '\0';
	return *child == (dashes ? '-' : '_');
}

bool
name_is_exclusive(Dialect dialect, const char *child)
{
	return dialects[dialect].exclusive != NULL &&
		strstr(child, dialects[dialect].exclusive) != NULL;
}

bool
name_parse(Dialect dialect, const char *child, Name *name)
{
	name->exclusive = number_behind(child, dialects[dialect].exclusive, &name->seq);
	if (!name->exclusive)
	{
		if (!number_behind(child, dialects[dialect].shared, &name->seq))
			return false;
		name->exclusive = dialect == CURATOR_RW && name_is_exclusive(dialect, child);
	}
	name->zklock = false;
	if (!name_uuid(dialect, child, name->uuid))
		name->uuid[0] = '\0';
	else
		name->zklock = name->uuid[14] == '8' && strchr("89ab", name->uuid[19]) != NULL;
	return true;
}

static uint64_t
hex(const char *text, int from, int n)
{
	uint64_t	value = 0;

	for (; n > 0; from++)
	{
		if (text[from] == '-')
			continue;
		value = value << 4 | (uint64_t) (isdigit((unsigned char) text[from]) ?
										 text[from] - '0' : text[from] - 'a' + 10);
		n--;
	}
	return value;
}

/* 48 bits, 12 behind the version, 4 behind the variant */
int64_t
name_session(const char *uuid)
{
	return (int64_t) (hex(uuid, 0, 12) << 16 | hex(uuid, 15, 3) << 4 |
					  (hex(uuid, 19, 2) >> 2 & 0xF));
}
