/*
 * clock.c
 *	  The time by which a program under a lock is ended.
 *
 * Owns what this process knows of the machine's sleep.
 */
#include "run/clock.h"
#include "shared/steady.h"

static int64_t slept_ns = 0;

int64_t
zkl_clock_ms(void)
{
	int64_t		awake_ns = zkl_steady_read_ns(CLOCK_MONOTONIC_RAW);

	return (awake_ns + zkl_steady_slept_ns(&slept_ns)) / 1000000;
}
