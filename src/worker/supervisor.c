/*
 * supervisor.c
 *	  Keeps a session process running and connected to ZooKeeper.
 *
 * Owns the phase of the connection, what was learned from attempts to connect, and
 * the times of questions to the process and of its answers.  Runs in the worker
 * only; takes no locks but through identity.c.  It must not know locks: it tells the
 * core when a connection stands or breaks.  connect_settings.c has the settings,
 * link.c the process.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "worker/connect_settings.h"
#include "worker/events.h"
#include "worker/identity.h"
#include "worker/link.h"
#include "worker/peers.h"
#include "worker/report.h"
#include "worker/supervisor.h"
#include "worker/worker.h"

/* ---- attempt ---- */

/*
 * How long an attempt to connect may take, and when the next one begins.
 *
 * It must not know what an attempt does.
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

static int64 attempt_step(ZklWireStep step, int64 now);
static void liveness_heard(int64 now);
static int64 patience(int64 now);

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

/* A connection has ended that was proved.  Its session can be saved for a while. */
static void
attempt_parted(int64 now)
{
	parted_at = now;
}

/* Whether ZooKeeper may still have this server's session, as far as the time tells */
static bool
attempt_may_save(int64 now)
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

	if (step == ZKL_WIRE_STEP_NONE || !attempt_may_save(now))
		longest = Max(longest, LONGEST_STEP);
	for (int i = 0; i < parts[step].doublings && base < longest; i++)
		base *= 2;
	return Min(base, longest);
}

/*
 * An attempt begins, or has a step behind it: until when it has time for the next
 * one, the last of which is TLS and the session.
 */
static int64
attempt_begin(int64 now)
{
	return attempt_step(ZKL_WIRE_STEP_NONE, now);
}

static int64
attempt_step(ZklWireStep step, int64 now)
{
	current = step;
	return now + time_behind(step, now);
}

/* The last step of the present attempt, or of the last one */
static ZklWireStep
attempt_last_step(void)
{
	return current;
}

/* How long a connection that is not proved yet may be silent */
static int64
attempt_patience(int64 now)
{
	return Max(session_timeout() / 3, time_behind(ZKL_WIRE_STEP_ACCEPTED, now));
}

/* The time for the attempt is over. */
static void
attempt_timed_out(void)
{
	parts[current].was_short = true;
}

static void
end_part(Part *part)
{
	part->doublings += part->was_short ? 1 : 0;
	part->was_short = false;
}

/*
 * The attempt has failed, for whatever reason: when to begin the next one.
 *
 * Pauses within a round are short; those between rounds grow.
 */
