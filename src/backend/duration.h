/*
 * duration.h
 *	  From SQL's intervals to milliseconds.
 */
#ifndef ZKL_BACKEND_DURATION_H
#define ZKL_BACKEND_DURATION_H

#include "utils/timestamp.h"

/*
 * In ms, rounded up, a month being 30 days; ZKL_FOREVER if infinite, -1 if
 * it is negative.
 */
extern int64 zkl_duration_ms(const Interval *interval);

/* The same of a timeout: error 22023 if it is negative. */
extern int64 zkl_duration_timeout_ms(const Interval *interval);

#endif							/* ZKL_BACKEND_DURATION_H */
