/*
 * identity.c
 *	  What zk_status shows of the worker, which ZooKeeper session belongs to this
 *	  server, and its entry in the fleet.
 *
 * Owns ZklStatus, but for the counters, which carry_out.c and peers.c publish, and
 * for lapsed_at and lapses, which belong to report.c; and what was written into the
 * fleet's directory last.  Runs in the worker only.  Takes no locks.  It must not
 * know how a connection is made, nor locks, and tells the core nothing.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "postmaster/postmaster.h"
#include "shared/boottime.h"
#include "shared/compat.h"
#include "shared/control.h"
#include "shared/fleet.h"
#include "shared/gate.h"
#include "shared/settings.h"
#include "utils/timestamp.h"
#include "wire/version.h"
#include "worker/identity.h"
#include "worker/operation.h"
#include "worker/supervisor.h"

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

/* ---- fleet_entry ---- */

/*
 * This server's znode in the directory of the fleet, by which others know of it; and
 * whether there is a clone of this server.
 *
 * It must not know locks.
 *
 * The znode is written once the first beat of a new session is acknowledged, and
 * again when something in it has changed.  If the credentials may have changed, it
 * is made anew: znodes keep their access control lists.  Nothing is sent or awaited
 * for its sake otherwise: whether the server is still in recovery is looked at when
 * the worker is awake anyway.
 *
 * Right behind, a server that is not in recovery lists the fleet, with a watch: once for
 * each connection, when its recovery ends, and whenever a server comes or goes.  Another
 * one with its system identifier that is not in recovery either is a clone, or the past:
 * this server before it was restarted, or a former primary.  To the former primary itself,
 * a server that has been promoted is one while both have a session.  A session of the past ends within a session
 * timeout, but ZooKeeper counts in ticks, and its followers tell the leader late.  So
 * the look is repeated for that long and two ticks, until the session has ended;
 * if it has not by then, it is a clone's, whatever its name.  Until that is decided for the
 * first time, a new session has no lease: whatever the core grants, no backend takes it.
 */

#define MAX_PARENTS		3		/* they may be reaped while they are empty */
#define LOOKS			8		/* for the end of a session of the past */

enum
{
	THE_REMOVAL,
	THE_WRITE,
	THE_LISTING,
	AN_ENTRY
};

/* What decides whether the znode has to be written again */
typedef struct
{
	uint32		generation;		/* of the session; 0: never written */
	uint32		timeout_ms;
	bool		in_recovery;
	char		peer[ZKL_PEER_ADDRESS_TEXT];	/* the address for messages */
} Facts;

typedef struct
{
	ZklTask		task;
	Facts		facts;			/* as they are being written */
	bool		exists;			/* set it, or delete it first */
	int			parents;		/* how often they were made */

	/* the look for clones; times in µs */
	int64		past_until;		/* what is found may be the past; 0: nothing
								 * was found yet */
	int64		again_at;		/* the next look */
	int			nentries;		/* asked for, and not answered */
	bool		found;			/* another session of this system identifier: */
	int64		found_session;
	ZklFleetEntry found_entry;
} FleetTask;

static FleetTask *present = NULL;
static Facts written = {0};
static bool anew = false;		/* the znode has a list of other credentials */
static bool leaving = false;	/* it is to be taken back ... */
static bool taken_back = false; /* ... and is gone */
static uint32 gave_up_on = 0;	/* this connection */
static uint32 looked_in = 0;	/* this session, by its generation */
static uint32 looked_on = 0;	/* this connection; 0: the fleet has changed
								 * since */
static char peer[ZKL_PEER_ADDRESS_TEXT] = "";

static Facts
find_facts(void)
{
	const ZklStatus *status = &zkl_control->ctl_status;
	Facts		facts = {0};

	facts.generation = status->generation;
	facts.timeout_ms = status->timeout_ms;
	facts.in_recovery = RecoveryInProgress();
	strlcpy(facts.peer, peer, sizeof(facts.peer));
	return facts;
}

static bool
same_facts(const Facts *a, const Facts *b)
{
	return a->generation == b->generation &&
		a->timeout_ms == b->timeout_ms && a->in_recovery == b->in_recovery &&
		strcmp(a->peer, b->peer) == 0;
}

static void
finish(void)
{
	ZklTask    *task = &present->task;

	present = NULL;
	zkl_operation_end(task);
}

