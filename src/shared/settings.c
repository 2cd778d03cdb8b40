/*
 * settings.c
 *	  The settings of zklock, and what lists of hosts and addresses in them mean.
 *
 * Owns their variables, and the list that "zklock.connect_string" names.  The
 * postmaster defines them, backends and the worker read them.  Takes no locks.
 */
#include "postgres.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <unistd.h>

#include "miscadmin.h"
#include "postmaster/postmaster.h"
#include "shared/settings.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "znode/node_data.h"
#include "znode/znode.h"

/* ---- hosts: which ZooKeeper servers to connect to ---- */

/*
 * Runs in the worker, but for the check of a new value; takes no locks; connects to
 * nothing itself.
 */

#define MAX_HOSTS		64
#define MAX_HOST_NAME	255

static char *hosts[MAX_HOSTS];	/* host:port and chroot, in TopMemoryContext */
static int	nhosts = 0;
static int	last_host = 0;

/* As host:port with the chroot, or NULL if there is nothing but spaces */
static char *
complete_host(const char *start, size_t length, const char *chroot)
{
	const char *bracket = memchr(start, ']', length);
	const char *from = bracket != NULL ? bracket : start;
	size_t		left = length - (size_t) (from - start);
	bool		has_port = memchr(from, ':', left) != NULL;

	while (length > 0 && (*start == ' ' || *start == '\t'))
		start++, length--;
	while (length > 0 &&
		   (start[length - 1] == ' ' || start[length - 1] == '\t'))
		length--;
	return length == 0 ? NULL :
		psprintf("%.*s%s%s", (int) length, start, has_port ? "" : ":2181",
				 chroot);
}

/* The rule that one entry of the list breaks, or NULL */
static const char *
check_host(const char *start, size_t length)
{
	const char *bracket = memchr(start, ']', length);
	const char *from = bracket != NULL ? bracket : start;
	const char *colon = memchr(from, ':', length - (size_t) (from - start));
	size_t		name = colon != NULL ? (size_t) (colon - start) : length;
	long		port = 0;
	size_t		i;

	if (name == 0)
		return "Each entry must name a host.";
	if (name > MAX_HOST_NAME)
		return "The name of a host is too long.";
	for (i = 0; i < name; i++)
	{
		if (strchr(" \t\n;", start[i]) != NULL)
			return "Hosts are separated by commas, without spaces.";
	}
	if (colon == NULL)
		return NULL;
	for (i = name + 1; i < length && port <= 65535; i++)
	{
		if (start[i] < '0' || start[i] > '9')
			return "A port is a number.";
		port = port * 10 + (start[i] - '0');
	}
	return port >= 1 && port <= 65535 ? NULL :
		"A port is a number from 1 to 65535.";
}

/* NULL, or the rule that a connect string breaks, as a full sentence. */
static const char *
hosts_check(const char *connect_string)
{
	const char *at = connect_string;
	const char *chroot = strchr(at, '/');
	const char *end = chroot != NULL ? chroot : at + strlen(at);
	const char *why = NULL;
	int			n = 0;

	while (why == NULL && at <= end)
	{
		const char *comma = memchr(at, ',', (size_t) (end - at));
		const char *stop = comma != NULL ? comma : end;

		while (at < stop && *at == ' ')
			at++;
		why = ++n > MAX_HOSTS ? "There are too many hosts." :
			check_host(at, (size_t) (stop - at));
		at = stop + 1;
	}
	if (why == NULL && chroot != NULL &&
		zkl_name_check_root(chroot, strlen(chroot)) != NULL)
		why = "What follows the last host is a path such as /apps, without a slash at its end.";
	return why;
}

char *
zkl_hosts_nth(const char *connect_string, int number)
{
	const char *at = connect_string;
	const char *chroot = strchr(at, '/');
	const char *end = chroot != NULL ? chroot : at + strlen(at);

	if (chroot == NULL || chroot[1] == '\0')
		chroot = "";
	while (at < end)
	{
		const char *comma = memchr(at, ',', (size_t) (end - at));
		const char *stop = comma != NULL ? comma : end;
		char	   *host = complete_host(at, (size_t) (stop - at), chroot);

		if (host != NULL && number-- == 0)
			return host;
		if (host != NULL)
			pfree(host);
		at = stop + 1;
	}
	return NULL;
}

