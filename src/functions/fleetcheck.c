/*
 * fleetcheck.c
 *	  The checks of zk_healthcheck() that are about the servers of the fleet.
 *
 * Owns what counts as a healthy fleet, as wrong with addresses, and as silence.  Run
 * by backends.  Takes no locks.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "backend/refusal.h"
#include "backend/target.h"
#include "functions/fleetcheck.h"
#include "functions/row.h"
#include "lib/stringinfo.h"
#include "postmaster/postmaster.h"
#include "shared/boottime.h"
#include "shared/fleet.h"
#include "shared/settings.h"
#include "utils/timestamp.h"
#include "wire/version.h"

/* ---- peercheck ---- */

/*
 * The check of zk_healthcheck() that is about messages between servers: what keeps
 * them from arriving, as far as this server can see it.
 *
 * Must not know how messages are sent.  Of servers whose entry cannot be read it knows
 * nothing; another check tells of these.
 */

#define LEAST_UNANSWERED	5	/* so many asks in a row are no accident */

typedef struct
{
	int64		session;
	const char *name;
	const char *text;			/* its address, as it is in its entry */
	ZklPeerAddress address;
	int32		timeout_ms;
} Peer;

/* What a sentence is about */
typedef bool (*PeerFault) (const Peer *peer, const Peer *own);

/* Adds a server to the list of those that are checked, and returns that. */
static List *
peercheck_note(List *peers, const ZklFleetServer *server)
{
	Peer	   *peer;

	if (!server->readable)
		return peers;
	peer = palloc0(sizeof(Peer));
	peer->session = server->session_id;
	peer->name = zkl_text_to_display(server->entry.server,
									 (int) strlen(server->entry.server));
	peer->text = pstrdup(server->entry.peer);
	(void) zkl_peer_address_read(peer->text, 0, &peer->address);
	peer->timeout_ms = server->entry.timeout_ms;
	return lappend(peers, peer);
}

/* ---- one server ---- */

static bool
has_address(const Peer *peer)
{
	return peer->address.length != 0;
}

static bool
has_no_address(const Peer *peer, const Peer *own)
{
	return !has_address(peer);
}

static bool
has_other_family(const Peer *peer, const Peer *own)
{
	return own != NULL && has_address(own) && has_address(peer) &&
		peer->address.address.ss_family != own->address.address.ss_family;
}

static bool
is_near(const Peer *peer, const Peer *own)
{
	return has_address(peer) &&
		(zkl_peer_address_is_loopback(&peer->address) ||
		 zkl_peer_address_is_link_local(&peer->address));
}

static bool
is_far(const Peer *peer, const Peer *own)
{
	return has_address(peer) && !is_near(peer, own);
}

/* A server that has just died is in the fleet until its session ends. */
static bool
is_silent(const Peer *peer, const Peer *own)
{
	ZklPeerCount count;

	return zkl_peer_count_copy(peer->session, &count) &&
		count.unanswered >= LEAST_UNANSWERED &&
		zkl_boottime_ms() - count.since_ms > 2 * (int64) peer->timeout_ms;
}

/* ---- all of them ---- */

static int
compare_addresses(const ListCell *a, const ListCell *b)
{
	const Peer *x = lfirst(a),
			   *y = lfirst(b);
	int			order = strcmp(x->text, y->text);

	return order != 0 ? order : strcmp(x->name, y->name);
}

static bool
have_same_address(const Peer *a, const Peer *b)
{
	return has_address(a) && strcmp(a->text, b->text) == 0;
}

/* Those that share their address with another one; sorts the list. */
static List *
find_doubles(List *peers)
{
	List	   *doubles = NIL;
	int			i;

	list_sort(peers, compare_addresses);
	for (i = 0; i < list_length(peers); i++)
	{
		Peer	   *peer = list_nth(peers, i);

		if ((i > 0 && have_same_address(peer, list_nth(peers, i - 1))) ||
			(i + 1 < list_length(peers) &&
			 have_same_address(peer, list_nth(peers, i + 1))))
			doubles = lappend(doubles, peer);
	}
	return doubles;
}

