/*
 * main.c
 *	  Runs simulations, seed by seed.
 *
 *	  sim [-s seed] [-n count] [-j jobs] [-t] [-k] [-c] [-m mutant] [-p profile]
 *	  sim -M [-n count] [-j jobs]	(built with ZKL_MUTANTS)
 *	  sim -d
 *
 * Owns the clock: whoever is due next acts.  The first seed that breaks a rule
 * ends the run.  It is run once more to print the rule, the seed and the last
 * lines of its trace, those of the cores included (-t: prints all lines as they
 * come; -k: prints the rule only, and goes on with the next seed; -c: counts what must
 * occur, see seen.h).  -m builds a bug into the
 * core, -M tries all of them and prints a table, -d runs some seeds twice and
 * compares.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agenda.h"
#include "backend.h"
#include "chaos.h"
#include "mutants.h"
#include "oracle.h"
#include "seen.h"

#define LONGEST_CALM	60		/* timeouts until all must be at rest */
#define MOST_EVENTS		2000000

static bool keep_going = false;

static void
run_until(Time end, bool (*enough) (void))
{
	uint64_t	steps = 0;

	while (enough == NULL || !enough())
	{
		Time		due = agenda_due();

		if (due > end)
			break;
		if (++steps > MOST_EVENTS)
			broken("liveness", "it never comes to rest");
		if (due > base.now)
			base.now = due;
		agenda_step();
	}
}

static bool
at_rest(void)
{
	int			i,
				j;

	if (!backends_idle() || !foreign_idle())
		return false;
	for (i = 0; i < hosts.n; i++)
		for (j = 0; j < MAX_SLOTS; j++)
			if (hosts.host[i].slots[j].state != SLOT_FREE)
				return false;
	return true;
}

static void
end_hosts(void)
{
	int			i;

	for (i = 0; i < hosts.n; i++)
		worker_kill(&hosts.host[i], NEVER);
}

static void
check_rest(void)
{
	int			i,
				j;

	if (at_rest())
		return;
	for (i = 0; i < hosts.n; i++)
		for (j = 0; j < MAX_SLOTS; j++)
			if (hosts.host[i].slots[j].state != SLOT_FREE)
				broken("liveness", "host %d slot %d stays in state %d", i, j,
					   (int) hosts.host[i].slots[j].state);
	broken("liveness", "a client is not through");
}

bool
run_seed(uint64_t seed)
{
	base_begin(seed);
	if (setjmp(base.stop) != 0)
		return false;
	agenda_begin();
	ensemble_begin();
	oracle_begin();
	chaos_begin();
	run_until(chaos_end(), NULL);
	base.now = chaos_end();
	chaos_calm();
	run_until(base.now + LONGEST_CALM * ens.timeout, at_rest);
	check_rest();
	run_until(base.now + 2 * ens.longest + 2 * ens.tick + 2 * ens.late, NULL);
	check_rest();
	oracle_quiet();
	end_hosts();
	return true;
}

static void
show_item(void *context, const ZklDumpItem *item)
{
	(void) context;
	printf("    %s %s: %s\n", item->item, item->path, item->state);
}

/* Who is where at the end, and what the core of each host believes */
static void
show_state(void)
{
	Path	   *path;
	int			i,
				j;

	for (path = tree_newest(); path != NULL; path = path->all)
		if (path->node[HEAD].exists &&
			path->node[HEAD].stat.ephemeral_owner != 0)
			printf("  session %" PRId64 ": %s\n",
				   path->node[HEAD].stat.ephemeral_owner, path->text);
	for (i = 0; i < hosts.n; i++)
	{
		const Host *h = &hosts.host[i];

		printf("  host %d: session %" PRId64 ", conn %d, lease for %" PRId64
			   " ms\n", i, h->worker.session.id, h->conn ? h->conn->id : -1,
			   h->lease_ms - host_clock(h) / 1000);
		for (j = 0; j < MAX_SLOTS; j++)
			if (h->slots[j].state != SLOT_FREE)
				printf("    slot %d: state %d, owner %" PRIu64 ", %s, mode %d"
					   ", number %" PRId64 "\n", j, (int) h->slots[j].state,
					   h->slots[j].owner, lock_name(h->slots[j].lock),
					   (int) h->slots[j].mode, h->slots[j].seq);
		if (h->worker.m != NULL)
			zkl_manager_dump(h->worker.m, host_clock(h), show_item, NULL);
	}
	for (i = 0; i < foreigners.n; i++)
	{
		const Foreign *f = &foreigners.foreign[i];

		printf("  client %d: session %" PRId64 ", conn %d, phase %d, %s\n", i,
			   f->session, f->conn ? f->conn->id : -1, (int) f->phase,
			   f->node ? f->node : "");
	}
}

