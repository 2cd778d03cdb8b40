/*
 * identity.c
 *	  What zk_status shows of the worker, and which ZooKeeper session belongs to
 *	  this server.
 *
 * Owns ZklStatus, but for the counters, which carry_out.c and peers.c publish, for
 * lapsed_at and lapses, which belong to diagnosis.c, and for fleet_generation and
 * clone, which belong to fleet_entry.c.  Runs in the worker only.  Takes no locks.  It
 * must not know how a connection is made, and tells the core nothing.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "shared/status.h"
#include "utils/timestamp.h"
#include "worker/identity.h"

#define LOG_INTERVAL_MS		60000	/* by boottime.h */
#define MAX_LOGGED			4
#define FIRST_PAUSE_MS		1000
#define LONGEST_PAUSE_MS	60000
#define MOST_DOUBLINGS		10

static int64 last_logged = -LOG_INTERVAL_MS;	/* an error, in ms */
static uint32 logged[MAX_LOGGED];	/* hashes of errors logged since then */
static int	nlogged = 0;
static uint32 told = 0;			/* states that errors led to since the last
								 * connection, as bits */
static long suppressed = 0;		/* messages that were not logged since then */
static bool served = true;		/* whether this session ever was in use */
static char session_password[ZKL_PASSWORD_BYTES];	/* a secret: shown nowhere */

/*
 * An ensemble that is away for a night must not fill the log.  Unless the worker
 * was connected until now, it repeats an error only once in a while.
 */
static bool
may_log(void)
{
	return zkl_control->ctl_status.state == ZKL_STATE_CONNECTED ||
		zkl_boottime_ms() - last_logged >= LOG_INTERVAL_MS;
}

static bool
may_log_error(const char *message)
{
	uint32		hash = hash_bytes((const unsigned char *) message,
								  (int) strlen(message));
	int			i;

	if (may_log())
		nlogged = 0;
	for (i = 0; i < nlogged; i++)
	{
		if (logged[i] == hash)
			return false;
	}
	if (nlogged == MAX_LOGGED)
		return false;
	logged[nlogged++] = hash;
	return true;
}

void
zkl_identity_log_anew(void)
{
	last_logged = -LOG_INTERVAL_MS;
	told = 0;
}

static void
log_message(bool loud, const char *message)
{
	long		before = suppressed;

	suppressed = loud ? 0 : suppressed + 1;
	ereport(loud ? LOG : DEBUG1,
			(errmsg_internal("zklock: %s", message),
			 loud && before > 0 ?
			 errdetail_plural("%ld message about the connection was not logged since the previous one.",
							  "%ld messages about the connection were not logged since the previous one.",
							  before, before) : 0));
}

void
zkl_identity_log(const char *message)
{
	log_message(true, message);
}

static void
note_error(ZklErrorKind kind, int32 rc, const char *message, bool loud)
{
	ZklStatus  *status = zkl_status_begin();

	strlcpy(status->last_error, message, sizeof(status->last_error));
	status->last_error_at = GetCurrentTimestamp();
	status->last_rc = rc;
	status->errors[kind]++;
	zkl_status_end();

	if (loud)
		last_logged = zkl_boottime_ms();
	log_message(loud, message);
}

void
zkl_identity_note_error(ZklErrorKind kind, const char *message)
{
	note_error(kind, 0, message, may_log_error(message));
}

void
zkl_identity_note_answer(int32 rc, const char *message)
{
	note_error(ZKL_ABOUT_ANSWER, rc, message, may_log_error(message));
}

void
zkl_identity_note_change(ZklErrorKind kind, ZklWorkerState state,
						 const char *message)
{
	uint32		bit = 1U << state;
	bool		changes = (told & bit) == 0;

	told |= bit;
	note_error(kind, 0, message, may_log_error(message) || changes);
}

void
zkl_identity_note_settings(const char *fault)
{
	ZklStatus  *status = zkl_status_begin();

	strlcpy(status->settings_fault, fault != NULL ? fault : "",
			sizeof(status->settings_fault));
	zkl_status_end();
}

static void
enter_state(ZklStatus *status, ZklWorkerState state)
{
	status->state = state;
	if (state == ZKL_STATE_CONNECTED)
		status->away_since = 0;
	else if (status->away_since == 0)
		status->away_since = zkl_boottime_ms();
}

void
zkl_identity_set_state(ZklWorkerState state)
{
	ZklStatus  *status = zkl_status_begin();

	enter_state(status, state);
	if (state == ZKL_STATE_CONNECTED)
	{
		status->connected_since = GetCurrentTimestamp();
		told = 0;
	}
	zkl_status_end();
	served |= state == ZKL_STATE_CONNECTED;
}

/* ---- processes ---- */

void
zkl_identity_begin(void)
{
	ZklStatus  *status = zkl_status_begin();

	status->worker_starts++;
	status->worker_pid = MyProcPid;
	status->worker_procno = zkl_compat_my_procno();
	enter_state(status, status->session_id != 0 ? ZKL_STATE_DISCONNECTED :
				ZKL_STATE_CONNECTING);
	zkl_status_end();
}

void
zkl_identity_end(void)
{
	ZklStatus  *status = zkl_status_begin();

	status->worker_pid = 0;
	status->worker_procno = ZKL_PROCNO_NONE;
	status->session_pid = 0;
	status->watches = 0;
	enter_state(status, ZKL_STATE_STOPPED);
	status->server[0] = '\0';
	zkl_status_end();
}

