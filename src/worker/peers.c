/*
 * peers.c
 *	  Messages between this server's worker and those of other servers, by UDP.
 *
 * Owns the socket, the fields messages_... in ZklStatus, and the addresses that were
 * read.  Runs in the worker only; takes no locks.  It must not know what messages
 * mean.
 */
#include "postgres.h"

#include <netinet/in.h>
#include <unistd.h>

#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/fleet.h"
#include "shared/status.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "worker/identity.h"
#include "worker/link.h"
#include "worker/operation.h"
#include "worker/peer_key.h"
#include "worker/peers.h"
#include "worker/worker.h"

/* ---- peer_lookup ---- */

/*
 * Where the workers of other servers hear, by their ZooKeeper sessions.
 *
 * It must not know what is sent there.
 *
 * An address is read when it is needed: the names in the directory of the fleet tell
 * which znode is that session's, and ZooKeeper tells whose each znode is.  It is read
 * again now and then while it is in use, since a server can change it.
 */

#define MOST_SERVERS	4096	/* then all are forgotten */
#define PAUSE			(1000 * 1000)	/* µs, before an unknown one is read
										 * again */
#define FRESH_FOR		(60 * 1000 * 1000)	/* likewise of a known one */

enum
{
	THE_LISTING,
	AN_ENTRY
};

typedef struct
{
	int64		session;		/* the key */
	ZklPeerAddress address;
	int64		sought_at;		/* the last time, by boottime.h; 0: never */
	bool		wanted;			/* the present task seeks it */
} PeerServer;

static void (*tell_done) (void);
static HTAB *servers = NULL;
static ZklTask *present = NULL;
static int	nread = 0;			/* znodes being read */

/* ---- servers ---- */

