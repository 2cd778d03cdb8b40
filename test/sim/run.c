/*
 * run.c
 *	  Runs one simulation, and shows how it ended.
 *
 * Owns the clock: whoever is due next acts.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "../spec/validate.h"
#include "agenda.h"
#include "backend.h"
#include "chaos.h"
#include "observe/inspect.h"
#include "oracle.h"
#include "run.h"

#define LONGEST_CALM	60		/* timeouts until all must be at rest */
#define MOST_EVENTS		2000000
#define MOST_SECONDS	120		/* of processor time for a seed; few need one */

static Input last;

/* A loop within one step: the number of events does not tell. */
static void
ran_on(int number)
{
	(void) number;
	broken("liveness", "a step does not end");
}

void
run_limit_time(void)
{
	const struct itimerval limit = {.it_value.tv_sec = MOST_SECONDS};
	const struct sigaction action = {.sa_handler = ran_on,.sa_flags = SA_NODEFER};

	sigaction(SIGVTALRM, &action, NULL);
	setitimer(ITIMER_VIRTUAL, &limit, NULL);
}

void
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

void
run_calm(void)
{
	chaos_calm();
	run_until(base.now + LONGEST_CALM * ens.timeout, at_rest);
	check_rest();

	/* A worker that has taken over begins a session late. */
	run_until(base.now + 3 * ens.longest + 4 * ens.tick + 2 * ens.late, NULL);
	check_rest();
	oracle_quiet();
	end_hosts();
}

bool
run_input(const Input *input)
{
	last = *input;
	run_limit_time();
	base_begin(input);
	if (base.validate)
		spec_begin();
	if (setjmp(base.stop) != 0)
		return false;
	agenda_begin();
	ensemble_begin();
	oracle_begin();
	chaos_begin();
	run_until(chaos_end(), NULL);
	base.now = chaos_end();
	run_calm();
	return true;
}

bool
run_seed(uint64_t seed)
{
	Input		input = {.seed = seed};

	return run_input(&input);
}

static void
show_item(void *context, const ZklDumpItem *item)
{
	(void) context;
	printf("    %s %s: %s\n", item->item, item->path, item->state);
}

/* Who is where at the end, and what the core of each host believes */
void
run_show_state(void)
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
					   (int) h->slots[j].mode, h->slots[j].record.seq);
		if (h->worker.m != NULL)
			zkl_dump_write(h->worker.m, host_clock(h), show_item, NULL);
	}
	for (i = 0; i < foreigners.n; i++)
	{
		const Foreign *f = &foreigners.foreign[i];

		printf("  client %d: session %" PRId64 ", conn %d, phase %d, %s\n", i,
			   f->session, f->conn ? f->conn->id : -1, (int) f->phase,
			   f->node ? f->node : "");
	}
}

void
run_show_rule(void)
{
	printf("seed %" PRIu64 " (%s) breaks %s: %s\n", base.seed,
		   profile_name(base.profile), base.rule, base.what);
}

void
run_show_failure(void)
{
	if (base.trace == TRACE_HASH)
	{
		run_show_rule();
		base.trace = TRACE_KEEP;
		if (run_input(&last))
		{
			printf("seed %" PRIu64 " does not repeat\n", last.seed);
			return;
		}
		printf("the last of %" PRIu64 " lines:\n", base.lines);
		trace_print_last();
	}
	run_show_state();
	run_show_rule();
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
