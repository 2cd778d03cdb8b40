/*
 * main.c
 *	  Runs simulations, seed by seed.
 *
 *	  sim [-s seed] [-n count] [-j jobs] [-t] [-k] [-c] [-m mutant] [-p profile]
 *	  sim -M [-n count] [-j jobs]	(built with mutant_list.h)
 *	  sim -d
 *	  sim [-t] [-m mutant] file ...
 *
 * Owns the clock: whoever is due next acts.  The first seed that breaks a rule
 * ends the run.  It is run once more to print the rule, the seed and the last
 * lines of its trace, those of the cores included (-t: prints all lines as they
 * come; -k: prints the rule only, and goes on with the next seed; -c: counts what must
 * occur, see seen.h).  -m builds a bug into the
 * core, a file is an input of the fuzzer, -M tries all of them and prints a table, -d runs some seeds twice and
 * compares.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mutants.h"
#include "run.h"
#include "seen.h"

static bool keep_going = false;

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
			run_show_failure();
			break;
		}
		run_show_rule();
		fflush(stdout);
	}
	fflush(stdout);
	return good;
}

/* Inputs that the fuzzer has found: see input.h. */
static bool
run_files(char *const *names, int n)
{
	bool		good = true;

	for (; n > 0; n--, names++)
	{
		Input		input;

		if (!input_read_file(*names, &input))
		{
			fprintf(stderr, "cannot read %s\n", *names);
			return false;
		}
		if (run_input(&input))
			continue;
		run_show_failure();
		printf("input %s\n", *names);
		good = false;
	}
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

	while ((option = getopt(argc, argv, "s:n:j:m:p:tkcvMd")) != -1)
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
		else if (option == 'v')
			base.validate = true;
		else if (option == 'c')
			o->counts = true;
		else if (option == 'M')
			o->mutants = true;
		else if (option == 'd')
			o->twice = true;
		else
			return false;
	}
	return o->jobs > 0 && o->count > 0;
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
				" [-m mutant] [-p profile] | -M | -d | file ...\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	seen_begin();
	last = o.first + o.count - 1;
	if (optind < argc)
		return run_files(argv + optind, argc - optind) ? 0 : 1;
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