void
zkl_hosts_parse(const char *connect_string)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	char	   *host;

	while (nhosts > 0)
		pfree(hosts[--nhosts]);
	while ((host = zkl_hosts_nth(connect_string, nhosts)) != NULL)
	{
		Assert(nhosts < MAX_HOSTS);
		hosts[nhosts++] = host;
	}
	MemoryContextSwitchTo(old);

	/* Servers of a fleet must not all take the same one first. */
	if (nhosts > 0)
		last_host = (int) ((uint32) MyProcPid % (uint32) nhosts);
}

int
zkl_hosts_count(void)
{
	return nhosts;
}

const char *
zkl_hosts_next(void)
{
	last_host = (last_host + 1) % nhosts;
	return hosts[last_host];
}

/* ---- peer_address ---- */

/*
 * The address at which a server's worker hears from those of other servers.
 *
 * Run by the worker, and by every process that checks a new value of
 * "zklock.peer_address".  It must not know what is sent there.
 */

static struct sockaddr_in *
v4(const ZklPeerAddress *address)
{
	return (struct sockaddr_in *) &address->address;
}

static struct sockaddr_in6 *
v6(const ZklPeerAddress *address)
{
	return (struct sockaddr_in6 *) &address->address;
}

static bool
is_v6(const ZklPeerAddress *address)
{
	return address->address.ss_family == AF_INET6;
}

/*
 * Splits "[host]:port", "[host]", "host:port" and "host" in place.  More than one
 * colon without brackets is an IPv6 address.  False: the port is none.
 */
static bool
split(char *text, char **host, int *port)
{
	char	   *colon = strchr(text, ':');
	char	   *end;
	long		number;

	*host = text;
	if (text[0] == '[')
	{
		*host = text + 1;
		end = strchr(text, ']');
		if (end == NULL || (end[1] != '\0' && end[1] != ':'))
			return false;
		colon = end[1] == ':' ? end + 1 : NULL;
		*end = '\0';
	}
	else if (colon != NULL && strchr(colon + 1, ':') != NULL)
		colon = NULL;
	if (colon == NULL)
		return true;
	*colon++ = '\0';
	if (colon[0] < '1' || colon[0] > '9')
		return false;
	number = strtol(colon, &end, 10);
	*port = (int) Min(number, PG_INT32_MAX);
	return *end == '\0';
}

/* 224.0.0.0/4 is multicast; 240.0.0.0/4 is reserved, its last address broadcast. */
static bool
is_one_host_v4(struct in_addr host)
{
	return host.s_addr != htonl(INADDR_ANY) && ntohl(host.s_addr) >> 28 < 0xe;
}

static bool
is_one_host_v6(const struct in6_addr *host)
{
	return !IN6_IS_ADDR_UNSPECIFIED(host) && !IN6_IS_ADDR_MULTICAST(host);
}

bool
zkl_peer_address_read(const char *text, int port, ZklPeerAddress *address)
{
	char		copy[ZKL_PEER_ADDRESS_TEXT];
	char	   *host;

	memset(address, 0, sizeof(*address));
	if (strlcpy(copy, text, sizeof(copy)) >= sizeof(copy) ||
		!split(copy, &host, &port) || port < 1 || port > 65535)
		return false;
	if (inet_pton(AF_INET, host, &v4(address)->sin_addr) == 1 &&
		is_one_host_v4(v4(address)->sin_addr))
	{
		address->address.ss_family = AF_INET;
		address->length = sizeof(struct sockaddr_in);
	}
	else if (inet_pton(AF_INET6, host, &v6(address)->sin6_addr) == 1 &&
			 is_one_host_v6(&v6(address)->sin6_addr))
	{
		address->address.ss_family = AF_INET6;
		address->length = sizeof(struct sockaddr_in6);
	}
	else
		return false;
	zkl_peer_address_set_port(address, port);
	return true;
}

