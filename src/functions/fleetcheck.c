/*
 * fleetcheck.c
 *	  The checks of zk_healthcheck() that need ZooKeeper: what it tells of the servers of
 *	  the fleet, and its leader's clock.
 *
 * Owns what counts as a healthy fleet.  Run by backends.  Takes no locks.
 *
 * Must not know how the fleet is written.
 *
 * All is read first, in a subtransaction: if ZooKeeper goes away or refuses, that is no
 * error.  Then one check tells the reason, and what cannot be known refers to it.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "backend/errand.h"
#include "backend/refusal.h"
#include "functions/accesscheck.h"
#include "functions/checkrow.h"
#include "functions/fleetcheck.h"
#include "functions/peercheck.h"
#include "postmaster/postmaster.h"
#include "utils/timestamp.h"
#include "wire/version.h"

#define MOST_CLOCK_MS	30000	/* zk_once() allows for half a minute */

/* Checks that may tell why the others are not known */
#define CONNECTED		ZKL_FLEETCHECK_CONNECTED
#define ACCESS			"access control"

/* What ZooKeeper tells: the directory of the fleet, and the leader's clock */
struct ZklFleetCheck
{
	const char *reason;			/* why it told nothing, or not all of it; or
								 * NULL */
	const char *told_by;		/* the check that tells the reason */
	int			servers;
	int			other_timeouts;
	int			other_versions;
	int			other_protocols;
	int			clones;			/* of this server */
	int			doubtful;		/* may be clones, but cannot be read */
	uint32		timeout_ms;		/* ours */
	ZklFleetServer own;			/* readable if it is there */
	int64		session_id;		/* ours */
	List	   *peers;			/* see peercheck.h */
	ZklAccessCheck *access;
	char		refused[ZKL_MAX_NAME + 1];	/* see status.h */
	bool		has_clock;
	int64		ahead_ms;		/* the clock, of this server's */
};

typedef ZklFleetCheck Fleet;

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
	zkl_accesscheck_note(fleet->access, server,
						 server->session_id == fleet->session_id);
	if (server->session_id == fleet->session_id)
		fleet->own = *server;
	if (!server->readable)
		fleet->doubtful += may_be_clone(fleet, server);
	else
	{
		fleet->other_timeouts += server->entry.timeout_ms != (int32) fleet->timeout_ms;
		fleet->other_versions += strcmp(server->entry.zklock, ZKL_VERSION) != 0;
		fleet->other_protocols += server->entry.protocol != ZKL_ZNODE_PROTOCOL;
		fleet->clones += may_be_clone(fleet, server) && !server->entry.in_recovery &&
			server->entry.started_us != PgStartTime;
	}
}

/* Why a check of this name is not known: at length in one of them only */
static const char *
unknown_in(const Fleet *fleet, const char *check)
{
	return strcmp(fleet->told_by, check) == 0 ? fleet->reason :
		psprintf("Not known: see \"%s\".", fleet->told_by);
}

static void
put_count(FunctionCallInfo fcinfo, const Fleet *fleet, const char *check, int others,
		  const char *detail)
{
	bool		known = fleet->reason == NULL;

	zkl_checkrow_put(fcinfo, check, known, others == 0,
					 known ? detail : unknown_in(fleet, check));
}

static void
check_fleet(FunctionCallInfo fcinfo, const Fleet *fleet)
{
	put_count(fcinfo, fleet, "fleet", !fleet->own.readable, fleet->own.readable ?
			  psprintf("Servers in the fleet: %d.", fleet->servers) :
			  "The znode that tells others about this server is missing, or cannot be read with the credentials of this server.");
	put_count(fcinfo, fleet, "fleet versions", fleet->other_versions,
			  psprintf("Servers with another version of zklock than %s: %d.",
					   ZKL_VERSION, fleet->other_versions));
	put_count(fcinfo, fleet, "znode protocol", fleet->other_protocols,
			  psprintf("Servers that do not write znodes in format %d, as this one does: %d.",
					   ZKL_ZNODE_PROTOCOL, fleet->other_protocols));
	put_count(fcinfo, fleet, "fleet timeouts", fleet->other_timeouts,
			  psprintf("Servers with another session timeout than this one: %d.",
					   fleet->other_timeouts));
}

static void
check_access(FunctionCallInfo fcinfo, const Fleet *fleet, uint32 access)
{
	bool		is_refused = fleet->reason != NULL && strcmp(fleet->told_by, ACCESS) == 0;
	bool		known = fleet->reason == NULL || is_refused;
	bool		ok;
	const char *detail = zkl_accesscheck_judge(fleet->access, access,
											   is_refused ? fleet->reason : NULL, &ok);

	zkl_checkrow_put(fcinfo, ACCESS, known, ok, known ? detail : unknown_in(fleet, ACCESS));
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

	if (fleet->reason != NULL)
		detail = unknown_in(fleet, "clones");
	else if (is_here && clone)
		detail = "Another server has the same system identifier, and neither of them is in recovery.";
	else if (is_here)
		detail = "Another ZooKeeper session has the same system identifier.  It is of a clone, or about to expire: of this server before it was restarted, or of a former primary.";
	else if (fleet->doubtful > 0)
		detail = "Another server has the same system identifier, and this server cannot read its znode.";
	zkl_checkrow_put(fcinfo, "clones",
					 fleet->reason == NULL && (is_here ? clone : fleet->doubtful == 0),
					 !is_here, detail);
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

	zkl_checkrow_put(fcinfo, "clock", fleet->has_clock,
					 ahead_ms <= MOST_CLOCK_MS && ahead_ms >= -MOST_CLOCK_MS,
					 fleet->reason != NULL ? unknown_in(fleet, "clock") : !fleet->has_clock ?
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
	zkl_accesscheck_read(fleet->access, fleet->refused);
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
		case ERRCODE_FEATURE_NOT_SUPPORTED:
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
	if (error->sqlerrcode == ERRCODE_CONNECTION_FAILURE ||
		error->sqlerrcode == ERRCODE_FEATURE_NOT_SUPPORTED)
		fleet->told_by = CONNECTED;
	else if (error->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE)
		fleet->told_by = ACCESS;
	fleet->reason = error->detail ? error->detail : error->message;
}

/* ---- for zk_healthcheck() ---- */

ZklFleetCheck *
zkl_fleetcheck_read(const ZklStatus *status)
{
	Fleet	   *fleet = palloc0(sizeof(Fleet));

	fleet->told_by = "fleet";
	fleet->access = zkl_accesscheck_make();
	fleet->timeout_ms = status->timeout_ms;
	fleet->session_id = status->session_id;
	strlcpy(fleet->refused, status->refused, sizeof(fleet->refused));
	if (status->state == ZKL_STATE_CONNECTED && status->session_id != 0)
		try_to_read_fleet(fleet);
	else
	{
		fleet->told_by = CONNECTED;
		fleet->reason = "";
	}
	return fleet;
}

const char *
zkl_fleetcheck_silence(const ZklFleetCheck *fleet)
{
	return fleet->reason != NULL && strcmp(fleet->told_by, CONNECTED) == 0 ?
		fleet->reason : NULL;
}

List *
zkl_fleetcheck_peers(const ZklFleetCheck *fleet)
{
	return fleet->peers;
}

void
zkl_fleetcheck_put(FunctionCallInfo fcinfo, const ZklFleetCheck *fleet,
				   const ZklStatus *status)
{
	check_fleet(fcinfo, fleet);
	check_access(fcinfo, fleet, status->access);
	check_clones(fcinfo, fleet, status->clone);
	check_clock(fcinfo, fleet);
}
