/*
 * main.c
 *	  Explores the worlds.
 *
 *	  worlds [-w world] [-l levels] [-d delays -f mishaps] [-j jobs] [-s seconds]
 *			 [-n] [-a] [-m mutant]
 *	  worlds -M [-m mutant] [-l levels] ...	(built with ../sim/mutant_list.h)
 *	  worlds -w world -r route [-m mutant]
 *
 * Levels are pairs of bounds, in the order below: all up to that one, or one that is given.
 * A line for each world tells how far it got.  -n: no state is cut because it was seen.
 * -a: delays also of what commutes with all else.  -M: each mutant, up to the first
 * level and world that finds it.  A schedule that breaks a rule is shown as a route, with
 * which -r runs it and prints its trace.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../sim/mutants.h"
#include "../sim/run.h"
#include "../sim/seen.h"
#include "explore.h"

typedef struct Level
{
	int			delays;
	int			mishaps;
} Level;

/* Each finds what those before it did not look at; the cheaper ones first. */
static const Level levels[] = {
	{0, 0}, {1, 0}, {0, 1}, {2, 0}, {1, 1}, {3, 0}, {2, 1}, {0, 2}, {4, 0}, {1, 2}, {3, 1}
};

#define LEVELS	((int) (sizeof(levels) / sizeof(levels[0])))

typedef struct Options
{
	const char *world;			/* NULL: all of them */
	const char *route;
	Bounds		bounds;			/* of one level */
	bool		one_level;
	int			nlevels;
	int			jobs;
	bool		mutants;
} Options;

static bool
is_wanted(const Options *o, const World *w)
{
	return o->world == NULL || strcmp(o->world, w->name) == 0;
}

/* ---- routes ---- */

static void
show_route(const World *w, const Route *route)
{
	int			i;

	printf("# breaks %s: %s\n# -w '%s' -r '", base.rule, base.what, w->name);
	for (i = 0; i < route->n; i++)
		printf("%s%u:%u", i > 0 ? " " : "", route->deviations[i].point,
			   route->deviations[i].what);
	printf("'\n");
	for (i = 0; i < route->n; i++)
		printf("#   event %u: %s\n", route->deviations[i].point,
			   route->deviations[i].what == 0 ? "it is delayed" :
			   mishap_text((Mishap) (route->deviations[i].what - 1)));
}

static Route
read_route(const char *text)
{
	Route		route = {.n = 0};
	unsigned	point,
				what;
	int			length;

	while (route.n < MOST_DEVIATIONS &&
		   sscanf(text, "%u:%u%n", &point, &what, &length) == 2)
	{
		route.deviations[route.n].point = (uint16_t) point;
		route.deviations[route.n++].what = (uint16_t) what;
		text += length;
	}
	return route;
}

static bool
run_route(const Options *o)
{
	Route		route = read_route(o->route);
	const World *w = worlds;

	while (w->name != NULL && !is_wanted(o, w))
		w++;
	base.trace = TRACE_PRINT;
	if (w->name == NULL || explore_route(w, &route))
		return true;
	run_show_state();
	printf("breaks %s: %s\n", base.rule, base.what);
	return false;
}

/* ---- the core as it is shipped ---- */

/* | world | delays with 0, 1 and 2 mishaps | states | schedules | twins | seconds | */
static void
show_world(const World *w, const int *most, const Explored *sum)
{
	int			i;

	printf("| %s |", w->name);
	for (i = 0; i < 3; i++)
		if (most[i] >= 0)
			printf(" %d |", most[i]);
		else
			printf(" |");
	printf(" %llu | %llu | %llu | %.1f |\n", (unsigned long long) sum->states,
		   (unsigned long long) (sum->schedules + sum->cut), (unsigned long long) sum->twins,
		   sum->seconds);
	fflush(stdout);
}

static bool
explore_world(const Options *o, const World *w)
{
	int			most[3] = {-1, -1, -1};
	Explored	sum = {.good = true};
	int			i;

	for (i = 0; i < o->nlevels && sum.good; i++)
	{
		Level		level = o->one_level ? (Level) {o->bounds.delays, o->bounds.mishaps} : levels[i];
		Bounds		bounds = o->bounds;
		Explored	result;

		bounds.delays = level.delays;
		bounds.mishaps = level.mishaps;
		explore(w, &bounds, &result);
		sum.states += result.states;
		sum.schedules += result.schedules;
		sum.cut += result.cut;
		sum.twins += result.twins;
		sum.seconds += result.seconds;
		sum.good = result.good;
		if (!result.good)
			show_route(w, &result.found);
		if (!result.good || !result.complete)
			break;
		if (most[level.mishaps] < level.delays)
			most[level.mishaps] = level.delays;
	}
	show_world(w, most, &sum);
	return sum.good;
}

