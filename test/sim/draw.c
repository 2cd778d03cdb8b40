/*
 * draw.c
 *	  The sizes of a seed: how many of everything, and how slow.
 *
 * Owns the drawing only; all that it sets belongs to others.  A seed is what it
 * is by the order of the draws.
 */
#include <string.h>

#include "backend.h"
#include "draw.h"
#include "foreign.h"

Time
draw(const Time *from, int n)
{
	return from[below(n)];
}

/* As far off as S1 assumes, at most */
static int
draw_rate(int worst)
{
	if ((base.profile == PROFILE_QUORUM || base.profile == PROFILE_SLEW) && !once_in(4))
		return worst;
	return once_in(2) ? (int) below(2 * WORST_PPM + 1) - WORST_PPM :
		(int) DRAW(-WORST_PPM, WORST_PPM);
}

void
draw_ensemble(void)
{
	ens.tick = DRAW(SECOND, 2 * SECOND, 3 * SECOND);
	ens.timeout = ens.tick * DRAW(2, 3, 4, 5);
	ens.granted = ens.shortest = ens.longest = ens.timeout;
	ens.in_ticks = once_in(3);
	base.longest = ens.timeout;
	ens.nservers = (int) DRAW(1, 3, 3, 3);
	ens.leader = (int) below(ens.nservers);
	if (ens.nservers == 3 && ens.timeout >= 4 * ens.tick && once_in(3))
		ens.observer = ens.nservers++;
	clock_set(&ens.leader_clock, 0, draw_rate(WORST_PPM));
	ens.net = DRAW(100, 500, 2 * MS, 20 * MS);
	ens.decide = DRAW(50, MS, 10 * MS);
	ens.lag = DRAW(50, MS, 50 * MS, 500 * MS);
	ens.late = DRAW(MS, SECOND, 2 * ens.timeout);
	ens.late_after_move = once_in(4);
	if (once_in(3))
	{
		ens.reap_every = DRAW(ens.timeout / 10, ens.timeout);
		ens.reap_at = base.now;
	}
}

/* Many who want one lock, in all ways, and change their minds */
static void
draw_storm(void)
{
	hosts.n = (int) DRAW(1, 2, 2, 3);
	hosts.nlocks = (int) DRAW(1, 1, 1, 2);
	hosts.batches_in_flight = (uint32_t) DRAW(1, 1, 2);
	backends.per_host = (int) DRAW(2, 4, 6);
	backends.think = ens.timeout / DRAW(200, 100, 20);
	backends.hold = ens.timeout / DRAW(200, 50, 20, 4);
	backends.patience = ens.timeout / DRAW(1000, 50, 10);
	backends.shared = (int) DRAW(20, 50, 70);
	backends.cancels = (int) DRAW(20, 40, 60);
	backends.nested = (int) DRAW(30, 60, 80);
	foreigners.n = (int) DRAW(0, 0, 1, 2);
	foreigners.downgrades = (int) DRAW(50, 90);
	backends.bounded = (int) DRAW(0, 40, 70);
}

/* So few sessions that mostly one of them wants the lock, soon again */
static void
draw_hot(void)
{
	hosts.n = (int) DRAW(1, 2, 2, 3);
	hosts.nlocks = (int) DRAW(1, 2, 3);
	hosts.cache_time = ens.timeout / DRAW(50, 20, 8);
	ens.net = DRAW(100, 100, 500, 2 * MS);
	ens.decide = DRAW(50, 50, MS);
	ens.lag = DRAW(50, MS, MS, 50 * MS);
	hosts.wake_delay = DRAW(20, 20, 200, 5 * MS);
	backends.per_host = (int) DRAW(1, 1, 2, 3);
	backends.think = hosts.cache_time / DRAW(40, 20, 8);
	backends.hold = ens.timeout / DRAW(2000, 1000, 400);
	backends.patience = ens.timeout / DRAW(1000, 50, 10);
	backends.at_home = (int) DRAW(80, 90, 98);
	backends.shared = (int) DRAW(0, 0, 5);
	backends.tries = (int) DRAW(0, 30, 60);
	backends.cancels = (int) DRAW(0, 10);
	backends.nested = (int) DRAW(0, 0, 20);
	backends.bounded = (int) DRAW(0, 0, 10);
	foreigners.n = (int) DRAW(0, 1, 2);
}

