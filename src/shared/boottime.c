/*
 * boottime.c
 *	  The clock that nobody slews, and that goes on while the machine sleeps.
 *
 * Owns what this process knows of the machine's sleep.  Run by backends and the
 * worker.
 *
 * CLOCK_BOOTTIME and CLOCK_MONOTONIC run as fast as NTP wants, which may be 8 %
 * too slow for minutes.  CLOCK_MONOTONIC_RAW does not follow NTP, but stands
 * still while the machine sleeps.  So the time that it slept is added, which is
 * the difference between the other two.
 */
#include "postgres.h"

#include <time.h>

#include "shared/boottime.h"

#define NARROW_NS	100000
#define MOST_TRIES	16
#define BURST_NS	100000

static int64 slept = 0;			/* ns, since the machine was booted */

/* In ns: the last whole reading, CLOCK_BOOTTIME at that time, the last result */
static int64 whole = 0;
static int64 read_at = 0;
static int64 shown = 0;

static int64
read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64) now.tv_sec * 1000000000 + now.tv_nsec;
}

/*
 * CLOCK_BOOTTIME and CLOCK_MONOTONIC have one rate and show the same time, but for
 * the time slept.  They cannot be read at one moment, so one is read between two
 * readings of the other.  The value that is known stays unless a reading
 * contradicts it: on a machine that never slept it is the same in all processes.
 * If this process was stopped between the readings, they say little, and are
 * repeated.
 */
static int64
time_slept(void)
{
	int64		least = 0;
	int64		most = PG_INT64_MAX;
	int			i;

	for (i = 0; i < MOST_TRIES; i++)
	{
		int64		before = read_ns(CLOCK_MONOTONIC);
		int64		boottime = read_ns(CLOCK_BOOTTIME);
		int64		after = read_ns(CLOCK_MONOTONIC);

		if (after - before < most - least)
		{
			least = boottime - after;
			most = boottime - before;
		}
		if (most - least <= NARROW_NS && least <= slept && slept <= most)
			return slept;
	}
	if (slept < least || slept > most)
		slept = least;
	return slept;
}

/*
 * Calls come in bursts, so a whole reading is valid for 100 µs of CLOCK_BOOTTIME.
 * NTP slews by 10 % at most, which is 10 µs of these.  CLOCK_BOOTTIME is read first:
 * if the process is stopped behind that, this clock is ahead until the next whole
 * reading, by less than 100 µs.  The margin of the lease covers both errors, see
 * lemma 3 in ARGUMENT.md.
 */
int64
zkl_boottime_us(void)
{
	int64		now = read_ns(CLOCK_BOOTTIME);

	if (now - read_at > BURST_NS)
	{
		int64		awake = read_ns(CLOCK_MONOTONIC_RAW);

		whole = awake + time_slept();
		read_at = now;
	}
	now += whole - read_at;
	if (shown < now)
		shown = now;
	return shown / 1000;
}

int64
zkl_boottime_ms(void)
{
	return zkl_boottime_us() / 1000;
}
