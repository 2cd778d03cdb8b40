/*
 * boottime.c
 *	  The clock that nobody slews, and that goes on while the machine sleeps.
 *
 * Owns what this process knows of the machine's sleep.  Run by backends and the
 * worker.  steady.h tells which clocks it is made of.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/steady.h"

#define BURST_NS	100000

static int64 slept = 0;			/* ns, since the machine was booted */

/* In ns: the last whole reading, CLOCK_BOOTTIME at that time, the last result */
static int64 whole = 0;
static int64 read_at = 0;
static int64 shown = 0;

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
	int64		now = zkl_steady_read_ns(CLOCK_BOOTTIME);

	if (now - read_at > BURST_NS)
	{
		int64		awake = zkl_steady_read_ns(CLOCK_MONOTONIC_RAW);

		whole = awake + zkl_steady_slept_ns(&slept);
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
