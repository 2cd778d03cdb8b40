/*
 * clocks.h
 *	  Clocks that run at rates of their own, which change during a run.
 */
#ifndef SIM_CLOCKS_H
#define SIM_CLOCKS_H

#include "base.h"

#define MOST_RATES	64			/* of one clock in a run */
#define WORST_PPM	1000		/* as far off as S1 assumes, at most */

/* What a clock shows from a true time on, and at which rate it goes on */
typedef struct Rate
{
	Time		since;
	Time		shows;
	int			ppm;
} Rate;

typedef struct Clock
{
	int			n;
	Rate		rates[MOST_RATES];
} Clock;

/* It shows that at the true time 0. */
extern void clock_set(Clock *clock, Time shows, int ppm);
extern int	clock_ppm(const Clock *clock);
extern Time clock_now(const Clock *clock);

/*
 * The true time at which it shows that; of a time that is to come, if it keeps
 * its rate
 */
extern Time clock_true_time(const Clock *clock, Time shown);

/* From now on it has another rate, if it has not had too many. */
extern void clock_slew(Clock *clock, int ppm);

/* ---- which clocks are slewed, and when ---- */

extern void clocks_begin(void);
extern Time clocks_due(void);
extern void clocks_step(void);
extern void clocks_calm(void);

#endif							/* SIM_CLOCKS_H */
