/*
 * line.h
 *	  A line of a trace: words, and key=value pairs, with a blank between them.
 */
#ifndef SPEC_LINE_H
#define SPEC_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOST_WORDS	32
#define MOST_TEXT	1100
#define UUID_TEXT	36

typedef struct Word
{
	const char *text;
	size_t		length;
} Word;

typedef struct Line
{
	const char *text;
	int			n;
	Word		words[MOST_WORDS];
} Line;

extern void line_parse(Line *line, const char *text);

/* Whether this is the word of that number, or one of the words */
extern bool line_is(const Line *line, int word, const char *text);
extern bool line_has(const Line *line, const char *word);

/* The value of a key, decimal or 0x and hexadecimal; "missing" if it is not there */
extern int64_t line_number(const Line *line, const char *key, int64_t missing);

/* The n-th value of that key, as text; false: there is none. */
extern bool line_value(const Line *line, const char *key, int n, char *buf, size_t size);

/* The path in the line, or all that comes behind word n; false: there is none. */
extern bool line_path(const Line *line, char *buf, size_t size);
extern void line_rest(const Line *line, int n, char *buf, size_t size);

/* ---- names of znodes ---- */

typedef enum Dialect
{
	CURATOR_RW,
	CURATOR_MUTEX,
	KAZOO,
	LATCH,
	PERMIT,
	MEMBER,
	DIALECTS
} Dialect;

typedef struct Name
{
	int64_t		seq;
	bool		exclusive;
	bool		zklock;			/* the id is one that zklock makes */
	char		uuid[UUID_TEXT + 1];	/* empty: it has none */
} Name;

/* DIALECTS: there is none of that name. */
extern Dialect name_dialect(const Line *line);

/* False: the child of that name is no contender. */
extern bool name_parse(Dialect dialect, const char *child, Name *name);

/* The id in a name whose number is not known yet; false: it has none. */
extern bool name_uuid(Dialect dialect, const char *child, char *uuid);

/* Whether a name with or without number is a writer's */
extern bool name_is_exclusive(Dialect dialect, const char *child);

/* The session that an id of zklock's names */
extern int64_t name_session(const char *uuid);

#endif							/* SPEC_LINE_H */
