/*
 * peer_lookup.c
 *	  Where the workers of other servers hear, by their ZooKeeper sessions.
 *
 * Owns the addresses that were read.  Runs in the worker only; takes no locks.  It must
 * not know what is sent there.
 *
 * An address is read when it is needed: the names in the directory of the fleet tell
 * which znode is that session's, and ZooKeeper tells whose each znode is.  It is read
 * again now and then while it is in use, since a server can change it.
 */
#include "postgres.h"

#include "shared/boottime.h"
#include "shared/fleet.h"
#include "shared/settings.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "worker/operation.h"
#include "worker/peer_lookup.h"

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

/* ---- for peers.c ---- */

void
zkl_peer_lookup_begin(void (*done) (void))
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

ZklPeerLookup
zkl_peer_lookup(int64 session, const ZklPeerAddress **address)
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

void
zkl_peer_lookup_end(void)
{
	if (present != NULL)
		zkl_operation_end(present);
	present = NULL;
	nread = 0;
	forget_servers();
}