/* ---- clones ---- */

/* What is known now about clones counts for this session. */
static void
decide(bool clone)
{
	ZklStatus  *status = zkl_status_begin();

	status->fleet_generation = status->generation;
	status->clone = clone;
	zkl_status_end();
}

static const char *
found_name(const FleetTask *fleet)
{
	const char *name = fleet->found_entry.server;

	return name[0] != '\0' ? name : "?";
}

static void
warn_of_clone(const FleetTask *fleet)
{
	ereport(WARNING,
			(errmsg("server \"%s\" has the same system identifier as this server, \"%s\"",
					found_name(fleet), zkl_settings_server_name()),
			 errdetail("Neither of the two is in recovery, and both have ZooKeeper sessions below \"%s\".  The other one has the session 0x%llx, and was started on port %d of host \"%s\".",
					   zkl_root, (unsigned long long) fleet->found_session,
					   fleet->found_entry.port, fleet->found_entry.host),
			 errhint("If one of them is a clone, set another \"zklock.root\" there.  Set \"zklock.enabled\" to off before the first start of a clone.")));
}

static void
log_possible_past(const FleetTask *fleet, int64 past_ms)
{
	ereport(LOG,
			(errmsg("server \"%s\" has the same system identifier as this server, \"%s\", and may be the same or a former primary",
					found_name(fleet), zkl_settings_server_name()),
			 errdetail("If so, its ZooKeeper session is about to expire.  A new session grants nothing until then, for at most %lld ms.",
					   (long long) past_ms)));
}

static void
log_no_clone(void)
{
	ereport(LOG,
			(errmsg("no other server has the same system identifier as this server, \"%s\", any more",
					zkl_settings_server_name())));
}

/* Whether what was found may still be the past: then the look is repeated. */
static bool
may_be_past(FleetTask *fleet)
{
	int64		past_ms = (int64) zkl_status_timeout_ms() + 2 * zkl_tick_time;
	int64		now = zkl_boottime_us();

	if (fleet->past_until == 0)
	{
		fleet->past_until = now + past_ms * 1000;
		if (zkl_fleet_entry_is_undecided())
			log_possible_past(fleet, past_ms);
	}
	if (now >= fleet->past_until)
		return false;
	fleet->again_at = Min(now + past_ms * 1000 / LOOKS, fleet->past_until);
	zkl_operation_pause(&fleet->task, fleet->again_at);
	return true;
}

static void
conclude(FleetTask *fleet)
{
	static int64 warned_of = 0; /* its session */
	bool		news = fleet->found && (fleet->found_session != warned_of ||
										zkl_fleet_entry_is_undecided());

	if (news && may_be_past(fleet))
		return;
	if (news)
		warn_of_clone(fleet);
	else if (!fleet->found && zkl_control->ctl_status.clone)
		log_no_clone();
	warned_of = fleet->found ? fleet->found_session : 0;
	looked_in = fleet->facts.generation;
	fleet->past_until = 0;
	decide(fleet->found);
	finish();
}

static void
look_for_clones(FleetTask *fleet)
{
	char	   *path = psprintf("%s%s", zkl_root, ZKL_FLEET_DIRECTORY);

	fleet->found = false;
	fleet->nentries = 0;
	looked_on = zkl_supervisor_generation();
	zkl_operation_send(&fleet->task, THE_LISTING, ZKL_SEND_LIST, path, true);
}

static void
take_listing(FleetTask *fleet, const ZklReply *reply)
{
	size_t		i;

	for (i = 0; i < reply->nchildren; i++)
	{
		uint64		system;
		int64		session_id;

		if (!zkl_fleet_read_name(reply->children[i], &system, &session_id) ||
			system != GetSystemIdentifier() ||
			session_id == zkl_control->ctl_status.session_id)
			continue;
		fleet->nentries++;
		zkl_operation_send(&fleet->task, AN_ENTRY, ZKL_SEND_GET,
						   psprintf("%s%s/%s", zkl_root, ZKL_FLEET_DIRECTORY,
									reply->children[i]), false);
	}
	if (fleet->nentries == 0)
		conclude(fleet);
}

/*
 * An earlier session of this very postmaster, before backends crashed, is no
 * clone.  Of one that we may not read we know nothing.
 */
