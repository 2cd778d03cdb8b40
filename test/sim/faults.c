/*
 * faults.c
 *	  Faults of processes, connections and servers.
 *
 * Owns nothing: each function makes one fault happen, to whom chance picks, if
 * it can happen just now.  Must not know what it is good for.
 */
#include <string.h>

#include "agenda.h"
#include "backend.h"
#include "chaos.h"
#include "draw.h"
#include "faults.h"
#include "foreign.h"
#include "oracle.h"
#include "seen.h"
#include "znode/znode.h"

Host *
some_host(void)
{
	return &hosts.host[below(hosts.n)];
}

static Backend *
some_backend(void)
{
	return &backends.backend[below(hosts.n)][below(backends.per_host)];
}

Time
a_while(void)
{
	switch (below(4))
	{
		case 0:
			return below(ens.timeout / 50);
		case 1:
			return below(ens.timeout / 3);
		case 2:
			return below(ens.timeout);
		default:
			return below(2 * ens.timeout);
	}
}

/* ---- connections and processes ---- */

static void
reset_conn(Conn *c)
{
	if (c == NULL)
		return;
	conn_cut(c, true);
	client_gone(c);
}

void
do_reset(void)
{
	reset_conn(some_host()->conn);
}

void
do_freeze(void)
{
	Host	   *h = some_host();

	if (h->conn == NULL)
		return;
	h->conn->frozen_until = base.now + a_while();
	trace("conn #: frozen", h->conn->id, 0, 0, 0, NULL);
}

void
do_kill_session_process(void)
{
	Host	   *h = some_host();

	if (h->worker.m != NULL)
		session_process_kill(h);
}

void
do_kill_worker(void)
{
	Host	   *h = some_host();
	Time		back_at = base.now + below(SECOND);

	if (once_in(2))
		worker_terminate(h, back_at);
	else
		worker_kill(h, back_at);
}

/* The worst moment is right behind a grant, with batches on their way. */
void
do_kill_at_worst(void)
{
	Host	   *h = some_host();

	if (h->worker.m == NULL)
		return;
	h->kill_at_worst = true;
	if (h->outstanding == 0 || once_in(2))
		return;
	ens.late_after_move = true;
	reset_conn(h->conn);
}

/* Leaders that are in no transaction */
static void
resign(Host *h)
{
	int			i;

	for (i = 0; i < MAX_SLOTS; i++)
	{
		const Backend *b = &backends.backend[h->id][h->slots[i].backend];

		if (!b->checking && !b->committing)
			slot_resign(h, i);
	}
}

/* It is drained, say, or that is over. */
void
do_uncache(void)
{
	Host	   *h = some_host();

	trace("host #: uncached #", h->id, !h->uncached, 0, 0, NULL);
	h->uncached = !h->uncached;
	if (h->uncached)
		resign(h);
}

void
do_set_cache_time(void)
{
	Host	   *h = some_host();

	h->cache_time = hosts.cache_time / DRAW(1, 2, 10);
	trace("host #: cache time #", h->id, h->cache_time, 0, 0, NULL);
	worker_wake(h, hosts.wake_delay);
}

static bool
has_published(const Host *h)
{
	const Path *path = tree_children(SIM_ROOT ZKL_WAITS_DIRECTORY);

	for (; path != NULL; path = path->sibling)
		if (path->node[HEAD].exists &&
			path->node[HEAD].stat.ephemeral_owner == h->worker.session.id)
			return true;
	return false;
}

void
do_switch_detection(void)
{
	Host	   *h = some_host();

	h->undetected = !h->undetected;
	trace("host #: undetected #", h->id, h->undetected, 0, 0, NULL);
	if (h->undetected && has_published(h))
		SEEN(DETECTION_OFF);
}

void
do_switch_peers(void)
{
	Host	   *h = some_host();

	h->peers = !h->peers;
	trace("host #: peers #", h->id, h->peers, 0, 0, NULL);
	worker_wake(h, hosts.wake_delay);
}

/* It is short of memory, say. */
void
do_client_refuses(void)
{
	Host	   *h = some_host();

	h->client_refuses_until = base.now + a_while();
	h->client_refuses_one_in = (int) DRAW(1, 1, 8);
	h->client_sends_multis = once_in(2);
}

void
do_stop_worker(void)
{
	Host	   *h = some_host();

	host_suspend(h, base.now + a_while());
	trace("host #: worker stopped", h->id, 0, 0, 0, NULL);
}

void
do_stop_worker_amid(void)
{
	some_host()->stop_after = (int) below(4);
}

void
do_stop_backend(void)
{
	some_backend()->stopped_until = base.now + a_while();
}

void
do_kill_backend(void)
{
	Backend    *b = some_backend();

	if (hosts.host[b->host].up)
		backend_die(b);
}

void
do_crash_host(void)
{
	Host	   *h = some_host();

	if (h->up)
		host_crash(h, base.now + a_while());
}

void
do_stop_host(void)
{
	host_stop(some_host(), base.now + a_while());
}

/* ---- the ensemble ---- */

static int
servers_out(void)
{
	int			n = 0;
	int			i;

	for (i = 0; i < ens.nservers; i++)
		n += ens.servers[i].state != SERVER_JOINED;
	return n;
}

void
do_lose_leader(void)
{
	int			old = ens.leader;
	Time		until = base.now + below(ens.timeout / 2);
	Time		heal_at;

	if (old < 0 || servers_out() > 0)
		return;
	ensemble_lose_leader(!once_in(3), ens.nservers == 1 ? NEVER : until);
	heal_at = base.now + a_while() + ens.timeout / 10;
	chaos_heal(old, heal_at);
	if (ens.nservers == 1)
		ens.elect_at = heal_at + 1;
}

