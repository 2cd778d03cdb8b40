/*
 * clocks.c
 *	  The clocks of servers and of ZooKeeper's leader, and their changes.
 *
 * Owns when a clock is slewed.  Only the profile "slew" does that.  Must not know
 * what is measured with a clock.
 */
#include "agenda.h"
#include "clocks.h"
#include "core/assert.h"
#include "draw.h"
#include "host.h"
#include "oracle.h"

static Time next;
static Time every;

/* ---- one clock ---- */

static Time
rate_at(const Rate *rate, Time t)
{
	t -= rate->since;
	return rate->shows + t + t * rate->ppm / 1000000;
}

void
clock_set(Clock *clock, Time shows, int ppm)
{
	clock->n = 1;
	clock->rates[0] = (Rate)
	{
		0, shows, ppm
	};
}

int
clock_ppm(const Clock *clock)
{
	return clock->rates[clock->n - 1].ppm;
}

Time
clock_now(const Clock *clock)
{
	return rate_at(&clock->rates[clock->n - 1], base.now);
}

Time
clock_true_time(const Clock *clock, Time shown)
{
	const Rate *rate = &clock->rates[clock->n - 1];
	Time		t;

	while (rate > clock->rates && shown < rate->shows)
		rate--;
	t = rate->since + (shown - rate->shows) * 1000000 / (1000000 + rate->ppm);
	while (rate_at(rate, t) < shown)
		t++;
	return t;
}

void
clock_slew(Clock *clock, int ppm)
{
	if (clock->n == MOST_RATES)
		return;
	clock->rates[clock->n] = (Rate)
	{
		base.now, clock_now(clock), ppm
	};
	clock->n++;
}

/* ---- all of them ---- */

void
clocks_begin(void)
{
	next = every = NEVER;
	if (base.profile != PROFILE_SLEW)
		return;
	every = ens.timeout / DRAW(2, 5, 20);
	next = base.now + some_delay(every);
}

Time
clocks_due(void)
{
	return next;
}

/*
 * NTP slews the system's clocks by up to 83 333 ppm.  A server that measures with
 * another one is as far off as its hardware.
 */
static int
rate_of_host(void)
{
	int			worst = ZKL_MUTANT(CLOCK_SLEWED) ? 83333 : WORST_PPM;

	return once_in(2) ? (int) below(2 * worst + 1) - worst : (int) DRAW(-worst, worst);
}

void
clocks_step(void)
{
	int			i = (int) below(hosts.n + 1);

	next = base.now + some_delay(every);
	agenda_all_changed();
	if (i == hosts.n)
		sessions_slew((int) DRAW(-WORST_PPM, 0, WORST_PPM));
	else
		clock_slew(&hosts.host[i].clock, rate_of_host());
	trace("clock # has the rate #", i, i == hosts.n ? clock_ppm(&ens.leader_clock) :
		  clock_ppm(&hosts.host[i].clock), 0, 0, NULL);
	for (i = 0; i < hosts.n; i++)
		oracle_slewed(&hosts.host[i]);
}

void
clocks_calm(void)
{
	next = NEVER;
}
