/*
 * test_machine.c
 *	  The request machine off the beaten track: every state of a request meets
 *	  every event, then random walks over everything at once.  After each
 *	  event the invariants hold (world.c); in the end, once the others have
 *	  left and ZooKeeper is there, everybody has got his lock and nothing stays
 *	  behind.
 */
#include "machine.h"
#include "unit.h"

static const char *const names[MACHINE_NAMES] = {"/a", "/b/c", "/d"};

/* Everybody else leaves, ZooKeeper is there: all get their turn and go. */
static void
settle(World *w)
{
	uint32_t	round;
	uint32_t	i;

	w->zk.multi_rc = 0;
	w->zk.no_write = w->zk.no_read = NULL;
	for (i = 0; i < MACHINE_NAMES; i++)
		foreign_leave_all(w, names[i]);
	if (!w->connected)
		world_connect(w);
	world_run(w);
	world_sleep(w, 2 * WORLD_BEAT);
	for (round = 0; round < 2 * w->config.max_requests && machine_used(w) > 0; round++)
	{
		for (i = 0; i < w->config.max_requests; i++)
		{
			if (w->requests[i].state != SLOT_FREE && !world_waits(w, i))
				world_leave(w, i);
		}
		world_flush(w);
		world_run(w);
		world_sleep(w, 2 * WORLD_BEAT);
	}
	CHECK_INT(machine_used(w), 0);
	for (i = 0; i < MACHINE_NAMES; i++)
		CHECK_INT(world_nodes(w, names[i]), 0);
	world_check(w);
	world_end(w);
}

static void
begin_case(Case *c, size_t state, uint32_t in_flight)
{
	memset(c, 0, sizeof(*c));
	c->w = world_make();
	c->name = "/a";
	c->w->config.max_requests = MACHINE_REQUESTS;
	c->w->config.batches_in_flight = in_flight;
	world_begin(c->w);
	world_connect(c->w);
	world_run(c->w);
	machine_states[state].enter(c);
}

/* Says which case it was, once something has gone wrong in it. */
static void
end_case(Case *c, int failed_before, size_t state, const size_t *what, int n)
{
	int			i;

	settle(c->w);
	if (unit.failed_checks == failed_before ||
		failed_before > UNIT_MAX_REPORTS)
		return;
	fprintf(stderr, "# ^ %s", machine_states[state].name);
	for (i = 0; i < n; i++)
		fprintf(stderr, " + %s", machine_events[what[i]].name);
	fprintf(stderr, "\n");
}

static void
every_state_and_event(void)
{
	size_t		state;
	size_t		event;

	for (state = 0; state < machine_nstates; state++)
		for (event = 0; event < machine_nevents; event++)
		{
			int			failed = unit.failed_checks;
			Case		c;

			begin_case(&c, state, 2);
			machine_events[event].happen(&c);
			end_case(&c, failed, state, &event, 1);
		}
}

static void
every_state_and_some_events(void)
{
	int			i;

	for (i = 0; i < 6000; i++)
	{
		int			failed = unit.failed_checks;
		size_t		state = unit_random_below(machine_nstates);
		size_t		what[6];
		int			n = 2 + (int) unit_random_below(5);
		int			j;
		Case		c;

		for (j = 0; j < n; j++)
			what[j] = unit_random_below(machine_nevents);
		begin_case(&c, state, 1 + unit_random_below(3));
		for (j = 0; j < n && machine_used(c.w) < MACHINE_REQUESTS - 2; j++)
			machine_events[what[j]].happen(&c);
		end_case(&c, failed, state, what, n);
	}
}

static size_t
next_event(bool wild)
{
	uint32_t	sum = 0;
	uint32_t	pick;
	size_t		i;

	for (i = 0; i < machine_nevents; i++)
		sum += wild ? machine_events[i].wild : machine_events[i].calm;
	pick = unit_random_below(sum);
	for (i = 0;; i++)
	{
		uint32_t	weight = wild ? machine_events[i].wild :
		machine_events[i].calm;

		if (pick < weight)
			return i;
		pick -= weight;
	}
}

static void
walk(Case *c, int steps, uint32_t nnames, bool wild)
{
	while (steps-- > 0)
	{
		uint32_t	tries = 0;

		c->name = names[unit_random_below(nnames)];
		do
			c->r = unit_random_below(MACHINE_REQUESTS);
		while (c->w->requests[c->r].state == SLOT_FREE && tries++ < 40);
		if (machine_used(c->w) > MACHINE_REQUESTS - 4)
		{
			for (tries = 0; tries < MACHINE_REQUESTS; tries++)
				world_leave(c->w, tries);
			world_flush(c->w);
		}
		if (!c->w->connected && unit_random_below(3) == 0)
			world_connect(c->w);
		c->w->worker.now += unit_random_below(2000);
		machine_events[next_event(wild)].happen(c);
	}
}

static void
random_walks(void)
{
	int			i;

	for (i = 0; i < 400; i++)
	{
		uint64_t	start = unit.random;
		int			failed = unit.failed_checks;
		Case		c;

		memset(&c, 0, sizeof(c));
		c.w = world_make();
		c.w->config.max_requests = MACHINE_REQUESTS;
		c.w->config.batches_in_flight = 1 + unit_random_below(3);
		c.w->config.batch_operations = 2 + unit_random_below(6);
		c.w->config.max_directories = unit_random_below(4);
		if (unit_random_below(2) == 0)
			c.w->config.wings = NULL;
		world_begin(c.w);
		world_connect(c.w);
		walk(&c, 300, 1 + unit_random_below(MACHINE_NAMES), i & 1);
		settle(c.w);
		if (unit.failed_checks > failed && failed < UNIT_MAX_REPORTS)
			fprintf(stderr, "# ^ walk %d, random state %" PRIu64 "\n", i,
					start);
	}
}

int
main(void)
{
	unit_start();
	RUN(every_state_and_event);
	RUN(every_state_and_some_events);
	RUN(random_walks);
	return unit_finish();
}
