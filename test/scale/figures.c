/*
 * figures.c
 *	  What is counted, and the line that says so.
 *
 * Owns the counts.  Must not know how anything comes about.
 *
 * The work of a hand-over is all that concerns the name from one release to
 * the next, whoever does it: so the demands that join the queue meanwhile are
 * in it, one on average.  Of a batch with n creates and deletes each has a
 * share of 1/n.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agenda.h"
#include "scale.h"

/* How the next grant came about after a release */
typedef enum HandOver
{
	ALONE,						/* nobody was waiting */
	LOCAL,						/* on to the same server */
	FOREIGN,					/* on to another one */
	HANDOVER_KINDS,
	NOT_KNOWN = HANDOVER_KINDS
} HandOver;

static const char *const kind_names[] = {"alone", "local", "foreign"};

typedef struct Name
{
	uint32_t	waiting;
	uint32_t	releaser;
	int64_t		released_at;
	bool		queued;			/* somebody waited then */
	HandOver	kind;
	double		requests;		/* since the release */
	double		writes;			/* creates and deletes, likewise */
} Name;

typedef struct Work
{
	uint64_t	releases;
	double		requests;
	double		writes;
	int64_t		us;				/* until the next grant */
} Work;

static Name *names;
static bool counting = false;

/* At first what was so at the start, in the end what has come since */
static double seconds;
static double busy;
static uint64_t continuous;

static ModelCounts counts;
static Work work[HANDOVER_KINDS];
static uint64_t acquires;
static int64_t waited_sum;
static int64_t waited_most;
static uint32_t watches_most;
static int64_t memory_before;	/* of all servers, before the first demand */

void
figures_begin(void)
{
	uint32_t	i;

	names = take(options.names * sizeof(Name));
	for (i = 0; i < options.names; i++)
		names[i].kind = NOT_KNOWN;
}

static int64_t
memory_of_all(void)
{
	int64_t		sum = 0;
	uint32_t	i;

	for (i = 0; i < options.servers; i++)
		sum += servers[i].worker.memory;
	return sum;
}

static uint64_t
continuous_of_all(void)
{
	ZklCounters counters;
	uint64_t	sum = 0;
	uint32_t	i;

	for (i = 0; i < options.servers; i++)
	{
		zkl_manager_counters(servers[i].worker.m, &counters);
		sum += counters.continuous;
	}
	return sum;
}

void
figures_start(void)
{
	seconds = (double) agenda_now / 1e6;
	busy = zookeeper_busy() / 1e6;
	continuous = continuous_of_all();
	memset(&zookeeper.counts, 0, sizeof(zookeeper.counts));
	counting = true;
}

void
figures_stop(void)
{
	seconds = (double) agenda_now / 1e6 - seconds;
	busy = zookeeper_busy() / 1e6 - busy;
	continuous = continuous_of_all() - continuous;
	counts = zookeeper.counts;
	counting = false;
}

/* ---- what happens ---- */

static void
note(const char *path, double requests, double writes)
{
	uint32_t	name;

	if (!zookeeper_name(path, &name))
		return;
	names[name].requests += requests;
	names[name].writes += writes;
}

void
figures_sent(const ZklAction *action)
{
	size_t		i;

	if (watches_set > watches_most)
		watches_most = watches_set;
	if (action->send != ZKL_SEND_MULTI)
		note(action->path, 1, 0);
	for (i = 1; i < action->nmulti; i++)
		note(action->multi[i].path, 1.0 / (double) (action->nmulti - 1), 1);
}

void
figures_submitted(uint32_t name)
{
	if (memory_before == 0)
		memory_before = memory_of_all();
	names[name].waiting++;
}

void
figures_granted(uint32_t name, uint32_t server, int64_t waited)
{
	Name	   *n = &names[name];

	n->waiting--;
	n->kind = !n->queued ? ALONE : n->releaser == server ? LOCAL : FOREIGN;
	if (!counting)
		return;
	work[n->kind].us += agenda_now - n->released_at;
	acquires++;
	waited_sum += waited;
	if (waited > waited_most)
		waited_most = waited;
}

void
figures_released(uint32_t name, uint32_t server)
{
	Name	   *n = &names[name];

	if (counting)
	{
		work[n->kind].releases++;
		work[n->kind].requests += n->requests;
		work[n->kind].writes += n->writes;
	}
	n->requests = n->writes = 0;
	n->releaser = server;
	n->released_at = agenda_now;
	n->queued = n->waiting > 0;
	n->kind = NOT_KNOWN;
}

/* ---- the line ---- */

static double
per(double value, double of)
{
	return of > 0 ? value / of : 0;
}

static void
print_counts(void)
{
	double		n = (double) acquires;

	printf(" rate=%.0f requests=%.3f batches=%.3f lists=%.3f gets=%.3f"
		   " unwatches=%.3f containers=%.3f creates=%.3f deletes=%.3f"
		   " children=%.2f listed_bytes=%.1f continuous=%.4f",
		   n / seconds, figures_requests(), per(counts.multis, n),
		   per(counts.lists, n), per(counts.gets, n),
		   per(counts.unwatches, n), per(counts.containers, n),
		   per(counts.creates, n), per(counts.deletes, n),
		   per((double) counts.listed_children, n),
		   per((double) counts.listed_bytes, n),
		   per((double) continuous, counts.creates));
	printf(" beats_s=%.1f batches_s=%.1f reads_s=%.1f",
		   counts.beats / seconds, counts.multis / seconds,
		   (counts.lists + counts.gets) / seconds);
}

static void
print_servers(void)
{
	int64_t		memory = 0;
	uint32_t	watches = 0;
	uint32_t	i;

	for (i = 0; i < options.servers; i++)
	{
		const Server *s = &servers[i];

		memory = s->worker.most_memory > memory ? s->worker.most_memory : memory;
		watches = s->most_watches > watches ? s->most_watches : watches;
	}
	printf(" watches=%u server_watches=%u memory=%" PRId64,
		   (unsigned) watches_most, (unsigned) watches, memory);

	/* At rest each watch is of a directory that is remembered. */
	printf(" directories=%.0f directory_bytes=%.0f",
		   per(watches_set, options.servers),
		   per((double) (memory_of_all() - memory_before), watches_set));
}

double
figures_requests(void)
{
	return per(counts.multis + counts.lists + counts.gets +
			   counts.unwatches + counts.containers, (double) acquires);
}

void
figures_print(void)
{
	int			kind;

	printf("acquires=%" PRIu64, acquires);
	print_counts();
	for (kind = 0; kind < HANDOVER_KINDS; kind++)
	{
		const Work *w = &work[kind];

		printf(" %s=%" PRIu64 " %s_requests=%.3f %s_writes=%.3f %s_ms=%.3f",
			   kind_names[kind], w->releases,
			   kind_names[kind], per(w->requests, (double) w->releases),
			   kind_names[kind], per(w->writes, (double) w->releases),
			   kind_names[kind],
			   per((double) w->us, (double) w->releases) / 1e3);
	}
	print_servers();
	printf(" wait_ms=%.2f longest_ms=%.1f busy=%.3f\n",
		   per((double) waited_sum, (double) acquires) / 1e3,
		   (double) waited_most / 1e3, busy / seconds);
}
