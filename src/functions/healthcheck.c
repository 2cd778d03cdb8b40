/*
 * healthcheck.c
 *	  The set-returning function zk_healthcheck(): what an operator would look
 *	  at, and whether it is well.
 *
 * Owns what counts as healthy, and the processes that look at hosts.  Run by
 * backends.  Takes no locks.
 */
#include "postgres.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/admission.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "functions/fleetcheck.h"
#include "functions/row.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/fleet.h"
#include "shared/gate.h"
#include "shared/program.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "storage/fd.h"
#include "storage/procarray.h"
#include "utils/timestamp.h"
#include "wire/look_answer.h"
#include "wire/version.h"

typedef struct ZklHostCheck ZklHostCheck;

/* ---- clockrate: how much the system corrects the rate of its clock ---- */

/*
 * NTP daemons correct it by the length of a tick, and by a frequency for what is
 * less than that.  A large correction means that the hardware's clock, which
 * leases are measured by, has a wrong rate, or that the daemon slews the clock to
 * make up for a wrong time.  That misleads programs on this machine that do not
 * read the hardware's clock, such as a ZooKeeper server.
 */

/* In millionths; false, with errno: the system does not tell. */
static bool
clockrate_read(double *ppm)
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

/* ---- hostcheck ---- */

/*
 * Which of the ZooKeeper servers in "zklock.connect_string" are there.
 *
 * Must not know how a connection is made, nor which host this server is connected to.
 *
 * A backend cannot ask for a name without waiting for the answer, which may take long
 * and cannot be cancelled.  So a zklock_session does that for each host (session/host_look.c),
 * and is ended when its time is over.
 */

#define MOST_MS		2000		/* for a host's answer */
#define OUTAGE_MS	500			/* the same without a connection */
#define POLL_MS		100			/* between looks for a cancel */

typedef struct
{
	char	   *name;
	pid_t		pid;			/* 0: none was started */
	int			link;			/* -1: it has ended */
	StringInfoData said;
} Host;

struct ZklHostCheck
{
	int64		begun;			/* in µs of boottime.h */
	int			n;
	Host	   *hosts;
};

static void
start_look(Host *host)
{
	char	   *arguments[] = {host->name,
	zkl_settings_tls().mode == ZKL_TLS_OFF ? ZKL_LOOK_PLAIN : ZKL_LOOK_TLS, NULL};
	int			fds[2];
	int			rc;

	ReserveExternalFD();
	host->link = -1;
	initStringInfo(&host->said);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		rc = errno;
	else
	{
		rc = zkl_program_spawn(arguments, fds[1], ZKL_LOOK_FD, &host->pid);
		close(fds[1]);
		host->link = fds[0];
	}
	if (rc != 0)
	{
		host->pid = 0;
		appendStringInfo(&host->said, "%czklock_session could not be started: %s",
						 ZKL_LOOK_BAD, strerror(rc));
	}
}

/* For the present setting */
static ZklHostCheck *
hostcheck_make(void)
{
	ZklHostCheck *check = palloc0(sizeof(ZklHostCheck));

	while (zkl_hosts_nth(zkl_connect_string, check->n) != NULL)
		check->n++;
	check->hosts = palloc0((check->n + 1) * sizeof(Host));
	for (int i = 0; i < check->n; i++)
		check->hosts[i].name = zkl_hosts_nth(zkl_connect_string, i);
	return check;
}

/*
 * Begins to look at all of them at once.  To be ended, also if there is an error in
 * between or here.
 */
static void
hostcheck_begin(ZklHostCheck *check)
{
	check->begun = zkl_boottime_us();
	for (int i = 0; i < check->n; i++)
		start_look(&check->hosts[i]);
}

static void
close_link(Host *host)
{
	if (host->link >= 0)
		close(host->link);
	host->link = -1;
}

