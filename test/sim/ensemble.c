/*
 * ensemble.c
 *	  The simulated ensemble: its log and its servers.
 *
 * Owns both.  Must not know locks; the oracle looks at each transaction on its
 * own.
 */
#include <string.h>

#include "agenda.h"
#include "ensemble.h"
#include "faults.h"
#include "oracle.h"

Ensemble	ens;

void
ensemble_begin(void)
{
	int			i;

	memset(&ens, 0, sizeof(ens));
	ens.conns = take(MAX_CONNS * sizeof(Conn));
	ens.zxid = INT64_C(1) << 32;
	ens.next_session = -1;
	ens.nservers = MAX_SERVERS;
	ens.reap_every = ens.reap_at = ens.elect_at = NEVER;
	ens.rewound_at = -NEVER;
	ens.observer = ens.master = -1;
	for (i = 0; i < MAX_SERVERS; i++)
		ens.servers[i].apply_at = ens.servers[i].report_at = NEVER;
	tree_begin(MAX_SERVERS);
}

/* ---- the log ---- */

/* A follower learns of what it has not applied after a while. */
static void
plan_apply(int i)
{
	Server	   *s = &ens.servers[i];

	if (i == ens.leader || s->state != SERVER_JOINED ||
		s->applied == ens.nlog)
		s->apply_at = NEVER;
	else if (s->apply_at == NEVER)
	{
		s->apply_to = ens.nlog;
		s->apply_at = base.now + some_delay(ens.lag);
	}
}

/* A server that learns of a session's end hangs up. */
static void
drop_session(int server, int64_t session)
{
	int			i;

	for (i = 0; i < MAX_CONNS; i++)
	{
		Conn	   *c = &ens.conns[i];

		if (!c->open || c->server != server || c->session != session)
			continue;
		conn_cut(c, true);
		client_gone(c);
	}
}

static void
apply_next(int i)
{
	Server	   *s = &ens.servers[i];
	Entry	   *entry = ens.log[s->applied++];

	tree_apply(COPY(i), &entry->tx);
	if (entry->ends != 0)
		drop_session(i, entry->ends);
	if (entry->origin != NULL && entry->origin->open &&
		entry->origin->server == i &&
		entry->origin->serial == entry->origin_serial)
		conn_answer(entry->origin, entry);
}

static void
catch_up(int i)
{
	while (ens.servers[i].applied < ens.nlog)
		apply_next(i);
}

void
ensemble_sync(int i)
{
	catch_up(i);
	ens.servers[i].apply_at = NEVER;
	agenda_changed(AGENDA_ENSEMBLE);
}

/* As the log tells it of contenders; what others have deleted is nobody's fault. */
static void
tell_log(const Entry *entry)
{
	size_t		i;

	for (i = 0; i < entry->tx.neffects; i++)
	{
		const Effect *effect = &entry->tx.effects[i];
		int64_t		session = entry->ends == 0 ? entry->tx.session : effect->owner;

		if (effect->kind == OP_CREATE && effect->owner != 0)
			trace_log("zk create %s zxid=0x%" PRIx64 " owner=0x%" PRIx64,
					  effect->path->text, entry->tx.zxid, effect->owner);
		else if (effect->kind == OP_DELETE && effect->owner != 0)
			trace_log("zk delete %s zxid=0x%" PRIx64 " owner=0x%" PRIx64 " session=0x%" PRIx64,
					  effect->path->text, entry->tx.zxid, effect->owner,
					  entry->by_vandal ? 0 : session);
	}
}

void
ensemble_append(Entry *entry)
{
	int			i;

	if (ens.nlog == ens.log_room)
	{
		size_t		room = ens.log_room * 2 + 512;
		Entry	  **grown = take(room * sizeof(Entry *));

		if (ens.nlog > 0)
			memcpy(grown, ens.log, ens.nlog * sizeof(Entry *));
		ens.log = grown;
		ens.log_room = room;
	}
	ens.log[ens.nlog++] = entry;
	tell_log(entry);
	oracle_transaction(entry);
	vandals_see(entry);
	catch_up(ens.leader);
	for (i = 0; i < ens.nservers; i++)
		plan_apply(i);
	agenda_changed(AGENDA_ENSEMBLE);
}

