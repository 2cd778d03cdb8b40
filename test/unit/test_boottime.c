/*
 * test_boottime.c
 *	  The clocks of the leases, and of zklock-run: NTP slews the system's clocks, the
 *	  machine sleeps, and the process is stopped, also between any two readings of
 *	  one call.
 */
#include <time.h>

#include "unit.h"

/* ---- a machine ---- */

#define SECOND	INT64_C(1000000000)
#define MINUTE	(60 * SECOND)
#define HOUR	(60 * MINUTE)

static struct
{
	int64_t		raw;			/* what passed while it was awake, in ns */
	int64_t		corrected;		/* the same, as NTP wants it */
	int64_t		slept;
	int64_t		ppm;			/* of the correction */
	int			readings;		/* in this call */
	int			sleeps_at;		/* ahead of that reading of the call; -1:
								 * never */
	int64_t		sleeps;
	int			stops_at;		/* the same for the process */
	int64_t		stops;
	bool		by_chance;		/* now and then, ahead of any reading */
}			machine;

static void
pass(int64_t ns)
{
	machine.raw += ns;
	machine.corrected += ns + ns * machine.ppm / 1000000;
}

static void
happen_by_chance(void)
{
	if (unit_random_below(60) == 0)
		pass(unit_random_below(50) * (SECOND / 1000));
	if (unit_random_below(60) == 0)
		machine.slept += unit_random_below(100) * SECOND;
	if (unit_random_below(60) == 0)
		machine.ppm = (int64_t) unit_random_below(200000) - 100000;
}

static int
read_machine(clockid_t clock, struct timespec *now)
{
	int64_t		ns;

	if (machine.readings == machine.sleeps_at)
		machine.slept += machine.sleeps;
	if (machine.readings++ == machine.stops_at)
		pass(machine.stops);
	if (machine.by_chance)
		happen_by_chance();
	pass(25);
	ns = clock == CLOCK_MONOTONIC_RAW ? machine.raw :
		clock == CLOCK_MONOTONIC ? machine.corrected :
		machine.corrected + machine.slept;
	now->tv_sec = ns / SECOND;
	now->tv_nsec = ns % SECOND;
	return 0;
}

#define clock_gettime read_machine
#include "run/clock.c"
#include "shared/boottime.c"
#undef clock_gettime

/* What the clock should show, in µs */
static int64_t
truth(void)
{
	return (machine.raw + machine.slept) / 1000;
}

/* A machine that was up for a day, and a process that knows nothing of it */
static void
begin(int64_t slept_before)
{
	memset(&machine, 0, sizeof(machine));
	machine.raw = machine.corrected = 24 * HOUR;
	machine.slept = slept_before;
	machine.sleeps_at = machine.stops_at = -1;
	slept = whole = read_at = shown = slept_ns = 0;
}

/* Reads the clock: the result is of some moment of the call. */
static int64_t
check_clock(int64_t error_us)
{
	int64_t		before = truth();
	int64_t		result;

	machine.readings = 0;
	result = zkl_boottime_us();
	CHECK_MSG(result >= before - error_us && result <= truth() + error_us,
			  "%" PRId64 " is not within %" PRId64 " and %" PRId64,
			  result, before, truth());
	return result;
}

/* ---- the tests ---- */

