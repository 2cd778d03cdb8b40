/*
 * period.h
 *	  The periods of zk_once(): which one a time is in.
 *
 * A period is a length of time, or whole days or months of the calendar of a time
 * zone, which daylight saving makes shorter or longer.
 */
#ifndef ZKL_RECIPES_PERIOD_H
#define ZKL_RECIPES_PERIOD_H

#include "datatype/timestamp.h"
#include "pgtime.h"

typedef struct ZklPeriod
{
	int32		months;			/* at most one of these three is not 0; */
	int32		days;			/* if all are, it is none */
	int64		us;
	pg_tz	   *zone;			/* of months and days */
} ZklPeriod;

/*
 * The period of these arguments; error 22023 if there is none: it must be positive,
 * and not mix months with anything else.  A zone that is not UTC needs whole days
 * or months.
 */
extern ZklPeriod zkl_period_make(const Interval *length, const char *zone);

/*
 * The number of the period that a time (ms since 1970) is in.  It falls only where
 * the clock of the zone is set back over midnight, for that hour.
 */
extern int64 zkl_period_number(const ZklPeriod *period, int64 time_ms);

extern bool zkl_period_is_none(const ZklPeriod *period);
extern bool zkl_period_equal(const ZklPeriod *a, const ZklPeriod *b);

/* No period of this kind is shorter, in µs. */
extern int64 zkl_period_least_us(const ZklPeriod *period);

#endif							/* ZKL_RECIPES_PERIOD_H */
