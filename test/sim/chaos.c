/*
 * chaos.c
 *	  What goes wrong in a simulation, and when: the choice of faults, and the
 *	  end of all.
 *
 * Owns the choice.  Each seed has a few kinds of faults only, and its own
 * sizes: what is rare altogether is then frequent in some seeds.
 */
#include <string.h>

#include "agenda.h"
#include "backend.h"
#include "chaos.h"
#include "cycles.h"
#include "draw.h"
#include "faults.h"
#include "foreign.h"
#include "peers.h"

typedef struct Chaos
{
	Time		at;
	Time		every;
	Time		end;
	Time		heal_at[MAX_SERVERS];
	Host	   *kill_host;
	Time		kill_at;
	int			weights[64];
	int			sum;
} Chaos;

static Chaos chaos;

/* ---- the choice ---- */

static const struct
{
	void		(*happen) (void);
	int			weight;
	int			one_in;
	int			often[PROFILES];	/* weight in each seed of a profile */
}			faults[] = {
#define FAULT_ENTRY(name, weight, one_in, storm, quorum) \
	{do_##name, weight, one_in, {[PROFILE_STORM] = storm, [PROFILE_QUORUM] = quorum, \
		[PROFILE_SLEW] = quorum}},
	FAULTS(FAULT_ENTRY)
#undef FAULT_ENTRY
};

#define NFAULTS ((int) (sizeof(faults) / sizeof(faults[0])))

static int *
weight_of(void (*happen) (void))
{
	int			i = 0;

	while (faults[i].happen != happen)
		i++;
	return &chaos.weights[i];
}

void
chaos_none(void)
{
	int			i;

	memset(&chaos, 0, sizeof(chaos));
	chaos.at = chaos.end = chaos.kill_at = NEVER;
	for (i = 0; i < MAX_SERVERS; i++)
		chaos.heal_at[i] = NEVER;
	vandals_begin();
}

static void
draw_faults(void)
{
	bool		as_wide = base.profile == PROFILE_WIDE || base.profile == PROFILE_HOT;
	int			i;

	chaos_none();
	chaos.every = ens.timeout / DRAW(2, 5, 20);
	chaos.end = base.now + ens.timeout *
		(as_wide ? DRAW(3, 6, 10) : DRAW(2, 4, 7));
	chaos.at = base.now + some_delay(chaos.every);
	if (base.profile != PROFILE_WIDE)
		chaos.every = ens.timeout / DRAW(10, 20, 50);
	for (i = 0; i < NFAULTS; i++)
	{
		int			often = faults[i].often[base.profile];

		if (often > 0 && !once_in(6))
			chaos.weights[i] = often;
		else if (once_in(faults[i].one_in *
						 (as_wide ? 1 : 4)))
			chaos.weights[i] = faults[i].weight * (int) DRAW(1, 1, 1, 5);
	}

	/*
	 * An older publication may be back that says what was true once.  And a
	 * search mistakes a copy for the original.
	 */
	if (cycles.on)
		*weight_of(do_lose_writes) = *weight_of(do_lose_end) =
			*weight_of(do_copy_name) = 0;

	/* A vandal's write to a heartbeat node hides that one of its own is lost. */
	if (*weight_of(do_lose_writes) + *weight_of(do_lose_end) > 0)
		*weight_of(do_set_heartbeat) = 0;
	for (i = 0; i < NFAULTS; i++)
		chaos.sum += chaos.weights[i];
}

void
chaos_begin(void)
{
	int			i;

	draw_ensemble();
	draw_hosts();
	cycles_begin();
	draw_faults();
	peers_begin();
	clocks_begin();
	ensemble_elect(ens.leader);
	for (i = 0; i < hosts.n; i++)
		host_start(&hosts.host[i]);
	foreign_start();
}

/* ---- time ---- */

void
chaos_heal(int server, Time at)
{
	chaos.heal_at[server] = at;
}

void
chaos_kill_worker(Host *h, Time at)
{
	h->kill_at_worst = false;
	chaos.kill_host = h;
	chaos.kill_at = at;
	agenda_changed(AGENDA_CHAOS);
}

Time
chaos_end(void)
{
	return chaos.end;
}

Time
chaos_due(void)
{
	Time		due = operators_due();
	int			i;

	due = clocks_due() < due ? clocks_due() : due;
	due = vandals_due() < due ? vandals_due() : due;
	due = chaos.at < due ? chaos.at : due;
	due = chaos.kill_at < due ? chaos.kill_at : due;
	for (i = 0; i < ens.nservers; i++)
		due = chaos.heal_at[i] < due ? chaos.heal_at[i] : due;
	return due;
}

void
chaos_step(void)
{
	int64_t		dice;
	int			i;

	for (i = 0; i < ens.nservers; i++)
		if (chaos.heal_at[i] <= base.now)
		{
			chaos.heal_at[i] = NEVER;
			ensemble_join(i);
			return;
		}
	if (operators_due() <= base.now)
	{
		operators_step();
		return;
	}
	if (clocks_due() <= base.now)
	{
		clocks_step();
		return;
	}
	if (vandals_due() <= base.now)
	{
		vandals_step();
		return;
	}
	if (chaos.kill_at <= base.now)
	{
		chaos.kill_at = NEVER;
		worker_kill(chaos.kill_host, base.now + below(SECOND));
		return;
	}
	chaos.at = base.now + some_delay(chaos.every);
	if (chaos.sum == 0)
		return;
	dice = below(chaos.sum);
	for (i = 0; dice >= chaos.weights[i]; i++)
		dice -= chaos.weights[i];
	faults[i].happen();
}

/* ---- the end ---- */

static void
calm_hosts(void)
{
	int			i;

	for (i = 0; i < hosts.n; i++)
	{
		Host	   *h = &hosts.host[i];

		h->stopped_until = 0;
		h->stop_after = -1;
		h->cut_at_grant = h->kill_at_worst = h->uncached = h->undetected = false;
		h->client_refuses_until = 0;
		host_accept_lower_tokens(h);
		if (!h->up)
			h->up_at = base.now;
		else if (h->worker.m == NULL)
			h->worker_at = base.now;
	}
}

void
chaos_calm(void)
{
	int			i;

	trace("calm", 0, 0, 0, 0, NULL);
	agenda_all_changed();
	base.calm = true;
	base.calm_since = base.now;
	chaos.at = chaos.kill_at = NEVER;
	ens.reap_every = ens.reap_at = NEVER;
	ens.refuses_until = 0;
	for (i = 0; i < ens.nservers; i++)
	{
		chaos.heal_at[i] = NEVER;
		ens.servers[i].paused_until = 0;
		ensemble_join(i);
	}
	if (ens.leader < 0)
		ensemble_elect(-1);
	for (i = 0; i < MAX_CONNS; i++)
		ens.conns[i].frozen_until = 0;
	vandals_calm();
	clocks_calm();
	calm_hosts();
	backends_calm();
	foreign_calm();
}
