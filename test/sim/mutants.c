/*
 * mutants.c
 *	  Cores with a bug: whether the simulation catches them.
 *
 * Owns the choice of the bug.  Does nothing in a program that is built without
 * mutant_list.h, whose core is the one that is shipped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "mutants.h"
#include "run.h"

#ifdef ZKL_MUTANT_LIST

int			zkl_mutant = ZKL_MUTANT_NONE;

#define MUTANT_NAME(name, text) #name,
#define MUTANT_TEXT(name, text) text,
static const char *const mutant_names[] = {ZKL_MUTANT_LIST(MUTANT_NAME)};
static const char *const mutant_texts[] = {ZKL_MUTANT_LIST(MUTANT_TEXT)};

void
mutant_choose(const char *name)
{
	int			i;

	for (i = 0; i < ZKL_MUTANT_COUNT; i++)
		if (strcmp(mutant_names[i], name) == 0)
		{
			zkl_mutant = i;
			return;
		}
	fprintf(stderr, "there is no mutant %s\n", name);
	exit(2);
}

/* One line of the table; false: it got through. */
static bool
try_mutant(int mutant, uint64_t first, uint64_t last)
{
	uint64_t	seed;

	zkl_mutant = mutant;
	for (seed = first; seed <= last; seed++)
		if (!run_seed(seed) && (!base.validate || strcmp(base.rule, SPECIFICATION) == 0))
		{
			printf("| %s | %s | %s | %" PRIu64 " |\n", mutant_names[mutant],
				   mutant_texts[mutant], base.rule, seed);
			return true;
		}
	printf("| %s | %s | **not caught** | |\n", mutant_names[mutant],
		   mutant_texts[mutant]);
	return false;
}

/* Each in a process of its own, which the bug may leave in any state */
bool
mutants_try(uint64_t first, uint64_t last, int jobs)
{
	bool		good = true;
	int			running = 0;
	int			i;

	printf("| mutant | the bug | rule broken | first seed |\n|---|---|---|---|\n");
	fflush(stdout);
	for (i = 1; i < ZKL_MUTANT_COUNT; i++)
	{
		if (running++ == jobs)
		{
			good &= wait_for_children(1);
			running--;
		}
		if (fork() == 0)
		{
			bool		caught = try_mutant(i, first, last);

			fflush(stdout);
			_exit(caught ? 0 : 1);
		}
	}
	return wait_for_children(running < jobs ? running : jobs) && good;
}

#else

static void
refuse(void)
{
	fprintf(stderr, "this program is built without mutants\n");
	exit(2);
}

void
mutant_choose(const char *name)
{
	(void) name;
	refuse();
}

bool
mutants_try(uint64_t first, uint64_t last, int jobs)
{
	(void) first;
	(void) last;
	(void) jobs;
	refuse();
	return false;
}

#endif
