/*
 * sessions.c
 *	  The sessions of the simulated ensemble: who is heard of, and who expires.
 *
 * Owns them.  Must not know what clients do.
 *
 * Of sessions ZooKeeper keeps this, read in its sources: the leader touches a
 * session when it hears of it, at once over its own connections, and over a
 * follower's when it handles that one's answer to a ping.  It pings every half
 * tick, and an answer tells whom the follower has heard of since the last.  A
 * write that a follower forwards does not touch.  An observer behind a follower
 * tells that one, which passes it on with its own next answer.  A session
 * expires at the tick after its time, wherever the ticks happen to be, so it
 * may at any moment after its time; and a new leader gives every session its
 * full time.
 *
 * What S1 assumes is that a server answers two pings in a row at most 7/24 of
 * the session timeout apart; an observer and its follower share that, and what
 * the observer says is not longer on its way to the follower, either.
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

	if (ens.next_session >= 0 && ens.next_session != i &&
		session->expires_at >= ens.sessions[ens.next_session].expires_at)
		return;
	ens.next_session = -1;
	agenda_changed(AGENDA_ENSEMBLE);
}

/* From the time on the leader's clock to true times */
static void
find_end(Session *session)
{
	Time		local = session->ends_at;

	session->may_end_at = clock_true_time(&ens.leader_clock, local);
	if (ens.in_ticks)
		local = (local / ens.tick + 1) * ens.tick;
	session->expires_at = clock_true_time(&ens.leader_clock, local);
}

void
session_touch(Session *session)
{
	session->ends_at = clock_now(&ens.leader_clock) + session->timeout;
	find_end(session);
	note_changed(session);
}

void
sessions_slew(int ppm)
{
	int			i;

	clock_slew(&ens.leader_clock, ppm);
	for (i = ens.first_alive; i < ens.nsessions; i++)
		find_end(&ens.sessions[i]);
	ens.next_session = -1;
}

/*
 * S1 assumes that at a reconnect it does not become less than two thirds of what
 * it was: a lease may last for so long, and whoever has it may never learn of
 * the new connection.
 */
void
session_negotiate(Session *session)
{
	Time		least = session->longest * 67 / 100;

	session->timeout = ens.granted > least ? ens.granted : least;
	session->timeout -= session->timeout % MS;
	if (session->longest < session->timeout)
		session->longest = session->timeout;
	if (session->timeout < ens.shortest)
		ens.shortest = session->timeout;
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
	session->made_at = ens.nlog;
	session->rewinds = ens.rewinds;
	session->alive = true;
	session->host = session->foreign = -1;
	session->timeout = session->longest = ens.granted;
	session_touch(session);
	return session;
}

/* One transaction that takes all its nodes along */
void
ensemble_end_session(Session *session, bool by_vandal)
{
	Entry	   *entry;
	Op		   *ops;
	size_t		n;

	if (!session->alive || ens.leader < 0)
		return;
	ops = tree_end_of_session(session->id, &n);
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
session_revive(int64_t id)
{
	Session    *session = session_find(id);

	session->alive = session->revived = true;
	session->revived_at = base.now;
	ens.first_alive = 0;
	session_touch(session);
}

void
sessions_lose(size_t nlog)
{
	int			i;

	for (i = 0; i < ens.nsessions; i++)
	{
		Session    *session = &ens.sessions[i];

		if (session->made_at <= nlog || !session->alive)
			continue;
		trace("zk: session # is lost", session->id, 0, 0, 0, NULL);
		session->alive = false;
		session->killed = true;
		note_changed(session);
	}
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

/* ---- the answers to pings ---- */

typedef struct Report
{
	struct Report *next;
	Time		sent_at;
	Time		at;				/* the leader handles it */
	int			nsessions;
	int			sessions[];		/* their places */
} Report;

/* Whom a server tells of its sessions: the leader (-1), or another server */
static int
told_by(int i)
{
	return i == ens.observer ? ens.master : -1;
}

void
sessions_report(int i)
{
	Server	   *s = &ens.servers[i];
	struct Report **end = &s->reports;
	Report	   *report;
	Time		earliest = base.now;
	Time		latest = i == ens.observer ? sessions_longest_pause(i) : NEVER;
	int			j;

	s->report_at = base.now + ens.tick / 2;
	s->reported_at = base.now;
	for (; *end != NULL; end = &(*end)->next)
		earliest = (*end)->at;
	report = take(sizeof(Report) + (size_t) (ens.nsessions - ens.first_alive) *
				  sizeof(int));
	report->sent_at = base.now;
	report->at = base.now + some_delay(ens.net);
	report->at = report->at > latest ? latest : report->at;
	report->at = report->at < earliest ? earliest : report->at;
	for (j = ens.first_alive; j < ens.nsessions; j++)
	{
		Session    *session = &ens.sessions[j];

		if (!session->heard[i])
			continue;
		session->heard[i] = false;
		report->sessions[report->nsessions++] = j;
	}
	if (report->nsessions > 0)
		*end = report;
}

Time
sessions_reports_due(int i)
{
	const Server *s = &ens.servers[i];
	const Server *receiver;

	if (s->reports == NULL || ens.leader < 0)
		return NEVER;
	receiver = &ens.servers[told_by(i) >= 0 ? told_by(i) : ens.leader];
	return s->reports->at > receiver->paused_until ? s->reports->at :
		receiver->paused_until;
}

static void
take_report(int i, const Report *report)
{
	int			told = told_by(i);
	int			j;

	for (j = 0; j < report->nsessions; j++)
	{
		Session    *session = &ens.sessions[report->sessions[j]];

		if (!session->alive)
			continue;
		if (told >= 0)
			session->heard[told] = true;
		else
			session_touch(session);
	}
}

void
sessions_take_reports(int i, Time sent_until)
{
	Server	   *s = &ens.servers[i];
	int			told = told_by(i);

	while (s->reports != NULL && (s->reports->sent_at <= sent_until ||
								  s->reports->at <= base.now))
	{
		const Report *report = s->reports;

		s->reports = report->next;
		take_report(i, report);
	}
	if (told >= 0 && sent_until > 0)
		sessions_take_reports(told, sent_until);
	agenda_changed(AGENDA_ENSEMBLE);
}

void
sessions_lose_reports(int i)
{
	ens.servers[i].reports = NULL;
}

Time
sessions_longest_pause(int i)
{
	Time		apart = ens.shortest * 7 / 24;

	/* What is told over two servers has half of what is left for each. */
	if (ens.observer >= 0)
		apart = ens.tick / 2 + (apart - ens.tick) / 2;
	return ens.servers[i].reported_at + apart;
}

/* ---- who expires next ---- */

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
