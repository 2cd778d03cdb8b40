/*
 * peercheck.c
 *	  The check of zk_healthcheck() that is about messages between servers: what keeps
 *	  them from arriving, as far as this server can see it.
 *
 * Owns what counts as wrong with addresses, and as silence.  Run by backends.  Takes no
 * locks.
 *
 * Must not know how messages are sent.  Of servers whose entry cannot be read it knows
 * nothing; another check tells of these.
 */
#include "postgres.h"

#include "backend/refusal.h"
#include "backend/target.h"
#include "functions/checkrow.h"
#include "functions/peercheck.h"
#include "lib/stringinfo.h"
#include "shared/boottime.h"
#include "shared/fleet.h"
#include "shared/settings.h"

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

List *
zkl_peercheck_note(List *peers, const ZklFleetServer *server)
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
