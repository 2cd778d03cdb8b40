/*
 * peers.c
 *	  The messages between the workers of simulated servers.
 *
 * Owns those that are under way or have arrived.  Does what worker/peers.c of src/
 * does: a message counts if it is for the present session of its receiver, and its
 * sender is a server of the fleet.  Must not know what messages mean.
 */
#include <string.h>

#include "agenda.h"
#include "draw.h"
#include "oracle.h"
#include "peers.h"
#include "seen.h"
#include "sight.h"

typedef struct Datagram
{
	struct Datagram *next;
	Time		at;
	int64_t		to;				/* a session */
	ZklEventKind kind;
	ZklPeerMessage message;
} Datagram;

static struct
{
	Datagram   *under_way;
	Datagram   *arrived[MAX_HOSTS];
	int			lost;			/* one in so many; 0: none */
	int			late;
	int			wrong;			/* a server tells of others' znodes */
}			peers;

void
peers_begin(void)
{
	int			i;

	memset(&peers, 0, sizeof(peers));
	peers.lost = (int) DRAW(0, 20, 5, 2);
	peers.late = (int) DRAW(0, 50, 5);
	peers.wrong = (int) DRAW(0, 0, 4);
	for (i = 0; i < hosts.n; i++)
		hosts.host[i].peers = !once_in(4);
}

static bool
once_in_so_many(int n)
{
	return n != 0 && once_in(n);
}

static void
put(int64_t to, ZklEventKind kind, const ZklPeerMessage *message)
{
	Datagram   *d = take(sizeof(Datagram));

	d->at = base.now + (once_in_so_many(peers.late) && !base.calm ?
						below(10 * ens.timeout) : some_delay(ens.net));
	d->to = to;
	d->kind = kind;
	d->message = *message;
	d->next = peers.under_way;
	peers.under_way = d;
	agenda_changed(AGENDA_PEERS);
}

/* Some znode of another server, that is there; a copy may be of one of its own. */
static const ZklUuid *
some_others(const Host *h)
{
	Path	   *path;

	for (path = lock_path((int) below(hosts.nlocks))->children; path; path = path->sibling)
		if (path->node[HEAD].exists && contender_of(path)->counts &&
			contender_of(path)->has_uuid && once_in(2) &&
			path->node[HEAD].stat.ephemeral_owner != 0 &&
			host_of_session(path->node[HEAD].stat.ephemeral_owner) != h)
			return &contender_of(path)->uuid;
	return NULL;
}

/* A server that has gone mad, or a clone: what it says of others must not count. */
static void
tell_of_others(const Host *h, int64_t to, const ZklPeerMessage *message)
{
	const ZklUuid *other = some_others(h);
	ZklPeerMessage wrong = *message;

	if (other == NULL)
		return;
	wrong.znode = *other;
	put(to, ZKL_EVENT_WORD, &wrong);
}

void
peers_send(const Host *h, const ZklAction *action)
{
	bool		word = action->kind == ZKL_ACTION_WORD;
	ZklEventKind kind = word ? ZKL_EVENT_WORD : ZKL_EVENT_ASK;
	ZklPeerMessage message = action->peer;
	int			n = once_in(8) ? 2 : 1;

	trace(word ? "host #: says a word to session #" : "host #: asks session #", h->id,
		  message.session, 0, 0, NULL);
	if (word)
		oracle_word(h, &message.znode);
	message.session = h->worker.session.id;
	while (n-- > 0)
		if (!once_in_so_many(peers.lost))
			put(action->peer.session, kind, &message);
	if (once_in_so_many(peers.wrong) && message.session != 0)
		tell_of_others(h, action->peer.session, &message);
}

Time
peers_due(void)
{
	const Datagram *d;
	Time		due = NEVER;

	for (d = peers.under_way; d != NULL; d = d->next)
		due = d->at < due ? d->at : due;
	return due;
}

Time *
peers_first(void)
{
	Datagram   *d = peers.under_way;

	while (d != NULL && d->at > base.now)
		d = d->next;
	return d != NULL ? &d->at : NULL;
}

/* Takes the one that is due off the way. */
static Datagram *
take_due(void)
{
	Datagram  **where = &peers.under_way;
	Datagram   *d;

	while ((*where)->at > base.now)
		where = &(*where)->next;
	d = *where;
	*where = d->next;
	return d;
}

void
peers_lose(void)
{
	(void) take_due();
}

void
peers_step(void)
{
	Datagram   *d = take_due();
	int			i;

	for (i = 0; i < hosts.n; i++)
	{
		Host	   *h = &hosts.host[i];

		if (!h->up || h->worker.m == NULL || !h->worker_peers ||
			h->worker.session.id != d->to)
			continue;
		d->next = peers.arrived[i];
		peers.arrived[i] = d;
		worker_wake(h, hosts.wake_delay);
		return;
	}
}

static void
deliver(Host *h, const Datagram *d)
{
	ZklCounters before,
				after;

	if (d->to != h->worker.session.id)
		return;
	zkl_manager_counters(h->worker.m, &before);
	worker_hear(&h->worker, d->kind, &d->message);
	zkl_manager_counters(h->worker.m, &after);
	if (after.words_late > before.words_late)
		SEEN(WORD_LATE);
	if (after.words_taken == before.words_taken)
		return;
	SEEN(WORD_TAKEN);
	oracle_heard(h, &d->message);
}

void
peers_take(Host *h)
{
	Datagram   *d = peers.arrived[h->id];

	if (h->worker_peers != h->peers)
		worker_peers(&h->worker, h->peers);
	h->worker_peers = h->peers;
	peers.arrived[h->id] = NULL;
	for (; d != NULL; d = d->next)
		if (h->peers)
			deliver(h, d);
}

void
peers_forget(Host *h)
{
	peers.arrived[h->id] = NULL;
	h->worker_peers = false;
	oracle_hears_nothing(h);
}
