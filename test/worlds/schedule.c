/*
 * schedule.c
 *	  What happens next in a world.
 *
 * Owns the events that are delayed.  Must not know what a schedule is looked for.
 */
#include <stdio.h>
#include <string.h>

#include "../sim/agenda.h"
#include "../sim/backend.h"
#include "../sim/foreign.h"
#include "../sim/peers.h"
#include "arena.h"
#include "core/state.h"
#include "schedule.h"

#define HELD		(NEVER - 1)
#define MOST_HELD	32

static Time *held[MOST_HELD];	/* in this order */
static int	nheld;

void
schedule_begin(void)
{
	memset(held, 0, sizeof(held));
	nheld = 0;
}

/* ---- delays ---- */

/* Those that became void, because their connection broke, say, are forgotten. */
static void
forget_void(void)
{
	int			n = 0;
	int			i;

	for (i = 0; i < nheld; i++)
		if (*held[i] == HELD)
			held[n++] = held[i];
	for (i = n; i < nheld; i++)
		held[i] = NULL;
	nheld = n;
}

static bool
release_first(void)
{
	forget_void();
	if (nheld == 0)
		return false;
	*held[0] = base.now;
	ens.next_session = -1;
	agenda_all_changed();
	forget_void();
	return true;
}

bool
schedule_can_delay(const Event *e)
{
	Time		before;
	Time		due;

	if (e->at == NULL || nheld == MOST_HELD)
		return false;
	before = *e->at;
	*e->at = HELD;
	ens.next_session = -1;
	agenda_changed(e->place);
	due = agenda_due();
	*e->at = before;
	ens.next_session = -1;
	agenda_changed(e->place);
	(void) agenda_due();
	return due <= base.now;
}

void
schedule_delay(const Event *e)
{
	forget_void();
	*e->at = HELD;
	held[nheld++] = e->at;
	ens.next_session = -1;
	agenda_changed(e->place);
}

/* ---- which event ---- */

static void
see_ensemble(Event *e)
{
	Session    *session = sessions_next_to_expire();
	int			i;

	for (i = 0; i < ens.nservers; i++)
	{
		Server	   *s = &ens.servers[i];

		if (s->apply_at <= base.now && s->paused_until <= base.now)
		{
			e->kind = EVENT_APPLY;
			e->at = &s->apply_at;
			return;
		}
		if (sessions_reports_due(i) <= base.now)
			return;
	}
	for (i = 0; i < ens.nservers; i++)
		if (i != ens.leader && ens.servers[i].state == SERVER_JOINED &&
			ens.servers[i].report_at <= base.now && ens.servers[i].paused_until <= base.now)
		{
			e->at = &ens.servers[i].report_at;
			return;
		}
	if (ens.elect_at > base.now && session != NULL && session->expires_at <= base.now)
	{
		e->kind = EVENT_EXPIRE;
		e->at = &session->expires_at;
	}
}

static void
see_conn(Event *e, Conn *c)
{
	bool		thawed = c->frozen_until <= base.now;

	e->conn = c;
	if (c->client_kind == CLIENT_HOST)
		e->host = &hosts.host[c->client];
	if (c->commit_at <= base.now && ens.leader >= 0 &&
		ens.servers[c->server].state == SERVER_JOINED &&
		ens.servers[c->server].paused_until <= base.now)
	{
		e->kind = EVENT_COMMIT;
		e->at = &c->commit_at;
	}
	else if (thawed && c->sent != NULL && c->sent->at <= base.now)
	{
		e->kind = EVENT_ARRIVE;
		e->at = &c->sent->at;
	}
	else if (thawed && c->out != NULL && c->out->at <= base.now)
	{
		e->kind = EVENT_DELIVER;
		e->at = &c->out->at;
	}
	else
		e->at = &c->ping_at;
}

static void
see_host(Event *e, Host *h, int i)
{
	e->host = h;
	if (i > 0)
	{
		e->kind = EVENT_BACKEND;
		e->backend = i - 1;
		e->at = &backends.backend[h->id][i - 1].stopped_until;
	}
	else if (h->up && h->worker.m != NULL && h->attempt_at > base.now)
	{
		e->kind = EVENT_WORKER;
		e->at = &h->stopped_until;
		e->conn = h->conn;
	}
	else if (h->up && h->worker.m != NULL)
		e->at = &h->attempt_at;
}