static int64
attempt_failed(int64 now)
{
	int64		timeout = session_timeout();
	int64		longest = attempt_may_save(now) ? timeout / 30 :
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

/* ---- liveness ---- */

/*
 * Whether the session process and the ZooKeeper server still answer.
 *
 * It must not know the link: the supervisor sends the pings and ends the process.
 */

/* After so many requests, a session process is replaced; tests set it lower. */
#ifndef ZKL_SESSION_REQUESTS
#define ZKL_SESSION_REQUESTS	(UINT32_C(1) << 27)
#endif

static int64 heard_at = 0;		/* when the session process last spoke */
static int64 pinged_at = 0;		/* 0: no ping is unanswered */
static uint32 requests = 0;		/* to this process */
static uint32 outstanding = 0;	/* operations not yet answered */
static int64 quiet_since = 0;	/* A new process was started; it is connected.
								 *
								 * */
static void
liveness_begin(int64 now)
{
	liveness_heard(now);
	requests = 0;
	outstanding = 0;
}

static void
liveness_connected(void)
{
	outstanding = 0;
}

/* It said something. */
static void
liveness_heard(int64 now)
{
	heard_at = now;
	pinged_at = 0;
}

static void
liveness_pinged(int64 now)
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

static void
liveness_answered(int64 now)
{
	liveness_heard(now);
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

/* For a connected process; and when to call check at the latest. */
static ZklLiveness
liveness_check(int64 now, int64 timeout, int64 patience, bool busy)
{
	if (pinged_at != 0 && now - pinged_at >= timeout / 6)
		return ZKL_LIVENESS_PROCESS_SILENT;
	if (outstanding > 0 && now - quiet_since >= patience)
		return ZKL_LIVENESS_SERVER_SILENT;
	if (pinged_at == 0 && now - heard_at >= ping_interval(timeout, busy))
		return ZKL_LIVENESS_PING_DUE;
	return ZKL_LIVENESS_GOOD;
}

static int64
liveness_timer(int64 timeout, int64 patience, bool busy)
{
	int64		due = pinged_at != 0 ? pinged_at + timeout / 6 :
	heard_at + ping_interval(timeout, busy);

	if (outstanding > 0)
		due = Min(due, quiet_since + patience);
	return due;
}

/*
 * Whether the process has had so many requests that it has to be replaced.
 *
 * ZooKeeper's client numbers its requests in 32 bits, starting from the time of
 * day, and crashes when a number comes near -8.  The process is replaced long
 * before that, and if possible when no answer is outstanding.
 */
static bool
liveness_worn_out(void)
{
	return requests >= ZKL_SESSION_REQUESTS &&
		(outstanding == 0 || requests / 2 >= ZKL_SESSION_REQUESTS);
}

/* ---- supervisor ---- */

/*
 * One session process is one connection to one host.  When the connection
 * breaks, the next process attaches the same ZooKeeper session by its id and
 * password, at once at first.  attempt says how long that may take, and when to
 * try again.
 *
 * If "zklock.session_timeout" is not the timeout that was requested for the present
 * session, that is replaced by a new one.  The negotiated timeout is not compared:
 * ZooKeeper may have other bounds, and would negotiate the same timeout again.  A
 * session is replaced only while the server is idle, so a busy server keeps its session
 * until a restart.
 */

/* ---- another session timeout ---- */

static int	instead_of = 0;		/* the requested timeout, in ms, if it is no
								 * longer wanted; else 0 */

static void
note_renewal(void)
{
	static int	announced = 0;
	const ZklStatus *status = &zkl_control->ctl_status;

	instead_of = 0;
	if (status->session_id == 0 ||
		status->timeout_asked_ms == (uint32) zkl_session_timeout)
	{
		announced = 0;
		return;
	}
	instead_of = (int) status->timeout_asked_ms;
	if (announced != zkl_session_timeout)
		ereport(LOG,
				(errmsg("parameter \"zklock.session_timeout\" was changed from %d ms to %d ms",
						instead_of, zkl_session_timeout),
				 errdetail("The new value applies to the next ZooKeeper session.  That session begins as soon as no session of this server holds or awaits a distributed lock, or when the server restarts.")));
	announced = zkl_session_timeout;
}

static bool
has_free_slots_only(void)
{
	int			i;

	for (i = 0; i < zkl_control->ctl_nslots; i++)
	{
		if (zkl_slot_peek(i) != ZKL_SLOT_FREE && !zkl_from_slots_is_left(i))
			return false;
	}
	return true;
}

/* Errands, epilogues and kept locks have slots, too. */
static bool
renewal_is_due(void)
{
	return instead_of != 0 &&
		zkl_control->ctl_status.timeout_asked_ms == (uint32) instead_of &&
		zkl_manager_at_rest(zkl_core) && has_free_slots_only();
}

/* Logs that the session is being closed. */
static void
forget_renewal(void)
{
	ereport(LOG,
			(errmsg("closing the ZooKeeper session to begin one with a timeout of %d ms",
					zkl_session_timeout)));
}

/* ---- the connection ---- */

#define REFUSAL_PAUSE		5000000 /* µs */

typedef enum
{
	NO_PROCESS,
	CONNECTING,
	CONNECTED
} ConnectionPhase;

static ConnectionPhase phase = NO_PROCESS;
static uint32 connection = 0;	/* the generation of frames on the link */
static int64 begun_at = 0;		/* the attempt to connect */
static int64 deadline = 0;		/* CONNECTING: to be connected by */
static int64 start_at = 0;		/* NO_PROCESS: not before */
static bool reconnect_wanted = false;
static bool give_up_wanted = false; /* the session, for a new one */
static int	asked_ms = 0;		/* the session timeout that was requested */
static char current_host[ZKL_MAX_HOST] = "";

static int64
session_timeout_us(void)
{
	return (int64) zkl_status_timeout_ms() * 1000;
}

/* ---- the process ---- */

static void
start_process(int64 now)
{
	const char *fault = zkl_in_use_refresh();

	if (fault != NULL)
		zkl_identity_note_error(ZKL_ABOUT_SETTINGS, fault);
	if (fault != NULL ||
		!zkl_launch_begin(connection + 1, zkl_in_use_settings(), current_host, &asked_ms))
	{
		start_at = attempt_failed(now);
		return;
	}
	connection++;
	phase = CONNECTING;
	begun_at = now;
	liveness_begin(now);
	deadline = attempt_begin(now);
}

/* Kills the process and plans the next one. */
static void
end_process(int64 now)
{
	bool		connected = phase == CONNECTED;
	bool		proved = zkl_control->ctl_status.state == ZKL_STATE_CONNECTED;

	zkl_link_kill();
	phase = NO_PROCESS;
	reconnect_wanted = give_up_wanted = false;
	if (zkl_closing_until() != 0)
		(void) zkl_closing_end(false);
	zkl_identity_process_ended(connected);
	if (connected)
		zkl_worker_tell(ZKL_EVENT(DISCONNECTED));
	if (proved)
		attempt_parted(now);
	start_at = proved ? now : attempt_failed(now);
}

/* A present process has other settings than those that are in use now. */
static void
replace_process(int64 now)
{
	if (phase != NO_PROCESS)
		end_process(now);
	start_at = now;
}

/* START has told what was wanted then. */
static void
put_want_log(void)
{
	ZklWireBuffer *out = zkl_link_output();
	size_t		frame = zkl_wire_begin(out, ZKL_WIRE_WANT_LOG, connection, 0, 0);

	zkl_wire_put_u8(out, zkl_trace);
	zkl_wire_end(out, frame);
}

void
zkl_supervisor_reload(int64 now)
{
	note_renewal();
	if (phase != NO_PROCESS)
		put_want_log();

	/* What failed so far may work by now. */
	if (phase == NO_PROCESS)
		start_at = 0;
	if (zkl_in_use_reload())
		replace_process(now);
}

bool
zkl_supervisor_move(void)
{
	if (phase == NO_PROCESS)
		start_at = 0;
	return zkl_in_use_try();
}

uint32
zkl_supervisor_attempt(void)
{
	return connection;
}

void
zkl_supervisor_begin(void)
{
	zkl_identity_process_ended(false);
	attempt_parted(zkl_boottime_us());
	zkl_supervisor_reload(0);
}

/* ---- frames ---- */

static void
lose_session(int64 now)
{
	zkl_identity_lose();
	zkl_worker_tell(ZKL_EVENT(SESSION_LOST));
}

static void
take_step(ZklWireStep step, int64 now)
{
	if (phase == CONNECTING && step > attempt_last_step() &&
		step <= ZKL_WIRE_STEP_ACCEPTED)
		deadline = attempt_step(step, now);
}

static void
take_connected(ZklWireReader *body, int64 now)
{
	ZklSession	session;
	uint32_t	length;
	const char *password;
	uint32_t	version_length;
	const char *version;
	ZklTlsStatus tls;
	uint32_t	address_length;
	const char *address;

	session.id = zkl_wire_get_i64(body);
	password = zkl_wire_get_string(body, &length);
	session.timeout_ms = zkl_wire_get_u32(body);
	if (body->bad || session.id == 0 || session.timeout_ms == 0)
	{
		zkl_supervisor_link_broken(now);
		return;
	}
	if (zkl_control->ctl_status.session_id != 0 &&
		zkl_control->ctl_status.session_id != session.id)
		lose_session(now);
	version = zkl_wire_get_string(body, &version_length);
	zkl_identity_note_program(version, version_length, zkl_wire_get_u32(body));
	zkl_launch_get_tls(body, &tls);
	zkl_identity_note_security(&tls, zkl_wire_get_u8(body));
	address = zkl_wire_get_string(body, &address_length);
	zkl_peers_connected(address, address_length);
	session.begun_at = begun_at;
	zkl_identity_adopt(&session, password, length, current_host, asked_ms);

	/* The setting may have changed while this session was being made. */
	note_renewal();
	take_step(ZKL_WIRE_STEP_ACCEPTED, now);
	phase = CONNECTED;
	liveness_connected();
	zkl_worker_tell(ZKL_EVENT(CONNECTED,.session = &session));
}

/* After a session that could not be used, there is a pause before the next. */
static void
finish_closing(bool acknowledged, int64 now)
{
	bool		replaced = zkl_closing_end(acknowledged);

	end_process(now);
	start_at = now;
	if (replaced)
		zkl_attempt_start_anew();
	else
	{
		zkl_identity_set_state(ZKL_STATE_DISCONNECTED);
		start_at += REFUSAL_PAUSE;
	}
}

static void
take_gone(ZklWireReader *body, int64 now)
{
	ZklWireGone reason = (ZklWireGone) zkl_wire_get_u8(body);
	bool		connected = phase == CONNECTED;
	const char *why;

	if (zkl_closing_until() != 0)
	{
		finish_closing(reason == ZKL_WIRE_GONE_CLOSED, now);
		return;
	}
	why = zkl_diagnosis_of_gone(reason, body);
	if (reason == ZKL_WIRE_GONE_EXPIRED)
		zkl_identity_note_change(ZKL_ABOUT_ANSWER, ZKL_STATE_EXPIRED, why);
	else if (reason == ZKL_WIRE_GONE_AUTH_FAILED)
		zkl_identity_note_change(ZKL_ABOUT_SETTINGS, ZKL_STATE_AUTH_FAILED, why);
	else if (reason == ZKL_WIRE_GONE_UNSUITABLE)
		zkl_identity_note_answer(ZKL_RC_UNSUITABLE, why);
	else
		zkl_identity_note_error(reason == ZKL_WIRE_GONE_DISTRUSTED ?
								ZKL_ABOUT_SETTINGS : ZKL_ABOUT_CONNECTION, why);
	end_process(now);
	if (reason == ZKL_WIRE_GONE_EXPIRED)
	{
		lose_session(now);
		start_at = now;
	}
	else if (reason == ZKL_WIRE_GONE_AUTH_FAILED)
	{
		zkl_identity_set_state(ZKL_STATE_AUTH_FAILED);
		if (!attempt_may_save(now))
			start_at = now + REFUSAL_PAUSE;
	}
	else if (reason == ZKL_WIRE_GONE_UNSUITABLE && connected)
		start_at = now + REFUSAL_PAUSE;
}

static void
take_version(ZklWireReader *body)
{
	uint32_t	length;
	const char *text = zkl_wire_get_string(body, &length);
	const char *version = pnstrdup(text, length);

	zkl_identity_note_release(version);
	zkl_diagnosis_check_version(version, current_host);
}

void
zkl_supervisor_frame(const ZklWireHeader *header, ZklWireReader *body,
					 int64 now)
{
	liveness_heard(now);
	switch (header->type)
	{
		case ZKL_WIRE_STEP:
			take_step((ZklWireStep) zkl_wire_get_u8(body), now);
			break;
		case ZKL_WIRE_CONNECTED:
			take_connected(body, now);
			break;
		case ZKL_WIRE_GONE:
			take_gone(body, now);
			break;
		case ZKL_WIRE_LOG:
			zkl_tracefile_take_log(body);
			break;
		case ZKL_WIRE_VERSION:
			take_version(body);
			break;
		default:
			break;
	}
}

void
zkl_supervisor_link_broken(int64 now)
{
	zkl_identity_note_error(ZKL_ABOUT_PROCESS, phase == CONNECTED ?
							"the session process ended unexpectedly" :
							zkl_diagnosis_of_crash(attempt_last_step()));
	end_process(now);
}

void
zkl_supervisor_reconnect(int32 rc)
{
	const char *why = zkl_diagnosis_of(rc, current_host);

	if (phase != CONNECTED)
		return;					/* the connection broke meanwhile */
	if (rc == ZKL_RC_WENT_BACK)
		zkl_identity_note_change(ZKL_ABOUT_ANSWER, ZKL_STATE_EXPIRED, why);
	else
		zkl_identity_note_answer(rc, why);

	/*
	 * If transaction ids went back, new tokens would be smaller than some
	 * that were given before, and a fence would let neither pass, or both.
	 * The worker closes the session properly, so that its znodes do not stand
	 * in the way of others.
	 */
	if (rc == ZKL_RC_WENT_BACK)
		give_up_wanted = true;
	else
		reconnect_wanted = true;
}

void
zkl_supervisor_answered(int64 now)
{
	liveness_answered(now);
	if (zkl_manager_ready(zkl_core) &&
		zkl_control->ctl_status.state != ZKL_STATE_CONNECTED)
	{
		zkl_identity_set_state(ZKL_STATE_CONNECTED);
		zkl_attempt_start_anew();
		zkl_identity_log(psprintf("connected to ZooKeeper server \"%s\", with a session timeout of %u ms",
								  current_host,
								  zkl_control->ctl_status.timeout_ms));
		zkl_diagnosis_check_timeout(zkl_control->ctl_status.timeout_ms,
									zkl_control->ctl_status.generation);
		zkl_link_say(ZKL_WIRE_ASK_VERSION, connection);
	}
}

uint32
zkl_supervisor_generation(void)
{
	return phase == CONNECTED && !give_up_wanted && zkl_closing_until() == 0 ?
		connection : 0;
}

/* ---- time ---- */

/* How long the server may be silent */
static int64
patience(int64 now)
{
	return zkl_manager_ready(zkl_core) ? session_timeout_us() / 3 :
		attempt_patience(now);
}

static void
check_connected(int64 now)
{
	switch (liveness_check(now, session_timeout_us(), patience(now),
						   zkl_manager_live(zkl_core) > 0))
	{
		case ZKL_LIVENESS_GOOD:
			break;
		case ZKL_LIVENESS_PING_DUE:
			zkl_link_say(ZKL_WIRE_PING, connection);
			liveness_pinged(now);
			break;
		case ZKL_LIVENESS_PROCESS_SILENT:
			zkl_identity_note_error(ZKL_ABOUT_PROCESS, "the session process does not answer");
			end_process(now);
			break;
		case ZKL_LIVENESS_SERVER_SILENT:
			zkl_identity_note_error(ZKL_ABOUT_CONNECTION, psprintf("ZooKeeper server \"%s\" does not answer",
																   current_host));
			attempt_timed_out();
			end_process(now);
			break;
	}
}

/*
 * Locks are disabled, and nothing needs the session any more.  If it cannot be
 * closed, it is left to expire.
 */
static void
end_unneeded(int64 now)
{
	if (phase == CONNECTED)
	{
		ereport(LOG,
				(errmsg("closing the ZooKeeper session because \"zklock.enabled\" is off")));
		zkl_closing_replace(connection, now);
		return;
	}
	if (phase == CONNECTING)
		end_process(now);
	if (zkl_control->ctl_status.session_id == 0)
		return;
	zkl_identity_left(zkl_status_timeout_ms());
	zkl_identity_leave();
	zkl_worker_tell(ZKL_EVENT(SESSION_LOST));
}

void
zkl_supervisor_tick(int64 now)
{
	if (zkl_closing_until() == 0 && !zkl_closing_needs_session())
	{
		/* Then there is nothing to lose. */
		if (zkl_trial_is_pending())
			zkl_in_use_take_wanted();
		end_unneeded(now);
		return;
	}

	/* A session that is being closed comes first; then a trial starts again. */
	if (zkl_closing_until() != 0)
		zkl_trial_put_off();
	else if (zkl_in_use_tick(now))
		replace_process(now);
	if (phase == NO_PROCESS && now >= Max(start_at, zkl_closing_not_before()))
		start_process(now);
	else if (phase == CONNECTING && now >= deadline)
	{
		zkl_identity_note_error(attempt_last_step() == ZKL_WIRE_STEP_NONE ?
								ZKL_ABOUT_PROCESS : ZKL_ABOUT_CONNECTION,
								zkl_diagnosis_of_late(attempt_last_step(),
													  current_host));
		attempt_timed_out();
		end_process(now);
	}
	else if (phase == CONNECTED && zkl_closing_until() != 0)
	{
		if (now >= zkl_closing_until())
			finish_closing(false, now);
	}
	else if (phase == CONNECTED && give_up_wanted)
	{
		give_up_wanted = false;
		zkl_closing_give_up(connection, now);
	}
	else if (phase == CONNECTED && (reconnect_wanted || liveness_worn_out()))
		end_process(now);
	else if (phase == CONNECTED && renewal_is_due())
	{
		forget_renewal();
		zkl_closing_replace(connection, now);
	}
	else if (phase == CONNECTED)
		check_connected(now);
}

static int64
timer_of_connection(void)
{
	if (zkl_closing_until() == 0 && !zkl_closing_needs_session())
		return phase == NO_PROCESS ? -1 : 0;
	if (phase == NO_PROCESS)
		return Max(start_at, zkl_closing_not_before());
	if (phase == CONNECTING)
		return deadline;
	if (zkl_closing_until() != 0)
		return zkl_closing_until();
	if (reconnect_wanted || give_up_wanted || renewal_is_due())
		return 0;
	return liveness_timer(session_timeout_us(), patience(zkl_boottime_us()),
						  zkl_manager_live(zkl_core) > 0);
}

int64
zkl_supervisor_timer(void)
{
	int64		due = timer_of_connection();
	int64		trial = zkl_trial_timer();

	if (trial < 0 || zkl_closing_until() != 0)
		return due;
	return due < 0 ? trial : Min(due, trial);
}

void
zkl_supervisor_close_session(void)
{
	zkl_trial_end();
	if (phase == CONNECTED && zkl_closing_wait(connection))
		zkl_identity_leave();
	zkl_link_kill();
}