void
zkl_peer_address_format(const ZklPeerAddress *address, char *text)
{
	char		host[INET6_ADDRSTRLEN] = "";

	if (is_v6(address))
		inet_ntop(AF_INET6, &v6(address)->sin6_addr, host, sizeof(host));
	else
		inet_ntop(AF_INET, &v4(address)->sin_addr, host, sizeof(host));
	snprintf(text, ZKL_PEER_ADDRESS_TEXT, is_v6(address) ? "[%s]:%d" : "%s:%d", host,
			 ntohs(is_v6(address) ? v6(address)->sin6_port : v4(address)->sin_port));
}

void
zkl_peer_address_set_port(ZklPeerAddress *address, int port)
{
	if (is_v6(address))
		v6(address)->sin6_port = htons((uint16) port);
	else
		v4(address)->sin_port = htons((uint16) port);
}

void
zkl_peer_address_widen(ZklPeerAddress *address)
{
	if (is_v6(address))
		v6(address)->sin6_addr = in6addr_any;
	else
		v4(address)->sin_addr.s_addr = htonl(INADDR_ANY);
}

bool
zkl_peer_address_is_loopback(const ZklPeerAddress *address)
{
	return is_v6(address) ? IN6_IS_ADDR_LOOPBACK(&v6(address)->sin6_addr) :
		ntohl(v4(address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* 169.254.0.0/16 */
bool
zkl_peer_address_is_link_local(const ZklPeerAddress *address)
{
	return is_v6(address) ? IN6_IS_ADDR_LINKLOCAL(&v6(address)->sin6_addr) :
		ntohl(v4(address)->sin_addr.s_addr) >> 16 == 0xa9fe;
}

/* ---- settings ---- */

/*
 * The settings of zklock, and what this PostgreSQL server is called by them.
 *
 * Must not know what the settings are for.
 */

bool		zkl_enabled = true;
char	   *zkl_connect_string = NULL;
char	   *zkl_root = NULL;
char	   *zkl_dialects = "";
char	   *zkl_auth_file = NULL;
int			zkl_session_timeout = 10000;
int			zkl_tick_time = 2000;
int			zkl_max_requests = 1000;
int			zkl_max_requests_per_session = -1;
int			zkl_max_requests_per_role = -1;
int			zkl_cache_time = 100;
int			zkl_max_at_least = 3600 * 1000;
bool		zkl_session_locks = true;
char	   *zkl_advisory_prefix = NULL;
int			zkl_answer_timeout = -1;
bool		zkl_reentrant = true;
bool		zkl_deadlock_detection = true;
int			zkl_commit_wait = -1;
int			zkl_lost_lock_action = ZKL_LOST_CANCEL;
int			zkl_on_release_request = ZKL_ON_REQUEST_NOTICE;
int			zkl_log_locks = ZKL_LOG_LOCKS_LOST;
bool		zkl_trace = false;
int			zkl_peer_port = 0;
char	   *zkl_peer_address = "";

static char *fencing_token;
static char *server_name = NULL;
static int	tls = ZKL_TLS_OFF;
static char *tls_ca_file = NULL;
static char *tls_cert_file = NULL;
static char *tls_key_file = NULL;

/* For longer, a server that holds locks for no session would only be a nuisance. */
#define MAX_CACHE_MS	(60 * 1000)

static const struct config_enum_entry lost_lock_actions[] = {
	{"cancel", ZKL_LOST_CANCEL, false},
	{"terminate", ZKL_LOST_TERMINATE, false},
	{"none", ZKL_LOST_NONE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry release_request_actions[] = {
	{"notice", ZKL_ON_REQUEST_NOTICE, false},
	{"cancel", ZKL_ON_REQUEST_CANCEL, false},
	{"terminate", ZKL_ON_REQUEST_TERMINATE, false},
	{"ignore", ZKL_ON_REQUEST_IGNORE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry log_locks_choices[] = {
	{"off", ZKL_LOG_LOCKS_OFF, false},
	{"lost", ZKL_LOG_LOCKS_LOST, false},
	{"all", ZKL_LOG_LOCKS_ALL, false},
	{NULL, 0, false}
};

static const struct config_enum_entry tls_modes[] = {
	{"off", ZKL_TLS_OFF, false},
	{"verify-ca", ZKL_TLS_VERIFY_CA, false},
	{"verify-full", ZKL_TLS_VERIFY_FULL, false},
	{NULL, 0, false}
};

/*
 * PostgreSQL itself would only warn of a bad value at its start and go on with
 * the default: under another root, or with another ensemble, there could be
 * two holders.
 */
static bool
accept_value(const char *name, const char *value,
			 const char *broken_rule)
{
	if (broken_rule == NULL)
		return true;
	if (process_shared_preload_libraries_in_progress)
		ereport(FATAL,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for parameter \"%s\": \"%s\"",
						name, value),
				 errdetail("%s", broken_rule)));
	GUC_check_errdetail("%s", broken_rule);
	return false;
}

/* ---- the name of the server ---- */

/*
 * The name is never cut, since two names might differ at their ends only.  So it
 * has to fit everywhere, also when it is escaped for JSON: "cluster_name" and
 * the host have at most 63 and 64 bytes of ASCII, and the setting has no
 * characters that need an escape.
 */
#define MAX_HOST	64

const char *
zkl_settings_host(void)
{
	static char host[MAX_HOST + 1] = "";

	if (host[0] == '\0' && gethostname(host, MAX_HOST) != 0)
		strlcpy(host, "localhost", sizeof(host));
	return host;
}

const char *
zkl_settings_server_name(void)
{
	static char name[ZKL_MAX_SERVER_NAME + 1] = "";
	const char *cluster;

	if (server_name != NULL && server_name[0] != '\0')
		return server_name;
	if (name[0] != '\0')
		return name;
	cluster = GetConfigOption("cluster_name", true, false);
	snprintf(name, sizeof(name), "%s%s%s:%d",
			 cluster != NULL ? cluster : "",
			 cluster != NULL && cluster[0] != '\0' ? "@" : "",
			 zkl_settings_host(), PostPortNumber);
	return name;
}

/* The rule that a value of "zklock.server_name" breaks, or NULL */
static const char *
fault_of_server_name(const char *value)
{
	size_t		length = strlen(value);
	size_t		at = 0;

	if (length > ZKL_MAX_SERVER_NAME)
		return "A server name must have at most 200 bytes in UTF-8.";
	while (at < length)
	{
		uint32_t	code;
		size_t		bytes = zkl_json_character(value + at, length - at, &code);

		if (bytes == 0)
			return "A server name must be valid UTF-8.";
		if (code < 0x20 || (code >= 0x7F && code < 0xA0) || code == '"' ||
			code == '\\')
			return "A server name must not contain control characters, double quotes or backslashes.";
		at += bytes;
	}
	return NULL;
}

/* ---- checks ---- */

static bool
check_root(char **newval, void **extra, GucSource source)
{
	return accept_value("zklock.root", *newval,
						zkl_name_check_root(*newval, strlen(*newval)));
}

static bool
check_server_name(char **newval, void **extra, GucSource source)
{
	return accept_value("zklock.server_name", *newval,
						fault_of_server_name(*newval));
}

static bool
check_dialects(char **newval, void **extra, GucSource source)
{
	return accept_value("zklock.dialects", *newval,
						zkl_dialect_check_list(*newval));
}

static bool
check_advisory_prefix(char **newval, void **extra, GucSource source)
{
	return accept_value("zklock.advisory_prefix", *newval,
						zkl_name_check(*newval, strlen(*newval)));
}

static bool
check_connect_string(char **newval, void **extra, GucSource source)
{
	return accept_value("zklock.connect_string", *newval,
						hosts_check(*newval));
}

/* A name would have to be looked up, which can take too long for the worker. */
static bool
check_peer_address(char **newval, void **extra, GucSource source)
{
	ZklPeerAddress address;

	if (*newval[0] == '\0' || zkl_peer_address_read(*newval, 1, &address))
		return true;
	GUC_check_errdetail("It must be an IPv4 or IPv6 address of one host, in digits, with or without a port from 1 to 65535.");
	return false;
}

/* ---- definitions ---- */

static void
define_connection_settings(void)
{
	DefineCustomStringVariable("zklock.connect_string",
							   "Sets the servers of the ZooKeeper ensemble, as a comma-separated list of host:port.",
							   NULL,
							   &zkl_connect_string,
							   "localhost:2181",
							   PGC_SIGHUP,
							   GUC_SUPERUSER_ONLY,
							   check_connect_string, NULL, NULL);
	DefineCustomStringVariable("zklock.auth_file",
							   "Sets the file with the credentials for ZooKeeper.",
							   "An empty string means no credentials.",
							   &zkl_auth_file,
							   "",
							   PGC_SIGHUP,
							   GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
	DefineCustomStringVariable("zklock.root",
							   "Sets the znode below which ZooKeeper keeps all locks.",
							   NULL,
							   &zkl_root,
							   "/zklock",
							   PGC_POSTMASTER,
							   0,
							   check_root, NULL, NULL);
	DefineCustomStringVariable("zklock.dialects",
							   "Sets with which other clients locks are shared, by the beginning of their names.",
							   "For example, \"/jobs=curator_mutex, /py=kazoo\".  All other locks have the dialect curator_rw.",
							   &zkl_dialects,
							   "",
							   PGC_POSTMASTER,
							   0,
							   check_dialects, NULL, NULL);
	DefineCustomIntVariable("zklock.session_timeout",
							"Sets the time after which ZooKeeper releases the locks of a silent server.",
							"ZooKeeper may negotiate another value.",
							&zkl_session_timeout,
							10000, 1000, 3600 * 1000,
							PGC_SIGHUP,
							GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("zklock.tick_time",
							"Sets the tickTime that the ZooKeeper servers have in their zoo.cfg.",
							"ZooKeeper does not report it to clients.  A warning is logged if the session timeout is shorter than four ticks.",
							&zkl_tick_time,
							2000, 1, 3600 * 1000,
							PGC_SIGHUP,
							GUC_UNIT_MS,
							NULL, NULL, NULL);
}

/* No answer comes in no time. */
static bool
check_answer_timeout(int *value, void **extra, GucSource source)
{
	if (*value != 0)
		return true;
	GUC_check_errdetail("It must be -1, or at least 1 ms.");
	return false;
}

static void
define_fleet_settings(void)
{
	DefineCustomBoolVariable("zklock.enabled",
							 "Lets sessions of this server take distributed locks.",
							 "If off, nothing new is granted, and the ZooKeeper session is closed once nothing is held.",
							 &zkl_enabled,
							 true,
							 PGC_SIGHUP,
							 0,
							 NULL, NULL, NULL);
	DefineCustomStringVariable("zklock.fencing_token",
							   "Sets the fencing token that zk_fence_trigger() checks.",
							   NULL,
							   &fencing_token,
							   "",
							   PGC_USERSET,
							   0,
							   NULL, NULL, NULL);
	DefineCustomStringVariable("zklock.server_name",
							   "Sets the name of this server towards others.",
							   "If it is empty, the name is made of \"cluster_name\", the host and the port.",
							   &server_name,
							   "",
							   PGC_POSTMASTER,
							   0,
							   check_server_name, NULL, NULL);
	DefineCustomIntVariable("zklock.peer_port",
							"Sets the UDP port for messages between the servers.",
							"Zero means no messages.",
							&zkl_peer_port,
							0, 0, 65535,
							PGC_SIGHUP,
							0,
							NULL, NULL, NULL);
	DefineCustomStringVariable("zklock.peer_address",
							   "Sets the address to which other servers send messages.",
							   "An empty string means the local address of the connection to ZooKeeper.",
							   &zkl_peer_address,
							   "",
							   PGC_SIGHUP,
							   GUC_SUPERUSER_ONLY,
							   check_peer_address, NULL, NULL);
}

static void
define_log_settings(void)
{
	DefineCustomEnumVariable("zklock.log_locks",
							 "Sets which events of distributed locks are written to the server log.",
							 NULL,
							 &zkl_log_locks,
							 ZKL_LOG_LOCKS_LOST, log_locks_choices,
							 PGC_SIGHUP,
							 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("zklock.trace",
							 "Writes each event and each action of the zklock worker to the file zklock.trace.",
							 "The file is in the data directory.  It also has what ZooKeeper's client library says.",
							 &zkl_trace,
							 false,
							 PGC_SIGHUP,
							 GUC_SUPERUSER_ONLY,
							 NULL, NULL, NULL);
}

/*
 * Those that a session may not exceed are for superusers to set, so that the
 * role that they are set for cannot set them back.
 */
static void
define_limits(void)
{
	DefineCustomIntVariable("zklock.max_requests",
							"Sets the maximum number of distributed locks held or awaited at a time.",
							NULL,
							&zkl_max_requests,
							1000, 8, 262143,
							PGC_POSTMASTER,
							0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("zklock.max_requests_per_session",
							"Sets the maximum number of distributed locks that a session holds or awaits at a time.",
							"-1 means a quarter of \"zklock.max_requests\", or 32 if that is more.",
							&zkl_max_requests_per_session,
							-1, -1, 262143,
							PGC_SUSET,
							0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("zklock.max_requests_per_role",
							"Sets the maximum number of distributed locks that all sessions of a role hold or await at a time.",
							"-1 means half of \"zklock.max_requests\".  Superusers have no limit.",
							&zkl_max_requests_per_role,
							-1, -1, 262143,
							PGC_SUSET,
							0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("zklock.max_at_least",
							"Sets the longest allowed \"at_least\".",
							"Zero forbids the argument.",
							&zkl_max_at_least,
							3600 * 1000, 0, INT_MAX,
							PGC_SUSET,
							GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("zklock.session_locks",
							 "Allows distributed locks of session lifetime.",
							 "Turn it off for clients that a connection pooler gives another database session for each transaction.",
							 &zkl_session_locks,
							 true,
							 PGC_SUSET,
							 0,
							 NULL, NULL, NULL);
}

static void
define_request_settings(void)
{
	DefineCustomStringVariable("zklock.advisory_prefix",
							   "Sets the beginning of the names of locks taken by extension zklock_advisory.",
							   "The database and the key follow.  It must be the same on all servers.",
							   &zkl_advisory_prefix,
							   "/advisory",
							   PGC_SUSET,
							   0,
							   check_advisory_prefix, NULL, NULL);
	DefineCustomIntVariable("zklock.cache_time",
							"Sets how long this server keeps a distributed lock that its sessions do not use for the moment.",
							"Only locks that its sessions take again and again are kept, and none that another server waits for.  Zero keeps none.",
							&zkl_cache_time,
							100, 0, MAX_CACHE_MS,
							PGC_SIGHUP,
							GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("zklock.answer_timeout",
							"Sets how long a call waits for ZooKeeper to answer.",
							"-1 means one and a half times the session timeout, and a second.  For a try with a timeout, this time begins after the timeout.  A call that waits for a lock gets a notice after this time, and no error.",
							&zkl_answer_timeout,
							-1, -1, INT_MAX,
							PGC_USERSET,
							GUC_UNIT_MS,
							check_answer_timeout, NULL, NULL);
	DefineCustomBoolVariable("zklock.deadlock_detection",
							 "Ends deadlocks across servers by failing one of the requests.",
							 "A wait for a distributed lock takes part in it after \"deadlock_timeout\".",
							 &zkl_deadlock_detection,
							 true,
							 PGC_SIGHUP,
							 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("zklock.commit_wait",
							"Sets how long a commit waits for the lease of its distributed locks to be renewed.",
							"-1 means the session timeout.  The commit fails if the lease is not renewed in that time.",
							&zkl_commit_wait,
							-1, -1, INT_MAX,
							PGC_USERSET,
							GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("zklock.reentrant",
							 "Lets a session acquire a distributed lock again that it already holds.",
							 "If off, that is an error.",
							 &zkl_reentrant,
							 true,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);
	DefineCustomEnumVariable("zklock.lost_lock_action",
							 "Sets what happens to a session when a distributed lock that it holds is lost.",
							 "The setting applies to locks that are acquired afterwards.",
							 &zkl_lost_lock_action,
							 ZKL_LOST_CANCEL, lost_lock_actions,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);
	DefineCustomEnumVariable("zklock.on_release_request",
							 "Sets what happens to a session that is asked to release a distributed lock.",
							 "The setting applies to locks that are acquired afterwards.",
							 &zkl_on_release_request,
							 ZKL_ON_REQUEST_NOTICE, release_request_actions,
							 PGC_USERSET,
							 0,
							 NULL, NULL, NULL);
}

/* ---- TLS ---- */

#ifdef ZKLOCK_OPENSSL
#define check_tls	NULL
#else
static bool
check_tls(int *newval, void **extra, GucSource source)
{
	return accept_value("zklock.tls", tls_modes[*newval].name,
						*newval == ZKL_TLS_OFF ? NULL :
						"This build of zklock has no support for TLS.");
}
#endif

/*
 * PostgreSQL would only warn of a word that is none of the modes, and go on
 * without TLS.
 */
static void
check_tls_word(void)
{
	const char *given = GetConfigOption("zklock.tls", true, false);
	const struct config_enum_entry *mode = tls_modes;

	while (given != NULL && mode->name != NULL &&
		   pg_strcasecmp(given, mode->name) != 0)
		mode++;
	if (given != NULL && mode->name == NULL)
		(void) accept_value("zklock.tls", given,
							"The modes are off, verify-ca and verify-full.");
}

ZklTlsSettings
zkl_settings_tls(void)
{
	ZklTlsSettings settings = {(ZklTls) tls, tls_ca_file, tls_cert_file,
	tls_key_file};

	return settings;
}

const char *
zkl_settings_tls_fault(const ZklTlsSettings *settings)
{
	if (settings->mode == ZKL_TLS_OFF)
		return NULL;
	if (settings->ca_file[0] == '\0')
		return "\"zklock.tls\" requires \"zklock.tls_ca_file\"";
	if ((settings->cert_file[0] == '\0') != (settings->key_file[0] == '\0'))
		return "\"zklock.tls_cert_file\" and \"zklock.tls_key_file\" require each other";
	return NULL;
}

static void
define_tls_settings(void)
{
	ZklTlsSettings wanted;

	check_tls_word();
	DefineCustomEnumVariable("zklock.tls",
							 "Sets whether connections to ZooKeeper use TLS, and how its servers are verified.",
							 NULL,
							 &tls,
							 ZKL_TLS_OFF, tls_modes,
							 PGC_SIGHUP,
							 GUC_SUPERUSER_ONLY,
							 check_tls, NULL, NULL);
	DefineCustomStringVariable("zklock.tls_ca_file",
							   "Sets the file with the certificates that verify the ZooKeeper servers.",
							   NULL,
							   &tls_ca_file,
							   "",
							   PGC_SIGHUP,
							   GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
	DefineCustomStringVariable("zklock.tls_cert_file",
							   "Sets the file with this server's certificate for ZooKeeper.",
							   "An empty string means no certificate.",
							   &tls_cert_file,
							   "",
							   PGC_SIGHUP,
							   GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
	DefineCustomStringVariable("zklock.tls_key_file",
							   "Sets the file with the private key of \"zklock.tls_cert_file\".",
							   NULL,
							   &tls_key_file,
							   "",
							   PGC_SIGHUP,
							   GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
	wanted = zkl_settings_tls();
	if (zkl_settings_tls_fault(&wanted) != NULL)
		ereport(FATAL,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s", zkl_settings_tls_fault(&wanted))));
}

/* ---- all of them ---- */

void
zkl_settings_define(void)
{
	define_connection_settings();
	define_fleet_settings();
	define_tls_settings();
	define_log_settings();
	define_limits();
	define_request_settings();
	MarkGUCPrefixReserved("zklock");
}
