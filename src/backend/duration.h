/*
 * duration.h
 *	  From SQL's intervals to milliseconds.
 */
#ifndef ZKL_BACKEND_DURATION_H
#define ZKL_BACKEND_DURATION_H

#include "fmgr.h"
#include "utils/timestamp.h"

/*
 * In ms, rounded up, a month being 30 days; ZKL_FOREVER if infinite, -1 if
 * it is negative.
 */
extern int64 zkl_duration_ms(const Interval *interval);

/*
 * The timeout that is argument number "arg" of an SQL function, likewise;
 * ZKL_FOREVER if it is NULL.  Error 22023 if it is negative.
 */
extern int64 zkl_duration_timeout_ms(FunctionCallInfo fcinfo, int arg);

#endif							/* ZKL_BACKEND_DURATION_H */