static void
slewed(void)
{
	static const int64_t rates[] = {0, 500, -500, -83333, 83333, 0};
	size_t		i;

	begin(0);
	for (i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
	{
		machine.ppm = rates[i];
		pass(HOUR);
		check_clock(0);
		pass(HOUR);
		check_clock(0);
	}
}

static void
asleep(void)
{
	begin(0);
	check_clock(0);
	machine.slept += HOUR;
	check_clock(1);
	machine.ppm = -83333;
	pass(MINUTE);
	machine.slept += SECOND / 1000;
	check_clock(1);
	begin(17 * HOUR);
	check_clock(1);
}

/* Ahead of each reading of a call, and of the calls that follow */
static void
asleep_between_readings(void)
{
	int64_t		last;
	int			at;
	int			i;

	for (at = 0; at < 40; at++)
	{
		begin(at % 2 * HOUR);
		last = check_clock(1);
		machine.sleeps_at = at;
		machine.sleeps = HOUR;
		for (i = 0; i < 3; i++)
		{
			int64_t		now = check_clock(1);

			CHECK(now >= last);
			last = now;
		}
	}
}

static void
stopped_between_readings(void)
{
	int			at;

	for (at = 0; at < 40; at++)
	{
		begin(0);
		machine.stops_at = at;
		machine.stops = MINUTE;
		check_clock(0);
		machine.readings = 0;
		check_clock(0);
		CHECK_INT(slept, 0);
		begin(HOUR);
		machine.stops_at = at;
		machine.stops = MINUTE;
		check_clock(1);
	}
}

/* The sleep was shorter than the stop, which must not hide it. */
static void
asleep_then_stopped(void)
{
	int			at;

	for (at = 0; at < 40; at++)
	{
		begin(0);
		check_clock(0);
		machine.slept += 10 * SECOND;
		machine.stops_at = at;
		machine.stops = MINUTE;
		check_clock(1);
		machine.stops_at = -1;
		check_clock(1);
	}
}

static void
all_at_once(void)
{
	int			round;
	int			i;

	for (round = 0; round < 200; round++)
	{
		int64_t		last;

		begin(0);
		machine.by_chance = true;
		last = check_clock(100);
		for (i = 0; i < 200; i++)
		{
			int64_t		now = check_clock(100);

			CHECK(now >= last);
			last = now;
			pass(unit_random_below(1000) * (SECOND / 1000));
		}
	}
}

/*
 * A stop or a sleep that is as long as a burst, ahead of each reading of a call: the
 * clock is not behind, and ahead by less than 0.1 ms until the next whole reading.
 */
static void
disturbed_in_a_burst(void)
{
	int			at;
	int			i;

	for (at = 0; at < 12; at++)
	{
		begin(HOUR);
		if (at % 2 == 0)
		{
			machine.stops_at = at / 2;
			machine.stops = SECOND / 10000 - 1000;
		}
		else
		{
			machine.sleeps_at = at / 2;
			machine.sleeps = SECOND / 10000 - 1000;
		}
		check_clock(1);
		machine.stops_at = machine.sleeps_at = -1;
		for (i = 0; i < 300; i++)
		{
			int64_t		before = truth();

			CHECK(check_clock(100) >= before - 1);
			pass(1000);
		}
		pass(SECOND);
		check_clock(1);
	}
}

/* Calls 1 µs apart take one reading each, and what NTP adds does not sum up. */
static void
in_a_burst(void)
{
	int			sum = 0;
	int			i;

	begin(HOUR);
	machine.ppm = 100000;
	for (i = 0; i < 100000; i++)
	{
		check_clock(10);
		sum += machine.readings;
		pass(1000);
	}
	CHECK(sum < 106000);
	machine.ppm = -100000;
	for (i = 0; i < 100000; i++)
	{
		check_clock(20);
		pass(1000);
	}
	machine.slept += SECOND;
	check_clock(1);
}

/* The clock of zklock-run shows some moment of the call, too, in whole ms. */
static void
run_disturbed_between_readings(void)
{
	int			at;
	int			i;

	for (at = 0; at < 40; at++)
	{
		begin(at % 4 < 2 ? 0 : HOUR);
		if (at % 2 == 0)
		{
			machine.stops_at = at / 2;
			machine.stops = MINUTE;
		}
		else
		{
			machine.sleeps_at = at / 2;
			machine.sleeps = MINUTE;
		}
		for (i = 0; i < 2; i++)
		{
			int64_t		before = truth();
			int64_t		result;

			machine.readings = 0;
			result = zkl_clock_ms();
			CHECK(result >= before / 1000 - 1 && result <= truth() / 1000);
			machine.stops_at = machine.sleeps_at = -1;
		}
	}
}

int
main(void)
{
	unit_start();
	RUN(slewed);
	RUN(asleep);
	RUN(asleep_between_readings);
	RUN(stopped_between_readings);
	RUN(asleep_then_stopped);
	RUN(all_at_once);
	RUN(in_a_burst);
	RUN(disturbed_in_a_burst);
	RUN(run_disturbed_between_readings);
	return unit_finish();
}