static void
show_rule(void)
{
	printf("seed %" PRIu64 " (%s) breaks %s: %s\n", base.seed,
		   profile_name(base.profile), base.rule, base.what);
}

static void
show_failure(uint64_t seed)
{
	if (base.trace == TRACE_HASH)
	{
		show_rule();
		base.trace = TRACE_KEEP;
		if (run_seed(seed))
		{
			printf("seed %" PRIu64 " does not repeat\n", seed);
			return;
		}
		printf("the last of %" PRIu64 " lines:\n", base.lines);
		trace_print_last();
	}
	show_state();
	show_rule();
}

/* Seeds first, first + stride and so on; false: one breaks a rule */
static bool
run_seeds(uint64_t first, uint64_t last, uint64_t stride)
{
	uint64_t	seed;
	bool		good = true;

	for (seed = first; seed <= last; seed += stride)
	{
		if (run_seed(seed))
			continue;
		good = false;
		if (!keep_going)
		{
			show_failure(seed);
			break;
		}
		show_rule();
		fflush(stdout);
	}
	fflush(stdout);
	return good;
}

bool
wait_for_children(int n)
{
	bool		good = true;
	int			status;

	while (n-- > 0)
		good &= wait(&status) > 0 && WIFEXITED(status) &&
			WEXITSTATUS(status) == 0;
	return good;
}

static bool
run_jobs(uint64_t first, uint64_t last, int jobs)
{
	int			i;

	fflush(stdout);
	for (i = 0; i < jobs; i++)
		if (fork() == 0)
			_exit(run_seeds(first + (uint64_t) i, last, (uint64_t) jobs) ?
				  0 : 1);
	return wait_for_children(jobs);
}

static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

/* The same seed, the same run */
static bool
run_twice(uint64_t first, uint64_t last)
{
	uint64_t	seed;

	for (seed = first; seed <= last; seed++)
	{
		uint64_t	hash;

		(void) run_seed(seed);
		hash = base.hash;
		(void) run_seed(seed);
		if (base.hash != hash)
		{
			printf("seed %" PRIu64 " does not repeat\n", seed);
			return false;
		}
	}
	return true;
}

static void
show_rate(uint64_t first, uint64_t last, double time)
{
	uint64_t	n[PROFILES] = {0};
	uint64_t	seed;
	int			i;

	for (seed = first; seed <= last; seed++)
		n[profile_of(seed)]++;
	printf("%" PRIu64 " schedules", last - first + 1);
	for (i = 0; i < PROFILES; i++)
		printf("%s %" PRIu64 " %s", i == 0 ? ":" : ",", n[i],
			   profile_name((Profile) i));
	printf("; %.0f a second\n", (double) (last - first + 1) / time);
}

typedef struct Options
{
	uint64_t	first;
	uint64_t	count;
	int			jobs;
	bool		mutants;
	bool		twice;
	bool		counts;
} Options;

static bool
read_options(int argc, char **argv, Options *o)
{
	int			option;

	while ((option = getopt(argc, argv, "s:n:j:m:p:tkcMd")) != -1)
	{
		if (option == 's')
			o->first = strtoull(optarg, NULL, 10);
		else if (option == 'n')
			o->count = strtoull(optarg, NULL, 10);
		else if (option == 'j')
			o->jobs = atoi(optarg);
		else if (option == 'm')
			mutant_choose(optarg);
		else if (option == 'p' && profile_choose(optarg))
			continue;
		else if (option == 't')
			base.trace = TRACE_PRINT;
		else if (option == 'k')
			keep_going = true;
		else if (option == 'c')
			o->counts = true;
		else if (option == 'M')
			o->mutants = true;
		else if (option == 'd')
			o->twice = true;
		else
			return false;
	}
	return optind == argc && o->jobs > 0 && o->count > 0;
}

int
main(int argc, char **argv)
{
	Options		o = {.first = 1,.count = 1,.jobs = 1};
	double		begin = seconds();
	uint64_t	last;
	bool		good;

	if (!read_options(argc, argv, &o))
	{
		fprintf(stderr, "usage: sim [-s seed] [-n count] [-j jobs] [-t] [-k] [-c]"
				" [-m mutant] [-p profile] | -M | -d\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	seen_begin();
	last = o.first + o.count - 1;
	good = o.mutants ? mutants_try(o.first, last, o.jobs) :
		o.twice ? run_twice(o.first, last) :
		o.jobs > 1 ? run_jobs(o.first, last, o.jobs) :
		run_seeds(o.first, last, 1);
	if (o.counts)
		seen_print();
	if (good && !o.mutants)
		show_rate(o.first, last, seconds() - begin);
	return good ? 0 : 1;
}