Entry *
ensemble_commit(int64_t session, const Op *ops, size_t n, bool single,
				bool by_vandal)
{
	Entry	   *entry = take(sizeof(Entry));

	entry->tx.zxid = ++ens.zxid;
	entry->tx.session = session;
	entry->by_vandal = by_vandal;
	tree_decide(&entry->tx, ops, n, single);
	return entry;
}

int32_t
ensemble_write(const Op *op, bool by_vandal)
{
	Entry	   *entry;

	if (ens.leader < 0)
		return ZKL_RC_UNKNOWN;
	entry = ensemble_commit(0, op, 1, true, by_vandal);
	ensemble_append(entry);
	return entry->tx.reply.rc;
}

/* ---- faults ---- */

static void
plan_report(int i)
{
	if (ens.servers[i].report_at == NEVER)
		ens.servers[i].report_at = base.now + below(ens.tick / 2);
}

/* The observer looks for one to follow, without its clients. */
static void
choose_master(void)
{
	int			i;

	ens.master = -1;
	if (ens.observer < 0)
		return;
	for (i = 0; i < ens.nservers; i++)
		if (i != ens.observer && i != ens.leader &&
			ens.servers[i].state == SERVER_JOINED)
			ens.master = i;
	server_drop_conns(ens.observer);
	sessions_lose_reports(ens.observer);
	for (i = 0; i < ens.nsessions; i++)
		ens.sessions[i].heard[ens.observer] = false;
}

void
ensemble_elect(int next)
{
	int			i;

	while (next < 0 || next == ens.observer ||
		   ens.servers[next].state != SERVER_JOINED)
	{
		for (i = 0; i < ens.nservers; i++)
			if (ens.servers[i].state == SERVER_JOINED && i != ens.observer)
				break;
		if (i == ens.nservers)
			return;
		next = (int) below(ens.nservers);
	}
	agenda_all_changed();
	ens.leader = next;
	ens.elect_at = NEVER;
	ens.zxid = (ens.zxid >> 32) + 1;
	ens.zxid <<= 32;
	clock_set(&ens.leader_clock, below(ens.tick), clock_ppm(&ens.leader_clock));
	trace("zk: server # leads", next, 0, 0, 0, NULL);
	catch_up(next);
	for (i = 0; i < ens.nservers; i++)
	{
		ens.servers[i].paused_until = 0;
		ens.servers[i].reported_at = base.now;
		sessions_lose_reports(i);
		plan_apply(i);
		if (i != next)
			plan_report(i);
	}
	for (i = 0; i < ens.nsessions; i++)
		if (ens.sessions[i].alive)
			session_touch(&ens.sessions[i]);
	choose_master();
}

void
ensemble_lose_leader(bool deposed, Time until)
{
	int			old = ens.leader;
	int			i;

	if (old < 0)
		return;
	trace(deposed ? "zk: leader # is cut off" : "zk: leader # stops", old, 0,
		  0, 0, NULL);
	ens.leader = -1;
	ens.elect_at = until;
	for (i = 0; i < ens.nservers; i++)
		sessions_lose_reports(i);
	ensemble_cut(old, !deposed);
	ens.servers[old].deposed = deposed;

	/* Followers drop their clients, as soon as they notice. */
	for (i = 0; i < ens.nservers; i++)
		if (i != old && ens.servers[i].state == SERVER_JOINED &&
			once_in(2))
			server_drop_conns(i);
}

