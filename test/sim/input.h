/*
 * input.h
 *	  From what a simulation follows: a seed, and changes of single draws.
 *
 * As bytes: eight for the seed, the lowest first, then four for each change: three
 * for its place among the draws, and one that says what becomes of the draw.  The
 * draws behind a change are those of the seed.  A fuzzer looks for changes; without
 * any, the input is the seed.
 */
#ifndef SIM_INPUT_H
#define SIM_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INPUT_DRAWS		(1 << 17)	/* those behind cannot be changed */
#define INPUT_CHANGES	256
#define INPUT_MOST		(8 + 4 * INPUT_CHANGES) /* bytes */

typedef struct Input
{
	uint64_t	seed;
	const uint8_t *changes;		/* records as above */
	size_t		n;				/* of them */
} Input;

/* The bytes stay in use. */
extern void input_read(const uint8_t *bytes, size_t n, Input *input);
extern bool input_read_file(const char *name, Input *input);

/* Where the changes of an input stand by their places; NULL: it has none. */
extern const uint8_t *input_spread(const Input *input);

#endif							/* SIM_INPUT_H */
