/*
 * healthcheck.c
 *	  The set-returning function zk_healthcheck(): what an operator would look at,
 *	  and whether it is well.
 *
 * Owns what counts as healthy.  Run by backends.  Takes no locks.
 *
 * Must not know how any of it comes about.
 *
 * A check whose result cannot be known now is NULL.  So all that ZooKeeper
 * has to tell is read first, in a subtransaction: if ZooKeeper goes away or
 * refuses, that is no error.  No detail shows credentials, and hosts only to those who
 * may see them.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "backend/admission.h"
#include "backend/errand.h"
#include "backend/refusal.h"
#include "backend/rights.h"
#include "backend/text.h"
#include "functions/clockrate.h"
#include "functions/hostcheck.h"
#include "functions/peercheck.h"
#include "functions/row.h"
#include "lib/stringinfo.h"
#include "nodes/value.h"
#include "postmaster/postmaster.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/lease.h"
#include "shared/root.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "storage/procarray.h"
#include "utils/timestamp.h"
#include "wire/version.h"

#define MOST_SLOTS		0.8		/* of all */
#define MOST_CLOCK_MS	30000	/* zk_once() allows for half a minute */
#define LEAST_DAYS		30		/* of a certificate */
#define MOST_CLOCK_PPM	500		/* half of what S1 assumes */
#define MOST_WAIT_S		3600	/* with a snapshot */

ZKL_FUNCTION(zkl_sql_healthcheck);

/* What ZooKeeper tells: the directory of the fleet, and the leader's clock */
typedef struct
{
	const char *unknown;		/* why it told nothing, or not all of it; or
								 * NULL */
	bool		is_silent;		/* because it did not answer */
	bool		is_refused;		/* because it may not be read */
	int			servers;
	int			unreadable;
	int			other_timeouts;
	int			other_versions;
	int			other_protocols;
	int			clones;			/* of this server */
	int			doubtful;		/* may be clones, but cannot be read */
	uint32		timeout_ms;		/* ours */
	ZklFleetServer own;			/* readable if it is there */
	int64		session_id;		/* ours */
	List	   *peers;			/* see peercheck.h */
	bool		has_clock;
	int64		ahead_ms;		/* the clock, of this server's */
} Fleet;

static void
put_check(FunctionCallInfo fcinfo, const char *check, bool known, bool ok,
		  const char *detail)
{
	ZklRow		row = {0};

	zkl_row_text(&row, check);
	row.hidden = !known;
	zkl_row_bool(&row, ok);
	row.hidden = false;
	zkl_row_text(&row, detail);

	zkl_row_put(fcinfo, &row);
}

/* ---- this server ---- */

/* A slot of a cached lock is given back when another one needs it. */
static void
count_used_slots(int *used, int *held)
{
	int			i;

	*used = *held = 0;
	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		ZklSlotState state = zkl_slot_peek(i);

		*used += state != ZKL_SLOT_FREE && state != ZKL_SLOT_CACHED;
		*held += state == ZKL_SLOT_GRANTED;
	}
}

static void
check_session(FunctionCallInfo fcinfo, const ZklStatus *status,
			  const char *unanswered, int held)
{
	uint32		generation;
	int64		deadline;
	int64		left;
	bool		has_session = status->timeout_ms != 0;
	const char *no_session = "Not known without a ZooKeeper session.";

	zkl_lease_read(&generation, &deadline);
	left = Max(deadline - zkl_boottime_ms(), 0);
	put_check(fcinfo, "connected", true,
			  status->state == ZKL_STATE_CONNECTED && unanswered == NULL,
			  psprintf("%s%s%s", zkl_refusal_worker_trouble(),
					   unanswered ? "  " : "", unanswered ? unanswered : ""));
	put_check(fcinfo, "lease", true, left > 0 || held == 0,
			  psprintf("Locks held: %d.  The lease lasts for %lld ms.",
					   held, (long long) left));
	put_check(fcinfo, "session timeout", has_session,
			  status->timeout_ms == status->timeout_asked_ms,
			  has_session ?
			  psprintf("%u ms were requested, and ZooKeeper granted %u ms.",
					   status->timeout_asked_ms, status->timeout_ms) : no_session);
	put_check(fcinfo, "tick", has_session,
			  status->timeout_ms >= (uint64) zkl_tick_time * ZKL_LEAST_TICKS,
			  has_session ?
			  psprintf("The session timeout is %u ms, and should be at least %d ticks of %d ms.",
					   status->timeout_ms, ZKL_LEAST_TICKS, zkl_tick_time) : no_session);
}