static void
listen_to(Host *host)
{
	char		bytes[512];
	ssize_t		n = recv(host->link, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0)
		appendBinaryStringInfo(&host->said, bytes, (int) n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		close_link(host);
}

/* False: all have ended, or their time is over. */
static bool
listen_to_all(ZklHostCheck *check, int64 most_ms)
{
	int64		left_ms = most_ms - (zkl_boottime_us() - check->begun) / 1000;
	struct pollfd *fds = palloc0((check->n + 1) * sizeof(struct pollfd));
	int			open = 0;

	for (int i = 0; i < check->n; i++)
	{
		fds[i].fd = check->hosts[i].link;
		fds[i].events = POLLIN;
		open += fds[i].fd >= 0;
	}
	if (open > 0)
		(void) poll(fds, (nfds_t) check->n, (int) Max(Min(left_ms, POLL_MS), 0));
	for (int i = 0; i < check->n; i++)
	{
		if (fds[i].fd >= 0 && fds[i].revents != 0)
			listen_to(&check->hosts[i]);
	}
	pfree(fds);
	return open > 0 && left_ms > 0;
}

/* What is wrong, or NULL */
static const char *
fault_of(const Host *host)
{
	const char *bad = strchr(host->said.data, ZKL_LOOK_BAD);

	if (bad != NULL)
		return bad + 1;
	if (strchr(host->said.data, ZKL_LOOK_GOOD) != NULL)
		return NULL;
	if (strchr(host->said.data, ZKL_LOOK_ACCEPTED) != NULL)
		return psprintf("\"%s\" accepts connections, and does not answer", host->name);
	if (strchr(host->said.data, ZKL_LOOK_RESOLVED) != NULL)
		return psprintf("\"%s\" does not accept connections", host->name);
	if (strchr(host->said.data, ZKL_LOOK_STARTED) != NULL)
		return psprintf("\"%s\" was not resolved in time", host->name);
	return psprintf("zklock_session did not start in time to look at \"%s\"", host->name);
}

/*
 * Waits until all have answered, or their time is over, which is short in an outage: then
 * nothing is to be waited for.  Returns whether all are there, and a detail.
 *
 * The names of hosts are for those who may see them.
 */
static bool
hostcheck_finish(ZklHostCheck *check, bool connected, char **detail)
{
	StringInfoData buf;
	int			missing = 0;

	while (listen_to_all(check, connected ? MOST_MS : OUTAGE_MS))
		CHECK_FOR_INTERRUPTS();
	initStringInfo(&buf);
	for (int i = 0; i < check->n; i++)
	{
		const char *fault = fault_of(&check->hosts[i]);

		if (fault == NULL)
			continue;
		appendStringInfo(&buf, "%s%s", missing > 0 ? "; " : "  ", fault);
		missing++;
	}
	if (missing > 0)
		appendStringInfoChar(&buf, '.');
	*detail = psprintf("Servers in \"zklock.connect_string\": %d, without an answer: %d.%s",
					   check->n, missing, zkl_refusal_may_see_hosts() ?
					   zkl_text_to_display(buf.data, buf.len) : "");
	if (!connected)
		*detail = psprintf("%s  In an outage of ZooKeeper this is not judged.", *detail);
	return missing == 0;
}

static void
hostcheck_end(ZklHostCheck *check)
{
	for (int i = 0; i < check->n; i++)
	{
		Host	   *host = &check->hosts[i];

		close_link(host);
		ReleaseExternalFD();
		if (host->pid == 0)
			continue;
		kill(host->pid, SIGKILL);
		while (waitpid(host->pid, NULL, 0) < 0 && errno == EINTR)
			;
		host->pid = 0;
	}
}

/* ---- healthcheck ---- */

/*
 * Must not know how any of it comes about.
 *
 * A check whose result cannot be known now is NULL.  No detail shows credentials, and
 * hosts only to those who may see them.
 */

#define MOST_SLOTS		0.8		/* of all */
#define LEAST_DAYS		30		/* of a certificate */
#define MOST_CLOCK_PPM	500		/* half of what S1 assumes */
#define MOST_WAIT_S		3600	/* with a snapshot */

ZKL_FUNCTION(zkl_sql_healthcheck);

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
		*held += zkl_slot_is_relied_on(i);
	}
}

