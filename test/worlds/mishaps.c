/*
 * mishaps.c
 *	  What may go wrong in a world.
 *
 * Owns nothing.  A mishap befalls the one whose event is next: before the event of
 * somebody else it would come to the same.
 */
#include "../sim/agenda.h"
#include "../sim/backend.h"
#include "../sim/chaos.h"
#include "../sim/faults.h"
#include "../sim/foreign.h"
#include "../sim/peers.h"
#include "world.h"

#define RETURN_AFTER	(100 * MS)

const char *
mishap_text(Mishap mishap)
{
	static const char *const texts[] = {
#define MISHAP_TEXT(name, text) text,
		MISHAPS(MISHAP_TEXT)
#undef MISHAP_TEXT
	};

	return texts[mishap];
}

/* ---- connections ---- */

static bool
is_of_link(const Event *e)
{
	return e->host != NULL && e->conn != NULL && e->host->conn == e->conn &&
		e->kind >= EVENT_COMMIT && e->kind <= EVENT_WORKER;
}

/* Writes that are decided are so. */
static void
lose_requests(Conn *c)
{
	Request   **where = &c->pipe;

	while (*where != NULL && (*where)->committed)
		where = &(*where)->next;
	*where = NULL;
	c->sent = NULL;
}

static void
break_link(Mishap mishap, Conn *c)
{
	Time		at = base.now + SECOND;

	if (mishap == MISHAP_DONE_LATE)
	{
		ens.late_after_move = true;
		late_keep(c, c->pipe, &at);
		late_keep(c, c->sent, &at);
	}
	if (mishap != MISHAP_UNANSWERED)
		lose_requests(c);
	conn_cut(c, false);
	client_gone(c);
}

/* ---- servers ---- */

static void
stall(Mishap mishap, const Event *e)
{
	Host	   *h = e->host;
	Time		lease = host_true_time(h, (h->lease_ms + 1) * MS);
	Time		until = base.now + ens.timeout + 2 * ens.tick;

	if (mishap == MISHAP_STALL || mishap == MISHAP_FREEZE)
		until = lease > base.now ? lease : base.now;
	if (e->kind == EVENT_BACKEND)
		backends.backend[h->id][e->backend].stopped_until = until;
	if (e->kind == EVENT_WORKER || mishap == MISHAP_FREEZE)
		host_suspend(h, until);
}

static void
change_server(Mishap mishap, Host *h)
{
	if (mishap == MISHAP_KILL_WORKER)
		worker_kill(h, base.now + RETURN_AFTER);
	else if (mishap == MISHAP_END_WORKER)
		worker_terminate(h, base.now + RETURN_AFTER);
	else if (mishap == MISHAP_CRASH)
		host_crash(h, base.now + RETURN_AFTER);
	else
		host_stop(h, base.now + RETURN_AFTER);
}

/* ---- the ensemble ---- */

static int
other_member(void)
{
	int			i;

	for (i = 0; i < ens.nservers; i++)
		if (i != ens.leader && ens.servers[i].state == SERVER_JOINED)
			return i;
	return -1;
}

static bool
all_are_in(void)
{
	int			i;

	for (i = 0; i < ens.nservers; i++)
		if (ens.servers[i].state != SERVER_JOINED)
			return false;
	return ens.leader >= 0;
}

static void
elect(Mishap mishap)
{
	int			old = ens.leader;
	int			next = other_member();

	ensemble_lose_leader(mishap == MISHAP_DEPOSE, NEVER);
	ensemble_elect(next);
	chaos_heal(old, base.now + ens.timeout / 2);
}

static void
lose_writes(size_t n)
{
	ensemble_lose_writes(n);
	foreign_lose_all();
	operators_look_again();
}

/* Of somebody at the ensemble with other tools */
static void
meddle(Mishap mishap)
{
	if (mishap == MISHAP_BREAK)
		do_break_lock();
	else if (mishap == MISHAP_DELETE)
		do_delete_own();
	else if (mishap == MISHAP_ASK)
		do_set_own();
	else if (mishap == MISHAP_RECREATE)
		do_recreate_directory();
	else if (mishap == MISHAP_STRANGER)
		do_stranger();
	else
		do_reap();
}

/* All requests, until then */
static void
refuse(Mishap mishap, Host *h)
{
	if (mishap == MISHAP_REFUSE)
	{
		ens.refuses_until = base.now + 100 * MS;
		ens.refuses_one_in = 1;
		return;
	}
	h->client_refuses_until = base.now + 100 * MS;
	h->client_refuses_one_in = 1;
	h->client_sends_multis = false;
}