static List *
find_those(List *peers, PeerFault fault, const Peer *own)
{
	List	   *found = NIL;
	ListCell   *cell;

	foreach(cell, peers)
	{
		if (fault(lfirst(cell), own))
			found = lappend(found, lfirst(cell));
	}
	return found;
}

static void
add_sentence(StringInfo faults, const char *what, List *peers)
{
	List	   *names = NIL;
	ListCell   *cell;

	if (peers == NIL)
		return;
	foreach(cell, peers)
		names = lappend(names, unconstify(char *, ((const Peer *) lfirst(cell))->name));
	appendStringInfo(faults, "%s%s: %s.", faults->len > 0 ? "  " : "", what,
					 zkl_checkrow_names(names));
}

static const Peer *
find_own_peer(List *peers, int64 session)
{
	ListCell   *cell;

	foreach(cell, peers)
	{
		const Peer *peer = lfirst(cell);

		if (peer->session == session)
			return peer;
	}
	return NULL;
}

/* Sentences; empty if nothing is wrong */
static const char *
describe_faults(List *peers, const Peer *own)
{
	StringInfoData faults;

	initStringInfo(&faults);
	add_sentence(&faults, "Servers that share an address for messages",
				 find_doubles(peers));
	add_sentence(&faults, "Servers without an address for messages",
				 find_those(peers, has_no_address, own));
	add_sentence(&faults, "Servers whose address is IPv4 where this one's is IPv6, or the other way round",
				 find_those(peers, has_other_family, own));
	if (find_those(peers, is_far, own) != NIL)
		add_sentence(&faults, "Servers whose address cannot be reached from other machines or networks",
					 find_those(peers, is_near, own));
	add_sentence(&faults, "Servers that do not answer messages",
				 find_those(peers, is_silent, own));
	return faults.data;
}

/* A fault of this server shows addresses, and paths of znodes. */
const char *
zkl_peercheck_judge(const ZklStatus *status, List *peers, bool *ok)
{
	const char *fault = zkl_refusal_may_see_hosts() ? status->messages_fault :
	"The server log says why.";
	const char *faults;

	*ok = zkl_peer_port == 0;
	if (zkl_peer_port == 0)
		return "\"zklock.peer_port\" is 0: there are no messages between servers.";
	if (status->messages_fault[0] != '\0')
		return zkl_text_to_display(fault, (int) strlen(fault));
	if (!status->messages_possible)
		return "Messages between servers are not possible yet.";
	faults = describe_faults(peers, find_own_peer(peers, status->session_id));
	*ok = faults[0] == '\0';
	return *ok ? "Messages between servers are possible." : faults;
}

/* ---- accesscheck ---- */

/*
 * The check of zk_healthcheck() that is about access control lists: which servers
 * have other credentials than this one, and which znode refuses it.
 *
 * Must not know credentials: the access control list of this server's own entry in the
 * fleet tells who it is, as ZooKeeper has put its identities there.  Each server makes the
 * directories of locks with the same ones.  So two servers can use each other's if there is
 * an identity that both entries let in; that "everybody" is one of them shows that a
 * server has none of its own.
 *
 * A directory that was made with other credentials stays behind when these are corrected.
 * ZooKeeper does not tell which of many directories those are; so the worker remembers
 * the last lock that was refused, and whether it still is, is looked at here.
 */

#define USE_RIGHTS	13			/* to read, create and delete */
#define CREATE_RIGHT	4

#define ADVICE		"  Give all servers the same \"zklock.auth_file\"."

typedef struct
{
	const char *znode;			/* its name in the directory of the fleet */
	const char *name;			/* to be shown */
	bool		is_own;
} Server;

struct ZklAccessCheck
{
	List	   *servers;		/* whose entries can be read */
	List	   *unreadable;		/* sessions of others, as text */
	List	   *own;			/* identities that may use what this server
								 * makes; NIL: not known */
	List	   *different;		/* names of servers that may not, or whose
								 * znodes this one may not use */
	const char *refusing;		/* a znode; or NULL */
	MemoryContext context;
};

typedef struct
{
	ZklAccessCheck *check;
	const char *const *names;
	int			lowest;			/* the last name that is there; -1: none */
	int			permissions;	/* of this server, there */
} Reading;