static void
see(Event *e, int place)
{
	memset(e, 0, sizeof(*e));
	e->place = place;
	e->backend = -1;
	if (place == AGENDA_ENSEMBLE)
		see_ensemble(e);
	else if (place == AGENDA_LATE)
	{
		e->kind = EVENT_LATE;
		e->at = late_first();
	}
	else if (place == AGENDA_CHAOS)
		return;
	else if (place < AGENDA_HOSTS)
		see_conn(e, &ens.conns[place - AGENDA_CONNS]);
	else if (place < AGENDA_CLIENTS)
		see_host(e, &hosts.host[(place - AGENDA_HOSTS) / 8], (place - AGENDA_HOSTS) % 8);
	else if (place == AGENDA_PEERS)
	{
		e->kind = EVENT_PEER;
		e->at = peers_first();
	}
	else
	{
		e->kind = EVENT_CLIENT;
		e->at = &foreigners.foreign[place - AGENDA_CLIENTS].at;
	}
}

bool
schedule_next(Event *e, Time *due)
{
	while ((*due = agenda_due()) > base.now && release_first())
		;
	if (*due > base.now)
		return false;
	see(e, agenda_place());
	return true;
}

const char *
schedule_name(const Event *e)
{
	static const char *const names[] = {
		[EVENT_OTHER] = "other",[EVENT_APPLY] = "a follower learns",
		[EVENT_EXPIRE] = "the end of a session",[EVENT_LATE] = "a late write",
		[EVENT_COMMIT] = "a write",[EVENT_ARRIVE] = "a request arrives",
		[EVENT_DELIVER] = "an answer arrives",[EVENT_WORKER] = "a worker",
		[EVENT_BACKEND] = "a session",[EVENT_CLIENT] = "a client",
		[EVENT_PEER] = "a message between servers"
	};
	static char name[80];

	snprintf(name, sizeof(name), e->backend >= 0 ? "%s, host %d, %d" :
			 e->host ? "%s, host %d" : "%s", names[e->kind], e->host ? e->host->id : 0,
			 e->backend);
	return name;
}

/* ---- states ---- */

static void
wipe_host(Host *h)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
		if (h->slots[i].state == SLOT_FREE && !h->slots[i].marked && !h->slots[i].known)
			memset(&h->slots[i], 0, sizeof(Slot));
}

void
schedule_wipe(void)
{
	int			i;

	for (i = 0; i < hosts.n; i++)
		wipe_host(&hosts.host[i]);
	for (i = 0; i < MAX_CONNS; i++)
		if (!ens.conns[i].open)
			memset(&ens.conns[i], 0, sizeof(Conn));
}

/* What is only counted says nothing of what can happen. */
static void
leave_out_host(Host *h)
{
	ZklManager *m = h->worker.m;

	arena_leave_out(&h->worker.most_memory, sizeof(h->worker.most_memory));
	if (m == NULL)
		return;
	arena_leave_out(&m->reads.listings, sizeof(m->reads.listings));
	arena_leave_out(&m->cache.recalls, sizeof(m->cache.recalls));
	arena_leave_out(&m->words.asks, sizeof(m->words.asks));
	arena_leave_out(&m->words.said, sizeof(m->words.said));
	arena_leave_out(&m->words.taken, sizeof(m->words.taken));
	arena_leave_out(&m->words.late, sizeof(m->words.late));
	if (m->actions.n == 0)
		arena_leave_out(&m->actions, sizeof(m->actions));
}

/* Of the log, what a server has not yet applied */
uint64_t
schedule_hash(void)
{
	size_t		from = ens.nlog;
	int			i;

	arena_leave_out(&base.draws, sizeof(base.draws));
	arena_leave_out(&base.hash, sizeof(base.hash) + sizeof(base.lines));
	arena_leave_out(&base.rule, sizeof(base.rule) + sizeof(base.what));
	arena_leave_out(&base.stop, sizeof(base.stop));
	arena_leave_out(&hosts.events, sizeof(hosts.events));
	arena_leave_out(&ens.log, sizeof(ens.log));
	for (i = 0; i < hosts.n; i++)
		leave_out_host(&hosts.host[i]);
	arena_leave_out(&hosts.host[hosts.n], sizeof(Host) * (size_t) (MAX_HOSTS - hosts.n));
	for (i = 0; i < MAX_CONNS; i++)
		if (!ens.conns[i].open)
			arena_leave_out(&ens.conns[i], sizeof(Conn));
	for (i = 0; i < ens.nservers; i++)
		if (ens.servers[i].applied < from)
			from = ens.servers[i].applied;
	from -= from > 0;
	for (; from < ens.nlog; from++)
		arena_also(ens.log[from]);
	return arena_hash();
}
