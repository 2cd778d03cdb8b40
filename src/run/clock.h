/*
 * clock.h
 *	  The time by which a program under a lock is ended.
 */
#ifndef ZKL_RUN_CLOCK_H
#define ZKL_RUN_CLOCK_H

#include <stdint.h>
#include <time.h>

#define ZKL_RUN_NEVER	INT64_MAX

/*
 * In ms.  As the server's (shared/boottime.c), it counts the time that the machine
 * sleeps, and NTP does not slew it.
 */
static inline int64_t
zkl_clock_ms(void)
{
	struct timespec boot,
				steady,
				raw;

	clock_gettime(CLOCK_MONOTONIC, &steady);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_MONOTONIC_RAW, &raw);
	return (raw.tv_sec + boot.tv_sec - steady.tv_sec) * INT64_C(1000) +
		(raw.tv_nsec + boot.tv_nsec - steady.tv_nsec) / 1000000;
}

#endif							/* ZKL_RUN_CLOCK_H */
