/*
 * liveness.c
 *	  Whether the session process and the ZooKeeper server still answer.
 *
 * Owns the times of the last questions to the present process and of its last
 * answers.  Runs in the worker only; takes no locks.  It must not know the link:
 * the supervisor sends the pings and ends the process.
 */
#include "postgres.h"

#include "worker/liveness.h"

/* After so many requests, a session process is replaced; tests set it lower. */
#ifndef ZKL_SESSION_REQUESTS
#define ZKL_SESSION_REQUESTS	(UINT32_C(1) << 27)
#endif

static int64 heard_at = 0;		/* when the session process last spoke */
static int64 pinged_at = 0;		/* 0: no ping is unanswered */
static uint32 requests = 0;		/* to this process */
static uint32 outstanding = 0;	/* operations not yet answered */
static int64 quiet_since = 0;	/* when the server last answered one, or the
								 * first of the outstanding ones was sent */

void
zkl_liveness_begin(int64 now)
{
	zkl_liveness_heard(now);
	requests = 0;
	outstanding = 0;
}

void
zkl_liveness_connected(void)
{
	outstanding = 0;
}

void
zkl_liveness_heard(int64 now)
{
	heard_at = now;
	pinged_at = 0;
}

void
zkl_liveness_pinged(int64 now)
{
	pinged_at = now;
}

void
zkl_liveness_sent(int64 now)
{
	requests++;
	if (outstanding++ == 0)
		quiet_since = now;
}

void
zkl_liveness_answered(int64 now)
{
	zkl_liveness_heard(now);
	quiet_since = now;
	if (outstanding > 0)
		outstanding--;
}

/* An idle session process is asked less often. */
static int64
ping_interval(int64 timeout, bool busy)
{
	return timeout / (busy ? 6 : 3);
}

ZklLiveness
zkl_liveness_check(int64 now, int64 timeout, int64 patience, bool busy)
{
	if (pinged_at != 0 && now - pinged_at >= timeout / 6)
		return ZKL_LIVENESS_PROCESS_SILENT;
	if (outstanding > 0 && now - quiet_since >= patience)
		return ZKL_LIVENESS_SERVER_SILENT;
	if (pinged_at == 0 && now - heard_at >= ping_interval(timeout, busy))
		return ZKL_LIVENESS_PING_DUE;
	return ZKL_LIVENESS_GOOD;
}

int64
zkl_liveness_timer(int64 timeout, int64 patience, bool busy)
{
	int64		due = pinged_at != 0 ? pinged_at + timeout / 6 :
	heard_at + ping_interval(timeout, busy);

	if (outstanding > 0)
		due = Min(due, quiet_since + patience);
	return due;
}

/*
 * ZooKeeper's client numbers its requests in 32 bits, starting from the time of
 * day, and crashes when a number comes near -8.  The process is replaced long
 * before that, and if possible when no answer is outstanding.
 */
bool
zkl_liveness_worn_out(void)
{
	return requests >= ZKL_SESSION_REQUESTS &&
		(outstanding == 0 || requests / 2 >= ZKL_SESSION_REQUESTS);
}