/* The path of a file is for those who may see it. */
static void
check_settings(FunctionCallInfo fcinfo, const ZklStatus *status)
{
	bool		used = status->settings_fault[0] == '\0';
	const char *fault = zkl_refusal_may_see_hosts() ? status->settings_fault :
	"a file cannot be read, or must not be used";

	put_check(fcinfo, "settings", true, used, used ?
			  "The connection has the present settings." :
			  psprintf("The present settings of the connection are not used: %s.",
					   zkl_text_to_display(fault, (int) strlen(fault))));
}

static bool
expires_soon(TimestampTz until)
{
	return until != 0 &&
		until - GetCurrentTimestamp() < LEAST_DAYS * USECS_PER_DAY;
}

static void
add_expiry(StringInfo buf, const char *which, TimestampTz until)
{
	if (until != 0)
		appendStringInfo(buf, "%s%s %s until %s%s.", buf->len > 0 ? "  " : "",
						 which, until > GetCurrentTimestamp() ?
						 "is valid" : "was valid", timestamptz_to_str(until),
						 expires_soon(until) ? ": renew it" : "");
}

/* What the last connection had: no other has been seen since. */
static void
judge_tls(FunctionCallInfo fcinfo, const ZklStatus *status)
{
	const ZklTlsStatus *tls = &status->tls;
	bool		known = status->connects > 0;
	const char *none = known ? "The connection has no TLS." :
	"Not known before the first connection.";
	StringInfoData buf;

	initStringInfo(&buf);
	add_expiry(&buf, "The certificate of this server", tls->certificate_until);
	add_expiry(&buf, "The CA", tls->ca_until);
	add_expiry(&buf, "The certificate of the ZooKeeper server", tls->server_until);
	put_check(fcinfo, "tls", known, true, tls->version[0] == '\0' ? none :
			  psprintf("The connection has %s, with the cipher %s.",
					   tls->version, tls->cipher));
	put_check(fcinfo, "certificates", known,
			  !expires_soon(tls->certificate_until) &&
			  !expires_soon(tls->ca_until) && !expires_soon(tls->server_until),
			  buf.len == 0 ? none : buf.data);
}

static void
check_slots(FunctionCallInfo fcinfo, int used)
{
	int			all = zkl_control->ctl_nrequests;

	put_check(fcinfo, "requests", true, used <= all * MOST_SLOTS,
			  psprintf("Requests in use: %d, of %d that \"zklock.max_requests\" allows.",
					   used, all));
}

static bool
has_snapshot(int pid)
{
	volatile PGPROC *proc = BackendPidGetProc(pid);

	return proc != NULL && TransactionIdIsValid(proc->xmin);
}

/* VACUUM cannot remove what they may still see. */
static void
check_waits(FunctionCallInfo fcinfo)
{
	int64		now = zkl_boottime_us();
	int64		longest = 0;
	int			waits = 0;
	int			i;

	for (i = 0; i < zkl_control->ctl_nrequests; i++)
	{
		ZklSlot		slot;

		if (zkl_slot_peek(i) != ZKL_SLOT_WAITING)
			continue;
		zkl_slot_copy(i, &slot);
		if (slot.s_state != ZKL_SLOT_WAITING ||
			slot.s_request.kind != ZKL_KIND_LOCK || !has_snapshot(slot.s_request.pid))
			continue;
		waits++;
		longest = Max(longest, (now - slot.s_request.asked_us) / 1000000);
	}
	put_check(fcinfo, "waits", true, longest <= MOST_WAIT_S,
			  psprintf("Waits for a lock that hold back VACUUM: %d, the longest for %lld s.",
					   waits, (long long) longest));
}

static void
check_messages(FunctionCallInfo fcinfo, const ZklStatus *status, const Fleet *fleet)
{
	bool		ok;
	const char *detail = zkl_peercheck_judge(status, fleet->peers, &ok);

	put_check(fcinfo, "messages", true, ok, detail);
}

static void
check_lost_writes(FunctionCallInfo fcinfo, const ZklStatus *status)
{
	int64		ago_ms = zkl_boottime_ms() - status->lost_writes_at;
	bool		lately = status->lost_writes > 0 && ago_ms < SECS_PER_DAY * 1000;

	put_check(fcinfo, "lost writes", true, !lately, status->lost_writes == 0 ?
			  "This server has not seen that ZooKeeper has lost writes." :
			  psprintf("ZooKeeper was seen to have lost writes %llu times, the last time at %s.  See the server log.",
					   (unsigned long long) status->lost_writes,
					   timestamptz_to_str(GetCurrentTimestamp() - ago_ms * 1000)));
}

