/*
 * pulse.c
 *	  Whether the session process, and the server behind it, still answer.
 *
 * Owns what has been asked and heard of the present process, and when.  Runs in
 * the worker only, takes no locks.  It must not know the link: the supervisor
 * sends the pings and ends the process.
 */
#include "postgres.h"

#include "worker/pulse.h"

/* Requests after which a session process is replaced; tests set it lower. */
#ifndef ZKL_SESSION_REQUESTS
#define ZKL_SESSION_REQUESTS	(UINT32_C(1) << 27)
#endif

static int64 heard_at = 0;		/* from the session process */
static int64 pinged_at = 0;		/* 0: no ping is under way */
static uint32 requests = 0;		/* of this process */
static uint32 outstanding = 0;	/* operations not yet answered */
static int64 quiet_since = 0;	/* since when, if some are outstanding */

void
zkl_pulse_begin(int64 now)
{
	zkl_pulse_heard(now);
	requests = 0;
	outstanding = 0;
}

void
zkl_pulse_connected(void)
{
	outstanding = 0;
}

void
zkl_pulse_heard(int64 now)
{
	heard_at = now;
	pinged_at = 0;
}

void
zkl_pulse_pinged(int64 now)
{
	pinged_at = now;
}

void
zkl_pulse_sent(int64 now)
{
	requests++;
	if (outstanding++ == 0)
		quiet_since = now;
}

void
zkl_pulse_answered(int64 now)
{
	zkl_pulse_heard(now);
	quiet_since = now;
	if (outstanding > 0)
		outstanding--;
}

/* A session process that is asked nothing needs few questions. */
static int64
ping_interval(int64 timeout, bool busy)
{
	return timeout / (busy ? 6 : 3);
}

ZklPulse
zkl_pulse_check(int64 now, int64 timeout, bool busy)
{
	if (pinged_at != 0 && now - pinged_at >= timeout / 6)
		return ZKL_PULSE_PROCESS_SILENT;
	if (outstanding > 0 && now - quiet_since >= timeout / 3)
		return ZKL_PULSE_SERVER_SILENT;
	if (pinged_at == 0 && now - heard_at >= ping_interval(timeout, busy))
		return ZKL_PULSE_PING_DUE;
	return ZKL_PULSE_GOOD;
}

int64
zkl_pulse_timer(int64 timeout, bool busy)
{
	int64		due = pinged_at != 0 ? pinged_at + timeout / 6 :
	heard_at + ping_interval(timeout, busy);

	if (outstanding > 0)
		due = Min(due, quiet_since + timeout / 3);
	return due;
}

/*
 * The client numbers its requests from the time of day in 32 bits, and crashes
 * when the number comes near -8: the process is replaced long before, if
 * possible at a moment when nothing is under way.
 */
bool
zkl_pulse_worn_out(void)
{
	return requests >= ZKL_SESSION_REQUESTS &&
		(outstanding == 0 || requests / 2 >= ZKL_SESSION_REQUESTS);
}