static void
make_servers(void)
{
	HASHCTL		ctl;

	memset(&ctl, 0, sizeof(ctl));
	ctl.keysize = sizeof(int64);
	ctl.entrysize = sizeof(PeerServer);
	ctl.hcxt = TopMemoryContext;
	servers = hash_create("zklock addresses of servers", 64, &ctl,
						  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static void
forget_servers(void)
{
	if (servers != NULL)
		hash_destroy(servers);
	servers = NULL;
}

/* NULL, unless it is wanted */
static PeerServer *
find_wanted(int64 session)
{
	PeerServer *server = hash_search(servers, &session, HASH_FIND, NULL);

	return server != NULL && server->wanted ? server : NULL;
}

static PeerServer *
find_or_add_server(int64 session)
{
	PeerServer *server;
	bool		found;

	if (servers != NULL && present == NULL &&
		hash_get_num_entries(servers) >= MOST_SERVERS)
		forget_servers();
	if (servers == NULL)
		make_servers();
	server = hash_search(servers, &session, HASH_ENTER, &found);
	if (!found)
	{
		memset(server, 0, sizeof(*server));
		server->session = session;
	}
	return server;
}

/* ---- reading ---- */

/* What was not found has no address; "failed": nothing is known. */
static void
finish_lookup(bool failed)
{
	HASH_SEQ_STATUS scan;
	PeerServer *server;
	ZklTask    *task = present;

	hash_seq_init(&scan, servers);
	while ((server = hash_seq_search(&scan)) != NULL)
	{
		if (server->wanted && !failed)
			server->address.length = 0;
		server->wanted = false;
	}
	nread = 0;
	present = NULL;
	zkl_operation_end(task);
	tell_done();
}

static void
begin_lookup(ZklTask *task)
{
	zkl_operation_send(task, THE_LISTING, ZKL_SEND_LIST,
					   psprintf("%s%s", zkl_root, ZKL_FLEET_DIRECTORY), false);
}

static void
take_fleet(ZklTask *task, const ZklReply *reply)
{
	size_t		i;

	for (i = 0; i < reply->nchildren; i++)
	{
		uint64		system;
		int64		session;

		if (!zkl_fleet_read_name(reply->children[i], &system, &session) ||
			find_wanted(session) == NULL)
			continue;
		nread++;
		zkl_operation_send(task, AN_ENTRY, ZKL_SEND_GET,
						   psprintf("%s%s/%s", zkl_root, ZKL_FLEET_DIRECTORY,
									reply->children[i]), false);
	}
	if (nread == 0)
		finish_lookup(false);
}

/* Its owner is the session itself, whatever the name of the znode says. */
static void
take_server_entry(const ZklReply *reply, const ZklWireStat *stat)
{
	PeerServer *server = reply->rc == ZKL_RC_OK ? find_wanted(stat->ephemeral_owner) : NULL;
	ZklFleetEntry entry;

	if (server != NULL)
	{
		(void) zkl_fleet_read(reply->data, reply->data_length, &entry);
		(void) zkl_peer_address_read(entry.peer, 0, &server->address);
		server->wanted = false;
	}
	if (--nread == 0)
		finish_lookup(false);
}

static void
take_lookup_reply(ZklTask *task, uint32 part, const ZklReply *reply,
				  const ZklWireStat *stat)
{
	if (part == AN_ENTRY)
		take_server_entry(reply, stat);
	else if (reply->rc == ZKL_RC_OK)
		take_fleet(task, reply);
	else if (zkl_zkapi_is_definite(reply->rc) || !zkl_operation_retry(task))
		finish_lookup(true);
}

static void
lose_lookup(ZklTask *task, bool was_busy)
{
	finish_lookup(true);
}

static const ZklTaskOwner lookup_owner = {
	.size = sizeof(ZklTask),
	.begin = begin_lookup,
	.reply = take_lookup_reply,
	.lost = lose_lookup,
};

/* ---- for peers ---- */

/* Calls "done" each time that something was read, or could not be. */
static void
peer_lookup_begin(void (*done) (void))
{
	tell_done = done;
}

static void
seek(PeerServer *server, int64 now)
{
	server->wanted = true;
	server->sought_at = now;
	if (present == NULL)
		present = zkl_operation_make(&lookup_owner);
}

/*
 * Finds the address of a session.  What is not known, or was read long ago, is read
 * from the directory of the fleet.  With KNOWN, *address is valid until the next call.
 */
static ZklPeerLookup
peer_lookup(int64 session, const ZklPeerAddress **address)
{
	PeerServer *server = find_or_add_server(session);
	int64		now = zkl_boottime_us();
	bool		known = server->address.length != 0;
	bool		due = now - server->sought_at >= (known ? FRESH_FOR : PAUSE);

	/* If the listing of the present task has come, the next one seeks it. */
	if (due && !server->wanted && nread == 0)
		seek(server, now);
	*address = &server->address;
	return known ? ZKL_PEER_KNOWN :
		due || server->wanted ? ZKL_PEER_SOUGHT : ZKL_PEER_UNKNOWN;
}

/* Forgets all addresses, and reads nothing any more. */
static void
peer_lookup_end(void)
{
	if (present != NULL)
		zkl_operation_end(present);
	present = NULL;
	nread = 0;
	forget_servers();
}

/* ---- peers ---- */

/*
 * Nothing depends on a message: each may be lost.  So there is no connection and no
 * answer, and what cannot be sent at once is dropped.  Only the latest few messages to
 * servers are kept whose addresses are still being read.  Messages go to the addresses
 * that servers have published in ZooKeeper, never to the source of a datagram.  Some asks
 * are echoed, so that somebody can see whether messages arrive: see fleet.h.
 *
 * A sender that has the key is a server of the fleet.  Any other can only flood us, or
 * repeat datagrams that it has recorded.  So a turn takes few datagrams, and after
 * many, or many bad ones, the socket rests for a moment.
 */

#define RETRY			(30 * 1000 * 1000)	/* µs, after a fault */
#define MOST_A_TURN		64
#define MOST_TAKEN		4096	/* in one REST: then the socket rests */
#define MOST_BAD		256		/* bad ones among them, likewise */
#define REST			(100 * 1000)	/* µs */
#define MOST_POSTPONED		64

typedef struct
{
	ZklPeerKind kind;
	ZklPeerMessage message;
} Postponed;

/* Why there are no messages although they are wanted */
typedef struct
{
	const char *detail;
	const char *hint;
} Fault;

static char own_end[ZKL_PEER_ADDRESS_TEXT] = "";	/* of the connection */
static bool connected = false;	/* there was a connection, and locks are not
								 * disabled: this one is set */
static int64 look_at = -1;		/* the settings; -1: need not be */
static char warned_of[1024] = "";

static pgsocket sock = PGINVALID_SOCKET;
static ZklPeerAddress bound;	/* what it was opened for: the address, */
static int	bound_port = 0;		/* and our own port */
static bool told = false;		/* the core, that messages can be sent */
static bool logged = false;		/* where this socket receives them */

static int64 resting_until = 0; /* 0: the socket is watched */
static int64 counted_since = 0;
static int	ntaken = 0;			/* since then: datagrams */
static int	nbad = 0;			/* of those */

static Postponed postponed[MOST_POSTPONED]; /* the latest ones, a ring */
static uint64 npostponed = 0;	/* of all times; those from nsent on are
								 * postponed */
static uint64 nsent = 0;

/* ---- the socket ---- */

static void
close_socket(void)
{
	if (sock == PGINVALID_SOCKET)
		return;
	zkl_link_watch_too(ZKL_LINK_PEERS, PGINVALID_SOCKET);
	close(sock);
	sock = PGINVALID_SOCKET;
	resting_until = 0;
}

static bool
bind_to(const ZklPeerAddress *address)
{
	return bind(sock, (const struct sockaddr *) &address->address, address->length) == 0;
}

/*
 * The published address may be that of a router which passes datagrams on.  *own
 * becomes the address that was tried last.
 */
static bool
bind_socket(ZklPeerAddress *own)
{
	int			on = 1;

	if (own->address.ss_family == AF_INET6)
		(void) setsockopt(sock, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind_to(own))
		return true;
	if (errno != EADDRNOTAVAIL)
		return false;
	zkl_peer_address_widen(own);
	return bind_to(own);
}

static void
describe_failure(const ZklPeerAddress *own, int error, Fault *fault)
{
	char		text[ZKL_PEER_ADDRESS_TEXT];

	zkl_peer_address_format(own, text);
	fault->detail = psprintf("Could not open a UDP socket at %s: %s.", text, strerror(error));
	fault->hint = error == EACCES && bound_port < 1024 ?
		"Choose a port above 1023." :
		error == EADDRINUSE ?
		"Stop the program that uses the port, or choose another \"zklock.peer_port\".  zklock tries it again every 30 seconds." :
		"zklock tries it again every 30 seconds.";
}

static bool
open_socket(const ZklPeerAddress *address, Fault *fault)
{
	ZklPeerAddress own = *address;

	if (sock != PGINVALID_SOCKET && bound_port == zkl_peer_port &&
		memcmp(&bound, address, sizeof(bound)) == 0)
		return true;
	close_socket();
	bound = *address;
	bound_port = zkl_peer_port;
	zkl_peer_address_set_port(&own, bound_port);
	sock = socket(own.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock != PGINVALID_SOCKET && bind_socket(&own))
	{
		logged = false;
		zkl_link_watch_too(ZKL_LINK_PEERS, sock);
		return true;
	}
	describe_failure(&own, errno, fault);
	close_socket();
	return false;
}

/* ---- the settings ---- */

static bool
find_address(ZklPeerAddress *address, Fault *fault)
{
	bool		by_hand = zkl_peer_address[0] != '\0';

	if (zkl_peer_address_read(by_hand ? zkl_peer_address : own_end, zkl_peer_port, address) &&
		(by_hand || !zkl_peer_address_is_loopback(address)))
		return true;
	fault->detail = psprintf("The connection to ZooKeeper has the local address \"%s\", to which other servers cannot send.",
							 own_end);
	fault->hint = "Set \"zklock.peer_address\" to the address at which other servers reach this one.";
	return false;
}

/* It may still be on its way. */
static bool
find_key(Fault *fault)
{
	zkl_peer_key_want(true);
	fault->detail = zkl_peer_key_fault(&fault->hint);
	return fault->detail == NULL;
}

/* NULL: there is none. */
static void
publish_fault(const char *detail)
{
	ZklStatus  *status = zkl_status_begin();

	strlcpy(status->messages_fault, detail != NULL ? detail : "",
			sizeof(status->messages_fault));
	zkl_status_end();
}

static void
warn_of_fault(const Fault *fault)
{
	if (strncmp(fault->detail, warned_of, sizeof(warned_of) - 1) == 0)
		return;
	strlcpy(warned_of, fault->detail, sizeof(warned_of));
	ereport(WARNING,
			(errcode(ERRCODE_CONFIG_FILE_ERROR),
			 errmsg("no messages between servers although \"zklock.peer_port\" is set"),
			 errdetail("%s", fault->detail),
			 errhint("%s", fault->hint)));
}

static void
count_unsent(uint64 n)
{
	zkl_status_begin()->messages_unsent += n;
	zkl_status_end();
}

static void
take_messages_down(void)
{
	close_socket();
	peer_lookup_end();
	count_unsent(npostponed - nsent);
	nsent = npostponed;
	zkl_fleet_entry_set_peer("");
}

static void
set_messages_up(int64 now)
{
	Fault		fault = {0};
	ZklPeerAddress address;
	char		text[ZKL_PEER_ADDRESS_TEXT];

	look_at = -1;
	if (zkl_peer_port == 0 || !connected)
	{
		take_messages_down();
		zkl_peer_key_want(false);
	}
	else if (find_key(&fault) && find_address(&address, &fault) &&
			 open_socket(&address, &fault))
	{
		warned_of[0] = '\0';
		zkl_peer_address_format(&address, text);
		zkl_fleet_entry_set_peer(text);
	}
	else
	{
		take_messages_down();
		warn_of_fault(&fault);
		look_at = now + RETRY;
	}
	publish_fault(fault.detail);
}

/* "zklock.enabled" has ended the session: the next one needs a new connection. */
static bool
is_disabled(void)
{
	return connected && !zkl_enabled && zkl_control->ctl_status.session_id == 0;
}

void
zkl_peers_connected(const char *address, size_t length)
{
	connected = true;
	strlcpy(own_end, pnstrdup(address, length), sizeof(own_end));
	look_at = 0;
}

/* What failed so far may work by now; what still fails is worth another line. */
void
zkl_peers_reload(void)
{
	warned_of[0] = '\0';
	look_at = 0;
	zkl_peer_key_retry();
}

/* The key was read, or could not be. */
static void
look_for_key(void)
{
	look_at = 0;
}

/* ---- receiving ---- */

/* An echo only tells that datagrams arrive. */
static void
take_message(ZklPeerKind kind, const ZklPeerMessage *message)
{
	if (kind == ZKL_PEER_WORD || kind == ZKL_PEER_ECHO)
		zkl_peer_count_heard(message->session);
	if (kind == ZKL_PEER_WORD)
		zkl_worker_tell(ZKL_EVENT(WORD,.peer = message));
	else if (kind != ZKL_PEER_ECHO)
		zkl_worker_tell(ZKL_EVENT(ASK,.peer = message));
	if (kind == ZKL_PEER_ASK_ECHO)
		zkl_peers_send(ZKL_PEER_ECHO, message);
}

static ZklPeerSort
take_datagram(const uint8 *bytes, size_t length)
{
	ZklPeerDatagram datagram;
	ZklPeerMessage message;
	uint8		mac[ZKL_PEER_MAC_BYTES];
	ZklPeerSort sort = zkl_peer_get(bytes, length, zkl_peer_key_number(),
									zkl_control->ctl_status.session_id, &datagram);

	if (sort != ZKL_PEER_GOOD)
		return sort;
	if (!told || !zkl_peer_key_sign(bytes, mac) ||
		!zkl_peer_same_mac(mac, bytes + ZKL_PEER_SIGNED))
		return ZKL_PEER_BAD;
	message.session = datagram.sender;
	memcpy(message.znode.bytes, datagram.znode, ZKL_PEER_ID_BYTES);
	memcpy(message.waiter.bytes, datagram.waiter, ZKL_PEER_ID_BYTES);
	take_message(datagram.kind, &message);
	return ZKL_PEER_GOOD;
}

static void
count_refused(ZklPeerSort sort)
{
	ZklStatus  *status = zkl_status_begin();

	nbad++;
	if (sort == ZKL_PEER_OTHER_KEY)
		status->messages_other_key++;
	else
		status->messages_refused++;
	zkl_status_end();
}

/* Returns whether the socket goes on. */
static bool
count_datagram(int64 now, ZklPeerSort sort)
{
	if (now - counted_since >= REST)
	{
		counted_since = now;
		ntaken = nbad = 0;
	}
	ntaken++;
	if (sort != ZKL_PEER_GOOD)
		count_refused(sort);
	if (ntaken < MOST_TAKEN && nbad < MOST_BAD)
		return true;
	zkl_link_watch_too(ZKL_LINK_PEERS, PGINVALID_SOCKET);
	resting_until = counted_since + REST;
	return false;
}

static void
receive(int64 now)
{
	uint8		bytes[ZKL_PEER_BYTES + 1];
	ssize_t		n;
	int			i;

	if (resting_until != 0)
	{
		if (now < resting_until)
			return;
		resting_until = 0;
		zkl_link_watch_too(ZKL_LINK_PEERS, sock);
	}
	if (!zkl_link_may_read(ZKL_LINK_PEERS))
		return;
	for (i = 0; i < MOST_A_TURN; i++)
	{
		n = recv(sock, bytes, sizeof(bytes), 0);
		if (n < 0 || !count_datagram(now, take_datagram(bytes, (size_t) n)))
			return;
	}
}

/* Once for each socket: not for each session of ZooKeeper's. */
static void
log_address(void)
{
	ZklPeerAddress own;
	char		at[ZKL_PEER_ADDRESS_TEXT] = "?";
	char		published[ZKL_PEER_ADDRESS_TEXT];

	if (logged)
		return;
	logged = true;
	own.length = sizeof(own.address);
	if (getsockname(sock, (struct sockaddr *) &own.address, &own.length) == 0)
		zkl_peer_address_format(&own, at);
	zkl_peer_address_format(&bound, published);
	ereport(LOG,
			(errmsg("messages between servers are received at %s", at),
			 strcmp(at, published) != 0 ?
			 errdetail("Other servers send them to %s.", published) : 0));
}

static void
publish_possible(bool possible)
{
	zkl_status_begin()->messages_possible = possible;
	zkl_status_end();
}

static void
tell_core(void)
{
	bool		can = sock != PGINVALID_SOCKET && zkl_fleet_entry_tells_peer() &&
	zkl_peer_key_number() != 0;

	if (can)
		log_address();
	if (can == told)
		return;
	told = can;
	publish_possible(can);
	zkl_worker_tell(ZKL_EVENT(PEERS,.peers = can));
}

void
zkl_peers_take(void)
{
	int64		now;

	if (is_disabled())
	{
		connected = false;
		look_at = 0;
	}
	if (zkl_peer_port == 0 && look_at < 0)
		return;
	now = zkl_boottime_us();
	if (look_at >= 0 && now >= look_at)
		set_messages_up(now);
	tell_core();
	if (sock != PGINVALID_SOCKET)
		receive(now);
}

int64
zkl_peers_timer(void)
{
	if (is_disabled())
		return 0;
	if (resting_until != 0 && (look_at < 0 || resting_until < look_at))
		return resting_until;
	return look_at;
}

/* ---- sending ---- */

static void
transmit(const Postponed *one, const ZklPeerAddress *address)
{
	ZklPeerDatagram datagram = {.kind = one->kind,.key = zkl_peer_key_number()};
	uint8		bytes[ZKL_PEER_BYTES];

	if (one->kind == ZKL_PEER_ASK && zkl_peer_count_ask(one->message.session))
		datagram.kind = ZKL_PEER_ASK_ECHO;
	datagram.sender = zkl_control->ctl_status.session_id;
	datagram.receiver = one->message.session;
	memcpy(datagram.znode, one->message.znode.bytes, ZKL_PEER_ID_BYTES);
	memcpy(datagram.waiter, one->message.waiter.bytes, ZKL_PEER_ID_BYTES);
	zkl_peer_put(bytes, &datagram);
	if (!zkl_peer_key_sign(bytes, bytes + ZKL_PEER_SIGNED) ||
		sendto(sock, bytes, sizeof(bytes), 0,
			   (const struct sockaddr *) &address->address, address->length) < 0)
		count_unsent(1);
}

static void
postpone(const Postponed *one)
{
	if (npostponed - nsent == MOST_POSTPONED)
	{
		nsent++;
		count_unsent(1);
	}
	postponed[npostponed++ % MOST_POSTPONED] = *one;
}

static void
send_or_postpone(const Postponed *one)
{
	const ZklPeerAddress *address;

	switch (peer_lookup(one->message.session, &address))
	{
		case ZKL_PEER_KNOWN:
			transmit(one, address);
			break;
		case ZKL_PEER_SOUGHT:
			postpone(one);
			break;
		case ZKL_PEER_UNKNOWN:
			count_unsent(1);
			break;
	}
}

/* Addresses were read. */
static void
send_postponed(void)
{
	uint64		end = npostponed;

	while (nsent < end)
	{
		Postponed	one = postponed[nsent++ % MOST_POSTPONED];

		send_or_postpone(&one);
	}
}

void
zkl_peers_send(ZklPeerKind kind, const ZklPeerMessage *message)
{
	Postponed	one = {kind, *message};

	if (told)
		send_or_postpone(&one);
	else
		count_unsent(1);
}

void
zkl_peers_begin(void)
{
	publish_possible(false);
	publish_fault(NULL);
	peer_lookup_begin(send_postponed);
	zkl_peer_key_begin(look_for_key);
}
