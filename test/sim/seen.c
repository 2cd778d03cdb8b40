/*
 * seen.c
 *	  Counts what must occur in the simulation.
 *
 * Owns the counters, which processes of one run share.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "seen.h"

uint64_t   *seen_counts;

#define SEEN_TEXT(name, text) text,
static const char *const texts[] = {SEEN_LIST(SEEN_TEXT)};

void
seen_begin(void)
{
	seen_counts = mmap(NULL, SEEN_COUNT * sizeof(uint64_t),
					   PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen_counts == MAP_FAILED)
		abort();
}

void
seen_print(void)
{
	int			i;

	for (i = 0; i < SEEN_COUNT; i++)
		printf("seen %" PRIu64 " times: %s\n", seen_counts[i], texts[i]);
}
