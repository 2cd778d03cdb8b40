/*
 * base.c
 *	  Chance and trace of the simulation.
 *
 * Owns the one Base.  Must not know what is simulated.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../spec/validate.h"
#include "base.h"
#include "core/assert.h"

Base		base;

Time
some_delay(Time usual)
{
	Time		delay;
	int64_t		dice;

	if (base.natural)
		return usual < MS ? 0 : usual;
	delay = usual / 2 + below(usual + 1);
	dice = below(64);
	if (dice == 0 && !base.calm)
		delay *= 100;
	else if (dice < 4 && !base.calm)
		delay *= 10;
	return delay < base.longest ? delay : base.longest;
}

void
base_begin(const Input *input)
{
	TraceUse	trace_use = base.trace;
	bool		validate = base.validate;

	memory_begin();
	memset(&base, 0, sizeof(base));
	base.trace = trace_use;
	base.validate = validate;
	base.seed = base.random = base.hash = input->seed;
	base.changes = input_spread(input);
	base.profile = profile_of(input->seed);
	base.now = SECOND;
	base.calm_since = NEVER - INT32_MAX * INT64_C(1000);
	base.longest = NEVER;
}

/* ---- profiles ---- */

static const struct
{
	const char *name;
	uint64_t	share;			/* of 16 seeds */
}			profiles[PROFILES] = {{"wide", 4}, {"slew", 1}, {"storm", 4}, {"quorum", 3}, {"hot", 4}};

static int	chosen = -1;

bool
profile_choose(const char *name)
{
	for (chosen = 0; chosen < PROFILES; chosen++)
		if (strcmp(profiles[chosen].name, name) == 0)
			return true;
	return false;
}

Profile
profile_of(uint64_t seed)
{
	uint64_t	state = ~seed;
	uint64_t	dice = splitmix64(&state) % 16;
	int			i = 0;

	if (chosen >= 0)
		return (Profile) chosen;
	while (dice >= profiles[i].share)
		dice -= profiles[i++].share;
	return (Profile) i;
}

const char *
profile_name(Profile profile)
{
	return profiles[profile].name;
}

/* ---- the trace ---- */

#define LINE_SIZE	1100

static char (*last_lines)[LINE_SIZE];	/* NULL: there was none yet */

/* A place for the next line, which begins with the time; its length so far */
static char *
begin_line(size_t *length)
{
	char	   *line;

	if (last_lines == NULL && (last_lines = malloc(TRACE_KEPT * LINE_SIZE)) == NULL)
		abort();
	line = last_lines[base.lines++ % TRACE_KEPT];
	*length = (size_t) snprintf(line, LINE_SIZE, "%13.6f  ",
								(double) base.now / SECOND);
	return line;
}

static void
end_line(const char *line)
{
	if (base.trace == TRACE_PRINT)
		puts(line);
}

static void
format_line(const char *format, const int64_t *numbers, const char *text)
{
	size_t		length;
	char	   *line = begin_line(&length);
	const char *p;

	for (p = format; *p != '\0' && length < LINE_SIZE; p++)
	{
		char	   *at = line + length;
		size_t		room = LINE_SIZE - length;

		if (*p == '#')
			length += (size_t) snprintf(at, room, "%" PRId64, *numbers++);
		else if (*p == '@')
			length += (size_t) snprintf(at, room, "%s", text ? text : "");
		else
			length += (size_t) snprintf(at, room, "%c", *p);
	}
	end_line(line);
}

void
trace_core(int host, const char *text)
{
	const char *wrong;

	if (base.trace != TRACE_HASH)
	{
		size_t		length;
		char	   *line = begin_line(&length);

		snprintf(line + length, LINE_SIZE - length, "host %d %s", host, text);
		end_line(line);
	}
	wrong = base.validate ? spec_line(host, base.now, text) : NULL;
	if (wrong != NULL)
		broken(SPECIFICATION, "host %d: %s", host, wrong);
}

static uint64_t
mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9E3779B97F4A7C15;
	return hash ^ hash >> 29;
}

void
trace(const char *format, int64_t a, int64_t b, int64_t c, int64_t d,
	  const char *text)
{
	const int64_t numbers[] = {a, b, c, d};

	if (base.trace != TRACE_HASH)
		format_line(format, numbers, text);
	base.hash = mix(base.hash, (uint64_t) base.now);
	base.hash = mix(base.hash, (uint64_t) a ^ (uint64_t) b << 16 ^
					(uint64_t) c << 32 ^ (uint64_t) d << 48);
	while (text != NULL && *text != '\0')
		base.hash = base.hash * 31 + (unsigned char) *text++;
}

void
trace_log(const char *format,...)
{
	char		text[LINE_SIZE];
	va_list		args;

	if (base.trace == TRACE_HASH && !base.validate)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (base.trace != TRACE_HASH)
	{
		size_t		length;
		char	   *line = begin_line(&length);

		snprintf(line + length, LINE_SIZE - length, "%.1000s", text);
		end_line(line);
	}
	if (base.validate)
		(void) spec_line(-1, base.now, text);
}

void
trace_print_last(void)
{
	uint64_t	i = base.lines > TRACE_KEPT ? base.lines - TRACE_KEPT : 0;

	for (; i < base.lines; i++)
		puts(last_lines[i % TRACE_KEPT]);
}

void
broken(const char *rule, const char *format,...)
{
	va_list		args;

	base.rule = rule;
	va_start(args, format);
	vsnprintf(base.what, sizeof(base.what), format, args);
	va_end(args);
	longjmp(base.stop, 1);
}

/* The core itself says that a rule is broken. */
void
zkl_assert_failed(const char *condition, const char *file, int line)
{
	broken("assertion", "%s, at %s:%d", condition, file, line);
}