static void
check_script(FunctionCallInfo fcinfo)
{
	ZklScriptAge age;
	char	   *version = zkl_admission_script_version(&age);
	const char *advice = "";

	if (age == ZKL_SCRIPT_NEWER)
		advice = "  Restart the server with the new library.";
	else if (age != ZKL_SCRIPT_OWN)
		advice = "  Run ALTER EXTENSION zklock UPDATE.";
	put_check(fcinfo, "script", age != ZKL_SCRIPT_NONE, age == ZKL_SCRIPT_OWN,
			  age == ZKL_SCRIPT_NONE ? "This database has no extension \"zklock\"." :
			  psprintf("The extension in this database has version %s, and the library %s.%s",
					   version, ZKL_SCRIPT, advice));
}

static void
check_clock_rate(FunctionCallInfo fcinfo)
{
	double		ppm = 0;
	bool		known = zkl_clockrate_read(&ppm);
	bool		ok = ppm <= MOST_CLOCK_PPM && ppm >= -MOST_CLOCK_PPM;

	put_check(fcinfo, "clock rate", known, ok,
			  !known ? psprintf("The system does not tell: %m.") :
			  psprintf("The system corrects the rate of its clock by %.1f ppm.%s", ppm,
					   ok ? "" : "  Either the hardware's rate is wrong, or the clock is being slewed."));
}

static void
check_rights(FunctionCallInfo fcinfo)
{
	List	   *missing = zkl_rights_missing_roles();
	StringInfoData buf;
	ListCell   *cell;

	initStringInfo(&buf);
	foreach(cell, missing)
		appendStringInfo(&buf, "%s\"%s\"", buf.len > 0 ? ", " : "",
						 strVal(lfirst(cell)));
	put_check(fcinfo, "rights", true, missing == NIL, missing == NIL ?
			  "All roles that zk_grants names exist." :
			  psprintf("Names in zk_grants that are no roles: %s.", buf.data));
}

/* ---- the fleet ---- */

static bool
may_be_clone(const Fleet *fleet, const ZklFleetServer *server)
{
	return server->system == GetSystemIdentifier() &&
		server->session_id != fleet->session_id && !RecoveryInProgress();
}

static void
note_server(void *arg, const ZklFleetServer *server)
{
	Fleet	   *fleet = arg;

	fleet->servers++;
	fleet->peers = zkl_peercheck_note(fleet->peers, server);
	if (server->session_id == fleet->session_id)
		fleet->own = *server;
	if (!server->readable)
	{
		fleet->unreadable++;
		fleet->doubtful += may_be_clone(fleet, server);
	}
	else
	{
		fleet->other_timeouts += server->entry.timeout_ms != (int32) fleet->timeout_ms;
		fleet->other_versions += strcmp(server->entry.zklock, ZKL_VERSION) != 0;
		fleet->other_protocols += server->entry.protocol != ZKL_ZNODE_PROTOCOL;
		fleet->clones += may_be_clone(fleet, server) && !server->entry.in_recovery &&
			server->entry.started_us != PgStartTime;
	}
}

static void
check_fleet(FunctionCallInfo fcinfo, const Fleet *fleet)
{
	const char *unknown = fleet->unknown;
	bool		known = unknown == NULL;

	put_check(fcinfo, "fleet", known, fleet->own.readable,
			  !known ? unknown : fleet->own.readable ?
			  psprintf("Servers in the fleet: %d.", fleet->servers) :
			  "The znode that tells others about this server is missing, or cannot be read with the credentials of this server.");
	put_check(fcinfo, "fleet versions", known, fleet->other_versions == 0,
			  !known ? unknown :
			  psprintf("Servers with another version of zklock than %s: %d.",
					   ZKL_VERSION, fleet->other_versions));
	put_check(fcinfo, "znode protocol", known, fleet->other_protocols == 0,
			  !known ? unknown :
			  psprintf("Servers that do not write znodes in format %d, as this one does: %d.",
					   ZKL_ZNODE_PROTOCOL, fleet->other_protocols));
	put_check(fcinfo, "fleet timeouts", known, fleet->other_timeouts == 0,
			  !known ? unknown :
			  psprintf("Servers with another session timeout than this one: %d.",
					   fleet->other_timeouts));
}

