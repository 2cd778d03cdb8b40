/*
 * clockrate.c
 *	  How much the system corrects the rate of its clock.
 *
 * Owns no state.  Run by backends.  Takes no locks.
 *
 * NTP daemons correct it by the length of a tick, and by a frequency for what is
 * less than that.  A large correction means that the hardware's clock, which
 * leases are measured by, has a wrong rate, or that the daemon slews the clock to
 * make up for a wrong time.  That misleads programs on this machine that do not
 * read the hardware's clock, such as a ZooKeeper server.
 */
#include "postgres.h"

#include <sys/timex.h>
#include <unistd.h>

#include "functions/clockrate.h"

bool
zkl_clockrate_read(double *ppm)
{
	struct timex state;
	double		nominal = 1000000.0 / (double) sysconf(_SC_CLK_TCK);

	memset(&state, 0, sizeof(state));
	if (adjtimex(&state) < 0)
		return false;
	*ppm = ((double) state.tick - nominal) * 1000000.0 / nominal +
		(double) state.freq / 65536.0;
	return true;
}
