/*
 * trace.h
 *	  Tells, line by line, what happens to a manager and what it does about it.
 *
 * The host calls this, for it has both in its hands: an event, before the manager
 * gets it, and the actions, before they are carried out.  The lines contain no
 * password, and no data of a znode.
 */
#ifndef ZKL_OBSERVE_TRACE_H
#define ZKL_OBSERVE_TRACE_H

#include <inttypes.h>

#include "core/state.h"

/* ---- line: writes one line of text for a trace or a dump ---- */

/*
 * A line is a row of words and of key=value pairs with a blank between them.
 * If a line gets too long, it is cut off.  A byte that would end the line, or
 * confuse a terminal, becomes a question mark: foreign clients choose the names
 * of their znodes.
 */

#define ZKL_MAX_LINE	1000

typedef struct ZklLine
{
	size_t		length;
	char		text[ZKL_MAX_LINE + 1]; /* NUL terminated */
} ZklLine;

extern void zkl_line_begin(ZklLine *line);

/* Adds words, and pairs; an empty text adds nothing. */
extern void zkl_line_put(ZklLine *line, const char *format,...)
			__attribute__((format(printf, 2, 3)));

/* The same, if the condition holds. */
extern void zkl_line_if(ZklLine *line, bool condition, const char *format,...)
			__attribute__((format(printf, 3, 4)));

/*
 * Adds the name of an enumerator, which is that in C, but in lower case and with
 * hyphens; "key=" comes before it, or nothing.  NULL, which an enumerator has that
 * says nothing, adds nothing.
 */
extern void zkl_line_name(ZklLine *line, const char *key, const char *name);

/* Adds what a unique id is. */
extern void zkl_line_uuid(ZklLine *line, const ZklUuid *uuid);

/* Adds how many there are, if there are any. */
extern void zkl_line_list(ZklLine *line, const char *key, const ZklList *list);

/* Names */
extern const char *const zkl_line_modes[];
extern const char *const zkl_line_dialects[];

/* ---- trace ---- */

/* Is handed one line of text, NUL terminated, without an end of line. */
typedef void (*ZklWriteLine) (void *context, const char *line);

typedef struct ZklTrace
{
	const ZklManager *m;
	ZklWriteLine write;			/* NULL: the trace is off */
	void	   *context;
	size_t		nactions;		/* that are told of those that there are */
	int64_t		lease;			/* likewise, its end */
	int64_t		flush;			/* of a flush that is to be told if it does
								 * something: its time; 0: none */
} ZklTrace;

/* From now on; of a manager to which nothing has happened, that it begins. */
extern void zkl_trace_begin(ZklTrace *t, const ZklManager *m,
							ZklWriteLine write, void *context);

/* What is about to happen to the manager, and when by its clock */
extern void zkl_trace_event(ZklTrace *t, int64_t now, const ZklEvent *event);
extern void zkl_trace_flush(ZklTrace *t, int64_t now);

/* What the host answers amid an event: see manager.h */
extern void zkl_trace_offer(ZklTrace *t, uint32_t request);
extern void zkl_trace_recalled(ZklTrace *t, uint32_t request,
							   const ZklRecalled *found);

/* The actions since the last call */
extern void zkl_trace_actions(ZklTrace *t);

/* The same, before they are cleared */
extern void zkl_trace_clear(ZklTrace *t);

/* What an operation is for; NULL: one that is not under way any more */
extern const char *zkl_trace_operation(const ZklManager *m, const ZklOp *op);

#endif							/* ZKL_OBSERVE_TRACE_H */
