/*
 * line.h
 *	  Writes one line of text for a trace or a dump.
 *
 * A line is a row of words and of key=value pairs with a blank between them.
 * If a line gets too long, it is cut off.  A byte that would end the line, or
 * confuse a terminal, becomes a question mark: foreign clients choose the names
 * of their znodes.
 */
#ifndef ZKL_CORE_LINE_H
#define ZKL_CORE_LINE_H

#include "znode/znode.h"

#define ZKL_MAX_LINE	1000

typedef struct ZklLine
{
	size_t		length;
	char		text[ZKL_MAX_LINE + 1]; /* NUL terminated */
} ZklLine;

extern void zkl_line_begin(ZklLine *line);

/* Adds a word; an empty one adds nothing. */
extern void zkl_line_word(ZklLine *line, const char *word);

/* Adds the word if the condition holds. */
extern void zkl_line_flag(ZklLine *line, const char *word, bool condition);

/* Adds a path as a word, in two parts that are joined without a blank. */
extern void zkl_line_path(ZklLine *line, const char *begin, const char *end);

/* These add key=value. */
extern void zkl_line_text(ZklLine *line, const char *key, const char *value);
extern void zkl_line_number(ZklLine *line, const char *key, int64_t value);
extern void zkl_line_hex(ZklLine *line, const char *key, uint64_t value);
extern void zkl_line_uuid(ZklLine *line, const char *key, const ZklUuid *uuid);

/* Adds session=ID with all digits, as zk_status and zk_queue() show it. */
extern void zkl_line_session(ZklLine *line, int64_t id);

/* The names of modes and dialects */
extern const char *zkl_line_mode(ZklLockMode mode);
extern const char *zkl_line_dialect(ZklDialect dialect);

#endif							/* ZKL_CORE_LINE_H */
