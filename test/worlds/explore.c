/*
 * explore.c
 *	  All schedules of a world.
 *
 * Owns the search, which is no part of a state that is put aside.  Depth first: at
 * each event the schedules that go another way there are run, from an image, before
 * it happens.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../sim/agenda.h"
#include "../sim/oracle.h"
#include "../sim/run.h"
#include "arena.h"
#include "explore.h"

#define TWINS_ONE_IN	1000
#define MOST_AT_ONCE	10000	/* events without time going on */
#define LASTS			(4 * ens.timeout)	/* a world at most, until its end */

typedef struct Search
{
	const Bounds *bounds;
	Explored   *result;
	double		begun;
	Image	   *begin;			/* of the world */
	Image	   *images[MOST_DEVIATIONS + 1];
	Image	   *before_twins;
	Route		route;			/* of the present schedule */
	Time		end;
	Time		at;				/* of the last event */
	int			at_once;		/* events then */
} Search;

static Search *search;			/* from malloc */

static double
seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

/* ---- one schedule ---- */

/*
 * Pings, answers to the leader's pings, and the making of connections commute with all
 * else that can happen at the same time.
 */
static bool
is_point(const Event *e)
{
	return e->kind != EVENT_OTHER || search->bounds->everywhere;
}

static void
deviate(const Event *e, uint16_t what)
{
	if (what == 0)
		schedule_delay(e);
	else
		mishap_happen((Mishap) (what - 1), e);
}

static void
step(const Event *e)
{
	search->result->events++;
	search->at_once = search->at == base.now ? search->at_once + 1 : 0;
	search->at = base.now;
	if (search->at_once == MOST_AT_ONCE)
		broken("liveness", "it never comes to rest");
	agenda_step();
	if (e->kind == EVENT_WORKER && e->host->up && e->host->worker.m != NULL)
		oracle_invariants(e->host);
}

/* The next event, if the world goes on; "quiet": nothing else could happen before. */
static bool
next_event(Event *e, bool *quiet)
{
	Time		due;


	while (!schedule_next(e, &due))
	{
		if (due >= search->end || world_is_over())
			return false;
		base.now = due;
		schedule_wipe();
		*quiet = true;
	}
	return true;
}

static void
come_to_rest(void)
{
	run_calm();
	search->result->schedules++;
}

static void
put_back_image(const Image *image)
{
	arena_restore(image);
	agenda_all_changed();
	(void) agenda_due();
}

/* ---- twins ---- */

/*
 * From here to the end in the natural order: a number for all that is told.  Each deviation
 * of a route is taken at its point.
 */
static uint64_t
run_to_end(const Route *route, uint16_t point)
{
	uint16_t	i = 0;
	Event		e;
	bool		quiet = false;

	while (next_event(&e, &quiet))
	{
		if (is_point(&e))
		{
			if (route != NULL && point == route->point)
				return base.hash;
			while (route != NULL && i < route->n && route->deviations[i].point == point)
				deviate(&e, route->deviations[i++].what);
			point++;
			if (i > 0 && route->deviations[i - 1].point == point - 1)
				continue;
		}
		step(&e);
	}
	run_calm();
	return base.hash;
}

static const char *
route_text(const Route *route)
{
	static char text[MOST_DEVIATIONS * 16];
	size_t		length = 0;
	int			i;

	text[0] = '\0';
	for (i = 0; i < route->n; i++)
		length += (size_t) snprintf(text + length, sizeof(text) - length, "%s%u:%u",
									i > 0 ? " " : "", route->deviations[i].point,
									route->deviations[i].what);
	return text;
}

/* Two states that are held for one go on alike. */
static void
compare_twins(const Route *route)
{
	Route		twin = *route;
	uint64_t	hash;

	search->result->twins++;
	search->before_twins = arena_save(search->before_twins);
	base.hash = 1;
	hash = run_to_end(NULL, 0);
	put_back_image(search->begin);
	(void) run_to_end(&twin, 0);
	base.hash = 1;
	if (run_to_end(NULL, 0) != hash)
		broken("worlds", "two states that were held for one go on differently: here before"
			   " event %u, and before event %u of -r '%s'", search->route.point, twin.point,
			   route_text(&twin));
	put_back_image(search->before_twins);
	arena_find_blocks();
}

