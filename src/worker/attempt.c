/*
 * attempt.c
 *	  How long an attempt to connect may take, and when the next one begins.
 *
 * Owns what was learned from the attempts since the last proved connection.  Runs
 * in the worker only; takes no locks.  It must not know what an attempt does.
 *
 * A round is one attempt at each host.  In the first one a host gets T / (3 * hosts)
 * to accept the connection, and twice that for TLS and the session: so dead hosts
 * cost T/3 together, and hosts that accept and then say nothing 2T/3, which leaves
 * the session a chance.  If that time was too short for a host, the next round gives
 * all hosts twice as much.  A host that refuses at once says nothing about time.
 *
 * While ZooKeeper may still have the session, no attempt lasts longer than T/3, and
 * no pause longer than T/30.  Later there is less hurry, but not none: an ensemble
 * that was down remembers its sessions, and gives them T from its return.
 */
#include "postgres.h"

#include "shared/control.h"
#include "shared/hosts.h"
#include "shared/status.h"
#include "worker/attempt.h"

#define FIRST_PAUSE			100000	/* µs */
#define LONGEST_PAUSE		5000000
#define SHORTEST_ATTEMPT	100000	/* however many hosts there are */
#define LONGEST_ATTEMPT		10000000

/* A part of an attempt: its time doubles when it was too short. */
typedef struct Step
{
	int			doublings;
	bool		was_short;		/* in this round */
} Step;

static Step accepting;
static Step answering;
static Step *current = &accepting;
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
	memset(&accepting, 0, sizeof(accepting));
	memset(&answering, 0, sizeof(answering));
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

static int64
time_for(const Step *step, int64 base, int64 now)
{
	int64		longest = Max(session_timeout() / 3, SHORTEST_ATTEMPT);

	if (!zkl_attempt_may_save(now))
		longest = Max(longest, LONGEST_ATTEMPT);
	for (int i = 0; i < step->doublings && base < longest; i++)
		base *= 2;
	return Min(base, longest);
}

static int64
share_of_host(void)
{
	int64		share = session_timeout() / (3 * zkl_hosts_count());

	return Max(Min(share, LONGEST_ATTEMPT), SHORTEST_ATTEMPT);
}

static int64
answer_time(int64 now)
{
	return time_for(&answering, 2 * share_of_host(), now);
}

int64
zkl_attempt_begin(int64 now)
{
	current = &accepting;
	return now + time_for(&accepting, share_of_host(), now);
}

int64
zkl_attempt_accepted(int64 now)
{
	current = &answering;
	return now + answer_time(now);
}

int64
zkl_attempt_patience(int64 now)
{
	return Max(session_timeout() / 3, answer_time(now));
}

void
zkl_attempt_timed_out(void)
{
	current->was_short = true;
}

static void
end_step(Step *step)
{
	step->doublings += step->was_short ? 1 : 0;
	step->was_short = false;
}

/* Pauses within a round are short; those between rounds grow. */
int64
zkl_attempt_failed(int64 now)
{
	int64		timeout = session_timeout();
	int64		longest = zkl_attempt_may_save(now) ? timeout / 30 :
	Min(timeout / 6, LONGEST_PAUSE);

	if (++failures < zkl_hosts_count())
		return now + Min(FIRST_PAUSE, timeout / 30);
	failures = 0;
	end_step(&accepting);
	end_step(&answering);
	round_pause = round_pause == 0 ? FIRST_PAUSE : round_pause * 2;
	round_pause = Min(round_pause, longest);
	return now + round_pause;
}