static void
check_access(FunctionCallInfo fcinfo, const Fleet *fleet, uint32 access)
{
	const char *ours = "has no credentials";

	if (access == ZKL_ACCESS_READ)
		ours = "has credentials";
	else if (access == ZKL_ACCESS_PRIVATE)
		ours = "has credentials, and its znodes can be read only with them";
	put_check(fcinfo, "access control",
			  fleet->unknown == NULL || fleet->is_refused,
			  fleet->unreadable == 0 && !fleet->is_refused,
			  fleet->is_refused ?
			  psprintf("This server %s.  It may not read the directory of the fleet.", ours) :
			  fleet->unknown != NULL ? fleet->unknown :
			  psprintf("This server %s.  Servers whose znodes it cannot read: %d.",
					   ours, fleet->unreadable));
}

/*
 * The worker knows whether another server is a clone.  Until it is sure, that server may
 * be a former primary.
 */
static void
check_clones(FunctionCallInfo fcinfo, const Fleet *fleet, bool clone)
{
	bool		is_here = fleet->clones > 0;
	const char *detail = "No clone of this server was found.";

	if (fleet->unknown != NULL)
		detail = fleet->unknown;
	else if (is_here && clone)
		detail = "Another server has the same system identifier, and neither of them is in recovery.";
	else if (is_here)
		detail = "Another ZooKeeper session has the same system identifier.  It is of a clone, or about to expire: of this server before it was restarted, or of a former primary.";
	else if (fleet->doubtful > 0)
		detail = "Another server has the same system identifier, and this server cannot read its znode.";
	put_check(fcinfo, "clones",
			  fleet->unknown == NULL && (is_here ? clone : fleet->doubtful == 0),
			  !is_here, detail);
}

static void
judge_dialects(FunctionCallInfo fcinfo)
{
	ZklRootState state = zkl_root_state();
	const char *detail = "Not known until the settings of the root are read.";
	ZklRoot		root;
	int32		rc;

	(void) zkl_root_copy(&root, &rc);
	if (state == ZKL_ROOT_UNREADABLE)
		detail = "The settings of the root cannot be read.";
	else if (state == ZKL_ROOT_SAME)
		detail = "\"zklock.dialects\" agrees with the root's.";
	else if (state == ZKL_ROOT_DIFFERS && root.is_changing)
		detail = psprintf("\"zklock.dialects\" is \"%s\".  The root's are being changed from \"%s\" to \"%s\".",
						  zkl_root_own_dialects(), root.dialects, root.changing);
	else if (state == ZKL_ROOT_DIFFERS)
		detail = psprintf("\"zklock.dialects\" is \"%s\", the root's are \"%s\".",
						  zkl_root_own_dialects(), root.dialects);
	put_check(fcinfo, "dialects", state != ZKL_ROOT_UNKNOWN, state == ZKL_ROOT_SAME,
			  zkl_text_to_display(detail, (int) strlen(detail)));
}

/* ---- the clock of ZooKeeper's leader ---- */

/*
 * Writes this server's own znode as it is: the leader puts its time into the
 * answer.  False: another write came in between, or ZooKeeper did not answer.
 */
