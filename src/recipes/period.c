/*
 * period.c
 *	  The periods of zk_once(): which one a time is in.
 *
 * Owns nothing.  Run by backends.  Takes no locks, keeps no state.  Must not know
 * what a period is for, nor read any clock.
 *
 * Periods are counted from a Monday, 2000-01-03 00:00, so that a week begins on
 * one; those of months from the January before it.  But each begins a little early,
 * by half a minute at most: if the server's clock is ahead of ZooKeeper's, a job
 * that a cron daemon starts at a full hour comes before that hour.  Between full
 * minutes, cron daemons start nothing.
 */
#include "postgres.h"

#include "common/int.h"
#include "recipes/period.h"
#include "shared/compat.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"

#define UNIX_TO_PG_MS	INT64CONST(946684800000)	/* from 1970 to 2000 */
#define EPOCH_US		(2 * USECS_PER_DAY) /* from 2000-01-01 to that Monday */
#define EARLY_US		(30 * USECS_PER_SEC)

/* ---- arguments ---- */

pg_noreturn static void
bad_period(const char *message)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s", message)));
	pg_unreachable();
}

static pg_tz *
find_zone(const char *name)
{
	pg_tz	   *zone = pg_tzset(name);

	if (zone == NULL || !pg_tz_acceptable(zone))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("time zone \"%s\" not recognized", name),
				 errhint("The view pg_timezone_names lists the names of time zones.")));
	return zone;
}

static bool
is_utc(const pg_tz * zone)
{
	long int	offset;

	return pg_get_timezone_offset(zone, &offset) && offset == 0;
}

static void
check_signs(const Interval *length)
{
	int64		us;

	if (pg_mul_s64_overflow(length->day, USECS_PER_DAY, &us) ||
		pg_add_s64_overflow(us, length->time, &us))
		bad_period("period is too long");
	if (length->month != 0 && us != 0)
		bad_period("period must not mix months with days or time");
	if (length->month < 0 || us < 0 || (length->month == 0 && us == 0))
		bad_period("period must be positive");
}

ZklPeriod
zkl_period_make(const Interval *length, const char *zone)
{
	ZklPeriod	period = {0};

	if (zkl_compat_interval_is_infinite(length) ||
		zkl_compat_interval_is_minus_infinite(length))
		bad_period("period must be finite");
	check_signs(length);
	period.zone = find_zone(zone);
	if (length->month != 0)
		period.months = length->month;
	else if (length->time == 0)
		period.days = length->day;
	else if (is_utc(period.zone))
		period.us = length->day * USECS_PER_DAY + length->time;
	else
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("period must be whole days or months in time zone \"%s\"",
						zone),
				 errhint("Without a time zone, periods of any length are counted in UTC.")));
	return period;
}

/* ---- counting ---- */

static int64
divide_down(int64 a, int64 b)
{
	return a / b - (a % b < 0 ? 1 : 0);
}

static int64
number_by_calendar(const ZklPeriod *period, TimestampTz time)
{
	struct pg_tm tm;
	fsec_t		fsec;
	int			offset;

	if (timestamp2tm(time, &offset, &tm, &fsec, NULL, period->zone) != 0)
		elog(ERROR, "time is out of range");
	if (period->months > 0)
		return divide_down((int64) (tm.tm_year - 2000) * MONTHS_PER_YEAR +
						   tm.tm_mon - 1, period->months);
	return divide_down(date2j(tm.tm_year, tm.tm_mon, tm.tm_mday) -
					   date2j(2000, 1, 3), period->days);
}

int64
zkl_period_number(const ZklPeriod *period, int64 time_ms)
{
	TimestampTz time = (time_ms - UNIX_TO_PG_MS) * 1000;

	if (period->us == 0)
		return number_by_calendar(period, time + EARLY_US);
	return divide_down(time - EPOCH_US + Min(EARLY_US, period->us / 2),
					   period->us);
}

bool
zkl_period_is_none(const ZklPeriod *period)
{
	return period->months == 0 && period->days == 0 && period->us == 0;
}

bool
zkl_period_equal(const ZklPeriod *a, const ZklPeriod *b)
{
	return a->months == b->months && a->days == b->days && a->us == b->us &&
		(a->us != 0 || a->zone == b->zone);
}

int64
zkl_period_least_us(const ZklPeriod *period)
{
	return period->us != 0 ? period->us : USECS_PER_HOUR;
}
