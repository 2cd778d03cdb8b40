/*
 * duration.h
 *	  From SQL's intervals to milliseconds.
 */
#ifndef ZKL_DURATION_H
#define ZKL_DURATION_H

#include "utils/timestamp.h"

/*
 * A timeout in ms, rounded up, a month being 30 days; ZKL_FOREVER if it is
 * infinite.  Error 22023 if it is negative.
 */
extern int64 zkl_timeout_ms(const Interval *interval);

#endif							/* ZKL_DURATION_H */