/* Names that are seldom used, and directories that go in between */
static void
draw_cold(void)
{
	hosts.cold = true;
	hosts.nlocks = MAX_LOCKS;
	hosts.max_directories = (uint32_t) DRAW(0, 1);
	backends.per_host = (int) DRAW(1, 2);
	backends.think = ens.timeout / DRAW(20, 4, 1);
	backends.hold = ens.timeout / DRAW(2000, 200, 20);
	foreigners.n = (int) DRAW(0, 0, 1, 2);
	foreigners.think = ens.timeout / DRAW(20, 4, 1);
	ens.reap_every = DRAW(ens.timeout / 20, ens.timeout / 4, NEVER);
	ens.reap_at = ens.reap_every == NEVER ? NEVER : base.now;
}

/* Most locks are Curator's read-write locks, where most can happen. */
static void
draw_dialects(void)
{
	int			i;

	for (i = 0; i < hosts.nlocks; i++)
		hosts.dialects[i] = once_in(base.profile == PROFILE_STORM ? 8 : 4) ?
			(ZklDialect) DRAW(ZKL_DIALECT_CURATOR_MUTEX, ZKL_DIALECT_KAZOO,
							  ZKL_DIALECT_KAZOO, ZKL_DIALECT_LATCH,
							  ZKL_DIALECT_MEMBER) : ZKL_DIALECT_CURATOR_RW;
}

void
draw_hosts(void)
{
	Time		offset;
	int			i;

	memset(&hosts, 0, sizeof(hosts));
	memset(&backends, 0, sizeof(backends));
	memset(&foreigners, 0, sizeof(foreigners));
	hosts.n = (int) DRAW(1, 2, 2, 3);
	hosts.nlocks = (int) DRAW(1, 1, 2, 3);
	hosts.batches_in_flight = (uint32_t) DRAW(1, 2, 2, 3);
	hosts.batch_operations = (uint32_t) DRAW(2, 3, 6, 256);
	hosts.max_directories = (uint32_t) DRAW(0, 1, 16);
	hosts.wake_delay = DRAW(20, 200, 5 * MS);
	backends.per_host = (int) DRAW(1, 2, 4, 6);
	backends.think = ens.timeout / DRAW(100, 20, 4);
	backends.hold = ens.timeout / DRAW(200, 20, 4, 2);
	backends.patience = ens.timeout / DRAW(1000, 50, 2);
	backends.shared = (int) DRAW(0, 30, 70);
	backends.tries = (int) DRAW(0, 20, 60);
	backends.cancels = (int) DRAW(0, 20, 60);
	backends.nested = (int) DRAW(0, 0, 30, 60);
	foreigners.n = (int) DRAW(0, 1, 2, 4);
	foreigners.think = ens.timeout / DRAW(20, 4);
	foreigners.hold = ens.timeout / DRAW(50, 4);
	foreigners.shared = (int) DRAW(0, 30, 70);
	foreigners.downgrades = (int) DRAW(0, 50);
	foreigners.deaths = (int) DRAW(0, 20);
	backends.bounded = (int) DRAW(0, 0, 50);
	backends.at_most = ens.timeout / DRAW(200, 20, 4, 1);
	backends.at_least = ens.timeout / DRAW(200, 20, 4);

	backends.asserts = (int) DRAW(0, 0, 30, 70);

	hosts.cache_time = once_in(3) ? 0 : ens.timeout / DRAW(200, 40, 8);
	if (base.profile == PROFILE_STORM)
		draw_storm();
	else if (base.profile == PROFILE_HOT)
		draw_hot();
	if (base.seed % 8 == 3)
		draw_cold();
	if (base.seed % 8 == 5)
		backends.tickets = 40;
	draw_dialects();

	/* Every fourth has a semaphore instead of its last lock. */
	hosts.semaphore = base.seed % 4 == 0 ? hosts.nlocks - 1 : -1;
	hosts.max = (uint32_t) (base.seed / 4 % 3 + 1);
	if (hosts.semaphore >= 0)
		hosts.dialects[hosts.semaphore] = ZKL_DIALECT_PERMIT;
	for (i = 0; i < hosts.n; i++)
	{
		hosts.host[i].id = i;
		offset = below(100) * SECOND;
		clock_set(&hosts.host[i].clock, offset, draw_rate(-WORST_PPM));
		hosts.host[i].cache_time = hosts.cache_time;
	}
}
