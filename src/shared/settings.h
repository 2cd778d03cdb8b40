/*
 * settings.h
 *	  The settings of zklock, and what lists of hosts and addresses in them mean.
 */
#ifndef ZKL_SHARED_SETTINGS_H
#define ZKL_SHARED_SETTINGS_H

#include <sys/socket.h>

#include "znode/zkapi.h"

/* ---- hosts ---- */

/* Which ZooKeeper servers to connect to.  For the worker. */

#define ZKL_MAX_HOST	512		/* host, port and chroot */

/* For how long new settings are tried at each host: there is no hurry. */
#define ZKL_HOST_TRIAL_MS	10000

/*
 * The host of that number, from 0, in host[:port][,host[:port]...][/chroot], as
 * host:port with the chroot; NULL if there are not so many.
 */
extern char *zkl_hosts_nth(const char *connect_string, int number);

/* Takes over all hosts. */
extern void zkl_hosts_parse(const char *connect_string);

extern int	zkl_hosts_count(void);

/* The next one in turn; count must not be 0. */
extern const char *zkl_hosts_next(void);

/* ---- any process ---- */

/* ---- peer_address ---- */

/*
 * The address at which a server's worker hears from those of other servers.  For the
 * worker, and for the check of "zklock.peer_address".
 */

/* "[", an IPv6 address, "]:", a port, and the NUL */
#define ZKL_PEER_ADDRESS_TEXT	64

typedef struct ZklPeerAddress
{
	struct sockaddr_storage address;
	socklen_t	length;			/* 0: none */
} ZklPeerAddress;

/*
 * Reads "10.0.0.1", "10.0.0.1:5433", "fd00::1" or "[fd00::1]:5433".  "port" is for
 * an address without one.  Names are not looked up.  False: it is none of one host;
 * *address is empty.
 */
extern bool zkl_peer_address_read(const char *text, int port, ZklPeerAddress *address);

/* Writes it with its port; text has ZKL_PEER_ADDRESS_TEXT bytes. */
extern void zkl_peer_address_format(const ZklPeerAddress *address, char *text);

extern void zkl_peer_address_set_port(ZklPeerAddress *address, int port);

/* Makes it that of all interfaces of its family. */
extern void zkl_peer_address_widen(ZklPeerAddress *address);

extern bool zkl_peer_address_is_loopback(const ZklPeerAddress *address);
extern bool zkl_peer_address_is_link_local(const ZklPeerAddress *address);

/* ---- settings: the settings of zklock ---- */

typedef enum ZklLostLockAction
{
	ZKL_LOST_CANCEL,			/* cancel the holder's running statement */
	ZKL_LOST_TERMINATE,			/* end the holder's backend session */
	ZKL_LOST_NONE				/* leave it to the commit check */
} ZklLostLockAction;

typedef enum ZklLogLocks
{
	ZKL_LOG_LOCKS_OFF,
	ZKL_LOG_LOCKS_LOST,			/* losses */
	ZKL_LOG_LOCKS_ALL			/* and grants and releases */
} ZklLogLocks;

typedef enum ZklOnReleaseRequest
{
	ZKL_ON_REQUEST_NOTICE,		/* tell the holder */
	ZKL_ON_REQUEST_CANCEL,		/* and cancel its running statement */
	ZKL_ON_REQUEST_TERMINATE,	/* end the holder's backend session */
	ZKL_ON_REQUEST_IGNORE
} ZklOnReleaseRequest;

/* Times in ms */
extern bool zkl_enabled;
extern char *zkl_connect_string;
extern char *zkl_root;
extern char *zkl_dialects;
extern char *zkl_auth_file;
extern int	zkl_session_timeout;
extern int	zkl_tick_time;

#define ZKL_LEAST_TICKS		4	/* of a session timeout, to be on the safe
								 * side */

extern int	zkl_max_requests;
extern int	zkl_max_requests_per_session;	/* -1: see acquire.c */
extern int	zkl_max_requests_per_role;	/* likewise */
extern int	zkl_cache_time;		/* 0: nothing is cached */
extern int	zkl_max_at_least;	/* 0: none at all */
extern bool zkl_session_locks;
extern char *zkl_advisory_prefix;	/* of names of zklock_advisory */
extern int	zkl_answer_timeout; /* see zkl_status_answer_timeout_ms */
extern bool zkl_reentrant;
extern bool zkl_deadlock_detection;
extern int	zkl_commit_wait;	/* -1: the session timeout */
extern int	zkl_lost_lock_action;	/* ZklLostLockAction */
extern int	zkl_on_release_request; /* ZklOnReleaseRequest */
extern int	zkl_log_locks;		/* ZklLogLocks */
extern bool zkl_trace;
extern int	zkl_peer_port;		/* 0: no messages between servers */
extern char *zkl_peer_address;	/* empty: that of the connection */

/* Defines all of them; for the postmaster, while it preloads libraries. */
extern void zkl_settings_define(void);

/*
 * The name that others see: "zklock.server_name", or one that is made of
 * "cluster_name", the host and the port.  In UTF-8, at most ZKL_MAX_SERVER_NAME
 * bytes, also once it is escaped for JSON.  Constant while the process lives.
 */
extern const char *zkl_settings_server_name(void);

/* The host that the name is made of; "localhost" if it cannot be found out. */
extern const char *zkl_settings_host(void);

typedef struct ZklTlsSettings
{
	ZklTls		mode;
	const char *ca_file;		/* the files: empty if not set */
	const char *cert_file;
	const char *key_file;
} ZklTlsSettings;

/* The present values, until the next reload */
extern ZklTlsSettings zkl_settings_tls(void);

/* What they lack together, or NULL */
extern const char *zkl_settings_tls_fault(const ZklTlsSettings *settings);

#endif							/* ZKL_SHARED_SETTINGS_H */