/* The first job has the first world, and so on. */
static bool
explore_worlds(const Options *o, int job)
{
	const World *w;
	bool		good = true;

	for (w = worlds; w->name != NULL; w++)
		if (is_wanted(o, w) && (w - worlds) % o->jobs == job)
			good &= explore_world(o, w);
	return good;
}

/* ---- mutants ---- */

#ifdef ZKL_MUTANT_LIST

#define MUTANT_NAME(name, text) #name,
static const char *const mutant_names[] = {ZKL_MUTANT_LIST(MUTANT_NAME)};

static void
try_mutant(const Options *o, int mutant)
{
	const World *w;
	Explored	result;
	int			i;

	zkl_mutant = mutant;
	for (i = 0; i < o->nlevels; i++)
		for (w = worlds; w->name != NULL; w++)
		{
			Bounds		bounds = o->bounds;

			bounds.delays = levels[i].delays;
			bounds.mishaps = levels[i].mishaps;
			if (!is_wanted(o, w))
				continue;
			explore(w, &bounds, &result);
			if (result.good)
				continue;
			printf("| %s | %s | %d | %d | %s |\n", mutant_names[mutant], w->name,
				   levels[i].delays, levels[i].mishaps, base.rule);
			return;
		}
	printf("| %s | none | | | |\n", mutant_names[mutant]);
}

/* Each in a process of its own, which the bug may leave in any state */
static bool
try_mutants(const Options *o, int job)
{
	int			chosen = zkl_mutant;	/* 0: all of them */
	int			i;

	for (i = 1 + job; i < ZKL_MUTANT_COUNT; i += o->jobs)
	{
		if (chosen != 0 && chosen != i)
			continue;
		if (fork() == 0)
		{
			try_mutant(o, i);
			fflush(stdout);
			_exit(0);
		}
		if (!wait_for_children(1))
			printf("| %s | crash | | | |\n", mutant_names[i]);
		fflush(stdout);
	}
	return true;
}

#else

static bool
try_mutants(const Options *o, int job)
{
	(void) o;
	(void) job;
	fprintf(stderr, "this program is built without mutants\n");
	return false;
}

#endif

/* ---- options ---- */

static bool
read_options(int argc, char **argv, Options *o)
{
	int			option;

	while ((option = getopt(argc, argv, "w:l:d:f:j:s:nam:Mr:")) != -1)
	{
		if (option == 'w')
			o->world = optarg;
		else if (option == 'l')
			o->nlevels = atoi(optarg);
		else if (option == 'd' || option == 'f')
		{
			*(option == 'd' ? &o->bounds.delays : &o->bounds.mishaps) = atoi(optarg);
			o->one_level = true;
		}
		else if (option == 'j')
			o->jobs = atoi(optarg);
		else if (option == 's')
			o->bounds.seconds = atof(optarg);
		else if (option == 'n')
			o->bounds.hash = false;
		else if (option == 'a')
			o->bounds.everywhere = true;
		else if (option == 'm')
			mutant_choose(optarg);
		else if (option == 'M')
			o->mutants = true;
		else if (option == 'r')
			o->route = optarg;
		else
			return false;
	}
	if (o->one_level)
		o->nlevels = 1;
	return optind == argc && o->jobs > 0 && o->nlevels > 0 && o->nlevels <= LEVELS &&
		o->bounds.delays + o->bounds.mishaps <= MOST_DEVIATIONS && o->bounds.mishaps < 3;
}

static bool
run_jobs(const Options *o)
{
	bool		(*run) (const Options *, int) = o->mutants ? try_mutants : explore_worlds;
	int			job;

	if (o->jobs == 1)
		return run(o, 0);
	for (job = 0; job < o->jobs; job++)
		if (fork() == 0)
		{
			bool		good = run(o, job);

			fflush(stdout);
			_exit(good ? 0 : 1);
		}
	return wait_for_children(o->jobs);
}

int
main(int argc, char **argv)
{
	Options		o = {.nlevels = 6,.jobs = 1,.bounds.hash = true};

	if (!read_options(argc, argv, &o))
	{
		fprintf(stderr, "usage: worlds [-w world] [-l levels] [-d delays -f mishaps] [-j jobs]"
				" [-s seconds] [-n] [-a] [-m mutant] | -M | -w world -r route\n");
		return 2;
	}
	seen_begin();
	return (o.route != NULL ? run_route(&o) : run_jobs(&o)) ? 0 : 1;
}