void
zkl_identity_process_started(int pid)
{
	ZklStatus  *status = zkl_status_begin();

	status->session_pid = pid;
	if (status->state != ZKL_STATE_CONNECTING)
		enter_state(status, ZKL_STATE_DISCONNECTED);
	zkl_status_end();
}

void
zkl_identity_process_ended(bool was_connected)
{
	ZklStatus  *status = zkl_status_begin();

	status->session_pid = 0;
	status->server[0] = '\0';
	if (was_connected)
		enter_state(status, ZKL_STATE_DISCONNECTED);
	zkl_status_end();
}

/* ---- the session ---- */

void
zkl_identity_adopt(ZklSession *session, const char *password, size_t length,
				   const char *server, uint32 asked_ms)
{
	ZklStatus  *status = zkl_status_begin();
	bool		fresh = status->session_id != session->id;

	/* ZooKeeper never changes a session's password. */
	if (fresh)
	{
		status->generation++;
		status->timeout_asked_ms = asked_ms;
		status->session_since = GetCurrentTimestamp();
		memset(session_password, 0, sizeof(session_password));
		memcpy(session_password, password, Min(length, sizeof(session_password)));
	}
	status->session_id = session->id;
	status->timeout_ms = session->timeout_ms;
	status->connects++;
	strlcpy(status->server, server, sizeof(status->server));
	status->zookeeper_version[0] = '\0';
	session->generation = status->generation;
	zkl_status_end();

	session->zxid_seen = (int64)
		pg_atomic_read_u64(&zkl_control->ctl_zxid_seen);
	if (!fresh)
		return;
	served = false;
	zkl_lease_publish(session->generation, 0);
}

const char *
zkl_identity_password(void)
{
	return session_password;
}

void
zkl_identity_note_program(const char *version, size_t length,
						  uint32 link_protocol)
{
	ZklStatus  *status = zkl_status_begin();

	memset(status->session_version, 0, sizeof(status->session_version));
	memcpy(status->session_version, version,
		   Min(length, sizeof(status->session_version) - 1));
	status->link_protocol = link_protocol;
	zkl_status_end();
}

void
zkl_identity_note_security(const ZklTlsStatus *tls, uint8 access)
{
	ZklStatus  *status = zkl_status_begin();

	status->tls = *tls;
	status->access = access;
	zkl_status_end();
}

void
zkl_identity_note_release(const char *version)
{
	ZklStatus  *status = zkl_status_begin();

	strlcpy(status->zookeeper_version, version, sizeof(status->zookeeper_version));
	zkl_status_end();
}

void
zkl_identity_note_refused(const char *path)
{
	ZklStatus  *status = zkl_status_begin();

	strlcpy(status->refused, path, sizeof(status->refused));
	zkl_status_end();
}

static void
forget_session(ZklWorkerState state, bool lost)
{
	ZklStatus  *status = zkl_status_begin();
	uint32		generation = ++status->generation;

	if (status->session_id != 0 && lost)
		status->sessions_lost++;
	status->session_id = 0;
	memset(session_password, 0, sizeof(session_password));
	status->timeout_ms = 0;
	enter_state(status, state);
	zkl_status_end();
	zkl_lease_publish(generation, 0);
}

void
zkl_identity_lose(void)
{
	/* A session that never was in use has lost no locks. */
	forget_session(ZKL_STATE_EXPIRED, served);
}

void
zkl_identity_leave(void)
{
	forget_session(ZKL_STATE_DISCONNECTED, false);
}

/* In ms: from the second of workers in a row on that have ended soon */
static int64
pause_after(int quick_ends)
{
	int			doublings = Min(quick_ends - 1, MOST_DOUBLINGS);

	return quick_ends < 2 ? 0 : Min((int64) FIRST_PAUSE_MS << doublings, LONGEST_PAUSE_MS);
}

/*
 * A worker has had no session before left_until.  From then on it counts how long it has
 * run.
 */
static void
wait_after_worker(bool had_session)
{
	const ZklStatus *before = &zkl_control->ctl_status;
	int64		now = zkl_boottime_ms();
	int64		since = Max(before->worker_since, before->left_until);
	int64		left_until = before->left_until;
	bool		soon = before->worker_since != 0 && now - since < zkl_session_timeout;
	ZklStatus  *status;

	if (had_session)
		left_until = now + before->timeout_ms + 2 * zkl_tick_time;
	status = zkl_status_begin();
	status->quick_ends = soon ? status->quick_ends + 1 : 0;
	status->worker_since = now;
	status->left_until = Max(left_until, now + pause_after(status->quick_ends));
	zkl_status_end();
}

void
zkl_identity_take_over(void)
{
	int64		session = zkl_control->ctl_status.session_id;
	int64		wait;

	wait_after_worker(session != 0);
	wait = zkl_control->ctl_status.left_until - zkl_boottime_ms();
	if (session != 0)
	{
		forget_session(ZKL_STATE_DISCONNECTED, true);
		zkl_identity_note_error(ZKL_ABOUT_PROCESS,
								psprintf("the session 0x%llx of a worker that has ended is left to expire; locks that were held in it are lost, and the next session begins in %lld ms",
										 (unsigned long long) session, (long long) wait));
	}
	else if (wait > 0)
		zkl_identity_note_error(ZKL_ABOUT_PROCESS,
								psprintf("workers before this one have ended; the next session begins in %lld ms",
										 (long long) wait));
}

void
zkl_identity_left(uint32 timeout_ms)
{
	ZklStatus  *status = zkl_status_begin();

	status->left_until = timeout_ms == 0 ? 0 :
		zkl_boottime_ms() + timeout_ms + 2 * zkl_tick_time;
	zkl_status_end();
}