static void
check_session(FunctionCallInfo fcinfo, const ZklStatus *status,
			  const char *silence, int held)
{
	uint32		generation;
	int64		deadline;
	int64		left;
	bool		has_session = status->timeout_ms != 0;
	const char *no_session = "Not known without a ZooKeeper session.";

	zkl_lease_read(&generation, &deadline);
	left = Max(deadline - zkl_boottime_ms(), 0);
	zkl_checkrow_put(fcinfo, ZKL_FLEETCHECK_CONNECTED, true,
					 status->state == ZKL_STATE_CONNECTED && silence == NULL,
					 psprintf("%s%s%s", zkl_refusal_worker_trouble(),
							  silence && silence[0] ? "  " : "", silence ? silence : ""));
	zkl_checkrow_put(fcinfo, "lease", true, left > 0 || held == 0,
					 psprintf("Locks held: %d.  The lease lasts for %lld ms.",
							  held, (long long) left));
	zkl_checkrow_put(fcinfo, "session timeout", has_session,
					 status->timeout_ms == status->timeout_asked_ms,
					 has_session ?
					 psprintf("%u ms were requested, and ZooKeeper granted %u ms.",
							  status->timeout_asked_ms, status->timeout_ms) : no_session);
	zkl_checkrow_put(fcinfo, "tick", has_session,
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

	zkl_checkrow_put(fcinfo, "settings", true, used, used ?
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
	zkl_checkrow_put(fcinfo, "tls", known, true, tls->version[0] == '\0' ? none :
					 psprintf("The connection has %s, with the cipher %s.",
							  tls->version, tls->cipher));
	zkl_checkrow_put(fcinfo, "certificates", known,
					 !expires_soon(tls->certificate_until) &&
					 !expires_soon(tls->ca_until) && !expires_soon(tls->server_until),
					 buf.len == 0 ? none : buf.data);
}

static void
check_slots(FunctionCallInfo fcinfo, int used)
{
	int			all = zkl_control->ctl_nrequests;

	zkl_checkrow_put(fcinfo, "requests", true, used <= all * MOST_SLOTS,
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
		if (slot.s_state != ZKL_SLOT_WAITING || slot.s_request.kind != ZKL_KIND_LOCK ||
			!zkl_row_slot_has_session(&slot) || !has_snapshot(slot.s_request.pid))
			continue;
		waits++;
		longest = Max(longest, (now - slot.s_request.asked_us) / 1000000);
	}
	zkl_checkrow_put(fcinfo, "waits", true, longest <= MOST_WAIT_S,
					 psprintf("Waits for a lock that hold back VACUUM: %d, the longest for %lld s.",
							  waits, (long long) longest));
}

static void
check_messages(FunctionCallInfo fcinfo, const ZklStatus *status, List *peers)
{
	bool		ok;
	const char *detail = zkl_peercheck_judge(status, peers, &ok);

	zkl_checkrow_put(fcinfo, "messages", true, ok, detail);
}

/* Of a server that was connected: see session/zk.c */
static const char *
why_no_version(const ZklStatus *status)
{
	if (status->tls.version[0] != '\0')
		return "With TLS, the ZooKeeper server is not asked for its version: see to it that it is 3.9.4 or later.";
	return "The ZooKeeper server does not tell its version: its \"4lw.commands.whitelist\" may lack \"srvr\".";
}

/* Of the server of this connection, or the last one */
static void
check_version(FunctionCallInfo fcinfo, const ZklStatus *status)
{
	const char *version = status->zookeeper_version;
	bool		is_bad = zkl_release_loses_writes(version);

	if (status->state != ZKL_STATE_CONNECTED)
	{
		bool		refused = zkl_status_is_refused();

		zkl_checkrow_put(fcinfo, "zookeeper version", refused, false, refused ?
						 "The server is ClickHouse Keeper, which zklock does not use: see \"connected\"." :
						 "Not known: see \"connected\".");
		return;
	}
	zkl_checkrow_put(fcinfo, "zookeeper version", version[0] != '\0', !is_bad,
					 version[0] == '\0' ?
					 why_no_version(status) :
					 psprintf("The ZooKeeper server%s has version %s.%s",
							  zkl_refusal_may_see_hosts() ?
							  psprintf(" \"%s\"", status->server) : "", version,
							  is_bad ? "  " ZKL_RELEASE_FAULT "  " ZKL_RELEASE_ADVICE : ""));
}

static void
check_lost_writes(FunctionCallInfo fcinfo, const ZklStatus *status)
{
	int64		ago_ms = zkl_boottime_ms() - status->lost_writes_at;
	bool		lately = status->lost_writes > 0 && ago_ms < SECS_PER_DAY * 1000;

	zkl_checkrow_put(fcinfo, "lost writes", true, !lately, status->lost_writes == 0 ?
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
	zkl_checkrow_put(fcinfo, "script", age != ZKL_SCRIPT_NONE, age == ZKL_SCRIPT_OWN,
					 age == ZKL_SCRIPT_NONE ? "This database has no extension \"zklock\"." :
					 psprintf("The extension in this database has version %s, and the library %s.%s",
							  version, ZKL_SCRIPT, advice));
}

static void
check_clock_rate(FunctionCallInfo fcinfo)
{
	double		ppm = 0;
	bool		known = clockrate_read(&ppm);
	bool		ok = ppm <= MOST_CLOCK_PPM && ppm >= -MOST_CLOCK_PPM;

	zkl_checkrow_put(fcinfo, "clock rate", known, ok,
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
	zkl_checkrow_put(fcinfo, "rights", true, missing == NIL, missing == NIL ?
					 "All roles that zk_grants names exist." :
					 psprintf("Names in zk_grants that are no roles: %s.", buf.data));
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
	zkl_checkrow_put(fcinfo, "dialects", state != ZKL_ROOT_UNKNOWN, state == ZKL_ROOT_SAME,
					 zkl_text_to_display(detail, (int) strlen(detail)));
}

static void
check_all(FunctionCallInfo fcinfo, ZklHostCheck *hosts)
{
	ZklStatus	status;
	ZklFleetCheck *fleet;
	const char *silence;
	char	   *detail;
	bool		ok;
	int			used,
				held;

	zkl_status_copy(&status);
	fleet = zkl_fleetcheck_read(&status);
	silence = zkl_fleetcheck_silence(fleet);
	zkl_status_copy(&status);
	count_used_slots(&used, &held);
	check_session(fcinfo, &status, silence, held);
	check_settings(fcinfo, &status);
	ok = hostcheck_finish(hosts, silence == NULL, &detail);
	zkl_checkrow_put(fcinfo, "hosts", silence == NULL, ok, detail);
	check_version(fcinfo, &status);
	judge_tls(fcinfo, &status);
	check_slots(fcinfo, used);
	check_waits(fcinfo);
	check_messages(fcinfo, &status, zkl_fleetcheck_peers(fleet));
	check_lost_writes(fcinfo, &status);
	check_clock_rate(fcinfo);
	check_script(fcinfo);
	check_rights(fcinfo);
	judge_dialects(fcinfo);
	zkl_fleetcheck_put(fcinfo, fleet, &status);
}

/* While ZooKeeper is asked for the fleet, its hosts answer, too. */
Datum
zkl_sql_healthcheck(PG_FUNCTION_ARGS)
{
	ZklHostCheck *hosts;

	zkl_gate_check_worker();
	InitMaterializedSRF(fcinfo, 0);
	hosts = hostcheck_make();
	PG_TRY();
	{
		hostcheck_begin(hosts);
		check_all(fcinfo, hosts);
	}
	PG_FINALLY();
	{
		hostcheck_end(hosts);
	}
	PG_END_TRY();
	return (Datum) 0;
}