void
ensemble_cut(int i, bool down)
{
	Server	   *s = &ens.servers[i];

	trace(down ? "zk: server # stops" : "zk: server # is cut off", i, 0, 0, 0,
		  NULL);
	agenda_all_changed();
	s->state = down ? SERVER_DOWN : SERVER_CUT;
	s->deposed = false;
	s->apply_at = NEVER;
	sessions_lose_reports(i);
	if (down)
		server_drop_conns(i);
	if (i == ens.master)
		choose_master();
}

void
ensemble_join(int i)
{
	Server	   *s = &ens.servers[i];
	int			j;

	if (s->state == SERVER_JOINED)
		return;
	trace("zk: server # joins", i, 0, 0, 0, NULL);
	server_drop_conns(i);
	s->state = SERVER_JOINED;
	s->deposed = false;
	s->reported_at = base.now;
	for (j = 0; j < ens.nsessions; j++)
		ens.sessions[j].heard[i] = false;
	plan_apply(i);
	plan_report(i);
}

/* All is gone, and zxids begin anew: restored from nothing. */
void
ensemble_wipe(void)
{
	int			i;

	trace("zk: wiped", 0, 0, 0, 0, NULL);
	trace_log("zk lost");
	ens.rewinds++;
	ens.rewound_at = base.now;
	for (i = 0; i < ens.nservers; i++)
	{
		server_drop_conns(i);
		ens.servers[i].applied = 0;
		ens.servers[i].apply_at = NEVER;
	}
	for (i = 0; i < ens.nsessions; i++)
		ens.sessions[i].alive = false;
	ens.next_session = -1;
	ens.late_writes = NULL;
	ens.nlog = 0;
	ens.zxid = INT64_C(1) << 32;
	tree_begin(MAX_SERVERS);
}

/* The latest transaction */
static const Entry *
lose_entry(void)
{
	const Entry *entry = ens.log[--ens.nlog];
	bool		applied[1 + MAX_SERVERS] = {[HEAD] = true};
	int			i;

	trace("zk: # is lost", entry->tx.zxid & UINT32_MAX, 0, 0, 0, NULL);
	for (i = 0; i < ens.nservers; i++)
		if (ens.servers[i].applied > ens.nlog)
		{
			applied[COPY(i)] = true;
			ens.servers[i].applied = ens.nlog;
		}
	oracle_lost(entry);
	tree_revert(&entry->tx, applied);
	if (entry->ends != 0)
		session_revive(entry->ends);
	return entry;
}

/* An operator sees that the lock is still there, and breaks it again. */
static void
delete_again(const Entry *entry)
{
	Op			op = {.kind = OP_DELETE,.version = -1};

	if (entry->tx.session != 0 || entry->ends != 0 ||
		entry->tx.neffects != 1 || entry->tx.effects[0].kind != OP_DELETE ||
		!oracle_is_marked(entry->tx.effects[0].path))
		return;
	op.path = entry->tx.effects[0].path->text;
	(void) ensemble_write(&op, false);
}

void
ensemble_lose_writes(size_t n)
{
	size_t		first = ens.nlog > n ? ens.nlog - n : 0;
	size_t		nlost = ens.nlog - first;
	const Entry **lost = take((nlost + 1) * sizeof(Entry *));
	size_t		j;
	int			i;

	trace_log("zk lost");
	trace("zk: loses # transactions", (int64_t) n, 0, 0, 0, NULL);
	for (i = 0; i < ens.nservers; i++)
		server_drop_conns(i);
	ens.late_writes = NULL;
	for (j = nlost; j-- > 0;)
		lost[j] = lose_entry();
	sessions_lose(ens.nlog);
	for (i = 0; i < ens.nservers; i++)
		ens.servers[i].apply_at = NEVER;
	ensemble_elect(-1);
	ens.rewinds++;
	ens.rewound_at = base.now;
	for (j = 0; j < nlost; j++)
		delete_again(lost[j]);
}

/* ---- refusals ---- */

