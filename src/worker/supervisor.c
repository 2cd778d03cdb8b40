/*
 * supervisor.c
 *	  Keeps a session process running and connected to ZooKeeper.
 *
 * Owns the phase of the connection.  Runs in the worker only; takes no locks but
 * through identity.c.  It must not know locks: it tells the core when a connection
 * stands or breaks.  in_use.c has the settings, launch.c starts a process, liveness.c
 * tells whether it still answers.
 *
 * One session process is one connection to one host.  When the connection
 * breaks, the next process attaches the same ZooKeeper session by its id and
 * password, at once at first.  attempt.c says how long that may take, and when to
 * try again.
 *
 * If "zklock.session_timeout" is not the timeout that was requested for the present
 * session, that is replaced by a new one.  The negotiated timeout is not compared:
 * ZooKeeper may have other bounds, and would negotiate the same timeout again.  A
 * session is replaced only while the server is idle, so a busy server keeps its session
 * until a restart.
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
#include "worker/attempt.h"
#include "worker/closing.h"
#include "worker/diagnosis.h"
#include "worker/from_slots.h"
#include "worker/identity.h"
#include "worker/in_use.h"
#include "worker/launch.h"
#include "worker/link.h"
#include "worker/liveness.h"
#include "worker/peers.h"
#include "worker/supervisor.h"
#include "worker/tracefile.h"
#include "worker/trial.h"
#include "worker/worker.h"

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
		start_at = zkl_attempt_failed(now);
		return;
	}
	connection++;
	phase = CONNECTING;
	begun_at = now;
	zkl_liveness_begin(now);
	deadline = zkl_attempt_begin(now);
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
		zkl_attempt_parted(now);
	start_at = proved ? now : zkl_attempt_failed(now);
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
	zkl_attempt_parted(zkl_boottime_us());
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
	if (phase == CONNECTING && step > zkl_attempt_last_step() &&
		step <= ZKL_WIRE_STEP_ACCEPTED)
		deadline = zkl_attempt_step(step, now);
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
	zkl_liveness_connected();
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
		if (!zkl_attempt_may_save(now))
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
	zkl_liveness_heard(now);
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
							zkl_diagnosis_of_crash(zkl_attempt_last_step()));
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
	zkl_liveness_answered(now);
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
		zkl_attempt_patience(now);
}

static void
check_connected(int64 now)
{
	switch (zkl_liveness_check(now, session_timeout_us(), patience(now),
							   zkl_manager_live(zkl_core) > 0))
	{
		case ZKL_LIVENESS_GOOD:
			break;
		case ZKL_LIVENESS_PING_DUE:
			zkl_link_say(ZKL_WIRE_PING, connection);
			zkl_liveness_pinged(now);
			break;
		case ZKL_LIVENESS_PROCESS_SILENT:
			zkl_identity_note_error(ZKL_ABOUT_PROCESS, "the session process does not answer");
			end_process(now);
			break;
		case ZKL_LIVENESS_SERVER_SILENT:
			zkl_identity_note_error(ZKL_ABOUT_CONNECTION, psprintf("ZooKeeper server \"%s\" does not answer",
																   current_host));
			zkl_attempt_timed_out();
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
		zkl_identity_note_error(zkl_attempt_last_step() == ZKL_WIRE_STEP_NONE ?
								ZKL_ABOUT_PROCESS : ZKL_ABOUT_CONNECTION,
								zkl_diagnosis_of_late(zkl_attempt_last_step(),
													  current_host));
		zkl_attempt_timed_out();
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
	else if (phase == CONNECTED && (reconnect_wanted || zkl_liveness_worn_out()))
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
	return zkl_liveness_timer(session_timeout_us(), patience(zkl_boottime_us()),
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