static ZklAccessCheck *
accesscheck_make(void)
{
	ZklAccessCheck *check = palloc0(sizeof(ZklAccessCheck));

	check->context = CurrentMemoryContext;
	return check;
}

/* This server, or another one of the fleet */
static void
accesscheck_note(ZklAccessCheck *check, const ZklFleetServer *server, bool is_own)
{
	char		znode[ZKL_MAX_FLEET_ZNODE + 1];
	Server	   *one;

	if (!server->readable)
	{
		check->unreadable = lappend(check->unreadable,
									psprintf("0x%llx",
											 (unsigned long long) server->session_id));
		return;
	}
	zkl_fleet_name(server->system, server->session_id, znode);
	one = palloc0(sizeof(Server));
	one->znode = pstrdup(znode);
	one->name = zkl_text_to_display(server->entry.server,
									(int) strlen(server->entry.server));
	one->is_own = is_own;
	check->servers = is_own ? lcons(one, check->servers) :
		lappend(check->servers, one);
}

/* ---- access control lists ---- */

/* Those that may use the znode; each right is permissions:scheme:id. */
static List *
find_identities(const ZklErrandAnswer *answer)
{
	List	   *found = NIL;
	const char *right = answer->bytes;

	for (; right < answer->bytes + answer->size; right += strlen(right) + 1)
	{
		const char *identity = strchr(right, ':');

		if (identity != NULL && (atoi(right) & USE_RIGHTS) == USE_RIGHTS)
			found = lappend(found, pstrdup(identity + 1));
	}
	return found;
}

static bool
have_common(List *a, List *b)
{
	ListCell   *x,
			   *y;

	foreach(x, a)
	{
		foreach(y, b)
		{
			if (strcmp(lfirst(x), lfirst(y)) == 0)
				return true;
		}
	}
	return false;
}

/* The own entry comes first. */
static void
take_rights_of_server(void *arg, int number, const ZklErrandAnswer *answer)
{
	ZklAccessCheck *check = arg;
	const Server *server = list_nth(check->servers, number);
	MemoryContext old = MemoryContextSwitchTo(check->context);

	if (answer->rc == ZKL_RC_OK && server->is_own)
		check->own = find_identities(answer);
	else if (answer->rc == ZKL_RC_OK && check->own != NIL &&
			 !have_common(check->own, find_identities(answer)))
		check->different = lappend(check->different, unconstify(char *, server->name));
	MemoryContextSwitchTo(old);
}

static void
read_rights_of_fleet(ZklAccessCheck *check)
{
	static const ZklTarget fleet = {ZKL_FLEET_DIRECTORY, ZKL_FLEET_DIRECTORY, ZKL_DIALECT_CURATOR_RW};
	const char **names = palloc((list_length(check->servers) + 1) * sizeof(char *));
	ListCell   *cell;
	int			n = 0;

	foreach(cell, check->servers)
		names[n++] = ((const Server *) lfirst(cell))->znode;
	zkl_errand_read_each(ZKL_ERRAND_RIGHTS, &fleet, names, n, take_rights_of_server, check);
}

/* What this server may do, by all rights that are its own or everybody's */
static int
find_permissions(const ZklAccessCheck *check, const ZklErrandAnswer *answer)
{
	const char *right = answer->bytes;
	int			permissions = 0;

	for (; right < answer->bytes + answer->size; right += strlen(right) + 1)
	{
		const char *identity = strchr(right, ':');

		if (identity != NULL &&
			(strcmp(identity + 1, "world:anyone") == 0 ||
			 have_common(list_make1(unconstify(char *, identity + 1)), check->own)))
			permissions |= atoi(right);
	}
	return permissions;
}

static void
note_refusal(const Reading *reading, int number)
{
	ZklAccessCheck *check = reading->check;
	const char *name = reading->names[number];

	check->refusing = MemoryContextStrdup(check->context,
										  psprintf("%s%s%s", zkl_root, name ? "/" : "",
												   name ? name : ""));
}

/* From the root downwards; the first one that refuses counts. */
static void
take_rights_of_directory(void *arg, int number, const ZklErrandAnswer *answer)
{
	Reading    *reading = arg;

	if (answer->rc == ZKL_RC_NOAUTH && reading->check->refusing == NULL)
		note_refusal(reading, number);
	if (answer->rc != ZKL_RC_OK)
		return;
	reading->lowest = number;
	reading->permissions = find_permissions(reading->check, answer);
}