/* Some say that nothing was done, others only that nothing is known. */
static const int32_t refusals[] = {
	-1 /* SYSTEMERROR */ , ZKL_RC_UNKNOWN, -5 /* MARSHALLINGERROR */ ,
	-7 /* OPERATIONTIMEOUT */ , -102 /* NOAUTH */ , -118 /* SESSIONMOVED */ ,
	-125 /* QUOTAEXCEEDED */ , -127 /* THROTTLEDOP */
};

#define REFUSALS	((int) (sizeof(refusals) / sizeof(refusals[0])))

bool
ensemble_is_refusal(int32_t rc)
{
	int			i;

	for (i = 0; i < REFUSALS; i++)
		if (refusals[i] == rc)
			return true;
	return rc == CLIENT_SENDS_NOTHING;
}

int32_t
ensemble_refuses(void)
{
	if (base.calm || base.now >= ens.refuses_until ||
		!once_in(ens.refuses_one_in))
		return ZKL_RC_OK;
	return refusals[below(REFUSALS)];
}

/* ---- the reaper ---- */

static void
reap(void)
{
	Path	   *path;
	Path	   *victim = NULL;
	int			n = 0;
	Op			op = {.kind = OP_DELETE,.version = -1};

	ens.reap_at = ens.reap_every == NEVER ? NEVER :
		base.now + some_delay(ens.reap_every);
	for (path = tree_newest(); path != NULL; path = path->all)
	{
		Node	   *node = &path->node[HEAD];

		if (node->exists && node->container && node->nchildren == 0 &&
			once_in(++n))
			victim = path;
	}
	if (victim == NULL)
		return;
	op.path = victim->text;
	trace("zk: reaps @", 0, 0, 0, 0, victim->text);
	(void) ensemble_write(&op, false);
}

/* ---- time ---- */

static Time
apply_due(const Server *s)
{
	if (s->apply_at == NEVER || ens.leader < 0)
		return NEVER;
	return s->apply_at > s->paused_until ? s->apply_at : s->paused_until;
}

static Time
report_due(int i)
{
	const Server *s = &ens.servers[i];

	if (s->report_at == NEVER || s->state != SERVER_JOINED ||
		i == ens.leader || ens.leader < 0)
		return NEVER;
	return s->report_at > s->paused_until ? s->report_at : s->paused_until;
}

Time
ensemble_due(void)
{
	const Session *session = sessions_next_to_expire();
	Time		due = session != NULL ? session->expires_at : NEVER;
	int			i;

	for (i = 0; i < ens.nservers; i++)
	{
		Time		t = apply_due(&ens.servers[i]);

		due = t < due ? t : due;
		t = report_due(i);
		due = t < due ? t : due;
		t = sessions_reports_due(i);
		due = t < due ? t : due;
	}
	due = ens.elect_at < due ? ens.elect_at : due;
	return ens.reap_at < due ? ens.reap_at : due;
}

void
ensemble_step(void)
{
	Session    *session = sessions_next_to_expire();
	int			i;

	for (i = 0; i < ens.nservers; i++)
	{
		Server	   *s = &ens.servers[i];

		if (apply_due(s) <= base.now)
		{
			/* It is late, but not slow. */
			s->apply_at = NEVER;
			while (s->applied < s->apply_to ||
				   (s->applied < ens.nlog && once_in(2)))
				apply_next(i);
			plan_apply(i);
			return;
		}
		if (sessions_reports_due(i) <= base.now)
		{
			sessions_take_reports(i, 0);
			return;
		}
	}

	/* What has just arrived goes along. */
	for (i = 0; i < ens.nservers; i++)
		if (report_due(i) <= base.now)
		{
			sessions_report(i);
			return;
		}
	if (ens.elect_at <= base.now)
	{
		ens.elect_at = base.now + ens.tick;
		ensemble_elect(-1);
	}
	else if (session != NULL && session->expires_at <= base.now)
		ensemble_end_session(session, false);
	else if (ens.reap_at <= base.now)
		reap();
}