static bool
read_clock(const Fleet *fleet, int64 *ahead_ms)
{
	ZklTarget	target = {ZKL_FLEET_DIRECTORY, ZKL_FLEET_DIRECTORY, ZKL_DIALECT_CURATOR_RW};
	char		name[ZKL_MAX_FLEET_ZNODE + 1];
	ZklErrand  *errand;
	ZklDeadlines at;
	TimestampTz before;
	bool		good;

	zkl_fleet_name(fleet->own.system, fleet->own.session_id, name);
	errand = zkl_errand_make(ZKL_ERRAND_GET, &target, name, ZKL_MAX_NODE_DATA);
	zkl_errand_begin(&at);
	good = zkl_errand_try(errand, &target, &at) == ZKL_RC_OK &&
		errand->answer.size <= errand->room;
	if (good)
	{
		errand->kind = ZKL_ERRAND_SET;
		errand->version = errand->answer.stat.version;
		errand->length = (uint32) errand->answer.size;
		memcpy(errand->data, errand->answer.bytes, errand->answer.size);
		before = GetCurrentTimestamp();
		good = zkl_errand_run(errand, &target) == ZKL_RC_OK;
		*ahead_ms = errand->answer.stat.mtime -
			(before + (GetCurrentTimestamp() - before) / 2) / 1000 -
			(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * INT64CONST(86400000);
	}
	zkl_errand_free(errand);
	return good;
}

static void
check_clock(FunctionCallInfo fcinfo, const Fleet *fleet)
{
	int64		ahead_ms = fleet->ahead_ms;

	put_check(fcinfo, "clock", fleet->has_clock,
			  ahead_ms <= MOST_CLOCK_MS && ahead_ms >= -MOST_CLOCK_MS,
			  fleet->unknown != NULL ? fleet->unknown : !fleet->has_clock ?
			  "The time of ZooKeeper's leader could not be read." :
			  psprintf("The clock of ZooKeeper's leader is %lld ms %s this server's.",
					   (long long) (ahead_ms < 0 ? -ahead_ms : ahead_ms),
					   ahead_ms < 0 ? "behind" : "ahead of"));
}

/* ---- reading from ZooKeeper ---- */

static void
read_fleet(void *arg)
{
	Fleet	   *fleet = arg;

	zkl_errand_read_servers(note_server, fleet);
	fleet->has_clock = fleet->own.readable && read_clock(fleet, &fleet->ahead_ms);
}

/*
 * Whether refusal.c makes that of an answer of ZooKeeper's to a list or a read, or
 * of none; or the list is too long.  A cancel, a timeout and a fault of ours are
 * something else.
 */
static bool
is_of_zookeeper(const ErrorData *error)
{
	switch (error->sqlerrcode)
	{
		case ERRCODE_CONNECTION_FAILURE:
		case ERRCODE_INSUFFICIENT_PRIVILEGE:
		case ERRCODE_CONFIGURATION_LIMIT_EXCEEDED:
		case ERRCODE_TOO_MANY_CONNECTIONS:
		case ERRCODE_OBJECT_IN_USE:
		case ERRCODE_SYSTEM_ERROR:
		case ERRCODE_PROGRAM_LIMIT_EXCEEDED:
			return true;
		default:
			return false;
	}
}

/* If ZooKeeper does not answer, or refuses, that is no error. */
static void
try_to_read_fleet(Fleet *fleet)
{
	ErrorData  *error = zkl_refusal_catch(read_fleet, fleet);

	if (error == NULL)
		return;
	if (!is_of_zookeeper(error))
		ReThrowError(error);
	fleet->is_silent = error->sqlerrcode == ERRCODE_CONNECTION_FAILURE;
	fleet->is_refused = error->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE;
	fleet->unknown = error->detail ? error->detail : error->message;
}

static void
check_all(FunctionCallInfo fcinfo, ZklHostCheck *hosts)
{
	ZklStatus	status;
	Fleet		fleet = {"Not known without a connection."};
	char	   *detail;
	bool		connected,
				ok;
	int			used,
				held;

	zkl_status_copy(&status);
	fleet.timeout_ms = status.timeout_ms;
	fleet.session_id = status.session_id;
	connected = status.state == ZKL_STATE_CONNECTED && status.session_id != 0;
	if (connected)
	{
		fleet.unknown = NULL;
		try_to_read_fleet(&fleet);
		zkl_status_copy(&status);
	}
	count_used_slots(&used, &held);
	check_session(fcinfo, &status, fleet.is_silent ? fleet.unknown : NULL, held);
	check_settings(fcinfo, &status);
	connected = connected && !fleet.is_silent;
	ok = zkl_hostcheck_finish(hosts, connected, &detail);
	put_check(fcinfo, "hosts", connected, ok, detail);
	judge_tls(fcinfo, &status);
	check_slots(fcinfo, used);
	check_waits(fcinfo);
	check_messages(fcinfo, &status, &fleet);
	check_lost_writes(fcinfo, &status);
	check_clock_rate(fcinfo);
	check_script(fcinfo);
	check_rights(fcinfo);
	judge_dialects(fcinfo);
	check_fleet(fcinfo, &fleet);
	check_access(fcinfo, &fleet, status.access);
	check_clones(fcinfo, &fleet, status.clone);
	check_clock(fcinfo, &fleet);
}

/* While ZooKeeper is asked for the fleet, its hosts answer, too. */
Datum
zkl_sql_healthcheck(PG_FUNCTION_ARGS)
{
	ZklHostCheck *hosts;

	zkl_gate_check_worker();
	InitMaterializedSRF(fcinfo, 0);
	hosts = zkl_hostcheck_begin();
	PG_TRY();
	{
		check_all(fcinfo, hosts);
	}
	PG_FINALLY();
	{
		zkl_hostcheck_end(hosts);
	}
	PG_END_TRY();
	return (Datum) 0;
}
