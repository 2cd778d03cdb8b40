/*
 * history.c
 *	  Which turns of a job were used up: the data of its history's znode, and the
 *	  periods of zk_once().
 *
 * Owns the format.  Run by backends.  Takes no locks, keeps no state.  Must not
 * know where the data is kept, nor who may change it, nor read any clock.
 *
 * Periods are counted from a Monday, 2000-01-03 00:00, so that a week begins on
 * one; those of months from the January before it.  But each begins a little early,
 * by half a minute at most: if the server's clock is ahead of ZooKeeper's, a job
 * that a cron daemon starts at a full hour comes before that hour.  Between full
 * minutes, cron daemons start nothing.
 */
#include "postgres.h"

#include "common/int.h"
#include "datatype/timestamp.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "recipes/history.h"
#include "shared/compat.h"
#include "shared/settings.h"
#include "utils/datetime.h"
#include "utils/json.h"
#include "utils/timestamp.h"
#include "znode/node_data.h"

/* ---- periods ---- */

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
zkl_history_make(const Interval *length, const char *zone)
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

/*
 * The number of the period that a time (ms since 1970) is in.  It falls only where
 * the clock of the zone is set back over midnight, for that hour.
 */
static int64
number_of_period(const ZklPeriod *period, int64 time_ms)
{
	TimestampTz time = (time_ms - UNIX_TO_PG_MS) * 1000;

	if (period->us == 0)
		return number_by_calendar(period, time + EARLY_US);
	return divide_down(time - EPOCH_US + Min(EARLY_US, period->us / 2),
					   period->us);
}

static bool
is_no_period(const ZklPeriod *period)
{
	return period->months == 0 && period->days == 0 && period->us == 0;
}

bool
zkl_history_equal(const ZklPeriod *a, const ZklPeriod *b)
{
	return a->months == b->months && a->days == b->days && a->us == b->us &&
		(a->us != 0 || a->zone == b->zone);
}

/* No period of this kind is shorter, in µs. */
static int64
least_of_period(const ZklPeriod *period)
{
	return period->us != 0 ? period->us : USECS_PER_HOUR;
}

/* ---- the data ---- */

#define RUN_ID_BYTES	16
#define MAX_ROLE_JSON	300		/* a longer one leaves too little room */

/* As µs since 2000 it fits, and is a time of PostgreSQL's. */
#define MAX_TIME_MS		(PG_INT64_MAX / 1000 - INT64CONST(946857600000))

/* Clocks of several ZooKeeper servers that are in order differ by less. */
#define MAX_AHEAD_US	(60 * USECS_PER_SEC)

/* ---- reading ---- */

static bool
read_keys(ZklJsonReader *r, ZklHistory *history)
{
	if (!zkl_json_take(r, '['))
		return false;
	if (zkl_json_take(r, ']'))
		return true;
	do
	{
		if (history->nkeys == ZKL_HISTORY_KEYS ||
			!zkl_json_string(r, history->keys[history->nkeys++],
							 ZKL_MAX_RUN_KEY + 1))
			return false;
	} while (zkl_json_take(r, ','));
	return zkl_json_take(r, ']');
}

typedef struct Reading
{
	ZklHistory *history;
	bool		ours;
} Reading;

static bool
read_history_member(ZklJsonReader *r, const char *name, void *arg)
{
	Reading    *reading = arg;
	ZklHistory *history = reading->history;

	if (strcmp(name, "zklock") == 0)
		return reading->ours = zkl_json_word(r, "\"once\"");
	if (strcmp(name, "server") == 0)
		return zkl_json_string(r, history->server, sizeof(history->server));
	if (strcmp(name, "pid") == 0)
		return zkl_json_integer(r, 0, PG_INT32_MAX, &history->pid);
	if (strcmp(name, "role") == 0)
		return zkl_json_string(r, history->role, sizeof(history->role));
	if (strcmp(name, "at") == 0)
		return zkl_json_integer(r, 0, MAX_TIME_MS, &history->at);
	if (strcmp(name, "period_at") == 0)
		return zkl_json_integer(r, 0, MAX_TIME_MS, &history->period_at);
	if (strcmp(name, "keys") == 0)
		return read_keys(r, history);
	return zkl_json_skip_value(r);
}