/* The directory of a lock is missing or refuses, or one above it does. */
static void
read_rights_above(ZklAccessCheck *check, const char *refused)
{
	static const ZklTarget root = {"", "", ZKL_DIALECT_CURATOR_RW};
	const char *names[ZKL_MAX_NAME];
	Reading		reading = {check, names, -1, 0};
	const char *end = refused;
	int			needed;
	int			n = 0;

	names[n++] = NULL;
	while (*end != '\0')
	{
		end += 1 + strcspn(end + 1, "/");
		names[n++] = pnstrdup(refused + 1, end - refused - 1);
	}
	zkl_errand_read_each(ZKL_ERRAND_RIGHTS, &root, names, n, take_rights_of_directory, &reading);

	/*
	 * In the lock's directory there are znodes; the one above makes that
	 * directory.
	 */
	needed = reading.lowest == n - 1 ? USE_RIGHTS : CREATE_RIGHT;
	if (check->refusing == NULL && reading.lowest >= 0 &&
		(reading.permissions & needed) != needed)
		note_refusal(&reading, reading.lowest);
}

/*
 * Reads the access control lists of the servers that were noted, and of the lock that
 * was refused last.  Error 08006 if ZooKeeper does not answer.
 */
static void
accesscheck_read(ZklAccessCheck *check, const char *refused)
{
	read_rights_of_fleet(check);
	if (refused[0] != '\0' && check->own != NIL)
		read_rights_above(check, refused);
}

/* ---- the check ---- */

static const char *
describe_own(uint32 access)
{
	if (access == ZKL_ACCESS_READ)
		return "has credentials";
	if (access == ZKL_ACCESS_PRIVATE)
		return "has credentials, and its znodes can be read only with them";
	return "has no credentials";
}

/*
 * Whether all is well, and the detail that says so or what is wrong and what to do.
 * "refusal": why the fleet may not be read, or NULL.
 */
static const char *
accesscheck_judge(const ZklAccessCheck *check, uint32 access, const char *refusal,
				  bool *ok)
{
	int			unreadable = list_length(check->unreadable);
	StringInfoData buf;

	*ok = refusal == NULL && unreadable == 0 && check->different == NIL &&
		check->refusing == NULL;
	initStringInfo(&buf);
	appendStringInfo(&buf, "This server %s.", describe_own(access));
	if (refusal != NULL)
	{
		appendStringInfo(&buf, "  It may not read the directory of the fleet: %s" ADVICE,
						 refusal);
		return buf.data;
	}
	appendStringInfo(&buf, "  Servers whose znodes it cannot read: %d%s%s.", unreadable,
					 unreadable > 0 ? ", with the sessions " : "",
					 zkl_checkrow_names(check->unreadable));
	if (check->different != NIL)
		appendStringInfo(&buf, "  Servers with other credentials, or without: %s.",
						 zkl_checkrow_names(check->different));
	if (unreadable > 0 || check->different != NIL)
		appendStringInfoString(&buf, ADVICE);
	if (check->refusing != NULL)
		appendStringInfo(&buf, "  Znode \"%s\" does not let this server in, and so refuses locks: change its access control list with setAcl, or delete it if it is the directory of a lock.",
						 zkl_text_to_display(check->refusing,
											 (int) strlen(check->refusing)));
	return buf.data;
}

/* ---- fleetcheck ---- */

/*
 * The checks of zk_healthcheck() that need ZooKeeper: what it tells of the servers
 * of the fleet, and its leader's clock.
 *
 * Must not know how the fleet is written.
 *
 * All is read first, in a subtransaction: if ZooKeeper goes away or refuses, that is no
 * error.  Then one check tells the reason, and what cannot be known refers to it.
 */

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
	List	   *peers;			/* see peercheck */
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
	fleet->peers = peercheck_note(fleet->peers, server);
	accesscheck_note(fleet->access, server,
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
	const char *detail = accesscheck_judge(fleet->access, access,
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
	accesscheck_read(fleet->access, fleet->refused);
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
	fleet->access = accesscheck_make();
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
