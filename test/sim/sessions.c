/*
 * sessions.c
 *	  The sessions of the simulated ensemble: who is heard of, and who expires.
 *
 * Owns them.  Must not know what clients do.
 *
 * Of sessions ZooKeeper keeps this, read in its sources: the leader touches a
 * session when it hears of it, at once over its own connections, and over a
 * follower's when the follower reports, every half tick, whom it has heard.
 * A write that a follower forwards does not touch.  A session expires at the
 * tick after its time, and a new leader gives every session its full time.
 */
#include <string.h>

#include "agenda.h"
#include "ensemble.h"

Session *
session_find(int64_t id)
{
	int64_t		i = id - FIRST_SESSION;

	return id != 0 && i >= 0 && i < ens.nsessions ? &ens.sessions[i] : NULL;
}

/* Who expires next is looked up anew only when it may be another. */
static void
note_changed(const Session *session)
{
	int			i = (int) (session->id - FIRST_SESSION);

	if (ens.next_session >= 0 && ens.next_session != i)
		return;
	ens.next_session = -1;
	agenda_changed(AGENDA_ENSEMBLE);
}

/* When the leader's clock reaches the tick that follows the session's time */
void
session_touch(Session *session)
{
	Time		local = base.now + base.now * ens.leader_ppm / 1000000 +
	ens.leader_offset + ens.timeout;

	local = (local / ens.tick + 1) * ens.tick - ens.leader_offset;
	session->expires_at = local - local * ens.leader_ppm / 1000000;
	note_changed(session);
}

Session *
session_make(void)
{
	Session    *session;

	if (ens.nsessions == ens.session_room)
	{
		int			room = ens.session_room * 2 + 64;
		Session    *grown = take((size_t) room * sizeof(Session));

		if (ens.nsessions > 0)
			memcpy(grown, ens.sessions,
				   (size_t) ens.nsessions * sizeof(Session));
		ens.sessions = grown;
		ens.session_room = room;
	}
	session = &ens.sessions[ens.nsessions];
	session->id = FIRST_SESSION + ens.nsessions++;
	session->alive = true;
	session->host = session->foreign = -1;
	session_touch(session);
	return session;
}

/* One transaction that takes all its nodes along */
void
ensemble_end_session(Session *session, bool by_vandal)
{
	Entry	   *entry;
	Op		   *ops;
	Path	   *path;
	size_t		n = 0;

	if (!session->alive || ens.leader < 0)
		return;
	for (path = path_first(); path != NULL; path = path->all)
		n += path->node[HEAD].exists &&
			path->node[HEAD].stat.ephemeral_owner == session->id;
	ops = take((n + 1) * sizeof(Op));
	n = 0;
	for (path = path_first(); path != NULL; path = path->all)
	{
		if (!path->node[HEAD].exists ||
			path->node[HEAD].stat.ephemeral_owner != session->id)
			continue;
		ops[n].kind = OP_DELETE;
		ops[n].path = path->text;
		ops[n++].version = -1;
	}
	session->alive = false;
	note_changed(session);
	session->killed |= by_vandal;
	trace("zk: session # ends with # nodes", session->id, (int64_t) n, 0, 0,
		  NULL);
	entry = ensemble_commit(0, ops, n, true, by_vandal);
	entry->ends = session->id;
	ensemble_append(entry);
}

void
server_hears(int server, int64_t id)
{
	Session    *session = session_find(id);

	if (session == NULL || !session->alive)
		return;
	if (server == ens.leader)
		session_touch(session);
	else
		session->heard[server] = true;
}

void
sessions_report(int i)
{
	Server	   *s = &ens.servers[i];
	int			j;

	s->report_at = base.now + ens.tick / 2;
	for (j = ens.first_alive; j < ens.nsessions; j++)
	{
		Session    *session = &ens.sessions[j];

		if (s->state != SERVER_JOINED || ens.leader < 0 ||
			!session->heard[i] || !session->alive)
			continue;
		session->heard[i] = false;
		session_touch(session);
	}
}

static void
find_next(void)
{
	int			i;

	while (ens.first_alive < ens.nsessions &&
		   !ens.sessions[ens.first_alive].alive)
		ens.first_alive++;
	for (i = ens.first_alive; i < ens.nsessions; i++)
		if (ens.sessions[i].alive &&
			(ens.next_session < 0 || ens.sessions[i].expires_at <
			 ens.sessions[ens.next_session].expires_at))
			ens.next_session = i;
}

Session *
sessions_next_to_expire(void)
{
	if (ens.leader < 0)
		return NULL;
	if (ens.next_session < 0)
		find_next();
	return ens.next_session < 0 ? NULL : &ens.sessions[ens.next_session];
}
