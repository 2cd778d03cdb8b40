/*
 * base.h
 *	  What every part of the simulation stands on: time, chance, memory, trace.
 *
 * One simulation runs at a time, in one thread, and all of it follows from its
 * seed.  Time is true time, in µs; what a server or the ensemble's leader
 * reads off its own clock is derived from it.
 */
#ifndef SIM_BASE_H
#define SIM_BASE_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../model/memory.h"
#include "../random.h"
#include "input.h"

typedef int64_t Time;

#define NEVER	INT64_MAX
#define MS		INT64_C(1000)
#define SECOND	INT64_C(1000000)

#ifndef SIM_CHECKED
#define SIM_CHECKED	0			/* 1: the simulation looks after itself */
#endif

#define TRACE_KEPT		400		/* lines shown when a seed fails */

/*
 * What a seed is about.  Each draws its sizes and faults from all there are;
 * some are frequent in it.
 */
typedef enum Profile
{
	PROFILE_WIDE,				/* a few kinds of faults, whichever */
	PROFILE_SLEW,				/* as "quorum", and the rates of clocks change */
	PROFILE_STORM,				/* operators break, workers restart, holders
								 * downgrade, keep and cancel, all at once */
	PROFILE_QUORUM,				/* ZooKeeper's servers and connections */
	PROFILE_HOT					/* few sessions of a server that come back to
								 * the same lock again and again */
} Profile;

#define PROFILES	5

#define SPECIFICATION	"the specification" /* the rule that a trace breaks */

/* What becomes of the trace */
typedef enum TraceUse
{
	TRACE_HASH,					/* only its hash is kept: the fastest */
	TRACE_KEEP,					/* the last lines can be printed */
	TRACE_PRINT					/* all lines are printed as they come */
} TraceUse;

typedef struct Base
{
	uint64_t	seed;
	Profile		profile;
	uint64_t	random;
	uint32_t	draws;			/* so far */
	const uint8_t *changes;		/* of these; NULL: none */
	Time		now;
	bool		calm;			/* the chaos is over */
	Time		calm_since;		/* far away: not yet */
	Time		longest;		/* delay by chance */
	bool		natural;		/* nothing happens by chance: ../worlds/ */

	/* trace */
	TraceUse	trace;
	bool		validate;		/* what cores tell must obey the specification */
	uint64_t	hash;			/* of the simulation's own lines */
	uint64_t	lines;

	/* what was broken, if something was */
	const char *rule;
	char		what[400];
	jmp_buf		stop;
} Base;

extern Base base;

/* ---- chance ---- */

static inline uint64_t
random64(void)
{
	uint64_t	value = splitmix64(&base.random);
	uint64_t	change;

	if (base.draws++ >= INPUT_DRAWS || base.changes == NULL)
		return value;
	change = base.changes[base.draws - 1];
	return change == 0 ? value : splitmix64(&change);
}

/* 0 .. n - 1 */
static inline int64_t
below(int64_t n)
{
	return base.natural ? 0 : (int64_t) (random64() % (uint64_t) n);
}

/* True once in n */
static inline bool
once_in(int64_t n)
{
	return base.natural ? n == 1 : below(n) == 0;
}

/* Around "usual", seldom ten or a hundred times as long */
extern Time some_delay(Time usual);

extern void base_begin(const Input *input);

/* memory.c: what was taken until now is no more. */
extern void memory_begin(void);

/* ---- profiles ---- */

/* All seeds are of this one from now on; false: there is none of that name. */
extern bool profile_choose(const char *name);
extern Profile profile_of(uint64_t seed);
extern const char *profile_name(Profile profile);

/* ---- the trace ---- */

/*
 * Notes an event.  Each # in the format stands for the next number, @ for the
 * text.
 */
extern void trace(const char *format, int64_t a, int64_t b, int64_t c,
				  int64_t d, const char *text);

/* Notes what the core of a host tells (src/observe/trace.h). */
extern void trace_core(int host, const char *line);

/* Notes a line of ZooKeeper's log, which is part of what cores tell. */
extern void trace_log(const char *format,...) __attribute__((format(printf, 1, 2)));
extern void trace_print_last(void);

/* A rule is broken: ends the seed. */
extern void broken(const char *rule, const char *format,...)
			__attribute__((noreturn, format(printf, 2, 3)));

#endif							/* SIM_BASE_H */