static void
take_entry(FleetTask *fleet, const ZklReply *reply, const ZklWireStat *stat)
{
	ZklFleetEntry entry;

	if (reply->rc == ZKL_RC_OK &&
		zkl_fleet_read(reply->data, reply->data_length, &entry) &&
		!entry.in_recovery && entry.started_us != PgStartTime)
	{
		fleet->found = true;
		fleet->found_session = stat->ephemeral_owner;
		fleet->found_entry = entry;
	}
	if (--fleet->nentries == 0)
		conclude(fleet);
}

/* ---- writing ---- */

static char *
own_path(void)
{
	char		name[ZKL_MAX_FLEET_ZNODE + 1];

	zkl_fleet_name(GetSystemIdentifier(), zkl_control->ctl_status.session_id,
				   name);
	return psprintf("%s%s/%s", zkl_root, ZKL_FLEET_DIRECTORY, name);
}

static void
describe(const Facts *facts, StringInfo data)
{
	const ZklStatus *status = &zkl_control->ctl_status;
	ZklFleetEntry entry = {0};

	strlcpy(entry.server, zkl_settings_server_name(), sizeof(entry.server));
	strlcpy(entry.host, zkl_settings_host(), sizeof(entry.host));
	entry.port = PostPortNumber;
	entry.in_recovery = facts->in_recovery;
	strlcpy(entry.postgresql, PG_VERSION, sizeof(entry.postgresql));
	strlcpy(entry.zklock, ZKL_VERSION, sizeof(entry.zklock));
	entry.protocol = ZKL_ZNODE_PROTOCOL;
	entry.asked_ms = (int32) status->timeout_asked_ms;
	entry.timeout_ms = (int32) facts->timeout_ms;
	entry.since_ms = (status->session_since +
					  (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY) /
		1000;
	entry.started_us = PgStartTime;
	strlcpy(entry.peer, facts->peer, sizeof(entry.peer));
	zkl_fleet_put(data, &entry);
}

static void
write_entry(FleetTask *fleet)
{
	StringInfoData data;
	ZklMultiOp	ops[2];
	size_t		first = fleet->exists && anew ? 0 : 1;

	initStringInfo(&data);
	describe(&fleet->facts, &data);
	memset(ops, 0, sizeof(ops));
	ops[0].kind = ZKL_MULTI_DELETE;
	ops[1].kind = fleet->exists && !anew ? ZKL_MULTI_SET : ZKL_MULTI_CREATE_PRIVATE;
	ops[0].path = ops[1].path = own_path();
	ops[0].version = ops[1].version = -1;
	ops[1].data = data.data;
	ops[1].data_length = (size_t) data.len;
	zkl_operation_send_multi(&fleet->task, THE_WRITE, ops + first, 2 - first);
}

/*
 * Locks work without it, so the next attempt is made on another connection.  A clone
 * that was found stays one until a look does not find it.
 */
static void
give_up(FleetTask *fleet, int32 rc)
{
	ereport(LOG,
			(errmsg("could not access the fleet directory of znode \"%s\"",
					own_path()),
			 errdetail("ZooKeeper answered %d.", rc)));
	gave_up_on = zkl_supervisor_generation();
	decide(zkl_control->ctl_status.clone && !fleet->facts.in_recovery);
	finish();
}

/* A standby may have the system identifier of its primary. */
static bool
is_to_look(const Facts *facts)
{
	return !facts->in_recovery && (looked_in != facts->generation ||
								   looked_on != zkl_supervisor_generation());
}

static void
go_on_looking(FleetTask *fleet)
{
	if (is_to_look(&fleet->facts))
		look_for_clones(fleet);
	else
	{
		decide(zkl_control->ctl_status.clone && !fleet->facts.in_recovery);
		finish();
	}
}

static void
take_written(FleetTask *fleet, int32 rc)
{
	if (rc == ZKL_RC_OK)
	{
		written = fleet->facts;
		anew = false;
		go_on_looking(fleet);
	}
	else if ((rc == ZKL_RC_NODEEXISTS && !fleet->exists) ||
			 (rc == ZKL_RC_NONODE && fleet->exists))
	{
		fleet->exists = !fleet->exists;
		anew |= fleet->exists;
		write_entry(fleet);
	}
	else if (rc == ZKL_RC_NONODE && fleet->parents++ < MAX_PARENTS)
	{
		zkl_operation_send_parents(own_path());
		write_entry(fleet);
	}
	else if (zkl_zkapi_is_definite(rc) || !zkl_operation_retry(&fleet->task))
		give_up(fleet, rc);
}

/* ---- taking it back ---- */

static void
remove_entry(FleetTask *fleet)
{
	ZklMultiOp	op = {.kind = ZKL_MULTI_DELETE,.path = own_path(),.version = -1};

	zkl_operation_send_multi(&fleet->task, THE_REMOVAL, &op, 1);
}

static void
take_removal(FleetTask *fleet, int32 rc)
{
	if (!zkl_zkapi_is_definite(rc) && rc != ZKL_RC_OK && zkl_operation_retry(&fleet->task))
		return;
	taken_back = true;
	finish();
}

void
zkl_fleet_entry_event(const char *path)
{
	size_t		length = strlen(zkl_root);

	if (strncmp(path, zkl_root, length) == 0 &&
		strcmp(path + length, ZKL_FLEET_DIRECTORY) == 0)
		looked_on = 0;
}

bool
zkl_fleet_entry_take_back(void)
{
	if (!leaving && present != NULL && !present->task.busy)
		zkl_operation_pause(&present->task, 0);
	leaving = true;
	return taken_back;
}

/* ---- the task ---- */

static void
begin_fleet(ZklTask *task)
{
	FleetTask  *fleet = (FleetTask *) task;
	Facts		facts = find_facts();

	if (leaving)
	{
		remove_entry(fleet);
		return;
	}
	if (facts.generation != fleet->facts.generation)
		fleet->past_until = fleet->again_at = 0;
	fleet->facts = facts;
	fleet->exists = written.generation == facts.generation;
	fleet->parents = 0;

	/*
	 * A standby that is promoted: others hear only of znodes that come and
	 * go.
	 */
	anew |= fleet->exists && written.in_recovery != facts.in_recovery;
	if (anew || !same_facts(&facts, &written))
		write_entry(fleet);
	else if (zkl_boottime_us() < fleet->again_at)
		zkl_operation_pause(task, fleet->again_at);
	else if (fleet->past_until != 0)
		look_for_clones(fleet);
	else
		go_on_looking(fleet);
}

static void
take_fleet_reply(ZklTask *task, uint32 part, const ZklReply *reply,
				 const ZklWireStat *stat)
{
	FleetTask  *fleet = (FleetTask *) task;
	int32		rc = reply->rc;

	if (part == THE_REMOVAL)
		take_removal(fleet, rc);
	else if (part == THE_WRITE)
		take_written(fleet, rc);
	else if (rc != ZKL_RC_OK && !zkl_zkapi_is_definite(rc))
	{
		if (!zkl_operation_retry(task))
			give_up(fleet, rc);
	}
	else if (part == THE_LISTING && rc != ZKL_RC_OK && rc != ZKL_RC_NONODE)
		give_up(fleet, rc);
	else if (part == THE_LISTING)
		take_listing(fleet, reply);
	else
		take_entry(fleet, reply, stat);
}

static const ZklTaskOwner fleet_owner = {
	.size = sizeof(FleetTask),
	.begin = begin_fleet,
	.reply = take_fleet_reply,
};

void
zkl_fleet_entry_tick(bool ready)
{
	Facts		facts;

	if (!ready || present != NULL)
		return;
	if (leaving && !taken_back)
		present = (FleetTask *) zkl_operation_make(&fleet_owner);
	if (leaving || gave_up_on == zkl_supervisor_generation())
		return;
	facts = find_facts();
	if (anew || !same_facts(&facts, &written) || is_to_look(&facts))
		present = (FleetTask *) zkl_operation_make(&fleet_owner);
}

void
zkl_fleet_entry_renew(void)
{
	anew = true;
}

void
zkl_fleet_entry_set_peer(const char *address)
{
	strlcpy(peer, address, sizeof(peer));
}

bool
zkl_fleet_entry_tells_peer(void)
{
	return peer[0] != '\0' && strcmp(written.peer, peer) == 0 &&
		written.generation == zkl_control->ctl_status.generation;
}

bool
zkl_fleet_entry_is_undecided(void)
{
	const ZklStatus *status = &zkl_control->ctl_status;

	return status->fleet_generation != status->generation;
}