void
do_lose_quorum(void)
{
	int			old = ens.leader;
	Time		heal_at;

	if (old < 0 || servers_out() > 0)
		return;
	heal_at = base.now + a_while();
	chaos_heal(old, heal_at);
	ensemble_lose_leader(true, heal_at + below(SECOND));
}

static void
lose_follower(bool down)
{
	int			i = (int) below(ens.nservers);

	if (i == ens.leader || ens.leader < 0 || servers_out() > 0)
		return;
	ensemble_cut(i, down);
	chaos_heal(i, base.now + a_while());
}

void
do_cut_follower(void)
{
	lose_follower(false);
}

void
do_stop_follower(void)
{
	lose_follower(true);
}

void
chaos_cut_rack(Host *h)
{
	Time		until = base.now + a_while();

	h->cut_at_grant = false;
	if (h->conn == NULL || h->conn->server == ens.leader ||
		ens.leader < 0 || servers_out() > 0)
		return;
	trace("host #: cut off with its server", h->id, 0, 0, 0, NULL);
	agenda_all_changed();
	h->conn->frozen_until = until;
	chaos_heal(h->conn->server, until);
	ensemble_cut(h->conn->server, false);
}

/*
 * As when a rack is cut off.  The worst moment is when the host relies on a
 * lease of which the leader has not yet heard.
 */
void
do_cut_rack(void)
{
	Host	   *h = some_host();

	if (once_in(2))
		chaos_cut_rack(h);
	else
		h->cut_at_grant = true;
}

/* Not longer than S1 assumes: else it would have been cut off. */
static void
pause_follower(int i, Time until)
{
	Time		longest = i == ens.leader ? until : sessions_longest_pause(i);

	until = until < longest ? until : longest;
	if (until > ens.servers[i].paused_until)
		ens.servers[i].paused_until = until;
}

void
do_pause_follower(void)
{
	int			i = (int) below(ens.nservers);

	if (i != ens.leader)
		pause_follower(i, once_in(2) ? NEVER : base.now + a_while() / 2);
}

/*
 * For a short time, and it goes on as if nothing had been; or the others elect
 * another meanwhile, and it does not know.
 */
void
do_stop_leader(void)
{
	int			old = ens.leader;
	Time		until = base.now + a_while() / 2;
	int			i;

	if (old < 0 || servers_out() > 0)
		return;
	if (ens.nservers > 1 && once_in(2))
	{
		until = base.now + a_while();
		chaos_heal(old, until + 1 + below(SECOND));
		ensemble_lose_leader(true, base.now + below(ens.timeout / 2));
	}
	else
		for (i = 0; i < ens.nservers; i++)
			if (i != old && sessions_longest_pause(i) < until)
				until = sessions_longest_pause(i);
	trace("zk: leader # is stopped", old, 0, 0, 0, NULL);
	for (i = 0; i < ens.nservers && ens.leader == old; i++)
		pause_follower(i, until);
	for (i = 0; i < MAX_CONNS; i++)
		if (ens.conns[i].open && ens.conns[i].server == old &&
			ens.conns[i].frozen_until < until)
			ens.conns[i].frozen_until = until;
}

/* Servers answer with errors, for a while. */
void
do_refuse(void)
{
	ens.refuses_until = base.now + a_while();
	ens.refuses_one_in = (int) DRAW(2, 10, 50);
}

/* Sessions that connect from now on get another timeout. */
void
do_change_timeout(void)
{
	int64_t		least = ens.observer >= 0 ? 4 : 2;

	ens.granted = ens.tick * (least + below(4));
	if (ens.granted < ens.shortest)
		ens.shortest = ens.granted;
	if (ens.granted > ens.longest)
		ens.longest = ens.granted;
	trace("zk: sessions get # us", ens.granted, 0, 0, 0, NULL);
}

void
do_wipe(void)
{
	if (ens.leader < 0 || servers_out() > 0)
		return;
	oracle_wiped();
	ensemble_wipe();
}

/*
 * Other clients notice, and give their sessions up: that they do so is not what
 * is tested here.
 */
static void
lose_writes(size_t n)
{
	if (ens.leader < 0 || servers_out() > 0)
		return;
	ensemble_lose_writes(n);
	foreign_lose_all();
	operators_look_again();
}

void
do_lose_writes(void)
{
	lose_writes((size_t) DRAW(1, 1, 2, 5, 10, 40));
}

/*
 * A server has not yet heard that its session has ended, and never will.  First it
 * is held up for so long that the session ends.
 */
void
do_lose_end(void)
{
	Host	   *h = some_host();
	const Session *session = session_find(h->worker.session.id);
	size_t		n;

	if (h->worker.m == NULL || session == NULL || session->killed)
		return;
	h->cut_when_proved = !session->alive && once_in(2);
	if (session->alive)
	{
		trace("host #: held up until its session ends", h->id, 0, 0, 0, NULL);
		session_process_kill(h);
		host_suspend(h, base.now + ens.timeout + below(2 * ens.timeout));
		return;
	}
	for (n = 1; n <= ens.nlog; n++)
		if (ens.log[ens.nlog - n]->ends == session->id)
		{
			lose_writes(n);
			return;
		}
}

void
do_reap(void)
{
	ens.reap_at = base.now;
}

/* ---- other clients ---- */

void
do_reset_foreign(void)
{
	if (foreigners.n > 0)
		reset_conn(foreigners.foreign[below(foreigners.n)].conn);
}

void
do_freeze_foreign(void)
{
	Foreign    *f = &foreigners.foreign[below(MAX_FOREIGN)];

	if (f->conn != NULL)
		f->conn->frozen_until = base.now + a_while();
}