/* ---- all schedules ---- */

static bool
is_seen(uint16_t point, int delays, int mishaps)
{
	const Route *twin;

	if (!search->bounds->hash)
		return false;
	search->route.point = point;
	twin = states_see(schedule_hash(), delays, mishaps, &search->route);
	if (twin == NULL)
		return false;
	if (search->result->cut++ % TWINS_ONE_IN == 0)
		compare_twins(twin);
	return true;
}

static void go_on(uint16_t point, int delays, int mishaps);

static bool
is_out_of_time(void)
{
	return search->bounds->seconds > 0 &&
		seconds() - search->begun > search->bounds->seconds;
}

static void
branch(const Event *e, uint16_t point, uint16_t what, int delays, int mishaps)
{
	Image	  **image = &search->images[search->route.n];
	Deviation  *deviation = &search->route.deviations[search->route.n];
	int			at_once;
	Time		at;

	if (!search->result->complete)
		return;
	if (is_out_of_time())
	{
		search->result->complete = false;
		return;
	}
	run_limit_time();
	*image = arena_save(*image);
	at_once = search->at_once;
	at = search->at;
	*deviation = (Deviation)
	{
		.point = point,.what = what
	};
	search->route.n++;
	deviate(e, what);
	go_on(point + 1, delays, mishaps);
	search->route.n--;
	put_back_image(*image);
	search->at_once = at_once;
	search->at = at;
}

static void
branch_all(const Event *e, uint16_t point, int delays, int mishaps)
{
	Mishap		mishap;

	if (delays > 0 && schedule_can_delay(e))
		branch(e, point, 0, delays - 1, mishaps);
	for (mishap = 0; mishap < MISHAPS_COUNT && mishaps > 0; mishap++)
		if (world->mishaps >> mishap & 1 && mishap_can_happen(mishap, e))
			branch(e, point, (uint16_t) (1 + mishap), delays, mishaps - 1);
}

/* From here on, all schedules with so many more delays and mishaps */
static void
go_on(uint16_t point, int delays, int mishaps)
{
	Event		e;
	bool		quiet = true;

	while (search->result->complete && next_event(&e, &quiet))
	{
		if (is_point(&e))
		{
			if (quiet && is_seen(point, delays, mishaps))
				return;
			quiet = false;
			branch_all(&e, point, delays, mishaps);
			point++;
		}
		step(&e);
	}
	if (search->result->complete)
		come_to_rest();
}

static void
begin(const World *w)
{
	const Input input = {.seed = 1};

	if (search == NULL && (search = calloc(1, sizeof(*search))) == NULL)
		abort();
	memset(&search->route, 0, sizeof(search->route));
	world = w;
	run_limit_time();
	base_begin(&input);
	base.natural = true;
	base.profile = PROFILE_WIDE;
}

void
explore(const World *w, const Bounds *bounds, Explored *result)
{
	memset(result, 0, sizeof(*result));
	begin(w);
	search->bounds = bounds;
	search->result = result;
	search->begun = seconds();
	result->complete = result->good = true;
	states_begin();
	if (setjmp(base.stop) == 0)
	{
		world_begin();
		search->end = base.now + LASTS;
		search->begin = arena_save(search->begin);
		go_on(0, bounds->delays, bounds->mishaps);
	}
	else
	{
		result->good = false;
		result->found = search->route;
	}
	result->states = states_count();
	result->seconds = seconds() - search->begun;
}

bool
explore_route(const World *w, const Route *route)
{
	static const Bounds none;
	static Explored result;		/* of no interest */
	Route		whole = *route;

	begin(w);
	search->bounds = &none;
	search->result = &result;
	whole.point = UINT16_MAX;
	if (setjmp(base.stop) != 0)
		return false;
	world_begin();
	search->end = base.now + LASTS;
	(void) run_to_end(&whole, 0);
	return true;
}
