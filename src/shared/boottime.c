/*
 * boottime.c
 *	  The clock that goes on while the machine sleeps.
 *
 * Owns nothing.  Run by backends and the worker.
 */
#include "postgres.h"

#include <time.h>

#include "shared/boottime.h"

int64
zkl_boottime_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64
zkl_boottime_ms(void)
{
	return zkl_boottime_us() / 1000;
}
