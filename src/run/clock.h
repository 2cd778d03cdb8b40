/*
 * clock.h
 *	  The time by which a program under a lock is ended: the same clock as the server's.
 */
#ifndef ZKL_RUN_CLOCK_H
#define ZKL_RUN_CLOCK_H

#include <stdint.h>

#define ZKL_RUN_NEVER	INT64_MAX

/*
 * A time of the call's beginning, in ms: if the process is stopped meanwhile, it is
 * behind, never ahead.
 */
extern int64_t zkl_clock_ms(void);

#endif							/* ZKL_RUN_CLOCK_H */
