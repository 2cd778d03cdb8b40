/*
 * unit.h
 *	  A test program in a few lines: TAP on stdout, what failed on stderr.
 *
 * One TAP line per test function.  A failed CHECK is reported and counted, and
 * the test goes on.  unit_random is seeded from the clock, or from UNIT_SEED
 * to repeat a run.  With UNIT_TRACE in the environment each world prints what
 * its manager is told and what it does (observe/trace.h).
 */
#ifndef ZKL_UNIT_H
#define ZKL_UNIT_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../random.h"

#define UNIT_MAX_REPORTS	10	/* failed checks shown per test function */
#define UNIT_MAX_STEPS		1000000 /* of a test function: then it seems to
									 * loop */

/* One for all files of a program */
struct
{
	int			tests;
	int			failed_tests;
	const char *name;			/* of the test function that runs */
	int			failed_checks;	/* of its */
	uint32_t	steps;			/* of its; see unit_step */
	uint64_t	seed;
	uint64_t	random;
}			unit __attribute__((weak));

static inline bool
__attribute__((format(printf, 4, 5)))
unit_check(bool good, const char *file, int line, const char *format,...)
{
	va_list		args;

	if (good)
		return true;
	if (++unit.failed_checks > UNIT_MAX_REPORTS)
		return false;
	va_start(args, format);
	fprintf(stderr, "# %s:%d: ", file, line);
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	return false;
}

#define CHECK(condition) \
	unit_check(condition, __FILE__, __LINE__, "not so: %s", #condition)

/* With the particulars in a printf format */
#define CHECK_MSG(condition, ...) \
	unit_check(condition, __FILE__, __LINE__, __VA_ARGS__)

#define CHECK_INT(got, expected) \
	unit_check_int((got), (expected), __FILE__, __LINE__, #got)

#define CHECK_STR(got, expected) \
	unit_check_str((got), (expected), __FILE__, __LINE__, #got)

static inline bool
unit_check_int(int64_t got, int64_t expected, const char *file, int line,
			   const char *what)
{
	return unit_check(got == expected, file, line,
					  "%s is %" PRId64 ", expected %" PRId64,
					  what, got, expected);
}

static inline bool
unit_check_str(const char *got, const char *expected, const char *file,
			   int line, const char *what)
{
	bool		good = got && expected ? strcmp(got, expected) == 0 :
	got == expected;

	return unit_check(good, file, line, "%s is \"%s\", expected \"%s\"", what,
					  got ? got : "(null)", expected ? expected : "(null)");
}

static inline uint64_t
unit_random(void)
{
	return splitmix64(&unit.random);
}

/* 0 .. n - 1 */
static inline uint32_t
unit_random_below(uint32_t n)
{
	return (uint32_t) (unit_random() % n);
}

/* A copy of exactly this size, so that the sanitizer sees each byte too many */
static inline char *
unit_copy(const char *bytes, size_t length)
{
	char	   *copy = malloc(length ? length : 1);

	if (copy == NULL)
		abort();
	if (length > 0)
		memcpy(copy, bytes, length);
	return copy;
}

#ifdef __SANITIZE_ADDRESS__
extern void __sanitizer_set_death_callback(void (*callback) (void));
#endif

static inline void
unit_report_seed(void)
{
	fprintf(stderr, "# UNIT_SEED=%" PRIu64 "\n", unit.seed);
}

static inline void
unit_start(void)
{
	const char *seed = getenv("UNIT_SEED");

	setvbuf(stdout, NULL, _IOLBF, 0);
	unit.seed = seed ? strtoull(seed, NULL, 0) : (uint64_t) time(NULL);
	printf("# UNIT_SEED=%" PRIu64 "\n", unit.seed);
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_set_death_callback(unit_report_seed);
#endif
}

/* The result of the test function that runs */
static inline void
unit_result(void)
{
	unit.tests++;
	if (unit.failed_checks > 0)
	{
		unit.failed_tests++;
		fprintf(stderr, "# %s: %d checks failed (UNIT_SEED=%" PRIu64 ")\n",
				unit.name, unit.failed_checks, unit.seed);
	}
	printf("%sok %d - %s\n", unit.failed_checks > 0 ? "not " : "",
		   unit.tests, unit.name);
}

/* The exit status */
static inline int
unit_finish(void)
{
	printf("1..%d\n", unit.tests);
	return unit.failed_tests > 0 ? 1 : 0;
}

/*
 * Called in what a test function may call until something is so.  If it never is, the
 * program ends, with a failure.
 */
static inline void
unit_step(void)
{
	if (++unit.steps <= UNIT_MAX_STEPS)
		return;
	unit.failed_checks++;
	fprintf(stderr, "# %s: more than %d steps: it seems to loop\n", unit.name,
			UNIT_MAX_STEPS);
	unit_result();
	_exit(unit_finish());
}

#define RUN(function) unit_run(#function, function)

/* Each function starts from the seed, so that it can be repeated alone. */
static inline void
unit_run(const char *name, void (*function) (void))
{
	unit.name = name;
	unit.failed_checks = 0;
	unit.steps = 0;
	unit.random = unit.seed;
	function();
	unit_result();
}

#endif							/* ZKL_UNIT_H */
