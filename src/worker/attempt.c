/*
 * attempt.c
 *	  How long an attempt to connect may take, and when the next one begins.
 *
 * Owns what was learned from the attempts since the last proved connection.  Runs
 * in the worker only; takes no locks.  It must not know what an attempt does.
 *
 * A round is one attempt at each host.  In the first one a host gets T / (3 * hosts)
 * to be resolved, as much to accept the connection, and twice that for TLS and the
 * session: so dead hosts cost T/3 together, and hosts that accept and then say
 * nothing 2T/3, which leaves the session a chance.  If one of these times was too
 * short for a host, the next round gives all hosts twice as much.  A host that
 * refuses at once says nothing about time.
 *
 * The start of the session process is no host's affair.  On a machine that starves
 * it, the next process would have to start, too, at whatever host.  So it gets T/3,
 * and if that was too short, the next one gets twice as much, even if that is all the
 * time that the session has.
 *
 * While ZooKeeper may still have the session, no other step lasts longer than T/3,
 * and no pause longer than T/30.  Later there is less hurry, but not none: an ensemble
 * that was down remembers its sessions, and gives them T from its return.
 */
#include "postgres.h"

#include "shared/control.h"
#include "shared/settings.h"
#include "shared/status.h"
#include "worker/attempt.h"

#define FIRST_PAUSE			100000	/* µs */
#define LONGEST_PAUSE		5000000
#define SHORTEST_STEP		100000	/* however many hosts there are */
#define LONGEST_STEP		10000000

/* A part of an attempt: its time doubles when it was too short. */
typedef struct Part
{
	int			doublings;
	bool		was_short;		/* in this round */
} Part;

static Part parts[ZKL_WIRE_STEP_ACCEPTED + 1];	/* behind that step */
static ZklWireStep current = ZKL_WIRE_STEP_NONE;
static int	failures = 0;		/* in this round */
static int64 round_pause = 0;	/* behind the last round */
static int64 parted_at = 0;

static int64
session_timeout(void)
{
	return (int64) zkl_status_timeout_ms() * 1000;
}

void
zkl_attempt_start_anew(void)
{
	memset(parts, 0, sizeof(parts));
	failures = 0;
	round_pause = 0;
}

void
zkl_attempt_parted(int64 now)
{
	parted_at = now;
}

bool
zkl_attempt_may_save(int64 now)
{
	return zkl_control->ctl_status.session_id != 0 &&
		now < parted_at + session_timeout();
}

/* What comes behind that step gets so long at first. */
static int64
first_time(ZklWireStep step)
{
	int			hosts = step == ZKL_WIRE_STEP_NONE ? 1 : zkl_hosts_count();
	int64		share = session_timeout() / (3 * hosts);

	share = Max(Min(share, LONGEST_STEP), SHORTEST_STEP);
	return step == ZKL_WIRE_STEP_ACCEPTED ? 2 * share : share;
}

static int64
time_behind(ZklWireStep step, int64 now)
{
	int64		longest = Max(session_timeout() / 3, SHORTEST_STEP);
	int64		base = first_time(step);

	if (step == ZKL_WIRE_STEP_NONE || !zkl_attempt_may_save(now))
		longest = Max(longest, LONGEST_STEP);
	for (int i = 0; i < parts[step].doublings && base < longest; i++)
		base *= 2;
	return Min(base, longest);
}

int64
zkl_attempt_begin(int64 now)
{
	return zkl_attempt_step(ZKL_WIRE_STEP_NONE, now);
}

int64
zkl_attempt_step(ZklWireStep step, int64 now)
{
	current = step;
	return now + time_behind(step, now);
}

ZklWireStep
zkl_attempt_last_step(void)
{
	return current;
}

int64
zkl_attempt_patience(int64 now)
{
	return Max(session_timeout() / 3, time_behind(ZKL_WIRE_STEP_ACCEPTED, now));
}

void
zkl_attempt_timed_out(void)
{
	parts[current].was_short = true;
}

static void
end_part(Part *part)
{
	part->doublings += part->was_short ? 1 : 0;
	part->was_short = false;
}

/* Pauses within a round are short; those between rounds grow. */
int64
zkl_attempt_failed(int64 now)
{
	int64		timeout = session_timeout();
	int64		longest = zkl_attempt_may_save(now) ? timeout / 30 :
	Min(timeout / 6, LONGEST_PAUSE);

	end_part(&parts[ZKL_WIRE_STEP_NONE]);
	if (++failures < zkl_hosts_count())
		return now + Min(FIRST_PAUSE, timeout / 30);
	failures = 0;
	for (int i = ZKL_WIRE_STEP_STARTED; i < (int) lengthof(parts); i++)
		end_part(&parts[i]);
	round_pause = round_pause == 0 ? FIRST_PAUSE : round_pause * 2;
	round_pause = Min(round_pause, longest);
	return now + round_pause;
}
