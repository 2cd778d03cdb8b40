/*
 * healthcheck.c
 *	  The set-returning function zk_healthcheck(): what an operator would look at,
 *	  and whether it is well.
 *
 * Owns what counts as healthy.  Run by backends.  Takes no locks.
 *
 * Must not know how any of it comes about.
 *
 * A check whose result cannot be known now is NULL.  No detail shows credentials, and
 * hosts only to those who may see them.
 */
#include "postgres.h"

#include "backend/admission.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "functions/checkrow.h"
#include "functions/clockrate.h"
#include "functions/fleetcheck.h"
#include "functions/hostcheck.h"
#include "functions/peercheck.h"
#include "functions/row.h"
#include "lib/stringinfo.h"
#include "nodes/value.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/fleet.h"
#include "shared/gate.h"
#include "shared/program.h"
#include "shared/settings.h"
#include "shared/slot.h"
#include "shared/status.h"
#include "storage/procarray.h"
#include "utils/timestamp.h"
#include "wire/version.h"

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
		if (slot.s_state != ZKL_SLOT_WAITING ||
			slot.s_request.kind != ZKL_KIND_LOCK || !has_snapshot(slot.s_request.pid))
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
	bool		known = zkl_clockrate_read(&ppm);
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
	ok = zkl_hostcheck_finish(hosts, silence == NULL, &detail);
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
	hosts = zkl_hostcheck_make();
	PG_TRY();
	{
		zkl_hostcheck_begin(hosts);
		check_all(fcinfo, hosts);
	}
	PG_FINALLY();
	{
		zkl_hostcheck_end(hosts);
	}
	PG_END_TRY();
	return (Datum) 0;
}