/* ---- all of them ---- */

bool
mishap_can_happen(Mishap mishap, const Event *e)
{
	bool		at_work = e->kind == EVENT_WORKER && e->host->worker.m != NULL;
	bool		of_ensemble = e->kind == EVENT_COMMIT || e->kind == EVENT_APPLY ||
	e->kind == EVENT_DELIVER;

	switch (mishap)
	{
		case MISHAP_LOSE:
		case MISHAP_UNANSWERED:
		case MISHAP_DONE_LATE:
		case MISHAP_SILENCE:
			return is_of_link(e);
		case MISHAP_STALL:
		case MISHAP_STALL_LONG:
			return at_work || e->kind == EVENT_BACKEND;
		case MISHAP_FREEZE:
			return e->kind == EVENT_BACKEND;
		case MISHAP_EXPIRE:
			return at_work && e->host->conn != NULL;
		case MISHAP_KILL_WORKER:
		case MISHAP_END_WORKER:
		case MISHAP_CRASH:
			return at_work;
		case MISHAP_STOP:
			return at_work && !e->host->stopping;
		case MISHAP_KILL_SESSION:
			return e->kind == EVENT_BACKEND;
		case MISHAP_ELECT:
		case MISHAP_DEPOSE:
			return of_ensemble && all_are_in() && ens.nservers > 1;
		case MISHAP_LAG:
			return e->kind == EVENT_APPLY && all_are_in();
		case MISHAP_CUT:
			return of_ensemble && all_are_in() && other_member() >= 0;
		case MISHAP_LOSE_WRITE:
		case MISHAP_LOSE_WRITES:
			return of_ensemble && all_are_in();
		case MISHAP_WIPE:
			return of_ensemble && all_are_in();
		case MISHAP_REFUSE:
			return (e->kind == EVENT_COMMIT || e->kind == EVENT_ARRIVE) && base.now >= ens.refuses_until;
		case MISHAP_NOT_SENT:
			return at_work && base.now >= e->host->client_refuses_until;
		case MISHAP_BREAK:
		case MISHAP_DELETE:
		case MISHAP_ASK:
		case MISHAP_RECREATE:
		case MISHAP_STRANGER:
		case MISHAP_REAP:
			return (of_ensemble || e->kind == EVENT_WORKER) && ens.leader >= 0;
		case MISHAP_LOSE_MESSAGE:
			return e->kind == EVENT_PEER;
		default:
			return false;
	}
}

void
mishap_happen(Mishap mishap, const Event *e)
{
	trace("mishap: @", 0, 0, 0, 0, mishap_text(mishap));
	agenda_all_changed();
	if (mishap <= MISHAP_DONE_LATE)
		break_link(mishap, e->conn);
	else if (mishap == MISHAP_SILENCE)
		e->conn->frozen_until = base.now + ens.timeout + 2 * ens.tick;
	else if (mishap <= MISHAP_STALL_LONG)
		stall(mishap, e);
	else if (mishap == MISHAP_EXPIRE)
	{
		session_process_kill(e->host);
		host_suspend(e->host, base.now + ens.timeout + 2 * ens.tick);
	}
	else if (mishap <= MISHAP_STOP)
		change_server(mishap, e->host);
	else if (mishap == MISHAP_KILL_SESSION)
		backend_die(&backends.backend[e->host->id][e->backend]);
	else if (mishap <= MISHAP_DEPOSE)
		elect(mishap);
	else if (mishap == MISHAP_LAG)
		ens.servers[other_member()].paused_until = sessions_longest_pause(other_member());
	else if (mishap == MISHAP_CUT)
	{
		chaos_heal(other_member(), base.now + ens.timeout + ens.tick);
		ensemble_cut(other_member(), false);
	}
	else if (mishap <= MISHAP_LOSE_WRITES)
		lose_writes(mishap == MISHAP_LOSE_WRITE ? 1 : 3);
	else if (mishap == MISHAP_WIPE)
		do_wipe();
	else if (mishap <= MISHAP_NOT_SENT)
		refuse(mishap, e->host);
	else if (mishap <= MISHAP_REAP)
		meddle(mishap);
	else if (mishap == MISHAP_LOSE_MESSAGE)
		peers_lose();
}
