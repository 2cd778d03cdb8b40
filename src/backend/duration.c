/*
 * duration.c
 *	  From SQL's intervals to milliseconds.
 *
 * Owns nothing.  Run by backends.  Takes no locks.  Must not know what is timed.
 */
#include "postgres.h"

#include "backend/duration.h"
#include "backend/wait.h"
#include "datatype/timestamp.h"
#include "shared/compat.h"

#define MS_PER_DAY		((int64) 86400000)
#define US_PER_MS		1000

/*
 * No interval overflows: the months of the largest one are less than 2^63 ms.
 */
int64
zkl_duration_ms(const Interval *interval)
{
	int64		days = (int64) interval->month * DAYS_PER_MONTH + interval->day;
	int64		ms = days * MS_PER_DAY + interval->time / US_PER_MS;
	int64		rest = interval->time % US_PER_MS;

	if (zkl_compat_interval_is_infinite(interval))
		return ZKL_FOREVER;
	if (zkl_compat_interval_is_minus_infinite(interval) ||
		ms < 0 || (ms == 0 && rest < 0))
		return -1;
	return rest > 0 ? ms + 1 : ms;
}

int64
zkl_duration_timeout_ms(FunctionCallInfo fcinfo, int arg)
{
	int64		ms = PG_ARGISNULL(arg) ? ZKL_FOREVER :
	zkl_duration_ms(PG_GETARG_INTERVAL_P(arg));

	if (ms < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("timeout must not be negative")));
	return ms;
}
