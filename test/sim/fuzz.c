/*
 * fuzz.c
 *	  The simulation under a fuzzer (libFuzzer), which looks for inputs that take
 *	  the core where none has taken it before.
 *
 * Owns nothing.  It takes the place of main.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mutants.h"
#include "run.h"
#include "seen.h"

extern int	LLVMFuzzerInitialize(int *argc, char ***argv);
extern int	LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);
extern size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t room,
									  unsigned int seed);

static uint64_t runs;
static time_t begun_at;
static bool measures;			/* with a mutant */

/* ZKL_MUTANT: the bug to look for, to measure how long it takes */
int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *mutant = getenv("ZKL_MUTANT");

	(void) argc;
	(void) argv;
	seen_begin();
	begun_at = time(NULL);
	measures = mutant != NULL;
	if (measures)
		mutant_choose(mutant);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	Input		input;

	input_read(bytes, n, &input);
	runs++;
	if (run_input(&input))
		return 0;
	if (measures)
	{
		printf("found %s after %" PRIu64 " runs, %ld s\n", base.rule, runs,
			   (long) (time(NULL) - begun_at));
		fflush(stdout);
		_exit(0);
	}
	run_show_failure();
	fflush(stdout);
	abort();
}

/*
 * Mostly some changes more, or other ones; seldom another seed, whose changes the
 * present ones then are.
 */
size_t
LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t room, unsigned int seed)
{
	uint64_t	state = seed;
	uint64_t	dice = splitmix64(&state) % 32;
	size_t		most = (room < INPUT_MOST ? room : INPUT_MOST) / 4 - 2;
	size_t		nchanges = n > 8 ? (n - 8) / 4 : 0;
	int			more;

	if (room < 16)
		return n;
	if (n < 8 || dice == 0)
		for (n = 0; n < 8; n++)
			bytes[n] = (uint8_t) splitmix64(&state);
	if (dice == 1 && nchanges > 0)
		nchanges /= 2;
	for (more = 1 << dice % 4; more > 0; more--)
	{
		size_t		i = nchanges < most && splitmix64(&state) % 4 != 0 ? nchanges++ :
		splitmix64(&state) % (nchanges > 0 ? nchanges : nchanges++ + 1);
		uint32_t	place = (uint32_t) (splitmix64(&state) % (base.draws + 1));

		bytes[8 + 4 * i] = (uint8_t) place;
		bytes[8 + 4 * i + 1] = (uint8_t) (place >> 8);
		bytes[8 + 4 * i + 2] = (uint8_t) (place >> 16);
		bytes[8 + 4 * i + 3] = (uint8_t) splitmix64(&state);
	}
	return 8 + 4 * nchanges;
}
