/*
 * steady.h
 *	  Readings of clocks for one that nobody slews, and that goes on while the
 *	  machine sleeps.
 *
 * Without PostgreSQL: zklock-run has them, too.
 *
 * CLOCK_BOOTTIME and CLOCK_MONOTONIC run as fast as NTP wants, which may be 8 %
 * too slow for minutes.  CLOCK_MONOTONIC_RAW does not follow NTP, but stands
 * still while the machine sleeps.  So the time that it slept is added, which is
 * the difference between the other two.
 */
#ifndef ZKL_SHARED_STEADY_H
#define ZKL_SHARED_STEADY_H

#include <stdint.h>
#include <time.h>

#define ZKL_STEADY_NARROW_NS	100000
#define ZKL_STEADY_MOST_TRIES	16

static inline int64_t
zkl_steady_read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

/*
 * The time slept since the machine was booted.  "known" is what this process knows of
 * it, at first 0.
 *
 * CLOCK_BOOTTIME and CLOCK_MONOTONIC have one rate and show the same time, but for
 * the time slept.  They cannot be read at one moment, so one is read between two
 * readings of the other.  The value that is known stays unless a reading
 * contradicts it: on a machine that never slept it is the same in all processes.
 * If this process was stopped between the readings, they say little, and are
 * repeated.
 */
static inline int64_t
zkl_steady_slept_ns(int64_t *known)
{
	int64_t		least = 0;
	int64_t		most = INT64_MAX;
	int			i;

	for (i = 0; i < ZKL_STEADY_MOST_TRIES; i++)
	{
		int64_t		before = zkl_steady_read_ns(CLOCK_MONOTONIC);
		int64_t		boottime = zkl_steady_read_ns(CLOCK_BOOTTIME);
		int64_t		after = zkl_steady_read_ns(CLOCK_MONOTONIC);

		if (after - before < most - least)
		{
			least = boottime - after;
			most = boottime - before;
		}
		if (most - least <= ZKL_STEADY_NARROW_NS && least <= *known && *known <= most)
			return *known;
	}
	if (*known < least || *known > most)
		*known = least;
	return *known;
}

#endif							/* ZKL_SHARED_STEADY_H */