bool
zkl_history_read(const char *data, Size length, ZklHistory *history)
{
	Reading		reading = {history, false};

	memset(history, 0, sizeof(*history));
	return length == 0 ||
		(zkl_json_object(data, length, read_history_member, &reading) &&
		 reading.ours);
}

/* ---- deciding ---- */

/*
 * Clocks can go back, also ZooKeeper's, when another server leads: then the
 * last period that was used is still used.
 */
bool
zkl_history_has(const ZklHistory *history, const ZklTurnId *turn, int64 now_ms)
{
	uint32		i;

	if (!is_no_period(&turn->period))
		return history->period_at > 0 &&
			number_of_period(&turn->period, history->period_at) >=
			number_of_period(&turn->period, now_ms);
	for (i = 0; i < history->nkeys; i++)
	{
		if (strcmp(history->keys[i], turn->key) == 0)
			return true;
	}
	return false;
}

bool
zkl_history_is_ahead(const ZklHistory *history, const ZklTurnId *turn,
					 int64 now_ms)
{
	return !is_no_period(&turn->period) &&
		history->period_at - now_ms >
		Min(least_of_period(&turn->period), MAX_AHEAD_US) / 1000;
}

/* ---- writing ---- */

static void
put_role(StringInfo out, const char *role)
{
	int			before = out->len;

	if (role[0] == '\0')
		return;
	appendStringInfoString(out, ",\"role\":");
	escape_json(out, role);
	if (out->len - before <= MAX_ROLE_JSON)
		return;
	out->len = before;
	out->data[before] = '\0';
}

static void
put_run(StringInfo out, const char *role)
{
	uint8		run[RUN_ID_BYTES];
	int			i;

	if (!pg_strong_random(run, sizeof(run)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	appendStringInfoString(out, "{\"zklock\":\"once\",\"run\":\"");
	for (i = 0; i < RUN_ID_BYTES; i++)
		appendStringInfo(out, "%02x", run[i]);
	appendStringInfoString(out, "\",\"server\":");
	escape_json(out, zkl_settings_server_name());
	appendStringInfo(out, ",\"pid\":%d", MyProcPid);
	put_role(out, role);
}

static uint32
put_data(StringInfo out, char *data)
{
	uint32		length = (uint32) out->len;

	memcpy(data, out->data, length);
	pfree(out->data);
	return length;
}

/* Adds a key if it fits, and two brackets behind it. */
static bool
put_key(StringInfo out, const char *key)
{
	int			before = out->len;

	if (out->data[before - 1] != '[')
		appendStringInfoChar(out, ',');
	escape_json(out, key);
	if (out->len + 2 <= ZKL_MAX_NODE_DATA)
		return true;
	out->len = before;
	out->data[before] = '\0';
	return false;
}

uint32
zkl_history_write(const ZklHistory *history, const ZklTurnId *turn,
				  int64 now_ms, char *data)
{
	StringInfoData out;
	bool		has_key = is_no_period(&turn->period);
	uint32		nkeys = 0,
				i;

	initStringInfo(&out);
	put_run(&out, history->role);
	appendStringInfo(&out, ",\"at\":" INT64_FORMAT, now_ms);
	appendStringInfo(&out, ",\"period_at\":" INT64_FORMAT ",\"keys\":[",
					 has_key ? history->period_at : now_ms);
	if (has_key && put_key(&out, turn->key))
		nkeys++;
	for (i = 0; i < history->nkeys && nkeys < ZKL_HISTORY_KEYS; i++, nkeys++)
	{
		if (!put_key(&out, history->keys[i]))
			break;
	}
	appendStringInfoString(&out, "]}");
	return put_data(&out, data);
}

uint32
zkl_history_write_empty(const char *role, char *data)
{
	StringInfoData out;

	initStringInfo(&out);
	put_run(&out, role);
	appendStringInfoString(&out, ",\"reset\":true,\"period_at\":0,\"keys\":[]}");
	return put_data(&out, data);
}
